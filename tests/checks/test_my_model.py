"""The learner's model as a file: written from the cells of notebook 5, read by notebook 6."""

import importlib.util
import sys

import pytest
import torch

from attnlab import TinyTransformer, causal_mask, checks
from attnlab.checks import my_model, sandbox

SETUP = """
import math
import torch
import torch.nn.functional as F
from torch import nn
from attnlab import (
    attention,
    causal_mask,
    rope,
)
shape = "a name that an attribute has, too"
"""

HEADS = """
class MyMultiHeadAttention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        if width % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {width}")
        self.n_heads = n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (linear(width) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (my_split(w(x), self.n_heads) for w in (self.w_q, self.w_k, self.w_v))
        at = torch.arange(x.shape[1])  # my own comment
        steps = attention(rope(q, at, layout="half"), rope(k, at, layout="half"), v, mask)
        return self.w_o(steps.output.transpose(1, 2).reshape(x.shape))


checks.multi_head(MyMultiHeadAttention)
"""

HELPERS = """
def linear(width):
    return nn.Linear(width, width, bias=False)


def my_split(x, n_heads):
    B, S, D = x.shape
    return x.reshape(B, S, n_heads, D // n_heads).transpose(1, 2)
"""

NORM = """
EPS = 1e-6


def my_rms_norm(x, weight):
    return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * weight


checks.rms_norm(my_rms_norm)
"""

MLP = """
def my_swiglu(x, gate_up, down):
    gate, up = (x @ gate_up.T).chunk(2, dim=-1)
    return (F.silu(gate) * up) @ down.T
"""

BLOCK = """
class MyBlock(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.attention = MyMultiHeadAttention(width, n_heads)
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate_up = nn.Linear(width, 8 * width, bias=False).weight
        self.down = nn.Linear(4 * width, width, bias=False).weight

    def forward(self, x, mask=None):
        x = x + self.attention(my_rms_norm(x, self.attention_norm), mask)
        return x + my_swiglu(my_rms_norm(x, self.mlp_norm), self.gate_up, self.down)
"""

STACK = """
class MyTransformer(nn.Module):
    def __init__(self, vocab_size, width, n_heads, n_layers, max_length):
        super().__init__()
        self.vocab_size, self.max_length = vocab_size, max_length
        self.emb = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(MyBlock(width, n_heads) for _ in range(n_layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.lm_head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, ids):
        x, mask = self.emb(ids), causal_mask(ids.shape[1])
        for block in self.blocks:
            x = block(x, mask)
        return self.lm_head(my_rms_norm(x, self.norm))
"""

UNDONE = "def my_rms_norm(x, weight):\n    return ..."
CELLS = [SETUP, UNDONE, HELPERS, HEADS, NORM, MLP, BLOCK, STACK, "print(checks.write_model(...))"]
WRITTEN = "Your transformer is in my_model.py, beside this notebook: open it and read it."
LEFT = "my_model.py is not written yet. Still to do, or to run again: "


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notebook(cells):
    """The globals of a notebook in which these cells were run; exercises are not checked there."""
    names = {"__name__": "__main__", "checks": checks}
    for cell in cells:
        exec("" if "write_model" in cell else cell, names)
    return names | {"In": ["", *cells]}


def write(*cells):
    return checks.write_model(notebook(cells))


def imported(folder):
    """The file as a module, imported as any program would."""
    spec = importlib.util.spec_from_file_location("my_own", folder / "my_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def logits(model, state):
    """The logits of a model of these parameters."""
    model = model(11, 12, 3, 2, 9)
    model.load_state_dict(state)
    return model(torch.tensor([[1, 10, 4, 4, 0], [7, 3, 2, 9, 5]]))


# --- Written --------------------------------------------------------------------------------


def test_the_file_holds_the_cells_as_typed_with_what_they_need_and_can_be_imported(folder):
    assert write(*CELLS) == WRITTEN
    text = (folder / "my_model.py").read_text(encoding="utf-8")
    assert text.startswith('"""My transformer, as I wrote it in notebook 5."""\n\nfrom attnlab')
    assert HEADS.partition("\n\n\nchecks")[0].strip() in text and "# my own comment" in text
    assert "EPS = 1e-6" in text and "def linear" in text
    for absent in ("import math", "shape =", "checks", "return ..."):
        assert absent not in text
    state = TinyTransformer(11, 12, 3, 2, 9).state_dict()
    own = logits(imported(folder).MyTransformer, state)
    checks.assert_close(own, logits(TinyTransformer, state))
    assert [path.name for path in folder.iterdir()] == ["my_model.py"]


def test_the_last_version_that_passes_is_taken(folder):
    worse = NORM.replace("* weight", "* 2 * weight")
    later = NORM.replace("x.square()", "(x * x)")
    assert write(*CELLS, later, worse) == WRITTEN
    assert "(x * x).mean" in (folder / "my_model.py").read_text(encoding="utf-8")
    names = notebook(CELLS)
    names["In"] += ["x = (", "y = 1\0", later]  # cells that could not run
    assert checks.write_model(names) == WRITTEN


def test_what_is_missing_is_named_and_nothing_is_written(folder):
    assert write(SETUP) == LEFT + "my_rms_norm, my_swiglu, MyMultiHeadAttention, MyBlock, " \
        "MyTransformer."  # fmt: skip
    without_norm = [cell for cell in CELLS if cell != NORM]
    assert write(*without_norm).startswith(LEFT + "my_rms_norm, ")
    wrong = BLOCK.replace("x = x + self", "x = self")
    assert write(*[wrong if cell == BLOCK else cell for cell in CELLS]) == LEFT + "MyBlock, " \
        "MyTransformer."  # fmt: skip
    assert checks.write_model({}).startswith(LEFT + "my_rms_norm, my_swiglu, ")
    assert [*folder.iterdir()] == []


def test_a_part_that_is_lent_is_still_to_do_and_the_others_are_not():
    names = notebook([cell for cell in CELLS if cell != NORM])
    names["my_rms_norm"] = checks.stand_in(names["my_rms_norm"], checks.rms_norm)
    names["In"].append("my_rms_norm = checks.stand_in(my_rms_norm, checks.rms_norm)")
    assert checks.write_model(names) == LEFT + "my_rms_norm."


def test_nothing_is_written_into_a_course_whose_notebooks_have_their_sources_beside_them(folder):
    pair = [folder / "05_heads.ipynb", folder / "05_heads.py"]
    for path in pair:
        path.touch()
    assert write(*CELLS) == (
        "my_model.py is not written into the course's own folder: work in your copy (make lab)."
    )
    assert sorted(folder.iterdir()) == pair
    pair[1].unlink()  # a learner's copy
    assert write(*CELLS) == WRITTEN


def test_a_file_that_was_changed_by_hand_is_kept(folder):
    (folder / "my_model.py").write_text("mine = 1\n", encoding="utf-8")
    assert write(*CELLS) == write(*CELLS) == WRITTEN
    assert (folder / "my_model_before.py").read_text(encoding="utf-8") == "mine = 1\n"


# --- Lent -----------------------------------------------------------------------------------


def test_ours_stands_in_until_the_learners_own_passes_and_is_no_answer():
    names = notebook(CELLS)
    own = names["my_rms_norm"]
    assert checks.stand_in(own, checks.rms_norm) is own
    lent = checks.stand_in(lambda x, weight: ..., checks.rms_norm)
    x = torch.tensor([[3.0, 4.0]])
    checks.assert_close(lent(x, torch.ones(2)), own(x, torch.ones(2)))
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    for name, check in my_model.PARTS.items():
        check = checks.REGISTRY[check]
        lent = checks.stand_in(..., check)
        assert repr(check(lent)) == "… Not done yet: for now, ours stands in for yours."
        if name in ("MyMultiHeadAttention", "MyBlock"):
            one, other = lent(12, 3), names[name](12, 3)
            other.load_state_dict(one.state_dict())
            checks.assert_close(one(x, causal_mask(5)), other(x, causal_mask(5)))


# --- Read -----------------------------------------------------------------------------------


def test_the_learners_model_is_loaded():
    write(*CELLS)
    model, said = checks.load_model()
    assert said == "This is your own transformer, from my_model.py."
    state = TinyTransformer(11, 12, 3, 2, 9).state_dict()
    checks.assert_close(logits(model, state), logits(TinyTransformer, state))
    assert "my_model" not in sys.modules


def change(folder, old, new):
    text = (folder / "my_model.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "my_model.py").write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("class MyTransformer(", "class MyTransformer", "importing it raised SyntaxError: "),
        ("EPS = 1e-6", "EPS = 1 / 0", "importing it raised ZeroDivisionError: division by zero."),
        ("EPS = 1e-6", "EPS = 1e-6\nraise SystemExit", "importing it raised SystemExit."),
        ("class MyTransformer", "class Other", "it has no class MyTransformer."),
        (
            "causal_mask(ids.shape[1])",
            "None",
            "MyTransformer does not pass its check. The causal mask is missing",
        ),
        ("return self.lm_head", "return self.head", "MyTransformer does not pass its check. With"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_a_sentence(folder, old, new, problem):
    write(*CELLS)
    change(folder, old, new)
    model, said = checks.load_model()
    assert model is None
    assert said.startswith(f"my_model.py is not used: {problem}")
    assert said.endswith(". The course's model is used instead.") and ".." not in said


def test_a_file_that_never_ends_or_takes_long_is_not_used(folder, monkeypatch):
    write(*CELLS)
    wait = "        for _ in range(2_000_000): math.sin(1)\n"
    change(folder, "        x, mask", wait + "        x, mask")
    change(folder, "from torch import nn", "import math\nfrom torch import nn")
    model, said = checks.load_model()
    assert model is None and "times as long as the course's model" in said
    change(folder, "EPS = 1e-6", "EPS = 1e-6\nwhile True: pass")
    monkeypatch.setattr(sandbox, "LIMIT", 2.0)
    assert checks.load_model() == (
        None,
        "my_model.py is not used: it was not imported after 2 seconds. "
        "The course's model is used instead.",
    )


def test_without_a_file_the_courses_model_is_used(folder):
    there = "There is no my_model.py here yet (notebook 5 writes it): the course's is used."
    assert checks.load_model() == (None, there)
    assert checks.load_model(TinyTransformer, folder / "elsewhere") == (None, there)
