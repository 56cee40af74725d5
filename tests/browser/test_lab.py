"""The course in a real JupyterLab and a real browser, as a learner and a lecturer have it."""

import json
import shutil
import sys
from collections import Counter

import pytest
from axe_playwright_python.sync_playwright import Axe
from support import SOURCES, run

from .lab_server import (
    KERNEL,
    SERVER,
    STARTUP,
    TRAPS,
    ask,
    environment,
    explorers,
    git,
    open_file,
    run_all,
    save,
    set_traps,
)

FIRST = "course/01_static_embeddings"
PAIRS = [f"course/{path.stem}" for path in SOURCES]
VIEW = "application/vnd.jupyter.widget-view+json"
WIDGETS = ".lm-Panel.jp-OutputArea-output"  # not the other outputs


def changed(copy):
    """The files that git would show as changed."""
    return git(copy, "status", "--porcelain").splitlines()


def kinds(notebook):
    """How many outputs of each kind a notebook has."""
    return Counter(
        out["output_type"] for cell in notebook["cells"] for out in cell.get("outputs", [])
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_running_and_saving_changes_no_file_and_each_explorer_is_on_one_screen(
    page, address, copy, figure, pair
):
    page.set_viewport_size({"width": 1280, "height": 720})  # a projector
    stored = json.loads((copy / f"{pair}.ipynb").read_text(encoding="utf-8"))
    open_file(page, address, f"{pair}.ipynb")
    ask(page, "await panel.sessionContext.ready; await panel.sessionContext.session.kernel.info;")
    assert not ask(page, "return panel.context.model.dirty;"), "opening it has changed it"
    shown = run_all(page)
    save(page)
    assert kinds(shown) == kinds(stored)
    assert "error" not in kinds(shown)
    assert changed(copy) == [], git(copy, "diff")
    # An explorer is there to be touched, not only as its still picture, and seen from its goal to
    # its picture; a learner has the left sidebar closed.
    ask(page, "await jupyterapp.commands.execute('application:toggle-left-area');")
    room, measured = explorers(page)
    tags = [cell["metadata"].get("tags", []) for cell in stored["cells"]]
    assert len(measured) == sum("explorer" in words for words in tags) > 0
    highest = max(height for _, height in measured)
    figure(f"{pair}: {len(measured)} explorers, the highest {highest:.0f} of {room:.0f} pixels")
    assert [(title, height) for title, height in measured if not 250 < height <= room] == []
    assert page.get_by_text("Error displaying widget").count() == 0
    stills = [c for c in stored["cells"] if "proof" in c["metadata"].get("tags", []) and png(c)]
    assert violations(page, len(stills)) == []


def png(cell):
    """Whether a cell shows a picture."""
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def violations(page, mute):
    """What axe-core finds in the outputs, in both themes.

    One rule has an exception: Lab's renderer of pictures leaves out their words, which is why they
    stand in an output of their own beside it. As many as ``mute`` may have none: stills, which
    learners do not get.
    """
    ask(page, SHOW_ALL_CELLS)
    only = {"include": [[".jp-OutputArea-output"]]}
    found = []
    for theme, rules in (("Light", {}), ("Dark", {"runOnly": ["color-contrast"]})):
        ask(page, THEME, f"JupyterLab {theme}")
        page.wait_for_function(f"document.body.dataset.jpThemeName === 'JupyterLab {theme}'")
        page.wait_for_timeout(500)  # the theme has its name before all of its style sheet counts
        options = {"preload": False, **rules}
        found += Axe().run(page, only, options).response["violations"]
    ask(page, THEME, "JupyterLab Light")
    images = [node for rule in found if rule["id"] == "image-alt" for node in rule["nodes"]]
    without = [node for node in images if not page.evaluate(HAS_WORDS, node["target"][0])]
    return [f"{rule['id']}: {n['html'][:200]}" for rule in found
            if rule["id"] != "image-alt" for n in rule["nodes"]] + without[mute:]  # fmt: skip


SHOW_ALL_CELLS = """
panel.content.notebookConfig = {...panel.content.notebookConfig, windowingMode: "none"};
"""
THEME = "await jupyterapp.commands.execute('apputils:change-theme', {theme: argument});"
HAS_WORDS = """selector => document.querySelector(selector)
    .closest(".jp-OutputArea").querySelector("img[alt]:not([alt=''])") !== null"""


def test_after_a_second_run_a_save_and_a_reload_all_widgets_are_there(page, address, copy):
    def wait_for(views, inputs):
        page.wait_for_function(
            """([css, views, inputs]) => document.querySelectorAll(css).length == views
                && document.querySelectorAll(`${css} input`).length >= inputs""",
            arg=[WIDGETS, views, inputs],
        )
        assert page.get_by_text("Error displaying widget").count() == 0

    path = "course/02_queries_keys_values.ipynb"
    open_file(page, address, path)
    first = run_all(page)
    second = run_all(page)
    assert first["cells"] != second["cells"]  # Lab counts on
    views = sum(
        VIEW in output.get("data", {})
        for cell in second["cells"]
        for output in cell.get("outputs", [])
    )
    assert views >= 5
    wait_for(views, inputs=views)
    page.wait_for_timeout(1000)
    inputs = page.locator(f"{WIDGETS} input").count()
    save(page)
    assert changed(copy) == []
    open_file(page, address, path)
    wait_for(views, inputs)
    save(page)
    assert changed(copy) == []


def test_the_py_opens_as_the_same_notebook(page, address, copy):
    stored = json.loads((copy / f"{FIRST}.ipynb").read_text(encoding="utf-8"))
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
        assert "# Another title" in (copy / file).read_text(encoding="utf-8"), file


def test_an_edit_to_the_py_as_text_is_saved_to_both(page, address, copy):
    # A pair that no test has opened as a notebook: where one has, jupytext reports another checksum
    # for the .py, and Lab asks first whether to overwrite it.
    pair = "course/00_new"
    for ending in (".py", ".ipynb"):
        shutil.copy(copy / f"{FIRST}{ending}", copy / f"{pair}{ending}")
    open_file(page, address, f"{pair}.py")
    edited = (copy / f"{pair}.py").read_text(
        encoding="utf-8"
    ) + "\n# %% [markdown]\n# The very end.\n"
    ask(page, "panel.context.model.sharedModel.setSource(argument)", edited)
    save(page)
    for ending in (".py", ".ipynb"):
        assert "The very end." in (copy / f"{pair}{ending}").read_text(encoding="utf-8"), ending


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
    assert {path.as_posix() for path in files if path.parts[0] in theirs} == set(TRAPS)


START = "from jupyter_client.manager import start_new_kernel; start_new_kernel()"


@pytest.mark.parametrize(
    ("trap", "words", "status", "said"),
    [
        (SERVER, ["-m", "jupyterlab", "--no-browser"], 1, "the settings in ~/.jupyter are read"),
        (STARTUP, ["-m", "IPython", "-c", "print(1)"], 3, ""),
        (KERNEL, ["-c", START], 1, "Kernel died"),
    ],
)
def test_each_trap_springs_where_the_learners_own_settings_are_read(
    tmp_path, trap, words, status, said
):
    home = environment(set_traps(tmp_path, [trap]))
    assert said in run(sys.executable, *words, env=home, ok=(status,), timeout=60)
