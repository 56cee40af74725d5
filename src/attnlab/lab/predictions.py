"""Predictions: a question that takes a vote and, once it is computed, says what is behind it.

Nothing here prints, waits or changes in a notebook that runs without a person.
"""

import math
from collections.abc import Iterable
from html import escape
from numbers import Real
from typing import Any

import ipywidgets as widgets
from IPython.display import display
from torch import Tensor

from attnlab.lab.knobs import number
from attnlab.lab.page import Screen, Shown, callout

_votes: dict[tuple, Any] = {}  # question and choices -> vote: Run All must not forget it


class Prediction(Shown):
    """A question that takes a vote and, when the answer is computed, says what is behind it."""

    def __init__(self, question: str, choices: dict[str, str] | None, rtol: float):
        self.question, self.choices, self.rtol = question, choices, rtol
        self._key = (question, *(choices or ()))
        self._truth: Any = None
        super().__init__()

    @property
    def vote(self) -> Any:
        """What the learner said, if anything."""
        return _votes.get(self._key)

    @vote.setter
    def vote(self, value: Any) -> None:
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"the vote must be one of {list(self.choices)} but is {value!r}")
        _votes[self._key] = value
        if self.screen is not None:
            late = self._truth is not None  # Run All came first: the answer is known already
            self.screen.status, self.screen.alert = self._feedback() if late else "", ""

    def answer(self, truth: Any) -> None:
        """Say what the computation found; silent unless somebody has voted.

        Args:
            truth: one of the choices, or a finite number; best computed in the same cell.

        Raises:
            ValueError: if ``truth`` is none of the choices (the question is out of date) or not
                finite.
            TypeError: if a number is asked for and ``truth`` is not a number.
        """
        if self.choices is not None:
            if truth not in self.choices:
                raise ValueError(f"the answer must be one of {list(self.choices)} but is {truth!r}")
        else:
            truth = truth.item() if isinstance(truth, Tensor) else truth
            if isinstance(truth, bool) or not isinstance(truth, Real):
                raise TypeError(f"the answer must be a number, not {type(truth).__name__}")
            if not math.isfinite(truth):
                raise ValueError(f"the answer must be a finite number but is {truth}")
        self._truth = truth
        if self.vote is not None:
            feedback = {
                "text/html": f'<div role="status">{self._feedback()}</div>',
                "text/plain": self._sentence()[0],
            }
            # The mark lets the hook that cleans a saved notebook take it out again.
            display(feedback, raw=True, metadata={"attnlab": "vote"})

    def _sentence(self) -> tuple[str, bool]:
        vote, truth = self.vote, self._truth
        if self.choices is None:
            right = math.isclose(vote, truth, rel_tol=self.rtol, abs_tol=self.rtol / 10)
            end = "right" if right else "not this time"
            return f"You said {vote:.4g}, computed is {truth:.4g}: {end}.", right
        reason = f" {self.choices[vote]}" if self.choices[vote] else ""
        if vote == truth:
            return f"You said “{vote}”: right.{reason}", True
        return f"You said “{vote}”, it is “{truth}”.{reason}", False

    def _feedback(self) -> str:
        said, right = self._sentence()
        return callout(escape(said), "good" if right else "bad")

    def __repr__(self) -> str:
        lines = ["[ a number ]"] if self.choices is None else [f"( ) {c}" for c in self.choices]
        return "\n".join([self.question, *lines])

    def _build(self, screen: Screen) -> list[widgets.Widget]:
        if self.choices is None:
            said = "" if self.vote is None else f"{self.vote:g}"
            field = widgets.Text(said, placeholder="a number, then Enter", continuous_update=False)
        else:
            # Not RadioButtons: the arrow keys that move between them belong to Lab's cells.
            field = widgets.ToggleButtons(
                options=list(self.choices), value=self.vote, style={"button_width": "initial"}
            )
        field.observe(lambda change: self._from_page(change["new"]), names="value")
        field.tooltip = ""  # without one, the page shows "null"
        question = widgets.HTML(f"<b>Predict:</b> {escape(self.question)}", tooltip="")
        return [question, field, screen]

    def _from_page(self, value: Any) -> None:
        try:
            self.vote = number(value) if self.choices is None else value
        except ValueError as problem:
            if self.screen is not None:
                self.screen.alert = callout(escape(str(problem)), "bad")


def predict(
    question: str, choices: dict[str, str] | Iterable[str] | None = None, rtol: float = 0.05
) -> Prediction:
    """Ask before it is computed; ``answer``, in a later cell, says what is behind each choice.

    Args:
        question: one sentence with a definite answer.
        choices: each with the reason why somebody would say so, shown to who chose it (may be
            empty). Without choices, a number is asked for.
        rtol: relative tolerance within which a number counts as right.

    >>> vote = predict("What is 2 + 2?", {"4": "", "22": "Those are letters, not numbers."})
    >>> vote
    What is 2 + 2?
    ( ) 4
    ( ) 22
    >>> vote.answer(str(2 + 2))  # nobody has voted, so nothing is shown
    """
    if choices is not None:
        choices = dict(choices) if isinstance(choices, dict) else dict.fromkeys(choices, "")
        if len(choices) < 2:
            raise ValueError(f"a prediction needs at least two choices but has {len(choices)}")
    return Prediction(question, choices, rtol)
