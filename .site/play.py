"""The page for a class: goals that are reached by moving numbers. One file, for phones."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from attnlab.step import AttentionStep, script

HERE = Path(__file__).resolve().parent
I2 = [[1, 0], [0, 1]]


@dataclass(frozen=True)
class Goal:
    """A goal of a notebook that the step can show.

    Attributes:
        notebook: whose goal it is.
        name: two or three words for its button.
        traits: of the ``AttentionStep``: what is shown, the goal and when it is reached.
        answer: knobs that reach it, which a test moves.
    """

    notebook: int
    name: str
    traits: dict[str, Any]
    answer: dict[str, Any]


GOALS = (
    Goal(
        2,
        "Ask, not be asked",
        {
            "show": ["X", "W_Q", "W_K", "raw"],
            "phrase": "money bank",
            "query": "money",
            "causal": False,
            "goal": "Make money score 2 with bank, while bank scores 0 with money.",
            "when": [["raw", "money", "bank", "=", 2], ["raw", "bank", "money", "=", 0]],
        },
        {"W_Q": [[1, 0], [1, 1]]},
    ),
    Goal(
        3,
        "Almost all of it",
        {
            "show": ["W_Q", "W_K", "raw", "weights"],
            "phrase": "river bank",
            "goal": "Make bank give river more than 0.99, by larger scores.",
            "when": [["weights", "bank", "river", ">", 0.99]],
        },
        {"W_Q": [[3, 0], [0, 1]], "W_K": [[3, 0], [0, 1]]},
    ),
    Goal(
        3,
        "Tame the scores",
        {
            "show": ["temperature", "raw", "scaled", "weights"],
            "phrase": "river bank",
            "W_Q": [[3, 0], [0, 1]],
            "W_K": [[2, 0], [0, 1]],
            "goal": "These scores are too large: divide them until river gets less than 0.8.",
            "when": [["weights", "bank", "river", "<", 0.8], ["raw", "bank", "river", "=", 12]],
        },
        {"temperature": 4.0},
    ),
    Goal(
        3,
        "Look ahead",
        {
            "show": ["causal", "W_Q", "masked", "words"],
            "phrase": "river money bank",
            "query": "river",
            "goal": "Make river look at bank, which comes later: more than 0.1.",
            "when": [["weights", "river", "bank", ">", 0.1]],
        },
        {"causal": False},
    ),
    Goal(
        4,
        "Look, but take nothing",
        {
            "show": ["W_Q", "W_V", "words", "plane"],
            "phrase": "river money bank",
            "goal": "Let bank give money more than 0.9, and carry nothing of it, only of river.",
            "when": [
                ["weights", "bank", "money", ">", 0.9],
                ["V", "money", 0, "=", 0],
                ["V", "money", 1, "=", 0],
                ["V", "river", 0, ">", 0.5],
            ],
        },
        {"W_Q": [[1, 3], [0, 1]], "W_V": [[1, 0], [0, 0]]},
    ),
    Goal(
        4,
        "Teach bank",
        {
            "show": ["W_Q", "words", "plane"],
            "phrase": "money bank",
            "beside": "river bank",
            "goal": "Make bank give money more than 0.95.",
            "when": [["weights", "bank", "money", ">", 0.95]],
        },
        {"W_Q": [[1, 3], [0, 1]]},
    ),
)


def _changed(state: dict[str, Any]) -> dict[str, Any]:
    """What differs from the defaults, which the script has."""
    defaults = AttentionStep().state()
    return {name: value for name, value in state.items() if value != defaults[name]}


def write(folder: Path, url: str) -> None:
    """Write the page, with all that it needs in it."""
    folder.mkdir(parents=True)
    steps = [_changed(AttentionStep(**goal.traits).state()) for goal in GOALS]
    buttons = "".join(
        f'<li><button type="button"><span>{n}</span> {escape(goal.name)}</button></li>'
        for n, goal in enumerate(GOALS, 1)
    )
    page = (HERE / "play.html").read_text(encoding="utf-8")
    for name, part in {
        "buttons": buttons,
        "number": str(len(GOALS)),
        "script": script(),
        "goals": json.dumps(steps, ensure_ascii=False).replace("</", "<\\/"),
    }.items():
        page = page.replace(f"{{{{ {name} }}}}", part)
    (folder / "index.html").write_text(page, encoding="utf-8")
