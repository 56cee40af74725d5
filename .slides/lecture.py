"""What of a notebook goes on slides, and how: the lecture edition.

A cell's slide type stands in its metadata: slide, subslide (the same section of the deck), fragment
(the same slide), notes (for the speaker only) or skip. `mark` writes them into a source by a rule;
what somebody chose by hand stays.
"""

import re
from html import escape
from typing import Any

import latex2mathml.converter
from markdown_it import MarkdownIt

Cell = dict[str, Any]

SKIPPED = {"setup", "exercise", "solution", "further", "proof", "progress"}
LETTERS = "ABCDEFGH"
MOST_LINES, LETTERS_A_LINE = 14, 88  # of text on one slide
DETAILS = re.compile(r"<details>.*?</details>\s*", re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_html = MarkdownIt("commonmark", {"html": True}).enable("table")


def text(lines: str | list[str]) -> str:
    """A source or an output, which the format may store as one string or as its lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def tags(cell: Cell) -> set[str]:
    """The tags of a cell."""
    return set(cell["metadata"].get("tags", []))


def rule(cell: Cell, section: str) -> str:
    """The slide type of a cell that has none, in a section with this heading."""
    source = text(cell["source"])
    if tags(cell) & SKIPPED or re.match("Exercises|Further|Progress", section):
        return "skip"
    if cell["cell_type"] == "markdown":
        if re.match(r"##? ", source):
            return "slide"
        spoken = DETAILS.sub("", source).strip()
        for_one = ("*Stopping point", "**Two questions")  # who works alone
        return "subslide" if spoken and not spoken.startswith(for_one) else "skip"
    return "subslide"


def deck(notebook: Cell) -> list[tuple[str, str]]:
    """The slides of a notebook: for each its type and its HTML."""
    slides: list[tuple[str, str]] = []
    asked: dict[str, list[str]] = {}
    for cell in notebook["cells"]:
        kind = cell["metadata"].get("slideshow", {}).get("slide_type", "skip")
        if kind == "skip":
            continue
        for number, part in enumerate(_slides(cell, asked)):
            if slides and _is_heading(slides[-1][1]) and kind == "subslide":
                before, heading = slides.pop()
                slides.append((before, heading + part))
            else:
                slides.append((kind if number == 0 or kind == "notes" else "subslide", part))
            if number == 0 and (words := NOTES.keys() & tags(cell)):
                slides.append(("notes", NOTES[words.pop()]))
    return slides


def _is_heading(html: str) -> bool:
    return re.fullmatch(r"<h(\d)>.*</h\1>\s*", html) is not None


NOTES = {
    "predict": (
        "Read the question aloud. One minute alone, then a show of hands or letters. Note the "
        "counts; say nothing about them. If the room is split, two minutes in pairs, and another "
        "vote."
    ),
    "reveal": (
        "Ask somebody from each group for the reason before you read it. Then ask: what would have "
        "to be changed in the question for another choice to be right?"
    ),
}


def _slides(cell: Cell, asked: dict[str, list[str]]) -> list[str]:
    """The parts of a cell, each as much as fits on a slide."""
    source = text(cell["source"])
    if cell["cell_type"] == "markdown":
        return [_rendered(part) for part in chunks(DETAILS.sub("", source))]
    if "predict" in tags(cell):
        return [_question(_plain(cell), asked)]
    if "reveal" in tags(cell):
        return _answer(_plain(cell), asked)
    title = re.sub(r" \(unfold.*|^Explorer: ", "", cell["metadata"].get("title", ""))
    head = f"<h4>{escape(title[:1].upper() + title[1:])}</h4>"
    pictures = [*_pictures(cell)]
    said = _said(cell)
    if "explorer" in tags(cell):
        goal = re.search(r'goal="([^"]+)"', source)
        live = f"<p><b>Live:</b> {escape(goal[1])}</p>" if goal else ""
        return [head + live + ("".join(pictures[:1]) or said)]
    room = 500 - 27 * said.count("\n") if said else 540  # of 720 pixels, below the rest
    pictures = [
        picture.replace("<img", f'<img style="height:{min(room, 440)}px"') for picture in pictures
    ]
    code = f"<details><summary>Code</summary><pre><code>{escape(source)}</code></pre></details>"
    return [head + code + said + "".join(pictures[:1]), *pictures[1:]]


def chunks(source: str) -> list[str]:
    """Markdown in parts that fit on a slide: cut between paragraphs, never within one."""
    parts, lines = [[]], 0.0
    for block in re.split(r"\n{2,}", source.strip()):
        needs = sum(max(1, len(line) / LETTERS_A_LINE) for line in block.splitlines()) + 0.7
        needs += 1.0 * block.startswith("#")
        if parts[-1] and lines + needs > MOST_LINES:
            parts.append([])
            lines = 0.0
        parts[-1].append(block)
        lines += needs
    return ["\n\n".join(part) for part in parts]


def _rendered(source: str) -> str:
    source = re.sub(r"\]\(0\d_\w+\.ipynb[^)]*\)", "](#)", source)
    formula = lambda found: latex2mathml.converter.convert(found[1].strip(), display="block")  # noqa: E731
    return _html.render(FORMULA.sub(formula, source))


def _question(words: str, asked: dict[str, list[str]]) -> str:
    question, *lines = words.splitlines()
    choices = [line.removeprefix("( ) ") for line in lines if line.startswith("( ) ")]
    asked[question] = choices
    rows = "".join(
        f'<li><b>{letter}</b> {escape(choice)} <span class="hands">&nbsp;</span></li>'
        for letter, choice in zip(LETTERS, choices, strict=False)
    )
    rows = rows or '<li>Your number: <span class="hands">&nbsp;</span></li>'
    return f'<h3>{escape(question)}</h3><ul class="choices">{rows}</ul>'


def _answer(words: str, asked: dict[str, list[str]]) -> list[str]:
    question, *lines = words.splitlines()
    rows, rest = [], []
    for line in lines:
        found = re.match(r"([✓·]) (.*)", line)
        begun = [c for c in asked.get(question, []) if found and found[2].startswith(c)]
        choice = max(begun, key=len, default=None)  # one may begin with another
        if choice is None:
            rest.append(line)
            continue
        letter, reason = (
            LETTERS[asked[question].index(choice)],
            found[2][len(choice) :].lstrip(": "),
        )
        right = ' class="right"' if found[1] == "✓" else ""
        choice = escape(choice) + " ✓" * bool(right)
        why = f"<br>{escape(reason)}" if reason else ""
        rows.append((letter, f"<li{right}><b>{letter}</b> <strong>{choice}</strong>{why}</li>"))
    listed = "".join(row for _, row in sorted(rows))
    first = f'<h4>{escape(question)}</h4><ul class="choices">{listed}</ul>'
    parts = chunks("\n\n".join(rest)) if rest else []
    if parts and len(parts[0]) < 700 - len(re.sub("<.*?>", "", first)):  # both fit on a slide
        first += _rendered(parts.pop(0))
    return [first, *map(_rendered, parts)]


def _plain(cell: Cell) -> str:
    data = (text(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"])
    return "\n".join(filter(None, data))


def _said(cell: Cell) -> str:
    """What a cell prints; of an explorer the sentence, as its picture has the numbers."""
    if "explorer" in tags(cell):
        return f'<p class="said">{escape(_plain(cell).partition(chr(10))[0])}</p>'
    printed = ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += text(output["text"])
        elif "image/png" not in output.get("data", {}) and "text/html" not in output.get(
            "data", {}
        ):
            printed += text(output.get("data", {}).get("text/plain", "")) + "\n"
    lines = printed.rstrip().splitlines()
    return f"<pre>{escape(chr(10).join(lines[:15]))}</pre>" if lines else ""


def _pictures(cell: Cell):
    for output in cell["outputs"]:
        if png := output.get("data", {}).get("image/png"):
            alt = escape(output["metadata"].get("image/png", {}).get("alt", ""))
            yield f'<img alt="{alt}" src="data:image/png;base64,{text(png).strip()}">'
