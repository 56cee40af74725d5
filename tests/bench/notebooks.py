"""Strict nbval of the course against as many notebooks that do nothing but import."""

import collections
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from report import alternate, line

ROOT = Path(__file__).parent.parent.parent
IMPORTS = "import ipywidgets\nimport matplotlib\nimport torch"


def strict(folder: Path) -> str:
    """What ``make test`` does to the notebooks, and how long every cell took."""
    settings = ["-c", "pyproject.toml", "--rootdir=.", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", *settings, "--durations=0", "-vv"]
    command += ["tests/conftest.py", folder]  # the first compares the pictures
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def run(repeats: int = 3) -> None:
    """Both folders in turn; then the seconds of each notebook in the last round."""
    course = ROOT / "course"
    names = sorted(path.stem for path in course.glob("*.ipynb"))
    if not names:
        print("  there is no notebook yet: make notebooks")
        return
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(IMPORTS)])
        empty.cells[0].execution_count = 1  # nbval compares nothing in a cell that was never run
        for name in names:
            nbformat.write(empty, Path(folder) / f"{name}.ipynb")
        seconds = alternate(
            repeats,
            empty=lambda: said.update(empty=strict(Path(folder))),
            course=lambda: said.update(course=strict(course)),
        )
    line(f"strict nbval of {len(names)} notebooks / of as many empty ones", seconds["course"],
         seconds["empty"], "at most 3.5", lambda ratio: ratio <= 3.5)  # fmt: skip
    print(f"  {said['course'].strip().splitlines()[-1]}")
    spent = {which: collections.Counter() for which in said}
    for which, text in said.items():
        for took, name in re.findall(r"^([\d.]+)s \w+ +\S*?([^/\s]+)\.ipynb::", text, re.MULTILINE):
            spent[which][name] += float(took)
    common = statistics.mean(spent["empty"].values()) if spent["empty"] else 0
    for name in names:
        print(
            f"  {name}: {spent['course'][name]:.1f} s, of which {common:.1f} s to start and import"
        )
