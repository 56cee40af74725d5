"""The learner's own path: exercises solved in their copy of notebook 5 become ``my_model.py``."""

import importlib.util

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from support import COURSE, code_cells

from attnlab import TinyTransformer, checks
from attnlab.editions import notebooks

# What a learner types in place of the dots.
ANSWERS = {
    "5.1": {
        "        ...  # refuse some widths; keep n_heads; make w_q, w_k, w_v, w_o": """\
        if width % n_heads != 0:
            raise ValueError("no such heads")
        self.n_heads = n_heads
        self.w_q = nn.Linear(width, width, bias=False)
        self.w_k = nn.Linear(width, width, bias=False)
        self.w_v = nn.Linear(width, width, bias=False)
        self.w_o = nn.Linear(width, width, bias=False)""",
        "        return ...  # your lines here": """\
        at = torch.arange(x.shape[1])
        q = rope(split_heads(self.w_q(x), self.n_heads), at, layout="half")
        k = rope(split_heads(self.w_k(x), self.n_heads), at, layout="half")
        v = split_heads(self.w_v(x), self.n_heads)
        output = attention(q, k, v, mask).output  # my own comment
        return self.w_o(merge_heads(output))""",
    },
    "5.2": {
        "    return ...  # your line here": """\
    mean = (x**2).mean(dim=-1, keepdim=True)
    return weight * x / torch.sqrt(mean + 1e-6)"""
    },
    "5.3": {
        "    return ...  # your lines here": """\
    both = x @ gate_up.T
    gate, up = both.chunk(2, dim=-1)
    return (F.silu(gate) * up) @ down.T"""
    },
    "5.4": {
        "        return ...  # your lines, with my_rms_norm and my_swiglu": """\
        x = x + self.attention(my_rms_norm(x, self.attention_norm), mask)
        return x + my_swiglu(my_rms_norm(x, self.mlp_norm), self.gate_up, self.down)"""
    },
    "5.5": {
        "        return ...  # your lines here": """\
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x, causal_mask(ids.shape[1]))
        return self.lm_head(my_rms_norm(x, self.norm))"""
    },
}


def run(folder, answers):
    """The learner's edition of notebook 5 with these exercises solved, run in a folder."""
    stored = (COURSE / "05_heads_and_positions.ipynb").read_bytes()
    edition = notebooks.learners(notebooks.parse(stored))
    for cell in edition["cells"]:
        number = cell["metadata"].get("title", "").removeprefix("Exercise ")
        for old, new in answers.get(number, {}).items():
            assert cell["source"].count(old) == 1, number
            cell["source"] = cell["source"].replace(old, new)
    path = folder / "05.ipynb"
    path.write_bytes(notebooks.serialize(edition))
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, resources=resources).execute()
    said = {}
    for cell in code_cells(notebook):
        texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
        said[cell.metadata.title] = "".join(texts)
    return said


def test_the_solved_exercises_become_a_file_that_equals_the_package(tmp_path, monkeypatch, figure):
    said = run(tmp_path, ANSWERS)
    assert all(said[f"Exercise {number}"].startswith("✓ Right") for number in ANSWERS)
    assert said["Your transformer as a file"].startswith("Your transformer is in my_model.py")
    assert "5 of 12 exercises done" in said["My progress"]
    spec = importlib.util.spec_from_file_location("own", tmp_path / "my_model.py")
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    sizes, ids = (11, 20, 2, 3, 9), torch.tensor([[1, 10, 4, 4, 0], [7, 3, 2, 9, 5]])
    theirs, mine = TinyTransformer(*sizes), own.MyTransformer(*sizes)
    mine.load_state_dict(theirs.state_dict())
    checks.assert_close(mine(ids), theirs(ids))
    text = (tmp_path / "my_model.py").read_text(encoding="utf-8")
    assert "# my own comment" in text and "solution" not in text and "stand_in" not in text
    monkeypatch.chdir(tmp_path)
    model, sentence = checks.load_model()
    assert model is not None, sentence
    figure(f"my_model.py: {len(text.splitlines())} lines, logits equal to the package's")


@pytest.mark.parametrize("left", ["5.1", "5.4"])
def test_every_other_exercise_passes_when_one_is_left_out(tmp_path, left):
    said = run(tmp_path, {number: lines for number, lines in ANSWERS.items() if number != left})
    for number in ANSWERS:
        start = "… Not done yet: " if number == left else "✓ Right"
        assert said[f"Exercise {number}"].startswith(start), said[f"Exercise {number}"]
    assert said["Your transformer as a file"].startswith("my_model.py is not written yet.")
    assert not (tmp_path / "my_model.py").exists()
