"""nbgrader, in an environment of its own, grades what `make handout FOR=nbgrader` writes.

Not part of `make test`: it needs the network for nbgrader, which is no dependency of the course.
"""

import csv
import json
import os
import sys

import pytest
from nbclient import NotebookClient
from support import NOTEBOOKS, ROOT, each_notebook, read, run

ASSIGNMENT = "04_softmax_and_values"
ENVIRONMENT = ROOT / "build/environments/nbgrader"


def source(cell):
    return "".join(cell["source"])


class Course:
    """An nbgrader course in a folder."""

    def __init__(self, folder, python):
        self.folder, self.python = folder, python
        kernel = folder / "jupyter/kernels/python3/kernel.json"
        kernel.parent.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel.write_text(
            json.dumps({"argv": command, "display_name": "the course's", "language": "python"}),
            encoding="utf-8",
        )
        handout = [sys.executable, "-m", "attnlab.editions", "handout", folder, "--for=nbgrader"]
        run(*handout, cwd=ROOT)

    def nbgrader(self, *words):
        """Run a command of nbgrader; its kernels are this Python's, with the course in it."""
        variables = {"JUPYTER_PATH": str(self.folder / "jupyter"), "HOME": str(self.folder)}
        variables["PATH"] = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"  # for alembic
        variables["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        said = run(self.python, "-m", "nbgrader", *words, cwd=self.folder, env=variables, ok=(0, 1))
        return said

    def read(self, stage, *student):
        path = self.folder.joinpath(stage, *student, ASSIGNMENT, f"{ASSIGNMENT}.ipynb")
        return json.loads(path.read_text(encoding="utf-8"))

    def hand_in(self, student, answers):
        """The released notebook with these answers, by the name of nbgrader's cell."""
        notebook = self.read("release")
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if name in answers:
                cell["source"] = answers[name]
        path = self.folder / "submitted" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course whose assignment is released."""
    python = ENVIRONMENT / "bin/python"
    if not (ENVIRONMENT / "bin/nbgrader").exists():
        run(sys.executable, "-m", "venv", ENVIRONMENT)
        run(python, "-m", "pip", "install", "--quiet", "nbgrader>=0.9.6,<0.10")
    course = Course(tmp_path_factory.mktemp("a class"), python)
    said = course.nbgrader("generate_assignment", ASSIGNMENT, "--create")
    assert (course.folder / "release" / ASSIGNMENT).exists(), said
    return course


@pytest.fixture(scope="module")
def solved(course):
    """The right answers, by the name of nbgrader's cell."""
    cells = course.read("source")["cells"]
    marked = {
        c["metadata"]["nbgrader"]["grade_id"]: c for c in cells if "nbgrader" in c["metadata"]
    }
    return {
        name: source(cell)
        for name, cell in marked.items()
        if cell["metadata"]["nbgrader"]["solution"]
    }


def test_a_release_has_the_exercises_and_no_solution(course, solved):
    release = "\n".join(source(cell) for cell in course.read("release")["cells"])
    assert len(solved) >= 5 and "BEGIN SOLUTION" not in release
    assert (
        "softmax(" not in release.split("Exercise 4.2")[1].split("def my_whole_attention")[1][:200]
    )
    assert release.count("assert verdict.passed, verdict.message") == len(solved)


@each_notebook
def test_every_solution_gets_its_points(course, path, figure):
    """The source version runs without an error: each graded cell accepts its solution."""
    notebook = read(course.folder / "source" / path.stem / path.name)
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(course.folder)}}
    ).execute()
    graded = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    figure(f"nbgrader | {path.stem}: {len(graded)} exercises, all solutions accepted")
    assert len(graded) >= 5 and len(NOTEBOOKS) == 6


def test_each_kind_of_hand_in_gets_its_points(course, solved, figure):
    names = sorted(solved)
    stubs = {
        c["metadata"]["nbgrader"]["grade_id"]: source(c)
        for c in course.read("release")["cells"]
        if c["metadata"].get("nbgrader", {}).get("solution")
    }
    first = names[0]
    wrong = {
        name: f"{stubs[name]}\n{_variables(solved[name])} = {_wrong(solved[name])}"
        for name in names
    }
    hand_ins = {
        "right": solved,
        "half": {name: solved[name] for name in names[: len(names) // 2]},
        "wrong": wrong,
        "empty": {},
        "endless": solved | {first: stubs[first] + "\nwhile True:\n    pass"},
        "endless_answer": solved
        | {first: f"{_variables(solved[first])} = lambda *_: [0 for _ in iter(int, 1)]"},
        "flood": solved | {first: f"{_variables(solved[first])} = lambda *_: print('x' * 10**7)"},
        "quits": solved | {first: stubs[first] + "\nraise SystemExit"},
        "kills_the_kernel": solved | {first: stubs[first] + "\nimport os\nos._exit(1)"},
        "takes_the_assert_away": {f"{name}-check": "pass" for name in names},
    }
    for student, answers in hand_ins.items():
        course.hand_in(student, answers)
    said = course.nbgrader("autograde", ASSIGNMENT, "--create", "--force")
    course.nbgrader("export", "--to", "grades.csv")
    with (course.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    points = {
        student: float(rows[student]["score"]) if student in rows else None for student in hand_ins
    }
    for student, score in points.items():
        figure(f"nbgrader | {student} | {score} of {len(names)} | {_message(course, student)}")
    n = len(names)
    assert points["right"] == n, said
    assert points["half"] == n // 2
    assert points["wrong"] == points["empty"] == points["takes_the_assert_away"] == 0
    for student in ("endless", "endless_answer", "flood", "quits"):
        assert points[student] == n - 1, student
    assert points["kills_the_kernel"] in (None, 0.0)  # the teacher is told that it failed


def _variables(answer):
    """What the last line of a right answer assigns."""
    return answer.split("### END SOLUTION")[0].rstrip().splitlines()[-1].partition(" = ")[0]


def _wrong(answer):
    """Something that is no right answer to any exercise."""
    count = _variables(answer).count(",") + 1
    return ", ".join(["[7.0, 7.0, 7.0]"] * count)


def _message(course, student):
    """The first message that a graded cell of a hand-in shows."""
    try:
        cells = course.read("autograded", student)["cells"]
    except FileNotFoundError:
        return "not graded: nbgrader says that it failed"
    for cell in cells:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error" and cell["metadata"].get("nbgrader", {}).get(
                "grade"
            ):
                return f"{output['ename']}: {output['evalue']}"[:160]
    return "-"
