"""The project's own files: that they agree with each other, and that make does what it says."""

import os
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from support import PLAIN, ROOT

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="no make here")  # Windows
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# --- environment.yml and pyproject.toml ---------------------------------------------------------


def conda():
    """environment.yml: its name and channels, what conda installs, what pip does."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
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
    named = map(Requirement, PROJECT["project"]["dependencies"] + sum(extras.values(), []))
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
*"ruff check"*) test ! -e fail_ruff;;
esac
"""


class Folder:
    """A copy of the Makefile beside that Python."""

    def __init__(self, path):
        self.path = path
        shutil.copy(ROOT / "Makefile", path)
        shutil.copy(ROOT / "pyproject.toml", path)
        (path / "version").write_text("Python 3.12.1\n", encoding="utf-8")
        (path / "python").write_text(STAND_IN, encoding="utf-8")
        (path / "python").chmod(0o755)

    def make(self, *words, ok=True):
        """Run make; return what it did before the verb's own command."""
        (self.path / "asked").write_text("", encoding="utf-8")
        words = words or ("bench",)
        ran = subprocess.run(
            ["make", *words, "PYTHON=./python"],
            cwd=self.path,
            env=PLAIN,
            capture_output=True,
            encoding="utf-8",
        )
        self.said = ran.stdout + ran.stderr
        assert (ran.returncode == 0) == ok, self.said
        asked = (self.path / "asked").read_text(encoding="utf-8").splitlines()
        last = {
            "bench": "tests/bench",
            "lab": "-m attnlab.editions lab",
            "site": ".site --url ",
            "slides": ".slides",
            "test-site": "-m pytest tests/site",
        }
        if ok and words[0] in last:
            assert asked.pop() == last[words[0]]
        kinds = {"-m venv": "venv", "torch~": "torch", ".[lab]": "lab only", "-m pip": "install"}
        return [next((kind for key, kind in kinds.items() if key in line), line) for line in asked]


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


def test_a_learner_gets_what_opens_the_course_and_a_maintainer_what_tests_it_too(folder):
    shutil.rmtree(folder.path / ".venv")
    assert folder.make("lab") == ["venv", "lab only"]
    assert folder.make("lab") == []
    assert folder.make("bench") == ["install"]
    assert folder.make("lab") == folder.make("bench") == []


def test_the_site_needs_all_that_there_is(folder):
    assert folder.make("site") == ["install"]
    for verb in ("lab", "bench", "site", "slides", "test-site"):
        assert folder.make(verb) == []


def test_modification_times_do_not_matter(folder):
    for name in ("pyproject.toml", "Makefile", ".venv"):
        os.utime(folder.path / name, (4e9, 4e9))
    assert folder.make() == []


def test_a_changed_pyproject_is_installed_into_the_same_venv(folder):
    with (folder.path / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    assert folder.make() == ["install"]
    assert folder.make() == []


def test_a_pyproject_changed_back_is_installed_again(folder):
    before = (folder.path / "pyproject.toml").read_text(encoding="utf-8")
    (folder.path / "pyproject.toml").write_text(before + "# more\n", encoding="utf-8")
    assert folder.make() == ["install"]
    (folder.path / "pyproject.toml").write_text(before, encoding="utf-8")
    assert folder.make() == ["install"]


def test_a_moved_folder_gets_a_new_venv(folder, tmp_path):
    folder.path = folder.path.rename(tmp_path / "moved")
    assert folder.make() == ["venv", "install"]
    assert folder.make() == []


def test_another_python_gets_a_new_venv(folder):
    (folder.path / ".venv/lib").mkdir()
    (folder.path / "version").write_text("Python 3.13.0\n", encoding="utf-8")
    assert folder.make() == ["venv", "install"]
    assert not (folder.path / ".venv/lib").exists(), "packages of the old one would stay"


def test_a_python_that_is_gone_gets_a_new_venv(folder):
    (folder.path / ".venv/bin/python").unlink()
    assert folder.make() == ["venv", "install"]


def test_an_interrupted_install_is_taken_up_again(folder):
    (folder.path / "pyproject.toml").write_text("# another\n", encoding="utf-8")
    (folder.path / "fail_install").touch()
    assert folder.make(ok=False) == ["install"]
    (folder.path / "fail_install").unlink()
    assert folder.make() == ["install"]


def test_a_half_made_venv_is_made_again(folder):
    (folder.path / "version").write_text("Python 3.13.0\n", encoding="utf-8")
    (folder.path / "fail_venv").touch()
    assert folder.make(ok=False) == ["venv"]
    (folder.path / "fail_venv").unlink()
    assert folder.make() == ["venv", "install"]


def test_an_old_python_is_refused_in_one_sentence(folder):
    shutil.rmtree(folder.path / ".venv")
    (folder.path / "too_old").write_text("1", encoding="utf-8")
    assert folder.make(ok=False) == []
    assert "The course needs Python 3.11 or newer, which './python' is not" in folder.said
    assert not (folder.path / ".venv").exists()


def test_torch_can_come_from_an_index_of_its_own_and_comes_first(folder):
    shutil.rmtree(folder.path / ".venv")
    assert folder.make("bench", "TORCH_INDEX=https://an.index") == ["venv", "torch", "install"]
    (torch,) = [one for one in PROJECT["project"]["dependencies"] if one.startswith("torch")]
    asked = (folder.path / "asked").read_text(encoding="utf-8")
    assert f"-m pip install --index-url https://an.index {torch}\n" in asked


def test_an_environment_of_ones_own_is_used_as_it_is(folder):
    shutil.rmtree(folder.path / ".venv")
    assert folder.make("bench", "PY=./python", "SETUP=") == []
    assert not (folder.path / ".venv").exists()


@pytest.mark.parametrize("verb", ["check", "test"])
def test_what_fails_first_hides_nothing_that_comes_after_it(folder, verb):
    (folder.path / "fail_ruff").touch()
    asked = folder.make(verb, "PY=./python", "SETUP=", ok=False)
    assert [line.split()[1] for line in asked] == ["ruff", "ruff", "mypy", "pytest"]
    assert "FAILED: ruff check" in folder.said
    (folder.path / "fail_ruff").unlink()
    folder.make(verb, "PY=./python", "SETUP=")


def test_make_alone_lists_every_verb():
    listed = subprocess.run(
        ["make"], cwd=ROOT, env=PLAIN, capture_output=True, encoding="utf-8", check=True
    ).stdout
    verbs = [
        "lab",
        "edit",
        "handout",
        "site",
        "slides",
        "check",
        "test",
        "test-site",
        "types",
        "tamper",
        "notebooks",
        "bench",
        "format",
        "clean",
    ]
    assert [line.split()[1] for line in listed.splitlines()] == verbs
