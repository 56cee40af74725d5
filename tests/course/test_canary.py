"""The check that checks the notebooks: nbval goes red where one stored digit is wrong."""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from test_notebook_files import IGNORED, NOTEBOOKS, ROOT, code_cells, each_notebook, faults

# What nbval compares; it passes over pictures and widgets.
COMPARED = ("stdout", "text/plain", "text/html")


def spoil(notebook, kinds=COMPARED):
    """Change one digit in the stored output of each code cell that has one.

    Returns the numbers of those cells, as nbval counts them: from 0, code cells only.
    """
    spoilt = set()
    for number, cell in enumerate(code_cells(notebook)):
        if IGNORED in cell.metadata.get("tags", []):
            continue
        texts = [
            (kind, holder, key)
            for output in cell.outputs
            for kind, holder, key in [(output.get("name"), output, "text")]
            + [(mime, output.get("data"), mime) for mime in output.get("data", {})]
            if kind in kinds and re.search(r"\d", holder[key])
        ]
        if texts:
            _, holder, key = texts[-1]
            another = lambda digit: str((int(digit[0]) + 1) % 10)  # noqa: E731
            holder[key] = re.sub(r"\d", another, holder[key], count=1)
            spoilt.add(number)
    return spoilt


def red_cells(path):
    """The cells that fail when nbval runs as `make test` runs it."""
    makefile = (ROOT / "Makefile").read_text()
    command = re.search(r"\$\(PY\) (-m pytest --nbval .*) course$", makefile, re.MULTILINE)[1]
    ran = subprocess.run(
        [sys.executable, *command.split(), "--tb=no", "-p", "no:cacheprovider", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    red = {int(number) for number in re.findall(r"^FAILED .*::Cell (\d+)", ran.stdout, re.M)}
    assert bool(red) == (ran.returncode == 1)
    return red


@each_notebook
def test_every_cell_that_stores_a_number_goes_red_when_it_changes(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    spoilt = spoil(notebook)
    assert len(spoilt) >= 5
    nbformat.write(notebook, tmp_path / path.name)
    assert red_cells(tmp_path / path.name) == spoilt


# A notebook of the test's own, with one cell for each kind of output.
SMALL = {
    "text/plain": "3 / 4",
    "stdout": "print(0.25)",
    "text/html": "from IPython.display import HTML\n\nHTML('<b>12</b>')",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The small notebook with its true outputs."""
    path = tmp_path_factory.mktemp("canary") / "small.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in SMALL.values()]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    execute = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace"]
    subprocess.run([*execute, path], check=True, capture_output=True)
    return path


@pytest.fixture
def small(executed, tmp_path):
    """A copy of it to spoil."""
    return shutil.copy(executed, tmp_path / "small.ipynb")


def test_true_outputs_pass(small):
    assert red_cells(small) == set()


@pytest.mark.parametrize("kind", SMALL)
def test_each_kind_of_output_is_compared(small, kind):
    notebook = nbformat.read(small, as_version=4)
    assert spoil(notebook, [kind]) == {list(SMALL).index(kind)}
    nbformat.write(notebook, small)
    assert red_cells(small) == {list(SMALL).index(kind)}


def test_a_stripped_notebook_passes_nbval_which_is_why_we_refuse_it(small):
    notebook = nbformat.read(small, as_version=4)
    for cell in notebook.cells:
        cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, small)
    assert red_cells(small) == set()
    assert sum("ran as number None" in fault for fault in faults(notebook)) == len(SMALL)


def test_the_outputs_of_the_course_are_compared_in_most_of_its_cells():
    notebooks = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    compared = sum(len(spoil(notebook)) for notebook in notebooks)
    assert compared > sum(len(code_cells(notebook)) for notebook in notebooks) / 2
