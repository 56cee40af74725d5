"""Does it teach? Eight questions that open notebook 1 and close notebook 6: no grade, no vote.

A learner types letters into a cell. Nothing is revealed before notebook 6 shows both answers side
by side; the first ones are read from the text of notebook 1, where they were typed.

    checks.eight_questions.ask()                      # shows the questions
    checks.eight_questions.note(my_first_answers)     # notebook 1: says "Noted"
    checks.eight_questions.compare(my_last_answers)   # notebook 6: both answers, and what is right
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question with four choices, a to d; ``reason`` is said after both answers.

    Attributes:
        hunts: the misconceptions behind its wrong choices, in the words of the curriculum.
    """

    text: str
    choices: Sequence[str]
    right: str
    reason: str
    hunts: str


QUESTIONS = (
    Question(
        "What decides how much *bank* attends to *river*?",
        (
            "how alike the embeddings of the two words are",
            "the product of two learned projections, one of *bank* and one of *river*",
            "how near to each other the two words stand",
            "how often the two words occur together in the training texts",
        ),
        "b",
        "Two learned matrices stand between embedding and score, so even a word at a right angle "
        "can get the highest score (notebook 2).",
        "attention is similarity",
    ),
    Question(
        "Training is over. Which of these numbers are still computed anew for every sentence?",
        (
            "the entries of W_Q, W_K and W_V",
            "the rows of the embedding table",
            "the attention weights",
            "none: all of them were learned",
        ),
        "c",
        "Parameters are learned and then stay; attention weights are computed from each sentence "
        "(notebooks 2 and 4).",
        "attention weights are the parameters",
    ),
    Question(
        "A word gives two words the scores 2 and 0, and nothing is masked. The second word gets",
        (
            "no attention: 0 is 0",
            "no attention, because 0 / (2 + 0) = 0",
            "half of the attention: there are two words",
            "some attention, about 0.12",
        ),
        "d",
        "The softmax compares exp(2) with exp(0) = 1: only a score of minus infinity gets nothing "
        "(notebook 4).",
        "a score of 0 means no attention; softmax divides by the sum",
    ),
    Question(
        "In one attention layer W_V is replaced by another matrix. What changes in that layer?",
        (
            "what the words receive",
            "where the words look",
            "where they look and what they receive",
            "nothing, because the weights of each row still sum to 1",
        ),
        "a",
        "Scores are made of queries and keys, and W_V meets neither (notebook 2).",
        "W_V steers where to look",
    ),
    Question(
        "A model that will write text is trained on whole sentences. What is the causal mask for?",
        (
            "for nothing yet: it matters only when text is generated",
            "so that no position sees the word that it is to predict",
            "to hide the padding of short sentences",
            "to make words attend to their nearest neighbours",
        ),
        "b",
        "All positions are trained in one pass, and without the mask each could read its answer. "
        "Padding needs a mask of its own (notebook 3).",
        "the causal mask matters only when generating; causal and padding masks are the same",
    ),
    Question(
        "An attention layer gets four heads instead of one; its width stays. Then",
        (
            "each head reads a quarter of the sentence",
            "the layer has four times as many parameters",
            "each head sees all words, through narrower projections of its own",
            "each head takes over one task, such as grammar or meaning",
        ),
        "c",
        "Heads divide the width, not the sentence, and the number of parameters stays; what a head "
        "learns nobody assigns (notebook 5).",
        "heads split the sentence, more heads cost more parameters",
    ),
    Question(
        "A KV cache makes generation faster. What does it cost?",
        (
            "memory, for the keys and values of all earlier positions",
            "memory, for the queries, keys and values of all earlier positions",
            "a little accuracy: old keys and values are only approximately right",
            "time: old keys and values must be brought up to date after each new word",
        ),
        "a",
        "In a causal model old keys and values never change, and old queries are not needed again: "
        "the cache is exact (notebook 6).",
        "the cache approximates, holds queries, or goes stale when a token is appended",
    ),
    Question(
        "In a trained model *bank* gives *river* an attention weight of 0.95. What follows for the "
        "prediction?",
        (
            "it depends mostly on *river*",
            "it would be another one without *river*",
            "*bank* has picked *river* and ignored the other words",
            "nothing yet: that takes an experiment",
        ),
        "d",
        "Values, the residual path and later layers decide as well, so one has to change something "
        "and look (notebook 6).",
        "a large attention weight explains the prediction; attention picks one token",
    ),
)  # fmt: skip

FIRST = "my_first_answers"  # the variable of notebook 1
OPEN = "????????"
AGAIN = "The questions come back at the end of notebook 6."


class Shown:
    """Markdown in a notebook, and nearly the same as plain text."""

    def __init__(self, markdown: str):
        self.markdown = markdown

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return re.sub(r"\*+| {2}$", "", self.markdown, flags=re.MULTILINE)


def ask() -> Shown:
    """Show the eight questions with their choices."""
    paragraphs = []
    for number, question in enumerate(QUESTIONS, start=1):
        choices = zip("abcd", question.choices, strict=True)
        lines = [f"**{number}.** {question.text}", *(f"{x}) {choice}" for x, choice in choices)]
        paragraphs.append("  \n".join(lines))
    return Shown("\n\n".join(paragraphs))


def note(answers: Any) -> Shown:
    """Say whether these are eight letters; nothing is revealed.

    >>> note("ab?dcab?")
    Noted, with 2 left open. The questions come back at the end of notebook 6.
    >>> note("abc")
    Type eight letters in quotation marks, one for each question: a, b, c, d, or ?. These are 3.
    """
    letters = _letters(answers)
    left_open = letters.count("?")
    with_open = f", with {left_open} left open" if left_open else ""
    return Shown(_problem(letters) or f"Noted{with_open}. {AGAIN}")


def compare(after: Any, before: Any = None, folder: str | Path = ".") -> Shown:
    """Show the first and the last answers side by side, with what is right and why.

    Args:
        after: the eight letters typed at the end; while all are ``?``, nothing is revealed.
        before: the letters typed at the start; if omitted, those in the cell of notebook 1.
        folder: where the learner's notebook 1 is.
    """
    last, missing = _letters(after), ""
    if problem := _problem(last):
        return Shown(problem)
    if before is None:
        before, missing = first_answers(folder)
    first = _letters(before)
    if first != OPEN and _problem(first):
        first, missing = OPEN, missing or "The first answers are not eight letters."
    rows = ["| question | at first | now | right | why |", "|---|---|---|---|---|"]
    for number, (asked, *given) in enumerate(zip(QUESTIONS, first, last, strict=True), start=1):
        marked = (f"{x} ✓" if x == asked.right else x for x in given)
        right = f"{asked.right}) {asked.choices['abcd'.index(asked.right)]}"
        cells = [f"{number}. {asked.text}", *marked, right, asked.reason]
        rows.append(f"| {' | '.join(cells)} |")
    return Shown("\n".join([*rows, "", missing] if missing else rows))


def first_answers(folder: str | Path = ".") -> tuple[str, str]:
    """What is typed in the learner's notebook 1, and a sentence if that could not be read."""
    path = Path(folder) / "01_static_embeddings.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    except FileNotFoundError:
        return "", f"There is no {path.name} in this folder, so the first answers are missing."
    except (OSError, ValueError, TypeError, KeyError):
        return "", f"{path.name} could not be read, so the first answers are missing."
    found = re.findall(rf"^{FIRST} *= *[\"'](.*?)[\"']", text, re.MULTILINE)
    return (found[-1], "") if found else ("", f"No line of {path.name} begins with {FIRST} =.")


def _letters(answers: Any) -> str:
    """The letters in lower case, without blanks and commas; nothing if it is no text."""
    return re.sub(r"[\s,;]", "", answers).lower() if isinstance(answers, str) else ""


def _problem(letters: str) -> str:
    """What is wrong with the letters, in a sentence; empty if nothing is."""
    if letters == OPEN:
        return "Put a letter in place of each ? where you have an idea, and run the cell again."
    odd = ", ".join(sorted(set(letters) - set("abcd?")))
    wrong = f"Not {odd}." if odd else f"These are {len(letters)}." if len(letters) != 8 else ""
    wanted = "Type eight letters in quotation marks, one for each question: a, b, c, d, or ?."
    return f"{wanted} {wrong}" if wrong else ""
