"""The edition that nbgrader turns into an assignment: the exercises, each with a graded cell.

A check never raises, so each graded cell asserts its verdict. nbgrader itself is not needed here.
"""

import ast
import re
from typing import Any

from attnlab.editions.notebooks import Cell, Notebook, for_class, tags

CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "self-attention"
c.ClearSolutions.code_stub = {"python": "# The next cell checks what stands above."}
c.ExecutePreprocessor.timeout = 60  # seconds a cell; then the next one runs
c.ExecutePreprocessor.interrupt_on_timeout = True
"""


def for_nbgrader(notebook: Notebook) -> Notebook:
    """The source version of an assignment: the edition for a class, with one point an exercise.

    An exercise's cell becomes two: what the learner writes, which ends in a solution that nbgrader
    takes out, and the check, which it locks.

    Raises:
        ValueError: if an exercise has no solution or does not end in its check.
    """
    solutions = {_number(c): c for c in notebook["cells"] if "solution" in tags(c)}
    edition = for_class(notebook)
    cells: list[Cell] = []
    for cell in edition["cells"]:
        if "exercise" not in tags(cell):
            cells.append(cell)
            continue
        number = _number(cell)
        if number not in solutions:
            raise ValueError(f"exercise {number} has no solution")
        written, check = _check(cell["source"])
        solved, call = _check(solutions[number]["source"])
        names, values = (", ".join(map(ast.unparse, one.args)) for one in (check, call))
        answer = f"{solved}\n{names} = {values}".strip()
        source = f"{written}\n\n### BEGIN SOLUTION\n{answer}\n### END SOLUTION"
        graded = f"verdict = {ast.unparse(check)}\nassert verdict.passed, verdict.message\nverdict"
        name = f"exercise-{number.replace('.', '-')}"
        cells.append(_marked(cell, source, name, solution=True))
        graded_cell = _marked(cell, graded, f"{name}-check", grade=True, locked=True, points=1)
        cells.append(graded_cell | {"id": f"{cell['id']}-check"})
    return edition | {"cells": cells}


def _number(cell: Cell) -> str:
    """The number of an exercise, from its cell's title: ``Exercise 4.1``."""
    found = re.match(r"Exercise (\d+\.\d+)", str(cell["metadata"].get("title")))
    if not found:
        raise ValueError(f"no number in the title {cell['metadata'].get('title')!r}")
    return found[1]


def _check(source: str) -> tuple[str, ast.Call]:
    """What stands before the check that a cell ends in, and the check."""
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        raise ValueError(f"this cell does not end in its check: {source}")
    return "\n".join(source.splitlines()[: last.lineno - 1]).rstrip(), last.value


def _marked(cell: Cell, source: str, name: str, **marks: int) -> Cell:
    """A copy of a cell with what nbgrader wants to know."""
    known: dict[str, Any] = {"schema_version": 3, "grade_id": name, "task": False}
    known |= dict.fromkeys(("grade", "locked", "solution"), False) | marks
    return cell | {"source": source, "metadata": cell["metadata"] | {"nbgrader": known}}
