"""Which exercises of a notebook are done; the exercises are handed in by the notebook."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Protocol

import ipywidgets as widgets

from attnlab.lab import cells
from attnlab.lab.page import Screen, Shown, callout

_MARKS = {"done": "✓", "wrong": "✗", "not yet": "…", "late": "✗"}


class Verdict(Protocol):
    """What an exercise says about an answer; its status is one of the keys of ``_MARKS``."""

    status: str
    message: str


class Exercise(Protocol):
    """Its number ("1.2"), its name, the notebook's variables it takes, and a call with them."""

    number: str
    name: str
    variables: tuple[str, ...]
    __call__: Callable[..., Verdict]


class Progress(Shown):
    """The exercises of one notebook, checked now.

    Attributes:
        verdicts: name of the exercise -> its verdict, or None where an answer is missing.
    """

    def __init__(self, exercises: Sequence[Exercise], namespace: dict[str, Any]):
        self._exercises, self._namespace = exercises, namespace
        self.check()
        super().__init__()

    def check(self) -> None:
        """Check every answer again."""
        self.verdicts: dict[str, Verdict | None] = {}
        for exercise in self._exercises:
            answers = [self._namespace.get(name, ...) for name in exercise.variables]
            missing = any(answer is ... for answer in answers)
            self.verdicts[exercise.name] = None if missing else exercise(*answers)

    def __repr__(self) -> str:
        lines, done = [], 0
        for exercise in self._exercises:
            verdict = self.verdicts[exercise.name]
            status = verdict.status if verdict else "not yet"
            done += status == "done"
            line = f"{_MARKS[status]} {exercise.number} {exercise.name}"
            lines.append(
                f"{line}: {verdict.message}" if verdict and _MARKS[status] == "✗" else line
            )
        notebook = int(self._exercises[0].number.split(".")[0])
        return "\n".join(
            [f"Notebook {notebook:02}: {done} of {len(lines)} exercises done.", *lines]
        )

    def _status(self) -> str:
        title, *lines = repr(self).split("\n")
        rows = "".join(f"<li>{escape(line)}</li>" for line in lines)
        rows = f'<ul style="list-style:none; padding:0; margin:.3em 0 0">{rows}</ul>'
        return callout(f"<b>{escape(title)}</b>{rows}")

    def _build(self, screen: Screen) -> list[widgets.Widget]:
        about = {"icon": "refresh", "tooltip": "Check every answer again"}
        button = widgets.Button(description="Check again", **about)
        button.on_click(lambda _: cells.in_main_thread(lambda: self._check_again(screen)))
        screen.status = self._status()
        return [screen, button]

    def _check_again(self, screen: Screen) -> None:
        try:
            self.check()
            screen.status, screen.alert = self._status(), ""
        except Exception as problem:  # which the button would swallow
            text = f"This did not work. {type(problem).__name__}: {problem}"
            screen.alert = callout(escape(text), "bad")


def progress(exercises: Sequence[Exercise], namespace: dict[str, Any]) -> Progress:
    """Show which exercises are done in this kernel.

    Args:
        exercises: in order, such as ``checks.exercises("01")``.
        namespace: where their answers are looked up, ``globals()`` in a notebook. An answer that is
            missing or still ``...`` is not done yet.
    """
    if not exercises:
        raise ValueError("there are no exercises to show")
    return Progress(exercises, namespace)
