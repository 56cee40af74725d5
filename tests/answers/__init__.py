"""The bank of answers: right ones in many forms, and wrong ones with what each is to hear."""

from dataclasses import dataclass, field
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
