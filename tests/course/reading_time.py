"""How long a notebook takes: a small model of reading time, for somebody new to PyTorch.

    python tests/course/reading_time.py

prints the minutes of every section. The header and the stopping points of each notebook are tested
against it.
"""

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import jupytext

WORDS_PER_MINUTE = 200
SECONDS_PER_CODE_LINE = 7  # of code that is shown; folded code takes no time
MINUTES_PER_PREDICTION = 0.75
MINUTES_PER_EXPLORER = 3.5
MINUTES_PER_EXERCISE = 2.0
MINUTES_PER_SOLUTION_LINE = 0.5
NEW_TO_PYTORCH = 1.3

STOP = re.compile(r"topping point[^.]*?about (\d+) minutes")
TAKES = re.compile(r"\*\*Takes\*\* about (\d+) minutes")


class Section(NamedTuple):
    """A heading of the core and what stands below it."""

    heading: str
    minutes: float
    total: float  # from the start of the notebook to the section's end
    stops: list[tuple[int, float]]  # promised and computed minutes at each stopping point


def code_lines(source: str) -> int:
    """Lines of code: no blank lines, no lines with nothing but a comment."""
    return sum(bool(re.match(r"\s*[^#\s]", line)) for line in source.splitlines())


def words(text: str) -> int:
    """Words of prose; what stands in links and markup is not read."""
    return len(re.sub(r"\]\([^)]*\)|<[^>]*>|[#*|>`$-]", " ", text).split())


def seen(source: str) -> str:
    """What a reveal says: the longest text among its arguments."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return max((text for text in texts if isinstance(text, str)), key=len, default="")


def minutes_of(cell) -> float:
    """Minutes that one cell takes."""
    tags = cell.metadata.get("tags", [])
    if cell.cell_type == "markdown":
        return words(cell.source) / WORDS_PER_MINUTE
    if "proof" in tags or "setup" in tags:
        return 0.0
    if "reveal" in tags:
        return words(seen(cell.source)) / WORDS_PER_MINUTE
    if "predict" in tags:
        return MINUTES_PER_PREDICTION
    if "explorer" in tags:
        return MINUTES_PER_EXPLORER
    if "exercise" in tags:
        return MINUTES_PER_EXERCISE
    if "solution" in tags:
        return MINUTES_PER_SOLUTION_LINE * code_lines(cell.source)
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        return 0.0
    return SECONDS_PER_CODE_LINE / 60 * code_lines(cell.source)


def sections(path: Path) -> list[Section]:
    """The sections of a notebook's core, up to *Further*."""
    found: list[Section] = []
    heading, minutes, total, stops = "(start)", 0.0, 0.0, []
    for cell in jupytext.read(path).cells:
        if "further" in cell.metadata.get("tags", []):
            continue
        start = re.match(r"## (.*)", cell.source) if cell.cell_type == "markdown" else None
        if start:
            found.append(Section(heading, minutes, total, stops))
            heading, minutes, stops = start[1], 0.0, []
        took = NEW_TO_PYTORCH * minutes_of(cell)
        minutes, total = minutes + took, total + took
        if cell.cell_type == "markdown":
            stops += [(int(promised), total) for promised in STOP.findall(cell.source)]
    return [*found, Section(heading, minutes, total, stops)]


def promised(path: Path) -> int:
    """Minutes that the notebook's header promises."""
    return int(TAKES.search(path.read_text(encoding="utf-8"))[1])


if __name__ == "__main__":
    course = Path(__file__).resolve().parents[2] / "course"
    for path in sorted(course.glob("0*.py")):
        print(f"{path.stem}: promised {promised(path)}")
        for section in sections(path):
            stops = ", ".join(f"stop at {t:.0f}, promised {p}" for p, t in section.stops)
            print(f"  {section.minutes:5.1f} {section.total:5.1f}  {section.heading}  {stops}")
    sys.exit()
