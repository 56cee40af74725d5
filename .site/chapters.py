"""The proved edition of a notebook, made into a chapter for readers who run nothing.

Nothing is executed. What JupyterLab does with the stored outputs (folding, votes that wait, texts
for pictures) is said in MyST-NB's words or in plain HTML.
"""

import ast
import re
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from attnlab.step import AttentionStep, html

Cell = dict[str, Any]

LIVE = '<script src="_static/step.js"></script>'  # before the first step of a page

READING = (
    "*This page is for reading: its answers and solutions are stored, and folded.* "
    "*In [your own copy](index.md#start) the knobs move, and your answers are checked.*"
)


def text(lines: str | list[str]) -> str:
    """A source or an output, which the format may store as one string or as its lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def title(notebook: Cell) -> str:
    """The heading of a notebook."""
    return text(notebook["cells"][0]["source"]).partition("\n")[0].removeprefix("# ")


def question(notebook: Cell) -> str:
    """The question that a notebook answers: the paragraph that its first cell begins with."""
    first = text(notebook["cells"][0]["source"])
    return re.search(r"\*\*The question\.\*\* (.*?)\n\n", first, re.DOTALL)[1].replace("\n", " ")


def votes(notebook: Cell) -> dict[str, list[str]]:
    """Every question of a notebook and its choices, none for a number."""
    asked = {}
    for cell in notebook["cells"]:
        if "predict" in tags(cell):
            first, *choices = _plain(cell).splitlines()
            asked[first] = [x.removeprefix("( ) ") for x in choices if x.startswith("( ) ")]
    return asked


def chapter(notebook: Cell) -> Cell:
    """The notebook as MyST-NB is to build it."""
    asked = votes(notebook)
    first, *cells = [new for cell in notebook["cells"] for new in _adapted(cell, asked)]
    cells = [first, _markdown(READING), *cells]
    steps = [cell for cell in cells if "attentionStep.mount" in cell["source"]]
    for cell in steps[:1]:
        cell["source"] = LIVE + cell["source"]
    return notebook | {"cells": [cell | {"id": f"cell-{n}"} for n, cell in enumerate(cells)]}


def tags(cell: Cell) -> list[str]:
    """The tags of a cell."""
    return cell["metadata"].get("tags", [])


def _adapted(cell: Cell, asked: dict[str, list[str]]) -> Iterator[Cell]:
    source, kinds = text(cell["source"]), tags(cell)
    if cell["cell_type"] == "markdown":
        yield _markdown(source)
    elif "progress" in kinds:
        return  # nothing is done, as nobody has worked here
    elif "predict" in kinds:
        yield _markdown(_vote(_plain(cell), [*asked].index(_plain(cell).partition("\n")[0])))
    elif "reveal" in kinds:
        yield _markdown(_reveal(cell, asked))
    elif "proof" in kinds:  # what only asserts; of an explorer's stills the pictures stay
        if pictures := [*_pictures(cell)]:
            said, told = _words(cell)
            summary = "<summary>With the knobs moved</summary>"
            yield _markdown(f'<details class="stills">{summary}{said}')
            yield from pictures
            yield _markdown(f"{_in_words(told)}</details>")
    elif "explorer" in kinds:
        yield from _explorer(cell)
    elif "setup" in kinds:
        yield _code(cell, cell["outputs"], "Imports", "hide-cell")
    elif "solution" in kinds:
        yield _code(cell, cell["outputs"], "Solution", "hide-cell")
    elif "exercise" in kinds:
        done = [x for x in cell["outputs"] if not _data(x, "text/plain").startswith("…")]
        yield _code(cell, done)
    else:
        yield from _program(cell)


# --- Cells of the chapter -----------------------------------------------------------------------


def _markdown(source: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(cell: Cell, outputs: list[Cell], prompt: str = "", *kinds: str, alt: str = "") -> Cell:
    adapted = {
        "tags": list(kinds),
        "mystnb": {"code_prompt_show": prompt, "code_prompt_hide": prompt} if prompt else {},
    }
    if alt:
        adapted["mystnb"]["image"] = {"alt": alt}
    return cell | {"metadata": adapted, "outputs": outputs}


def _program(cell: Cell) -> Iterator[Cell]:
    """A cell of code with what it printed, then each of its pictures with its own words."""
    folded = cell["metadata"].get("jupyter", {}).get("source_hidden")
    printed = [x for x in cell["outputs"] if not _is_picture(x)]
    yield _code(cell, printed, *(["Code", "hide-input"] if folded else []))
    yield from _pictures(cell)


def _pictures(cell: Cell) -> Iterator[Cell]:
    for output in cell["outputs"]:
        if _data(output, "image/png"):
            alt = output["metadata"]["image/png"]["alt"]
            picture = output | {"data": {"image/png": output["data"]["image/png"]}}
            yield _code(cell, [picture], "", "remove-input", alt=alt)


def _is_picture(output: Cell) -> bool:
    """Whether it is a picture, or the words that Lab needs because it reads no ``alt``."""
    return bool(_data(output, "image/png")) or "data:image/gif" in _data(output, "text/html")


def _data(output: Cell, kind: str) -> str:
    return text(output.get("data", {}).get(kind, ""))


def _plain(cell: Cell) -> str:
    return "\n".join(filter(None, (_data(output, "text/plain") for output in cell["outputs"])))


# --- Explorers ----------------------------------------------------------------------------------


def _explorer(cell: Cell) -> Iterator[Cell]:
    """The step, alive, if the cell makes one; else the goal, the sentence and the picture."""
    if step := attention_step(text(cell["source"])):
        yield _markdown(html(step))
        return
    said, told = _words(cell)
    goal = _argument(text(cell["source"]), "goal")
    aim = f"<p><b>Try in the notebook:</b> {escape(goal)}</p>" if goal else ""
    yield _markdown(f'<div class="explorer">{aim}{said}</div>')
    yield from _pictures(cell)
    yield _markdown(_in_words(told))
    yield _code(cell, [], "Code of this explorer", "hide-input")


def _in_words(told: str) -> str:
    summary = "<summary>The picture in words</summary>"
    return f'<details class="words">{summary}{told}</details>' if told else ""


def _words(cell: Cell) -> tuple[str, str]:
    """HTML of an explorer's sentences, which its ``alt`` has too, and of its pictures in words."""
    metadata = [output.get("metadata", {}) for output in cell["outputs"]]
    alt = " ".join(found["image/png"]["alt"] for found in metadata if "image/png" in found)
    said, told = [], []
    for line in _plain(cell).splitlines():
        (said if line in alt else told).append(f"<p>{escape(line)}</p>")
    return "".join(said), "".join(told)


def attention_step(source: str) -> AttentionStep | None:
    """The step that a cell makes of constants."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "AttentionStep":
            return AttentionStep(**{x.arg: _constant(x.value) for x in node.keywords})
    return None


def _constant(node: ast.expr) -> Any:
    """The value of an expression without names."""
    return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})


def _argument(source: str, name: str) -> str:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == name:
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return node.value.value
    return ""


# --- Votes --------------------------------------------------------------------------------------


def _vote(asked: str, number: int) -> str:
    """A question with its choices; what is behind it stands folded further down."""
    first, *lines = asked.splitlines()
    choices = [line.removeprefix("( ) ") for line in lines if line.startswith("( ) ")]
    name = f"vote-{number}"
    rows = "".join(
        f'<label><input type="radio" name="{name}">'
        f"<span><b>{chr(65 + n)}</b> {escape(choice)}</span></label>"
        for n, choice in enumerate(choices)
    )
    number_field = '<label>Your guess: <input type="text" inputmode="decimal"></label>'
    return (
        f'<fieldset class="vote"><legend>{escape(first)}</legend>{rows or number_field}</fieldset>'
    )


class Revealed(NamedTuple):
    """What a cell tells about its question: the choices as HTML, what was seen in Markdown."""

    question: str
    choices: str
    seen: str


def revealed(cell: Cell, asked: dict[str, list[str]]) -> Revealed:
    """Read it from the stored text, in which a line for each choice follows the question."""
    first, *lines = _plain(cell).splitlines()
    rows = ""
    for n, choice in enumerate(asked[first]):
        mark, line = lines[n][0], lines[n][2:]
        reason = line.removeprefix(choice).removeprefix(": ")
        right, said = (' class="right"', " (right)") if mark == "✓" else ("", "")
        named = f"<b>{chr(65 + n)}</b> <b>{escape(choice)}</b>{said}"
        rows += f"<li{right}>{named} {escape(reason)}</li>"
    seen = "\n".join(lines[len(asked[first]) :])
    return Revealed(first, f"<ul>{rows}</ul>" if rows else "", seen)


def _reveal(cell: Cell, asked: dict[str, list[str]]) -> str:
    """What is behind a question: folded, so that nobody reads it before the vote."""
    _, choices, seen = revealed(cell, asked)
    printed = "".join(
        f"\n\n```text\n{text(output['text']).rstrip()}\n```"
        for output in cell["outputs"]
        if output["output_type"] == "stream"
    )
    summary = "<summary>What is behind it</summary>"
    return f'<details class="reveal">{summary}{choices}{printed}\n\n{seen}\n\n</details>'
