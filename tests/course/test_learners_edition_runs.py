"""The learner's edition runs from top to bottom and says what the proved edition stores."""

import ast
import builtins

import nbformat
import pytest
from nbclient import NotebookClient
from stored_outputs import differences
from support import IGNORED, NOTEBOOKS, code_cells, each_notebook, read

from attnlab.editions import notebooks


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """All six notebooks as a learner gets them, in one folder."""
    folder = tmp_path_factory.mktemp("a learner's copy")
    for path in NOTEBOOKS:
        edition = notebooks.learners(notebooks.parse(path.read_bytes()))
        (folder / path.name).write_bytes(notebooks.serialize(edition))
    return folder


@each_notebook
def test_without_the_proofs_every_cell_prints_the_same(path, copy, figure):
    stored = {cell.id: cell for cell in code_cells(read(path))}
    edition = read(copy / path.name)
    client = NotebookClient(edition, timeout=120, resources={"metadata": {"path": str(copy)}})
    client.execute()
    cells = code_cells(edition)
    wrong = {
        cell.metadata.title: found
        for cell in cells
        if IGNORED not in cell.metadata.get("tags", [])
        and (found := differences(stored[cell.id].outputs, cell.outputs)[0])
    }
    assert not wrong
    assert 0 < len(cells) <= len(stored)
    figure(f"{path.stem}: {len(cells)} of {len(stored)} cells are the learner's, all as stored")


def test_a_proof_that_defines_what_the_next_cell_needs_is_noticed(tmp_path):
    cells = [
        nbformat.v4.new_code_cell("x = 2", metadata={"tags": ["proof"]}),
        nbformat.v4.new_code_cell("print(x)"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    edition = notebooks.learners(notebooks.parse(nbformat.writes(notebook).encode()))
    client = NotebookClient(nbformat.from_dict(edition), resources={"metadata": {"path": tmp_path}})
    with pytest.raises(Exception, match="name 'x' is not defined"):
        client.execute()


@each_notebook
def test_a_proof_defines_nothing_that_a_later_cell_uses(path):
    cells = code_cells(read(path))
    for number, cell in enumerate(cells):
        if "proof" not in cell.metadata.get("tags", []):
            continue
        defined = names(cell, ast.Store) - {
            name for earlier in cells[:number] for name in names(earlier, ast.Store)
        }
        for later in cells[number + 1 :]:
            if "proof" in later.metadata.get("tags", []):
                continue
            used = (names(later, ast.Load) - names(later, ast.Store)) & defined
            assert not used, (cell.metadata.title, later.metadata.title, used)


def names(cell, context):
    """Names that a cell assigns (or reads), those of Python itself aside."""
    tree = ast.parse(cell.source)
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}
    if context is ast.Store:
        defining = ast.FunctionDef | ast.ClassDef
        found |= {n.name for n in ast.walk(tree) if isinstance(n, defining)}
        found |= {
            a.asname or a.name
            for n in ast.walk(tree)
            for a in getattr(n, "names", [])
            if isinstance(n, ast.Import | ast.ImportFrom)
        }
    return found - set(dir(builtins))
