"""The project's own files: that they agree with each other, and that make does what it says."""

import asyncio
import copy
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Not this run's own environment: make puts its variables there, and JupyterLab its folders.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


# --- environment.yml and pyproject.toml ---------------------------------------------------------


def conda():
    """environment.yml: its name and channels, what conda installs, what pip does."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *packages, pip = environment["dependencies"]
    return environment, packages, pip["pip"]


def test_environment_yml_installs_this_project_with_its_lab_and_no_list_of_its_own():
    _, packages, pip = conda()
    assert pip == ["--editable .[lab]"]
    assert "lab" in PROJECT["project"]["optional-dependencies"]
    assert [re.match(r"[\w-]+", package)[0] for package in packages] == [
        "python",
        "pytorch-cpu",
        "pip",
    ]


def test_environment_yml_asks_for_the_torch_and_the_python_that_pyproject_allows():
    _, (python, torch, _), _ = conda()
    (wanted,) = [
        requirement.specifier
        for requirement in map(Requirement, PROJECT["project"]["dependencies"])
        if requirement.name == "torch"
    ]
    # conda's 2.13 means any 2.13.x, as ~=2.13.0 does.
    assert str(wanted) == f"~={torch.removeprefix('pytorch-cpu=')}.0"
    allowed = SpecifierSet(PROJECT["project"]["requires-python"])
    assert python.removeprefix("python=") in allowed
    # repo2docker reads the version from a single = sign.
    assert re.fullmatch(r"python=3\.\d+", python)


def test_environment_yml_works_on_any_machine():
    environment, packages, _ = conda()
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    assert "prefix" not in environment
    assert [package for package in packages if package.count("=") > 1] == [], "build strings"
    assert not re.search(r"cuda|mkl|nvidia", " ".join(packages))


def test_what_lives_inside_another_package_has_an_upper_bound():
    extras = PROJECT["project"]["optional-dependencies"]
    named = map(Requirement, PROJECT["project"]["dependencies"] + extras["lab"] + extras["test"])
    open_ended = {one.name for one in named if not re.search("~=|<|==", str(one.specifier))}
    assert open_ended == set()


# --- make: when .venv is made anew --------------------------------------------------------------

# Stands for Python: writes down what it is asked, makes a .venv that holds itself, and tells the
# version that a file says. A file named fail_install or fail_venv makes that fail half-way.
STAND_IN = """\
#!/bin/sh
case "$*" in
-VV) cat version; exit;;
-c*) exit "$(cat too_old 2>/dev/null || echo 0)";;
"-m venv --clear"*) rm -rf .venv;;
esac
echo "$*" >> asked
case "$*" in
"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; test ! -e fail_venv;;
*"pip install"*) test ! -e fail_install;;
esac
"""


class Folder:
    """A copy of the Makefile beside that Python."""

    def __init__(self, path):
        self.path = path
        shutil.copy(ROOT / "Makefile", path)
        shutil.copy(ROOT / "pyproject.toml", path)
        (path / "version").write_text("Python 3.12.1\n")
        (path / "python").write_text(STAND_IN)
        (path / "python").chmod(0o755)

    def make(self, *words, ok=True):
        """Run make; return what it did before the verb's own command."""
        (self.path / "asked").write_text("")
        words = words or ("bench",)
        ran = subprocess.run(
            ["make", *words, "PYTHON=./python"],
            cwd=self.path,
            env=PLAIN,
            capture_output=True,
            text=True,
        )
        self.said = ran.stdout + ran.stderr
        assert (ran.returncode == 0) == ok, self.said
        asked = (self.path / "asked").read_text().splitlines()
        if ok:
            assert asked.pop() == "tests/bench"
        kinds = {"-m venv": "venv", "torch~": "torch", "-m pip": "install"}
        return [next(kind for key, kind in kinds.items() if key in line) for line in asked]


@pytest.fixture
def folder(tmp_path):
    """Such a folder, its path with a space and a quote in it, with .venv already made."""
    path = tmp_path / "ann's course"
    path.mkdir()
    folder = Folder(path)
    assert folder.make() == ["venv", "install"]
    return folder


def test_a_second_make_installs_nothing(folder):
    assert folder.make() == []


def test_modification_times_do_not_matter(folder):
    for name in ("pyproject.toml", "Makefile", ".venv"):
        os.utime(folder.path / name, (4e9, 4e9))
    assert folder.make() == []


def test_a_changed_pyproject_is_installed_into_the_same_venv(folder):
    with (folder.path / "pyproject.toml").open("a") as file:
        file.write("# more\n")
    assert folder.make() == ["install"]
    assert folder.make() == []


def test_a_pyproject_changed_back_is_installed_again(folder):
    before = (folder.path / "pyproject.toml").read_text()
    (folder.path / "pyproject.toml").write_text(before + "# more\n")
    assert folder.make() == ["install"]
    (folder.path / "pyproject.toml").write_text(before)
    assert folder.make() == ["install"]


def test_a_moved_folder_gets_a_new_venv(folder, tmp_path):
    folder.path = folder.path.rename(tmp_path / "moved")
    assert folder.make() == ["venv", "install"]
    assert folder.make() == []


def test_another_python_gets_a_new_venv(folder):
    (folder.path / ".venv/lib").mkdir()
    (folder.path / "version").write_text("Python 3.13.0\n")
    assert folder.make() == ["venv", "install"]
    assert not (folder.path / ".venv/lib").exists(), "packages of the old one would stay"


def test_a_python_that_is_gone_gets_a_new_venv(folder):
    (folder.path / ".venv/bin/python").unlink()
    assert folder.make() == ["venv", "install"]


def test_an_interrupted_install_is_taken_up_again(folder):
    (folder.path / "pyproject.toml").write_text("# another\n")
    (folder.path / "fail_install").touch()
    assert folder.make(ok=False) == ["install"]
    (folder.path / "fail_install").unlink()
    assert folder.make() == ["install"]


def test_a_half_made_venv_is_made_again(folder):
    (folder.path / "version").write_text("Python 3.13.0\n")
    (folder.path / "fail_venv").touch()
    assert folder.make(ok=False) == ["venv"]
    (folder.path / "fail_venv").unlink()
    assert folder.make() == ["venv", "install"]


def test_an_old_python_is_refused_in_one_sentence(folder):
    shutil.rmtree(folder.path / ".venv")
    (folder.path / "too_old").write_text("1")
    assert folder.make(ok=False) == []
    assert "The course needs Python 3.11 or newer, which './python' is not" in folder.said
    assert not (folder.path / ".venv").exists()


def test_torch_can_come_from_an_index_of_its_own_and_comes_first(folder):
    shutil.rmtree(folder.path / ".venv")
    assert folder.make("bench", "TORCH_INDEX=https://an.index") == ["venv", "torch", "install"]
    (torch,) = [one for one in PROJECT["project"]["dependencies"] if one.startswith("torch")]
    asked = (folder.path / "asked").read_text()
    assert f"-m pip install --index-url https://an.index {torch}\n" in asked


def test_an_environment_of_ones_own_is_used_as_it_is(folder):
    shutil.rmtree(folder.path / ".venv")
    assert folder.make("bench", "PY=./python", "SETUP=") == []
    assert not (folder.path / ".venv").exists()


def test_make_alone_lists_every_verb():
    listed = subprocess.run(
        ["make"], cwd=ROOT, env=PLAIN, capture_output=True, text=True, check=True
    ).stdout
    verbs = ["lab", "test", "notebooks", "bench", "format", "clean"]
    assert [line.split()[1] for line in listed.splitlines()] == verbs


# --- make notebooks -----------------------------------------------------------------------------

SOURCE = (
    "\n".join(
        ["# ---", "# jupyter:", "#   kernelspec:", "#     display_name: Python 3 (ipykernel)"]
        + ["#     language: python", "#     name: python3", "# ---", ""]
        + ["# %% [markdown]", "# Some words.", ""]
        + ["# %% Two prints", "print(1)", "print(2)", ""]
        + ["# %% A widget", "import ipywidgets", "", "ipywidgets.IntSlider(3)"]
    )
    + "\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A repository with one small notebook, built by make."""
    path = tmp_path_factory.mktemp("a repository")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, path)
    (path / ".jupyter").mkdir()
    for file in (ROOT / ".jupyter").glob("*.py"):
        shutil.copy(file, path / ".jupyter")
    (path / "course").mkdir()
    (path / "course/01_small.py").write_text(SOURCE)
    make_notebooks(path)
    return path


@pytest.fixture
def repository(built, tmp_path):
    """A copy of it to work in."""
    return shutil.copytree(built, tmp_path / "a copy")


def make_notebooks(path):
    """Run `make notebooks` with this Python; return the bytes of the notebook."""
    subprocess.run(
        ["make", "notebooks", "SETUP=", f"PY='{sys.executable}'"],
        cwd=path,
        env=PLAIN,
        capture_output=True,
        check=True,
    )
    return (path / "course/01_small.ipynb").read_bytes()


def test_a_notebook_is_built_with_its_outputs_and_without_what_differs_each_time(repository):
    notebook = nbformat.read(repository / "course/01_small.ipynb", as_version=4)
    words, prints, widget = notebook.cells
    assert words.source == "Some words."
    assert [(output.name, output.text) for output in prints.outputs] == [("stdout", "1\n2\n")]
    assert list(widget.outputs[0].data) == ["text/plain"]
    assert [prints.execution_count, widget.execution_count] == [1, 2]
    assert set(notebook.metadata) == {"kernelspec", "jupytext"}
    assert set(prints.metadata) == {"title"}


def test_an_unchanged_notebook_is_built_to_the_same_bytes(repository):
    before = (repository / "course/01_small.ipynb").read_bytes()
    assert make_notebooks(repository) == before


def test_the_py_is_the_source_even_when_the_ipynb_is_newer(repository):
    source = repository / "course/01_small.py"
    source.write_text(SOURCE.replace("print(2)", "print(22)"))
    os.utime(source.with_suffix(".ipynb"), (4e9, 4e9))
    built = nbformat.reads(make_notebooks(repository).decode(), as_version=4)
    assert built.cells[1].outputs[0].text == "1\n22\n"
    assert "print(22)" in source.read_text()


def test_only_the_changed_cell_changes(repository):
    before = nbformat.read(repository / "course/01_small.ipynb", as_version=4)
    source = repository / "course/01_small.py"
    source.write_text(SOURCE.replace("print(2)", "print(22)"))
    after = nbformat.reads(make_notebooks(repository).decode(), as_version=4)
    assert [new == old for new, old in zip(after.cells, before.cells, strict=True)] == [
        True,
        False,
        True,
    ]


# --- saving in JupyterLab -----------------------------------------------------------------------


@pytest.fixture
def hooks(monkeypatch):
    """The functions that JupyterLab and `make notebooks` clean with."""
    monkeypatch.syspath_prepend(str(ROOT / ".jupyter"))
    import hooks

    return hooks


def as_lab_has_it(path):
    """A stored notebook as JupyterLab holds it after a second Run All."""
    notebook = nbformat.read(path, as_version=4)
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
    notebook["metadata"]["widgets"] = {"state": {}}
    view = {"model_id": "new at every run", "version_major": 2, "version_minor": 0}
    for number, cell in enumerate(notebook["cells"][1:], start=3):
        cell["metadata"]["execution"] = {"shell.execute_reply": "2026-01-01"}
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "data" in output:
                output["execution_count"] = number
                output["data"]["application/vnd.jupyter.widget-view+json"] = view
    return notebook


def test_cleaning_gives_back_the_stored_notebook_and_cleaning_twice_no_less(repository, hooks):
    path = repository / "course/01_small.ipynb"
    notebook = as_lab_has_it(path)
    hooks.clean(notebook)
    assert notebook == nbformat.read(path, as_version=4)
    hooks.clean(notebook)
    assert notebook == nbformat.read(path, as_version=4)


def test_cleaning_keeps_pictures_sentences_and_prints(hooks):
    kept = [
        nbformat.v4.new_output("display_data", {"image/png": "iVBO", "text/plain": "A sentence."}),
        nbformat.v4.new_output("stream", text="printed"),
        nbformat.v4.new_output("display_data", {"text/html": "<b>1</b>"}),
    ]
    cell = nbformat.v4.new_code_cell("x", outputs=copy.deepcopy(kept), execution_count=1)
    hooks.clean(nbformat.v4.new_notebook(cells=[cell]))
    assert cell.outputs == kept


def test_cleaning_does_not_hide_that_cells_ran_in_another_order(hooks):
    for counts in ([2, 1], [1, None], [3, 3]):
        cells = [nbformat.v4.new_code_cell("x", execution_count=count) for count in counts]
        hooks.clean(nbformat.v4.new_notebook(cells=cells))
        assert [cell.execution_count for cell in cells] == counts


@pytest.fixture
def contents(repository, monkeypatch):
    """The contents manager of a server started with the course's settings: what Lab saves with."""
    from jupyter_server.serverapp import ServerApp

    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(repository / ".jupyter"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(repository / ".jupyter/data"))
    monkeypatch.syspath_prepend(str(repository / ".jupyter"))
    ServerApp.clear_instance()
    server = ServerApp.instance()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of its extensions, about each other
        server.initialize(argv=["--no-browser", "--port=0"])
    yield lambda action, *words, **more: asyncio.run(
        getattr(server.contents_manager, action)(*words, **more)
    )
    ServerApp.clear_instance()


def stored(repository):
    return [(repository / f"course/01_small{end}").read_bytes() for end in (".py", ".ipynb")]


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
def test_opening_and_saving_either_file_changes_neither(repository, contents, ending):
    before = stored(repository)
    path = f"course/01_small{ending}"
    model = contents("get", path, type="notebook")
    contents("save", {"type": "notebook", "content": model["content"]}, path)
    assert stored(repository) == before


def test_running_all_twice_and_saving_changes_neither(repository, contents):
    before = stored(repository)
    path = "course/01_small.ipynb"
    contents("get", path, type="notebook")
    model = {"type": "notebook", "content": as_lab_has_it(repository / path)}
    contents("save", model, path)
    assert stored(repository) == before


@pytest.mark.parametrize(
    ("ending", "kind"), [(".py", "notebook"), (".py", "file"), (".ipynb", "notebook")]
)
def test_an_edit_saved_to_either_is_in_both(repository, contents, ending, kind):
    path = f"course/01_small{ending}"
    model = contents("get", path, type=kind, content=True)
    if kind == "file":
        model["content"] = model["content"].replace("Some words", "Other words")
    else:
        model["content"]["cells"][0]["source"] = "Other words."
    contents("save", {key: model[key] for key in ("type", "format", "content")}, path)
    assert all(b"Other words." in file for file in stored(repository))
    assert all(b"Some words." not in file for file in stored(repository))
