"""Numbers that a learner typed: read once, in words where they cannot be used."""

from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import UNDONE, Verdict, as_values, difference, undone


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
