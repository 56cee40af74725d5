"""Questions that a learner answers before a cell computes the answer, and what is said afterwards.

``predict`` stands alone in a cell. A later cell computes; after it a folded cell calls ``reveal``
with what was computed. The page shows the reveal once there is a vote. A run without a person
prints the same text every time.
"""

import math
from html import escape
from typing import Any

import traitlets
from markdown_it import MarkdownIt

from attnlab.lab import cells, plots
from attnlab.lab.knobs import number
from attnlab.lab.page import OnPage, script

_votes: dict[str, str] = {}  # question -> vote: running the cell again must not forget it
_markdown = MarkdownIt("js-default")  # escapes HTML in what it is given


class _Half(OnPage):
    """A question or a reveal; its ``text/plain`` is its ``repr``."""

    _esm = script("prediction")
    question = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        cells.register(self)

    def retire(self) -> None:
        """Close the widget: its cell has run again."""
        self.unobserve_all()
        cells.close(self)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        shown: Any = super()._repr_mimebundle_(**options)
        return {**shown[0], "text/plain": repr(self)}, shown[1]


class Prediction(_Half):
    """A question with a few choices, or for a number.

    Attributes:
        vote: what the learner chose or typed; empty if nothing yet.
        key: the phrase or number that would give the answer away. A test looks for it in all that
            is visible before the reveal.
    """

    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    vote = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(self, question: str, reasons: dict[str, str], key: str, rtol: float):
        self.reasons, self.key, self.rtol = reasons, key, rtol
        super().__init__(question=question, options=list(reasons))
        self.vote = _votes.get(question, "")

    @traitlets.validate("vote")
    def _check_vote(self, proposal: Any) -> str:
        vote = proposal["value"].strip()
        if not vote:
            return vote
        if self.reasons and vote not in self.reasons:
            raise traitlets.TraitError(f"the vote is one of {self.options}, not {vote!r}")
        if not self.reasons:
            try:
                number(vote)
            except ValueError as problem:
                self.note = str(problem)
                return _votes.get(self.question, "")  # from the page, the new one is set already
        self.note = "Noted. Run the next cell."
        _votes[self.question] = vote
        return vote

    def reveal(self, truth: Any, seen: str = "") -> "Reveal":
        """Say what is behind each choice, now that the answer has been computed.

        Args:
            truth: what was computed: one of the choices, or a number.
            seen: what there was to see, in Markdown.
        """
        return Reveal(self, truth if self.reasons else float(truth), seen)

    def counts(self, text: str) -> plots.Picture:
        """Bars of a show of hands: ``counts("12 30 8")``, one number for each choice, A first."""
        hands, letters = [number(count) for count in text.split()], "ABCDEFGH"[: len(self.reasons)]
        if len(hands) != len(letters):
            raise ValueError(f"{len(hands)} counts for {len(letters)} choices: {text!r}")
        picture, axes = plots.panels(1, width=6, height=2.4)
        plots.bars(axes, letters, hands, limits=(0, 1.2 * max(*hands, 1)), digits=0)
        return picture

    def answer(self, truth: Any) -> None:
        """What cells of an earlier version call. The answer is revealed in another cell now."""

    def __repr__(self) -> str:
        choices = [f"( ) {choice}" for choice in self.options]
        return "\n".join([self.question, *(choices or ["[ a number ]"])])


class Reveal(_Half):
    """All choices with their reasons, the right one and the learner's own marked.

    The page waits for a vote, or for *Show anyway*; ``text/plain`` does not.
    """

    content = traitlets.Unicode().tag(sync=True)
    revealed = traitlets.Bool().tag(sync=True)

    def __init__(self, asked: Prediction, truth: Any, seen: str):
        self.asked, self.truth, self.seen = asked, truth, seen.strip()
        super().__init__()
        self._follow()
        asked.observe(self._follow, names="vote")

    def _follow(self, change: Any = None) -> None:
        if change and change["new"] == change["old"]:
            return  # what was typed on the page has been refused
        vote, rows = self.asked.vote, []
        for choice, reason in self.asked.reasons.items():
            marks = {"right": "✓ right"} if choice == self.truth else {}
            marks |= {"yours": "your vote"} if choice == vote else {}
            said = f" <b>({', '.join(marks.values())})</b>" if marks else ""
            text = f"<b>{escape(choice)}</b>{said} {escape(reason)}"
            rows.append(f'<li class="{" ".join(marks)}">{text}</li>')
        said = f"You said {vote}. " if vote and not rows else ""
        near = f" {_nearness(number(vote), self.truth, self.asked.rtol)}" if said else ""
        verdict = escape(f"{said}{self._verdict()}{near}")
        seen = _markdown.render(self.seen)
        self.content = f"<ul>{''.join(rows)}</ul><p>{verdict}</p>{seen}"
        if vote:
            self.revealed = True
            self.asked.note = "Noted. What is behind it stands below."

    def _verdict(self) -> str:
        if not self.asked.reasons:
            return f"Computed: {self.truth:.4g}."
        if self.truth in self.asked.reasons:
            return ""
        return f"With these numbers the answer is none of the choices: {self.truth}."

    def __repr__(self) -> str:
        choices = [
            f"{'✓' if choice == self.truth else '·'} {choice}{': ' * bool(reason)}{reason}"
            for choice, reason in self.asked.reasons.items()
        ]
        lines = [self.asked.question, *choices, self._verdict(), self.seen]
        return "\n".join(filter(None, lines))


def _nearness(said: float, truth: float, rtol: float) -> str:
    """How near a predicted number was, in words."""
    if math.isclose(said, truth, rel_tol=rtol, abs_tol=rtol / 10):
        return "Right."
    return f"You were {abs(said - truth):.2g} away."


def predict(
    question: str, choices: dict[str, str] | None = None, *, key: str = "", rtol: float = 0.05
) -> Prediction:
    """Ask before it is computed; ``reveal``, in a later cell, says what is behind each choice.

    Args:
        question: one sentence with a definite answer.
        choices: each with the reason why it is right or why somebody would say so. Without
            choices a number is asked for.
        key: the phrase or number that gives the answer away.
        rtol: relative error up to which a number counts as right.

    >>> vote = predict("What is 2 + 2?", {"4": "", "22": "Those are letters."}, key="4")
    >>> vote
    What is 2 + 2?
    ( ) 4
    ( ) 22
    >>> vote.reveal(str(2 + 2), "Numbers are added.")
    What is 2 + 2?
    ✓ 4
    · 22: Those are letters.
    Numbers are added.
    """
    if choices is not None and len(choices) < 2:
        raise ValueError(f"a prediction needs at least two choices but has {len(choices)}")
    return Prediction(question, choices or {}, key, rtol)
