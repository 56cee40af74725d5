"""What several test modules share."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "course"
SOURCES = sorted(COURSE.glob("0*.py"))
NOTEBOOKS = sorted(COURSE.glob("0*.ipynb"))
IGNORED = "nbval-ignore-output"

# For subprocesses: not this run's own environment, in which make and JupyterLab leave their own.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    """A notebook as nbformat has it."""
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def load(path):
    """Load a module by its path: a script, or a part of the server's settings."""
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


def run(*command, ok=(0,), **options):
    """Run a command and return what it printed; both streams are UTF-8."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        **options,
    )
    assert done.returncode in ok, f"exit status {done.returncode} of {command}:\n{done.stdout}"
    return done.stdout


# --- Predictions ------------------------------------------------------------------------------


def call(source, name):
    """The call of ``name`` in a cell, if there is one: (target, arguments by name)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, value = node.targets[0], node.value
            if isinstance(value.func, ast.Name) and value.func.id == name:
                return target.id, value
    return None


def plain(text):
    """Text as it is read: without markup, dashes and minus signs alike."""
    return re.sub(r"[*_`]", "", text.replace("−", "-")).casefold()


def gives_away(key, text):
    """Whether the key stands in the text, as a word or a number of its own."""
    return re.search(rf"(?<![\w.]){re.escape(plain(key))}(?![\w]|\.\d)", plain(text)) is not None
