"""The course in a real JupyterLab and a real browser, as a learner and a lecturer have it."""

import json
import shutil
from collections import Counter

import pytest

from .lab_server import ROOT, ask, git, open_file, run_all, save

FIRST = "course/01_static_embeddings"
PAIRS = sorted(f"course/{path.stem}" for path in ROOT.glob("course/0*.py"))


def changed(copy):
    """The files that git would show as changed."""
    return git(copy, "status", "--porcelain").splitlines()


def kinds(notebook):
    """How many outputs of each kind a notebook has."""
    return Counter(
        out["output_type"] for cell in notebook["cells"] for out in cell.get("outputs", [])
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_running_and_saving_a_notebook_changes_no_file(page, address, copy, pair):
    stored = json.loads((copy / f"{pair}.ipynb").read_text())
    open_file(page, address, f"{pair}.ipynb")
    shown = run_all(page)
    save(page)
    assert kinds(shown) == kinds(stored)
    assert "error" not in kinds(shown)
    assert changed(copy) == [], git(copy, "diff")
    # An explorer is there to be touched, not only as its still picture.
    explorers = sum("explorer" in cell["metadata"].get("tags", []) for cell in stored["cells"])
    page.wait_for_function(
        "n => document.querySelectorAll('.jp-OutputArea-output > .jupyter-widgets').length >= n",
        arg=explorers,
    )
    assert page.get_by_text("Error displaying widget").count() == 0


def test_a_second_run_changes_no_file_either(page, address, copy):
    open_file(page, address, f"{FIRST}.ipynb")
    first = run_all(page)
    second = run_all(page)
    save(page)
    assert first["cells"] != second["cells"]  # Lab counts on
    assert changed(copy) == []


def test_the_py_opens_as_the_same_notebook(page, address, copy):
    stored = json.loads((copy / f"{FIRST}.ipynb").read_text())
    open_file(page, address, f"{FIRST}.py", viewer="Jupytext Notebook")
    assert kinds(run_all(page)) == kinds(stored)
    save(page)
    assert changed(copy) == []


@pytest.mark.parametrize("ending", ["ipynb", "py"])
def test_an_edit_to_either_as_a_notebook_is_saved_to_both(page, address, copy, ending):
    open_file(page, address, f"{FIRST}.{ending}", viewer="Jupytext Notebook")
    run_all(page)
    ask(page, "panel.content.widgets[0].model.sharedModel.setSource('# Another title')")
    save(page)
    assert changed(copy) == [f" M {FIRST}.ipynb", f" M {FIRST}.py"]
    for file in (f"{FIRST}.py", f"{FIRST}.ipynb"):
        assert "# Another title" in (copy / file).read_text(), file


def test_an_edit_to_the_py_as_text_is_saved_to_both(page, address, copy):
    # A pair that no test has opened as a notebook: where one has, jupytext reports another checksum
    # for the .py, and Lab asks first whether to overwrite it.
    pair = "course/00_new"
    for ending in (".py", ".ipynb"):
        shutil.copy(copy / f"{FIRST}{ending}", copy / f"{pair}{ending}")
    open_file(page, address, f"{pair}.py")
    edited = (copy / f"{pair}.py").read_text() + "\n# %% [markdown]\n# The very end.\n"
    ask(page, "panel.context.model.sharedModel.setSource(argument)", edited)
    save(page)
    for ending in (".py", ".ipynb"):
        assert "The very end." in (copy / f"{pair}{ending}").read_text(), ending


def test_reading_and_saving_a_module_of_the_package_changes_no_file(page, address, copy):
    open_file(page, address, "src/attnlab/__init__.py")
    save(page)
    assert changed(copy) == []


def test_lab_starts_on_the_first_notebook_and_asks_nothing(page, address):
    page.goto(address)
    page.locator(".jp-NotebookPanel h1").first.wait_for()
    assert page.locator(".jp-NotebookPanel").count() == 1
    page.wait_for_timeout(3000)  # the question about news comes late
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0


def test_the_learners_own_jupyter_is_neither_read_nor_changed(page, address, home):
    page.goto(address)
    page.locator(".jp-NotebookPanel h1").first.wait_for()
    theirs = {".jupyter", ".ipython", ".local"}
    files = [path.relative_to(home) for path in home.rglob("*") if path.is_file()]
    assert sorted(str(path) for path in files if path.parts[0] in theirs) == [
        ".ipython/profile_default/startup/trap.py",
        ".jupyter/jupyter_server_config.py",
        ".local/share/jupyter/kernels/python3/kernel.json",
    ]
