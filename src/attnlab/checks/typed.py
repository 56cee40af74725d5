"""Numbers that a learner typed: read once, in words where they cannot be used."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import UNDONE, Verdict, as_values, difference, judge, undone


def typed(**answers: tuple[Any, tuple[int, ...]]) -> list[Tensor] | Verdict:
    """Float tensors of the wanted shapes, in float64; or the verdict on what is none.

    Args:
        answers: name -> (what was typed, its shape).
    """
    values = [value for value, _ in answers.values()]
    if any(undone(value) for value in values):
        return Verdict(False, UNDONE + "put your numbers in place of the dots and run again.")
    given = as_values(
        values if len(values) > 1 else values[0],
        [torch.zeros(size) for _, size in answers.values()],
    )
    for name, value, (_, size) in zip(answers, given, answers.values(), strict=True):
        fits = value.shape == size and value.is_floating_point()
        text = difference(
            [value], [value.nan_to_num() if fits else torch.zeros(size)], [name], 0.0, reveal=False
        )
        if text:
            return Verdict(False, f"{text}.")
    return [value.double() for value in given]


def number(x: float) -> Callable[[], Tensor]:
    """A reference or a mistake that is one number; a whole one is compared exactly."""
    return lambda: torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else None)


def judge_counts(parts: Sequence[tuple[Any, int, str, dict]], done: str, see: str) -> Verdict:
    """Judge several counts in turn: what was typed, the right one, its name, its mistakes.

    ``done`` is said when all are right; ``see`` is that of ``judge``.
    """
    if undone([value for value, *_ in parts]):
        return Verdict(False, UNDONE + "put your numbers in place of the dots and run again.")
    for value, right, name, wrong in parts:
        verdict = judge(lambda value=value: value, number(right), [()], wrong, [name], see=see)
        if not verdict:
            return verdict
    return Verdict(True, done)
