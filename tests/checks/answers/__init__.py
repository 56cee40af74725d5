"""The bank of answers: right ones in many forms, and wrong ones with the message meant for each."""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answers:
    """What learners may hand to one check.

    An answer is a function or a value; for a check with several arguments, a tuple of them.

    Attributes:
        right: equivalent forms, the simplest first: loop, matrix, einsum, another dtype.
        wrong: pairs (answer, the exact message of its verdict).
    """

    right: list[Any] = field(default_factory=list)
    wrong: list[tuple[Any, str]] = field(default_factory=list)


def bank() -> dict[str, Answers]:
    """Every check's answers, by the check's name."""
    found: dict[str, Answers] = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        for name, answers in import_module(f"answers.{path.stem}").ANSWERS.items():
            if name in found:
                raise ValueError(f"two files hold answers to {name}")
            found[name] = answers
    return found
