"""The package as a whole: the names it promises, the storeys of its modules, and their size."""

import ast
import graphlib
import inspect
import io
import re
import subprocess
import sys
import tokenize

import pytest
from support import ROOT

import attnlab
from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    attention,
    causal_mask,
    generate,
    merge_heads,
    padding_mask,
    rope,
    sinusoidal_positions,
    split_heads,
    train,
)

PACKAGE = ROOT / "src/attnlab"
MODULES = {
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# --- Names ----------------------------------------------------------------------------------

SIGNATURES = {
    attention: "(q, k, v, mask=None, scale=None)",
    causal_mask: "(n_queries, n_keys=None, *, device=None)",
    padding_mask: "(lengths, size)",
    split_heads: "(x, n_heads)",
    merge_heads: "(x)",
    sinusoidal_positions: "(n, width)",
    rope: "(x, positions, base=10000.0, layout='interleaved')",
    MultiHeadAttention: "(width, n_heads, n_kv_heads=None, rope=None, bias=False)",
    MultiHeadAttention.forward: "(self, x, context=None, mask=None, cache=None)",
    TinyCausalAttention: "(vocab_size=5, dim=12)",
    TinyCausalAttention.forward: "(self, ids)",
    TinyCausalAttention.steps: "(self, ids)",
    TinyTransformer: "(vocab_size, width, n_heads, n_layers, max_length, n_kv_heads=None, *, "
    "hidden=None, base=10000.0, eps=1e-06, tied=False)",
    TinyTransformer.forward: "(self, ids, mask=None, cache=None)",
    TinyTransformer.steps: "(self, ids)",
    KVCache: "(n_layers, batch, n_kv_heads, capacity, head_dim, dtype=torch.float32, device=None)",
    KVCache.layer: "(self, index)",
    KVCache.reset: "(self)",
    generate: "(model, ids, max_new_tokens, use_cache=True, temperature=0.0, generator=None, *, "
    "lengths=None, top_k=None, top_p=None, stop=None)",
}


@pytest.mark.parametrize("promised", SIGNATURES, ids=lambda x: x.__qualname__)
def test_names_and_order_of_arguments_are_as_promised(promised):
    signature = inspect.signature(promised)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[promised]
    assert inspect.getdoc(promised)


def test_train_begins_as_promised():
    names = list(inspect.signature(train).parameters)
    assert names[:7] == ["model", "inputs", "targets", "steps", "lr", "seed", "on_step"]


def test_everything_promised_is_at_the_top_level():
    promised = {x.__name__ for x in SIGNATURES if "." not in x.__qualname__}
    assert promised | {"AttentionSteps", "History", "train"} == set(attnlab.__all__)
    assert all(hasattr(attnlab, name) for name in attnlab.__all__)


# --- The storeys ----------------------------------------------------------------------------

# what a storey may import: of this package, and of others
PAGE = {"matplotlib", "PIL", "IPython", "ipywidgets", "anywidget", "traitlets", "markdown_it"}
MAY_IMPORT = {
    "ground floor": ({"ground floor"}, {"torch"}),
    "llama": ({"ground floor"}, {"torch", "safetensors", "tokenizers"}),
    "data": ({"data"}, {"torch", "numpy"}),
    "lab": ({"lab"}, {"torch", "numpy"} | PAGE),
    "checks": ({"checks", "ground floor", "data", "lab"}, {"torch", "numpy"}),
    "editions": ({"editions"}, {"jupyterlab", "jupyter_server"}),
    "step": ({"step", "ground floor", "data", "lab"}, {"torch"} | PAGE),
}


def storey(module):
    """The storey of a module: its folder or its own name, or else the ground floor."""
    _, *parts = module.split(".")
    own = bool(parts) and (parts[0] in MAY_IMPORT or (PACKAGE / parts[0]).is_dir())
    return parts[0] if own else "ground floor"


def imported(module):
    """The modules that a module imports, wherever it does: of this package, and other packages."""
    ours, others = set(), set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] != "attnlab":
                others.add(name.split(".")[0])
                continue
            while not {name, f"{name}.__init__"} & MODULES.keys():
                name = name.rpartition(".")[0]
            ours.add(name if name in MODULES else f"{name}.__init__")
    return ours - {module}, others - set(sys.stdlib_module_names)


@pytest.mark.parametrize("module", MODULES)
def test_a_storey_imports_only_what_stands_below_it(module):
    ours, others = imported(module)
    storeys, packages = MAY_IMPORT[storey(module)]
    assert {storey(name) for name in ours} <= storeys
    assert others <= packages


def test_no_module_imports_itself_by_way_of_others():
    assert len(MODULES) > 20
    graphlib.TopologicalSorter({module: imported(module)[0] for module in MODULES}).prepare()


def test_importing_the_package_loads_no_pictures_and_no_widgets():
    code = """
import sys, attnlab
print(*sorted({name.split('.')[0] for name in sys.modules}))
for name in attnlab.__all__: getattr(attnlab, name)
print(*sorted({name.split('.')[0] for name in sys.modules}))"""
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    at_first, used = (set(line.split()) for line in printed.splitlines())
    assert "attnlab" in at_first and "torch" not in at_first  # the command attnlab needs none
    assert "torch" in used
    assert not PAGE & used


@pytest.mark.parametrize("package", ["torch", "matplotlib"])
def test_a_file_that_hides_a_package_is_named(package, tmp_path):
    (tmp_path / f"{package}.py").touch()
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, ''); import attnlab"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert f"{package}.py hides the package {package}: rename it and restart Python" in ran.stderr


# --- Size -----------------------------------------------------------------------------------

BUDGETS = {
    "ground floor": 1000,
    "llama": 101,  # reads the files of others; nothing else in the package needs it
    "data": 305,
    "lab": 1263,
    "step": 175,
    "checks": 353,
    "my_model": 115,  # the learner's file: their cells, and the helpers and imports they need
    "editions": 520,
    "JavaScript and CSS": 1000,
    "tables of exercises": None,  # as long as there are exercises and questions
}


def code_lines(path):
    """Lines that hold code: docstrings, comments and blank lines do not count."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r"/\*(?s:.*?)\*/|^\s*//.*$", "", text, flags=re.MULTILINE)
        return sum(bool(line.strip()) for line in text.splitlines())
    no_code = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in no_code | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if documented and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def budget(path):
    """The budget that a file of the package counts towards; None if it is no code."""
    if path.suffix in (".js", ".mjs", ".css"):
        return "JavaScript and CSS"
    if path.name == "my_model.py":
        return "my_model"
    if path.suffix == ".py":
        text = path.read_text(encoding="utf-8")
        if re.search(r"^@exercise\(|^QUESTIONS = ", text, re.MULTILINE):
            return "tables of exercises"
        return storey(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    assert path.suffix in (".json", ".npz", ".md", ".typed", ".pyc"), f"what is {path.name}?"
    return None


def test_lines_of_code_are_counted_as_a_reader_would(tmp_path):
    python = (
        '"""Two\nlines."""\n\nx = """a\nb"""  # two\n\n\ndef f():\n    """One."""\n    return (\n'
    )
    (tmp_path / "a.py").write_text(python + "        1\n    )\n", encoding="utf-8")
    assert code_lines(tmp_path / "a.py") == 2 + 1 + 3
    script = "/* two\n lines */\n// one\nconst url = 'a//b'; // more\n\n}\n"
    (tmp_path / "a.js").write_text(script, encoding="utf-8")
    assert code_lines(tmp_path / "a.js") == 2


def test_every_part_of_the_package_is_within_its_budget(figure):
    used = dict.fromkeys(BUDGETS, 0)
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and (name := budget(path)):
            used[name] += code_lines(path)  # a new folder needs a budget
    for name, most in BUDGETS.items():
        figure(f"lines of code: {name:<20} {used[name]:>5} of {most or '-':>5}")
    assert used["ground floor"] and used["JavaScript and CSS"] and used["tables of exercises"]
    assert [name for name, most in BUDGETS.items() if most and used[name] > most] == []
