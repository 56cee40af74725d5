"""Questions that a learner answers before a cell computes the answer, and what is said afterwards.

``predict`` stands alone in a cell. A later cell computes; after it a folded cell calls ``reveal``
with what was computed. The page shows the reveal once there is a vote. A run without a person
prints the same text every time.
"""

import math
from html import escape
from numbers import Real
from typing import Any

import traitlets
from markdown_it import MarkdownIt

from attnlab.lab import cells
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
    """A question with a few choices, for a number, or for a few words.

    Attributes:
        vote: what the learner chose or typed; empty if nothing yet.
        key: the phrase or number that would give the answer away. A test looks for it in all that
            is visible before the reveal.
    """

    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    placeholder = traitlets.Unicode().tag(sync=True)
    vote = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(self, question: str, reasons: dict[str, str], key: str, kind: str, rtol: float):
        self.reasons, self.key, self.kind, self.rtol = reasons, key, kind, rtol
        placeholder = {"number": "a number, then Enter", "words": "a few words, then Enter"}
        super().__init__(
            question=question, options=list(reasons), placeholder=placeholder.get(kind, "")
        )
        self.vote = _votes.get(question, "")

    @traitlets.validate("vote")
    def _check_vote(self, proposal: Any) -> str:
        vote = proposal["value"].strip()
        if vote and self.kind == "choice" and vote not in self.reasons:
            raise traitlets.TraitError(f"the vote is one of {self.options}, not {vote!r}")
        if vote and self.kind == "number":
            try:
                number(vote)
            except ValueError as problem:
                self.note = str(problem)
                return self.vote
        if vote:
            self.note = "Noted. Run the next cell."
            _votes[self.question] = vote
        return vote

    def reveal(self, truth: Any, seen: str = "") -> "Reveal":
        """Say what is behind each choice, now that the answer has been computed.

        Args:
            truth: what was computed: one of the choices, a number, or, where words were asked
                for, a sentence.
            seen: what there was to see, in Markdown.

        Raises:
            TypeError: if a number is asked for and ``truth`` is not one.
        """
        if self.kind == "number":
            truth = truth.item() if hasattr(truth, "item") else truth
            if isinstance(truth, bool) or not isinstance(truth, Real):
                raise TypeError(f"the answer must be a number, not {type(truth).__name__}")
        return Reveal(self, truth, seen)

    def answer(self, truth: Any) -> None:
        """What cells of an earlier version call. The answer is revealed in another cell now."""

    def __repr__(self) -> str:
        choices = [f"( ) {choice}" for choice in self.options]
        blanks = {"number": ["[ a number ]"], "words": ["[ a few words ]"]}
        return "\n".join([self.question, *blanks.get(self.kind, choices)])


class Reveal(_Half):
    """All choices with their reasons, the right one and the learner's own marked.

    The page waits for a vote, or for *Show anyway*; ``text/plain`` and ``text/markdown`` do not.
    """

    content = traitlets.Unicode().tag(sync=True)
    revealed = traitlets.Bool().tag(sync=True)

    def __init__(self, asked: Prediction, truth: Any, seen: str):
        self.asked, self.truth, self.seen = asked, truth, seen
        super().__init__()
        self._follow()
        asked.observe(self._follow, names="vote")

    def _follow(self, _: Any = None) -> None:
        asked = self.asked
        self.content = "\n".join([self._list(), self._verdict(), _markdown.render(self.seen)])
        if asked.vote:
            self.revealed = True
            asked.note = "Noted. What is behind it stands below."

    def _list(self) -> str:
        rows = []
        for choice, reason in self.asked.reasons.items():
            kinds = [("right", choice == self.truth), ("yours", choice == self.asked.vote)]
            marks = {"right": "✓ right", "yours": "your vote"}
            said = ", ".join(marks[name] for name, holds in kinds if holds)
            names = " ".join(name for name, holds in kinds if holds)
            said = f" <b>({said})</b>" if said else ""
            rows.append(f'<li class="{names}"><b>{escape(choice)}</b>{said} {escape(reason)}</li>')
        return f"<ul>{''.join(rows)}</ul>" if rows else ""

    def _verdict(self) -> str:
        vote, truth, kind = self.asked.vote, self.truth, self.asked.kind
        if kind == "choice":
            return "" if truth in self.asked.reasons else f"<p>{escape(self._none_of_them())}</p>"
        if not vote:
            return f"<p>{escape(self._answer())}</p>"
        near = f" {_nearness(number(vote), truth, self.asked.rtol)}" if kind == "number" else ""
        return f"<p>You said {escape(vote)}. {escape(self._answer())}{near}</p>"

    def _answer(self) -> str:
        if self.asked.kind == "number":
            return f"Computed: {self.truth:.4g}."
        return f"Answer: {self.truth}" if self.truth else ""

    def _none_of_them(self) -> str:
        return f"With these numbers the answer is none of the choices: {self.truth}."

    def __repr__(self) -> str:
        marked = (
            f"{'✓' if choice == self.truth else '·'} {choice}{': ' * bool(reason)}{reason}"
            for choice, reason in self.asked.reasons.items()
        )
        lines = [self.asked.question, *marked]
        if self.asked.kind != "choice":
            lines += [self._answer()] if self._answer() else []
        elif self.truth not in self.asked.reasons:
            lines.append(self._none_of_them())
        return "\n".join([*lines, *([self.seen] if self.seen else [])])


def _nearness(said: float, truth: float, rtol: float) -> str:
    """How near a predicted number was, in words."""
    if math.isclose(said, truth, rel_tol=rtol, abs_tol=rtol / 10):
        return "Right."
    if not math.isfinite(truth) or truth == 0:
        return f"You were {abs(said - truth):.2g} away."
    return f"You were {abs(said - truth) / abs(truth):.0%} away."


def predict(
    question: str,
    choices: dict[str, str] | None = None,
    *,
    key: str = "",
    words: bool = False,
    rtol: float = 0.05,
) -> Prediction:
    """Ask before it is computed; ``reveal``, in a later cell, says what is behind each choice.

    Args:
        question: one sentence with a definite answer.
        choices: each with the reason why it is right or why somebody would say so. Without
            choices a number is asked for.
        key: the phrase or number that gives the answer away.
        words: without choices, ask for a few words instead of a number.
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
    kind = "choice" if choices is not None else "words" if words else "number"
    return Prediction(question, choices or {}, key, kind, rtol)
