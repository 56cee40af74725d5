"""A course that can change, a learner's copy of it, and the command as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from attnlab.editions import command, notebooks

# `attnlab`, without waiting for torch, which it does not need.
COMMAND = f"""
import sys, types
package = types.ModuleType("attnlab")
package.__path__ = [{str(Path(command.__file__).parents[1])!r}]
sys.modules["attnlab"] = package
from attnlab.editions.command import main
sys.exit(main())
"""


class Folder:
    """Notebooks in a folder: a course, or somebody's copy of it."""

    def __init__(self, path):
        self.path = path

    @property
    def names(self):
        return sorted(path.name for path in self.path.glob("*.ipynb"))

    def read(self, name):
        return notebooks.parse((self.path / name).read_bytes())

    def sources(self, name):
        return [cell["source"] for cell in self.read(name)["cells"]]

    def write(self, name, notebook):
        (self.path / name).write_text(json.dumps(notebook), encoding="utf-8")

    def change(self, name, title, source):
        """Write anew the cell that has this title or begins with it."""
        self.edit(name, lambda cells: self._one(cells, title).update(source=source))

    def add(self, name, title, line):
        """Add a line to the cell of that title."""
        self.edit(name, lambda cells: _add(self._one(cells, title), line))

    def _one(self, cells, title):
        titles = [one["metadata"].get("title") or one["source"][: len(title)] for one in cells]
        assert titles.count(title) == 1
        return cells[titles.index(title)]

    def edit(self, name, function):
        """Change the list of a notebook's cells in place."""
        notebook = self.read(name)
        function(notebook["cells"])
        self.write(name, notebook)

    def everything(self):
        """Every file that the learner can see, by its name."""
        return {path.name: path.read_bytes() for path in self.path.iterdir() if path.is_file()}


class Learner(Folder):
    """A learner's copy."""

    def __init__(self, path, course):
        super().__init__(path)
        self.course = course

    def update(self, status=0):
        """Run ``attnlab copy`` and return what it says."""
        self.capture.readouterr()
        arguments = ["copy", str(self.path), f"--course={self.course.path}"]
        assert command.main(arguments) == status
        said = self.capture.readouterr()
        return said.out + said.err

    def process(self, *before, before_main="", encoding="utf-8", **options):
        """``attnlab copy`` as a process, which is started and not waited for."""
        words = [*before, sys.executable, "-c", before_main + COMMAND, "copy", str(self.path)]
        return subprocess.Popen(
            [*words, f"--course={self.course.path}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding=encoding,
            env=os.environ | {"PYTHONPATH": "", "PYTHONIOENCODING": encoding},
            **options,
        )


def _add(cell, line):
    cell["source"] += f"\n{line}"


def small_notebook(number):
    """A notebook like the course's, with outputs."""
    kinds = {
        "Setup": "setup",
        "A proof": "proof",
        f"Exercise {number}.1": "exercise",
        f"Exercise {number}.1, a solution": "solution",
        f"Exercise {number}.2": "exercise",
        f"Exercise {number}.2, a solution": "solution",
        "My progress": "progress",
    }
    texts = [
        f"# {number} · Rows and columns\n\nA **row** is a query. [Next](0{number + 1}_b.ipynb)",
        ("Setup", "import math\n\nimport torch"),
        "## Rows\n\nEach query has a row of its own.",
        ("Rows", "for row in range(3):\n    print(row)"),
        "What this printed is the numbers of the rows.",
        ("A proof", "assert 1 + 1 == 2"),
        ("Columns", "print('columns', [column * 2 for column in range(5)])"),
        f"**Exercise {number}.1.** Count them.\n\n"
        "<details><summary>Hint 1: nudge</summary>\nUse len.\n</details>\n\n"
        "Hint 2 is the folded solution below.",
        (f"Exercise {number}.1", f"my_rows = ...\n\nchecks.rows_{number}(my_rows)"),
        (f"Exercise {number}.1, a solution", f"checks.rows_{number}(7)"),
        f"**Exercise {number}.2.** Look one up.",
        (
            f"Exercise {number}.2",
            f"def my_row(n):\n    return ...\n\n\nchecks.row_{number}(my_row)",
        ),
        (f"Exercise {number}.2, a solution", f"checks.row_{number}(lambda n: n)"),
        ("My progress", f'progress(checks.exercises("0{number}"), globals())'),
        "## Remember\n\n- A row is a query, a column is a key.",
    ]
    cells = []
    for place, text in enumerate(texts):
        cell = {"cell_type": "markdown", "id": f"{number}-{place}", "metadata": {}, "source": text}
        if isinstance(text, tuple):
            title, source = text
            metadata = (
                {"title": title, "tags": [kinds[title]]} if title in kinds else {"title": title}
            )
            output = {"output_type": "stream", "name": "stdout", "text": "spoiler"}
            cell |= {"cell_type": "code", "source": source, "metadata": metadata}
            cell |= {"outputs": [output], "execution_count": place}
        cells.append(cell)
    metadata = {"jupytext": {"formats": "ipynb,py:percent"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def course(tmp_path):
    """A course of three small notebooks, to be changed."""
    course = Folder(tmp_path / "course")
    course.path.mkdir()
    for number, letter in enumerate("abc", start=1):
        course.write(f"0{number}_{letter}.ipynb", small_notebook(number))
    return course


@pytest.fixture
def learner(tmp_path, course, capsys):
    """A learner with a copy of the course."""
    learner = Learner(tmp_path / "my course", course)
    learner.capture = capsys
    learner.update()
    return learner


@pytest.fixture
def git_show():
    """``git_show("226d1ca", "course/01.ipynb")``: a file as it was, or a skip."""

    def show(commit, name):
        words = ["git", "show", f"{commit}:{name}"]
        ran = subprocess.run(words, cwd=ROOT, capture_output=True)
        if ran.returncode:
            pytest.skip(f"the history of this clone does not go back to {commit}")
        return ran.stdout

    return show
