"""What the front page and the teacher's page say about the notebooks, read from them.

Only the plans in lessons.toml are written by hand; a test looks up their cells and headings in the
notebooks.
"""

import ast
import importlib.util
import inspect
import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import chapters
from chapters import Cell, text

from attnlab import checks
from attnlab.checks import Exercise

HERE = Path(__file__).resolve().parent
LESSONS: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (HERE / "lessons.toml").read_text(encoding="utf-8")
)
"""Notebook -> minutes of a lesson -> its plan."""


def contents(notebooks: dict[str, Cell]) -> str:
    """The table of the chapters and their questions."""
    rows = [
        f"| [{chapters.title(notebook)}]({stem}.ipynb) | {chapters.question(notebook)} |"
        for stem, notebook in notebooks.items()
    ]
    return "\n".join(["| chapter | its question |", "|---|---|", *rows])


def paper_table(pdfs: list[str]) -> str:
    """What is printed, as HTML and, where a browser was there to print, as PDF."""
    names = {
        "worksheet": "Worksheet: one step of attention, by hand, in ten minutes",
        "key": "Its key, computed by the package",
        "letters": "Letters A to D, one sheet for each student",
    }
    rows = []
    for name, what in names.items():
        pdf = f', <a href="{name}.pdf">PDF</a>' if name in pdfs else ""
        rows.append(f'- {what}: <a href="{name}.html">page</a>{pdf}')
    return "\n".join(rows)


def teach(course: Path, notebooks: dict[str, Cell]) -> str:
    """For each notebook: its plans, minutes, votes, and what its exercises catch."""
    parts = []
    for stem, notebook in notebooks.items():
        number = stem[:2]
        parts += [
            f"## {chapters.title(notebook)}",
            f"{chapters.question(notebook)} [The chapter]({stem}.ipynb).",
            plans(LESSONS[number]),
            _folded("Minutes of each section", minutes(course / f"{stem}.py")),
            _folded("Its votes, and what to say about each choice", answers(notebook)),
            _folded("What its exercises catch", misconceptions(number)),
        ]
    return "\n\n".join(parts)


def _folded(summary: str, body: str) -> str:
    return f'<details class="reveal"><summary>{summary}</summary>\n\n{body}\n\n</details>'


def shown(name: str) -> str:
    """A cell's title as a reader needs it."""
    return re.sub(r" \(unfold.*", "", name)


def plans(lessons: dict[str, dict[str, Any]]) -> str:
    """One table: what happens in 45 minutes, and in 90."""
    columns = [lessons[length] for length in ("45", "90")]
    rows = {
        "show": [", ".join(plan["show"]) for plan in columns],
        "three votes": ["; ".join(map(shown, plan["votes"])) for plan in columns],
        "move": [f"{shown(plan['explorer'])}. {plan['moment']}" for plan in columns],
        "they work on": [plan["work"] for plan in columns],
        "skip": [plan["skip"] for plan in columns],
    }
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(["| plan | 45 minutes | 90 minutes |", "|---|---|---|", *lines])


def reading_time() -> Any:
    """The course's model of reading time, which its own tests use."""
    path = HERE.parent / "tests/course/reading_time.py"
    spec = importlib.util.spec_from_file_location("reading_time", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def minutes(source: Path) -> str:
    """The minutes of the sections of a notebook's core, for somebody alone with it."""
    rows = [
        f"| {section.heading} | {section.minutes:.0f} | {section.total:.0f} |"
        for section in reading_time().sections(source)
        if round(section.minutes)
    ]
    head = ["| section | minutes | from the start |", "|---|---|---|"]
    return "\n".join([*head, *rows]).replace("(start)", "before section 1")


def answers(notebook: Cell) -> str:
    """The questions of a notebook, each with its choices, the right one and the reasons."""
    asked, parts = chapters.votes(notebook), []
    for cell in notebook["cells"]:
        if "reveal" in chapters.tags(cell):
            found = chapters.revealed(cell, asked)
            parts.append(f"<p><b>{escape(found.question)}</b></p>{found.choices}\n\n{found.seen}")
    return "\n\n".join(parts)


# --- Misconceptions -------------------------------------------------------------------------------


def misconceptions(number: str) -> str:
    """The sentence for each mistake that a check names, by exercise."""
    parts = []
    for exercise in checks.exercises(number):
        rows = "".join(f"<li>{escape(said)}</li>" for said in sentences(exercise))
        task = inspect.getdoc(exercise).partition("\n")[0]
        parts.append(f"**{exercise.number}** {task}\n\n<ul>{rows}</ul>")
    return "\n\n".join(parts)


def sentences(exercise: Exercise) -> list[str]:
    """What its check may say about a mistake: its table, and what its judge returns."""
    source = inspect.getsource(exercise.build)
    found = [*getattr(exercise.build(), "mistakes", {})]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            found += _constants(key for key in node.keys if key)
        elif isinstance(node, ast.Return) and node.value:
            choices = [node.value]
            if isinstance(node.value, ast.IfExp):
                choices = [node.value.body, node.value.orelse]
            found += _constants(choices)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "text":
            found += (f"{said.rstrip('.')}." for said in _constants([node.value]))
    return [*dict.fromkeys(said for said in found if re.search(r" .*[.!?]$", said, re.DOTALL))]


def _constants(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


# --- Are the plans' names those of the notebooks? -------------------------------------------------


def unknown(number: str, notebook: Cell) -> list[str]:
    """Names in the plans of a notebook that it does not have."""
    sources = [text(cell["source"]) for cell in notebook["cells"]]
    headings = re.findall(r"^#{2,3} (.*)$", "\n".join(sources), re.MULTILINE)
    titles = {tag: set() for tag in ("predict", "explorer", "exercise")}
    for cell in notebook["cells"]:
        for tag in titles.keys() & chapters.tags(cell):
            titles[tag].add(cell["metadata"].get("title", ""))
    numbers = {title.removeprefix("Exercise ") for title in titles["exercise"]}
    missing = []
    for length, plan in LESSONS[number].items():
        missing += [f"{length}: {name}" for name in plan["show"] if name not in headings]
        missing += [f"{length}: {name}" for name in plan["votes"] if name not in titles["predict"]]
        named = re.findall(r"\b\d\.\d\b", plan["work"])
        missing += [f"{length}: exercise {name}" for name in named if name not in numbers]
        if plan["explorer"] not in titles["explorer"]:
            missing.append(f"{length}: {plan['explorer']}")
    return missing
