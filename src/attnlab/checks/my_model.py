"""The learner's own transformer as a file: notebook 5 writes it, notebook 6 trains it.

    print(checks.write_model(globals()))    # writes my_model.py, once all of its parts pass
    Model, said = checks.load_model()       # the class or None, and a sentence about it

The file holds the text of the learner's cells, so it can be opened, read and imported.
"""

import ast
import builtins
import contextlib
import os
import symtable
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from attnlab.checks import sandbox
from attnlab.checks.exercise import REGISTRY
from attnlab.checks.heads_and_positions import attempt, stand_in
from attnlab.checks.judging import describe
from attnlab.model import TinyTransformer

__all__ = ["load_model", "stand_in", "write_model"]

FILE = "my_model.py"
TITLE = '"""My transformer, as I wrote it in notebook 5."""'
PARTS = {"my_rms_norm": "rms_norm", "my_swiglu": "swiglu", "MyMultiHeadAttention": "multi_head"}
PARTS |= {"MyBlock": "block", "MyTransformer": "transformer"}
Known = dict[str, list[str]]
VERSIONS = 10  # of a part that are tried, newest first
SLOW = 5  # times as long as the course's model takes is too long to be trained in a lesson


# --- Write ----------------------------------------------------------------------------------


def write_model(namespace: dict[str, Any]) -> str:
    """Write ``my_model.py`` into the current folder, once all parts pass; say what happened.

    Args:
        namespace: ``globals()`` of the notebook, whose ``In`` holds the cells as they were run. Of
            each part the last version that passes is taken, with the imports and helpers it needs.
    """
    known = _definitions(namespace.get("In", []))
    chosen: dict[str, str] = {}
    for name, check in PARTS.items():
        versions = [v for v in known.get(name, []) if v.startswith(("class", "def"))]
        for version in versions[:VERSIONS]:
            texts = chosen | {name: version}
            lent = {part: namespace.get(part, ...) for part in PARTS if part not in texts}
            made = _run(_compose(known, texts, [name], without=lent), lent)
            if REGISTRY[check](getattr(made, name, ...)):
                chosen = texts
                break
    if missing := [name for name in PARTS if name not in chosen]:
        return f"{FILE} is not written yet. Still to do, or to run again: {', '.join(missing)}."
    path = Path(FILE).resolve()
    if any(source.with_suffix(".ipynb").exists() for source in path.parent.glob("0*.py")):
        return f"{FILE} is not written into the course's own folder: work in your copy (make lab)."
    new, old = _compose(known, chosen, PARTS).encode(), path.read_bytes() if path.exists() else b""
    part = path.with_name(f".{FILE}.{os.getpid()}.part")
    part.write_bytes(new)
    if old not in (b"", new):
        os.replace(path, path.with_name(f"{path.stem}_before.py"))
    os.replace(part, path)
    return f"Your transformer is in {FILE}, beside this notebook: open it and read it."


def _definitions(cells: Sequence[str]) -> Known:
    """Each name that a top-level statement defines, with the texts that did, newest first."""
    known: Known = {}
    for cell in reversed(cells):
        with contextlib.suppress(SyntaxError, ValueError):  # a cell that could not run
            for node in reversed(ast.parse(cell).body):
                for text in _texts(node, cell):
                    for symbol in symtable.symtable(text, FILE, "exec").get_symbols():
                        if symbol.is_assigned() or symbol.is_imported():
                            known.setdefault(symbol.get_name(), []).append(text)
    return known


def _texts(node: ast.stmt, cell: str) -> list[str]:
    """A statement as it was typed; an import as one statement for each name."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return [ast.get_source_segment(cell, node) or ""]
    return [ast.unparse(type(node)(**vars(node) | {"names": [alias]})) for alias in node.names]


def _compose(known: Known, chosen: dict[str, str], names: Iterable[str], without: Any = ()) -> str:
    """A module that defines these names, with all that they need before them."""
    texts, seen = [], {*without, *dir(builtins)}

    def add(name: str) -> None:
        text = chosen.get(name) or next(iter(known.get(name, [])), None)
        if name not in seen and text:
            seen.add(name)
            for needed in sorted(_globals(symtable.symtable(text, FILE, "exec"))):
                add(needed)
            texts.append(text)

    for name in names:
        add(name)
    imports = sorted({text for text in texts if text.startswith(("import ", "from "))})
    rest = [text for text in dict.fromkeys(texts) if text not in imports]
    return "\n\n\n".join([f"{TITLE}\n\n" + "\n".join(imports), *rest]) + "\n"


def _globals(table: symtable.SymbolTable) -> set[str]:
    """The names that a text takes from its module."""
    top, used = table.get_type() == "module", [s for s in table.get_symbols() if s.is_referenced()]
    inside = [_globals(child) for child in table.get_children()]
    return {s.get_name() for s in used if top or s.is_global()}.union(*inside)


# --- Read -----------------------------------------------------------------------------------


def load_model(reference: type = TinyTransformer, folder: Path | str = ".") -> tuple[Any, str]:
    """The learner's ``MyTransformer`` from ``my_model.py``, if it can be trained in its place.

    Returns:
        The class and a sentence, or None and a sentence about why not. It never raises.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None, f"There is no {FILE} here yet (notebook 5 writes it): the course's is used."
    made = _run(path.read_text(encoding="utf-8", errors="replace"))
    own = getattr(made, "MyTransformer", None)
    if isinstance(made, sandbox.Timeout):
        problem = f"it was not imported after {sandbox.LIMIT:g} seconds"
    elif isinstance(made, BaseException):
        problem = f"importing it raised {describe(made)}"
    elif own is None:
        problem = "it has no class MyTransformer"
    elif not (verdict := REGISTRY["transformer"](own)):
        problem = f"MyTransformer does not pass its check. {verdict.message.rstrip('.')}"
    elif (times := _slowness(own, reference)) > SLOW:
        problem = f"it takes {times:.0f} times as long as the course's model"
    else:
        return own, f"This is your own transformer, from {FILE}."
    return None, f"{FILE} is not used: {problem}. The course's model is used instead."


def _run(text: str, given: dict[str, Any] | None = None) -> Any:
    """The module with this text, or the exception that it raised."""
    module = ModuleType("my_model")
    vars(module).update(given or {})
    error = attempt(lambda: sandbox.run(lambda: exec(compile(text, FILE, "exec"), vars(module))))
    return error or module


def _slowness(own: Any, reference: Any) -> float:
    """How many times as long a pass forward and back takes; each is timed at its best."""
    ids = torch.arange(32 * 9).reshape(32, 9) % 60  # (B, S), as in notebook 6

    def seconds(model: Any) -> float:
        module, start = model(60, 32, 4, 2, 64), time.perf_counter()
        module(ids).sum().backward()
        return time.perf_counter() - start

    def race() -> float:
        rounds = [(seconds(own), seconds(reference)) for _ in range(5)]
        return min(x for x, _ in rounds) / min(x for _, x in rounds)

    found = attempt(lambda: sandbox.run(race))
    return float("inf") if isinstance(found, BaseException) else found
