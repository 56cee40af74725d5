"""The registry of exercises agrees with the notebooks, and each exercise explains itself."""

import ast
import inspect
import pydoc
import re

import jupytext
import pytest
from support import NOTEBOOKS, SOURCES

from attnlab import checks
from attnlab.checks import Status, Verdict


def cells(path, tag):
    """The code cells with that tag."""
    found = jupytext.read(path).cells
    return [c for c in found if c.cell_type == "code" and tag in c.metadata.get("tags", [])]


def checked(cell):
    """Name and arguments of the check that a cell calls."""
    calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    called = [call for call in calls if ast.unparse(call.func).startswith("checks.")]
    assert len(called) == 1, cell.source
    name = ast.unparse(called[0].func).removeprefix("checks.")
    return name, tuple(map(ast.unparse, called[0].args))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_number_variables_and_section_are_those_of_the_notebook(path):
    exercises, text = checks.exercises(path.stem[:2]), path.read_text(encoding="utf-8")
    asked = [(cell.metadata["title"], *checked(cell)) for cell in cells(path, "exercise")]
    assert asked == [(f"Exercise {e.number}", e.name, e.variables) for e in exercises]
    defined = {
        name.id if isinstance(name, ast.Name) else node.name
        for cell in cells(path, "exercise")
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)
        for name in getattr(node, "targets", [node])
    }
    for exercise in exercises:
        assert defined >= set(exercise.variables), exercise
        places = re.findall(r'sections? (\d)|and (\d)|"(.+?)"', exercise.section)
        assert places, exercise.section
        for section, other, title in places:
            heading = f"# %% {title}" if title else f"# ## {section or other}. "
            assert f"\n{heading}" in text, (exercise, exercise.section)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_each_exercise_has_a_task_two_hints_and_a_folded_solution(path):
    asked, solutions = cells(path, "exercise"), cells(path, "solution")
    assert [checked(cell)[0] for cell in asked] == [checked(cell)[0] for cell in solutions]
    assert len(asked) >= 5
    assert len([cell for cell in asked if "further" not in cell.metadata["tags"]]) >= 2
    found = jupytext.read(path).cells
    prose = "\n".join(cell.source for cell in found if cell.cell_type == "markdown")
    for cell, solution in zip(asked, solutions, strict=True):
        title = cell.metadata["title"]
        task = prose.partition(f"**{title}")[2].partition("**Exercise")[0]
        assert len(task) > 100 and "<summary>Hint 1: " in task and "<summary>Hint 2: " in task, (
            title
        )
        assert solution.metadata["title"] == f"{title}, a solution"
        assert solution.metadata["jupyter"]["source_hidden"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_run_all_leaves_every_exercise_undone_and_every_solution_right(path):
    for tag, start in ("exercise", "… Not done yet: "), ("solution", "✓ Right"):
        for cell in cells(path, tag):
            last = [o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result"]
            assert last[0].startswith(start), cell.source


def test_each_exercise_explains_itself():
    for path in SOURCES:
        for exercise in checks.exercises(path.stem[:2]):
            assert getattr(checks, exercise.name) is exercise
            assert tuple(inspect.signature(exercise).parameters) == exercise.variables
            task = inspect.getdoc(exercise)
            assert re.match("(Write|Choose|Give|Say|Count) ", task), task
            assert task.splitlines()[0] in pydoc.render_doc(exercise)


def test_a_notebook_without_exercises_is_refused(refuses):
    sentence = "notebook must be one such as '01' but is '7'"
    refuses(ValueError, sentence, checks.exercises, "7")


def test_a_verdict_displays_as_its_message():
    shown = [repr(Verdict(status, "Off by one.")) for status in Status]
    assert shown == ["✓ Off by one.", "✗ Off by one.", "… Off by one.", "✗ Off by one."]
    assert [bool(Verdict(status, "")) for status in Status] == [True, False, False, False]
    assert Status.NOT_YET == "not yet"


def test_the_wrong_number_of_answers_becomes_a_verdict():
    message = "Your answer could not be checked: TypeError: "
    verdict = checks.bank_asks_for_money(...)
    assert verdict.message == message + "missing a required argument: 'my_W_K'."
    verdict = checks.lookup(..., ...)
    assert verdict.message == message + "too many positional arguments."
    assert verdict.status is Status.WRONG
