"""What is written when a notebook is built or saved in JupyterLab, and what is not."""

import asyncio
import base64
import io
import os
import shutil
import sys
import warnings

import nbformat
import pytest
from PIL import Image
from support import PLAIN, ROOT, code_cells, load, read, run

notebooks = load(ROOT / ".jupyter/attnlab_notebooks.py")

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# Some words.

# %% Two prints
print(1)
print(2)

# %% A widget
import ipywidgets

ipywidgets.IntSlider(3)

# %% A picture
import base64

from IPython.display import Image

Image(base64.b64decode("PNG"), alt="grey", format="png")
"""


def png(shade, size=(5, 7), spot=None):
    """A grey picture in base64, with one pixel of another shade if asked."""
    picture = Image.new("L", size, shade)
    if spot is not None:
        picture.putpixel((2, 3), spot)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


SOURCE = SOURCE.replace("PNG", png(100))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder like the repository, with one small notebook, built by make."""
    path = tmp_path_factory.mktemp("a repository")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, path)
    (path / ".jupyter").mkdir()
    for file in (ROOT / ".jupyter").glob("*.py"):
        shutil.copy(file, path / ".jupyter")
    (path / "course").mkdir()
    (path / "course/01_small.py").write_text(SOURCE, encoding="utf-8")
    make_notebooks(path)
    return path


def make_notebooks(path):
    """Run `make notebooks` with this Python; return what it printed."""
    return run("make", "notebooks", "SETUP=", f"PY='{sys.executable}'", cwd=path, env=PLAIN)


@pytest.fixture
def repository(built, tmp_path):
    """A copy of it to work in."""
    return shutil.copytree(built, tmp_path / "a copy")


@pytest.fixture
def script(repository):
    return repository / "course/01_small.py"


@pytest.fixture
def stored(script):
    return script.with_suffix(".ipynb")


def copies(script):
    """The copies of files that would otherwise have been lost."""
    return sorted(script.parent.glob(".ipynb_checkpoints/*-????????.*"))


def edit(path, old, new, seconds=0):
    """Change a file as another editor does, that many seconds from now."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    later = path.stat().st_mtime + seconds
    os.utime(path, (later, later))


# --- make notebooks -----------------------------------------------------------------------------


def test_a_notebook_is_built_with_its_outputs_and_without_what_differs_each_time(built):
    notebook = read(built / "course/01_small.ipynb")
    words, prints, widget, picture = notebook.cells
    assert words.source == "Some words."
    assert [(output.name, output.text) for output in prints.outputs] == [("stdout", "1\n2\n")]
    assert list(widget.outputs[0].data) == ["text/plain"]
    assert set(picture.outputs[0].data) == {"text/plain", "image/png"}
    assert [cell.execution_count for cell in code_cells(notebook)] == [1, 2, 3]
    assert set(notebook.metadata) == {"kernelspec", "jupytext"}
    assert set(prints.metadata) == {"title"}


def test_building_again_changes_only_what_was_changed(script, stored):
    true = stored.read_bytes()
    # Another processor's picture is kept, byte by byte.
    notebook = read(stored)
    notebook.cells[3].outputs[0].data["image/png"] = png(100, spot=132)
    nbformat.write(notebook, stored)
    others = stored.read_bytes()
    make_notebooks(script.parents[1])
    assert stored.read_bytes() == others
    # A wrong one isn't; nor does the .ipynb count where only the .py was edited.
    notebook.cells[3].outputs[0].data["image/png"] = png(100, spot=133)
    nbformat.write(notebook, stored)
    edit(script, "print(2)", "print(22)")
    os.utime(stored, (4e9, 4e9))
    assert "01_small.ipynb was edited and its .py was not. A copy:" in make_notebooks(
        script.parents[1]
    )
    assert "print(22)" in script.read_text(encoding="utf-8")
    after, before = read(stored), nbformat.reads(true.decode(), as_version=4)
    assert after.cells[1].outputs[0].text == "1\n22\n"
    same = [new == old for new, old in zip(after.cells, before.cells, strict=True)]
    assert same == [True, False, True, True]
    assert read(copies(script)[0]) == notebook


# --- Cleaning -----------------------------------------------------------------------------------


def as_lab_has_it(path):
    """A stored notebook as JupyterLab holds it after a second Run All on another processor."""
    notebook = read(path)
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
    notebook["metadata"]["widgets"] = {"state": {}}
    view = {"model_id": "new at every run", "version_major": 2, "version_minor": 0}
    for number, cell in enumerate(code_cells(notebook), start=3):
        cell["metadata"]["execution"] = {"shell.execute_reply": "2026-01-01"}
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "data" in output:
                output["execution_count"] = number
                output["data"][notebooks.WIDGET_VIEW] = view
            if "image/png" in output.get("data", {}):
                output["data"]["image/png"] = png(100, spot=90)
    reply = nbformat.v4.new_output("display_data", {"text/html": "Noted"})
    reply.metadata["attnlab"] = "vote"
    notebook.cells[2].outputs.append(reply)
    return notebook


def test_cleaning_gives_back_the_stored_notebook_and_so_does_cleaning_twice(built):
    path = built / "course/01_small.ipynb"
    notebook = as_lab_has_it(path)
    for _ in range(2):
        notebooks.clean(notebook, read(path))
        assert notebook == read(path)


def test_without_a_stored_notebook_cleaning_keeps_pictures_sentences_and_prints(built):
    notebook = as_lab_has_it(built / "course/01_small.ipynb")
    notebooks.clean(notebook)
    prints, widget, picture = (cell.outputs for cell in code_cells(notebook))
    assert prints[0].text == "1\n2\n"
    assert list(widget[0].data) == ["text/plain"]
    assert picture[0].data["image/png"] == png(100, spot=90)


@pytest.mark.parametrize("counts", [[2, 1], [1, None], [3, 3]])
def test_cleaning_does_not_hide_that_cells_ran_in_another_order(counts):
    cells = [nbformat.v4.new_code_cell("x", execution_count=count) for count in counts]
    notebooks.clean(nbformat.v4.new_notebook(cells=cells))
    assert [cell.execution_count for cell in cells] == counts


def test_a_picture_inside_html_is_kept_as_well():
    html = '<img alt="grey" src="data:image/png;base64,{}"><b>{}</b>'
    new = {"text/html": html.format(png(100, spot=90), "new")}
    notebooks.keep_pictures(new, {"text/html": html.format(png(100), "old")})
    assert new["text/html"] == html.format(png(100), "new")
    wrong = {"text/html": html.format(png(100, spot=200), "new")}
    notebooks.keep_pictures(wrong, {"text/html": html.format(png(100), "old")})
    assert wrong["text/html"] == html.format(png(100, spot=200), "new")


# --- Saving in JupyterLab -----------------------------------------------------------------------


@pytest.fixture
def server(repository, monkeypatch):
    """A server started with the course's settings."""
    from jupyter_server.serverapp import ServerApp

    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(repository / ".jupyter"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(repository / ".jupyter/data"))
    monkeypatch.setattr(sys, "path", [*sys.path])  # the settings add to it
    ServerApp.clear_instance()
    server = ServerApp.instance()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of its extensions, about each other
        server.initialize(argv=["--no-browser", "--port=0"])
    yield server
    ServerApp.clear_instance()


@pytest.fixture
def contents(server):
    """``contents("get", path)``: what Lab reads and writes with."""
    return lambda action, *words, **more: asyncio.run(
        getattr(server.contents_manager, action)(*words, **more)
    )


SMALL = "course/01_small.ipynb"


def as_message(notebook):
    """What Lab sends when it saves."""
    return {"type": "notebook", "format": "json", "content": notebook}


def files(script):
    return [path.read_bytes() for path in (script, script.with_suffix(".ipynb"))]


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
def test_opening_and_saving_either_file_changes_neither(script, contents, ending):
    before = files(script)
    path = f"course/01_small{ending}"
    contents("save", as_message(contents("get", path, type="notebook")["content"]), path)
    assert files(script) == before


def test_running_all_twice_and_saving_changes_neither(script, stored, contents):
    before = files(script)
    contents("get", SMALL)
    contents("save", as_message(as_lab_has_it(stored)), SMALL)
    assert files(script) == before


@pytest.mark.parametrize(
    ("ending", "kind"), [(".py", "notebook"), (".py", "file"), (".ipynb", "notebook")]
)
def test_an_edit_saved_to_either_is_in_both(script, contents, ending, kind):
    path = f"course/01_small{ending}"
    model = contents("get", path, type=kind, content=True)
    if kind == "file":
        model["content"] = model["content"].replace("Some words", "Other words")
    else:
        model["content"]["cells"][0]["source"] = "Other words."
    contents("save", {key: model[key] for key in ("type", "format", "content")}, path)
    assert all(b"Other words." in file for file in files(script))
    assert all(b"Some words." not in file for file in files(script))
    assert copies(script) == []


def test_a_reloaded_page_has_its_widgets_while_the_kernel_lives(script, stored, server):
    before = files(script)
    in_page = as_lab_has_it(stored)
    for cell in code_cells(in_page):
        cell.metadata.trusted = True

    async def session():
        contents, sessions = server.contents_manager, server.session_manager
        await contents.get(SMALL)
        await sessions.create_session(path=SMALL, type="notebook", kernel_name="python3")
        await contents.save(as_message(in_page), SMALL)
        written = files(script)
        reloaded = (await contents.get(SMALL))["content"]
        (kernel,) = server.kernel_manager.list_kernel_ids()
        await server.kernel_manager.restart_kernel(kernel)
        restarted = (await contents.get(SMALL))["content"]
        await server.kernel_manager.shutdown_all(now=True)
        return written, reloaded, restarted

    written, reloaded, restarted = asyncio.run(session())
    assert written == before
    outputs = [cell.outputs for cell in code_cells(reloaded)]
    assert outputs == [cell.outputs for cell in code_cells(in_page)]
    assert all(cell.metadata.trusted for cell in code_cells(reloaded)), "Lab would show no widget"
    assert [cell.outputs for cell in restarted.cells[1:]] == [
        cell.outputs for cell in code_cells(read(stored))
    ]


def test_an_opened_notebook_already_says_what_the_kernel_will_say_of_its_language(contents):
    from ipykernel.ipkernel import IPythonKernel

    content = contents("get", SMALL)["content"]
    assert content.metadata.language_info == IPythonKernel.language_info


# --- Pairs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("opened", [".py", ".ipynb"])
def test_an_answer_typed_into_the_ipynb_by_another_editor_is_opened(
    script, stored, contents, opened
):
    edit(stored, "print(1)", "print(111)", seconds=60)
    edit(stored, '"name": "python3"', '"name": "conda-env-mine"', seconds=60)
    old = script.read_bytes()
    path = f"course/01_small{opened}"
    content = contents("get", path, type="notebook")["content"]
    assert "print(111)" in content.cells[1].source
    contents("save", as_message(content), path)
    assert all(b"print(111)" in file for file in files(script))
    assert [copy.read_bytes() for copy in copies(script)] == [old]
    assert b"conda-env-mine" not in script.read_bytes()


def test_an_answer_typed_before_the_py_changed_is_kept(script, stored, contents):
    edit(stored, "print(1)", "print(111)")
    edit(script, "print(2)", "print(22)", seconds=60)
    typed = stored.read_bytes()
    content = contents("get", SMALL)["content"]
    assert content.cells[1].source == "print(1)\nprint(22)"
    assert [copy.read_bytes() for copy in copies(script)] == [typed]


def test_an_answer_is_kept_when_the_py_is_saved_in_the_text_editor(script, stored, contents):
    edit(stored, "print(1)", "print(111)", seconds=60)
    typed = stored.read_bytes()
    model = contents("get", "course/01_small.py", type="file")
    text = {key: model[key] for key in ("type", "format", "content")}
    contents("save", text, "course/01_small.py")
    assert "print(1)" in read(stored).cells[1].source
    assert [copy.read_bytes() for copy in copies(script)] == [typed]


def test_a_damaged_ipynb_is_kept_when_the_py_is_saved(script, stored, contents):
    stored.write_text("{", encoding="utf-8")
    model = contents("get", "course/01_small.py", type="file")
    text = {key: model[key] for key in ("type", "format", "content")}
    contents("save", text, "course/01_small.py")
    assert len(read(stored).cells) == 4
    assert [copy.read_text(encoding="utf-8") for copy in copies(script)] == ["{"]


def test_an_empty_list_of_tags_and_another_kernel_are_no_difference(script, stored, contents):
    edit(stored, '"title": "Two prints"', '"tags": [], "title": "Two prints"', seconds=60)
    edit(stored, '"name": "python3"', '"name": "conda-env-mine"', seconds=60)
    old = script.read_bytes()
    contents("save", as_message(contents("get", SMALL)["content"]), SMALL)
    assert script.read_bytes() == old
    assert copies(script) == []


def test_an_old_ipynb_that_git_has_gives_way_without_a_copy(script, stored, contents):
    repository = script.parents[1]
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["init"], ["add", "course"], [*who, "commit", "--message=all"]):
        run("git", *words, cwd=repository)
    edit(script, "print(2)", "print(22)")
    os.utime(stored, (4e9, 4e9))  # as after git checkout
    assert "print(22)" in contents("get", SMALL)["content"].cells[1].source
    assert copies(script) == []


def test_a_notebook_that_is_not_one_of_a_pair_gets_no_second_file(script, stored, contents):
    new = contents("new_untitled", "course", type="notebook")["path"]
    contents("save", as_message(contents("get", new)["content"]), new)
    contents("rename_file", new, "course/torch.ipynb")
    contents("rename_file", SMALL, "course/random.ipynb")
    for path in ("course/torch.ipynb", "course/random.ipynb"):
        contents("save", as_message(contents("get", path)["content"]), path)
    names = ["01_small.py", "random.ipynb", "torch.ipynb"]
    assert sorted(path.name for path in script.parent.glob("[!.]*")) == names


def test_a_notebook_that_is_not_one_of_a_pair_is_saved_as_it_is(stored, contents):
    notebook = as_lab_has_it(stored)
    contents("save", as_message(notebook), "course/own.ipynb")
    assert read(stored.with_name("own.ipynb")) == notebook


# --- The server ---------------------------------------------------------------------------------


def test_root_may_start_the_server_because_nobody_else_reaches_it(server):
    assert server.allow_root
    assert server.ip == "127.0.0.1"
    recipe = run("make", "--dry-run", "edit", "SETUP=", cwd=ROOT, env=PLAIN)
    assert "--ip" not in recipe and "root" not in recipe


def test_the_servers_settings_shadow_no_module(server, repository):
    folder = repository / ".jupyter"
    assert sys.path.index(str(folder)) == len(sys.path) - 1
    names = {path.stem for path in folder.glob("*.py")}
    assert all(name.startswith(("attnlab_", "jupyter_")) for name in names)


def test_a_notebook_stands_in_the_file_browser_once(contents):
    listed = [entry["name"] for entry in contents("get", "course")["content"]]
    assert listed == ["01_small.ipynb"]
