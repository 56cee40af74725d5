"""The exercises of notebook 5."""

from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import Verdict, drawer, judge
from attnlab.core import split_heads


def split(fn: Any) -> Verdict:
    """Write ``fn(x, n_heads)``: ``x`` (B, S, D) as (B, H, S, d), each head a slice of the width."""
    draw = drawer()
    wrong = {
        "Right shape, but tokens are mixed: the order of reshape and transpose matters.": (
            lambda x, n: x.reshape(len(x), n, x.shape[1], -1)
        ),
        "A head takes neighbouring columns: yours are dealt out in turn.": (
            lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
            lambda x, n: x.unflatten(-1, (-1, n)),
        ),
        "The heads still stand behind the sequence.": lambda x, n: x.unflatten(-1, (n, -1)),
        "Within a head tokens are rows: yours are columns.": lambda x, n: split_heads(x, n).mT,
        "Heads do not split the sentence: each sees every token.": (
            lambda x, n: x.unflatten(1, (n, -1))
        ),
    }
    cases = [(draw(2, 6, 15), 3), (draw(3, 4, 14), 2)]  # H divides S: the last mistake runs
    return judge(fn, split_heads, cases, wrong)


def rotate_pair(fn: Any) -> Verdict:
    """Write ``fn(x, positions)``: row i of ``x`` (S, 2) turned by ``positions[i]`` radians.

    Counter-clockwise, as RoPE turns its first pair; ``positions`` (S,) are integers.
    """
    draw = drawer()

    def right(x: Tensor, positions: Tensor) -> Tensor:
        (a, b), cos, sin = x.unbind(-1), positions.cos(), positions.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def overwritten(x: Tensor, positions: Tensor) -> Tensor:
        first, b = right(x, positions)[:, 0], x[:, 1]
        return torch.stack((first, first * positions.sin() + b * positions.cos()), dim=-1)

    wrong = {
        "You turn clockwise.": lambda x, p: right(x, -p),
        "The angles are radians, not degrees.": lambda x, p: right(x, p.deg2rad()),
        "Every row turns by the same angle: each position has its own.": (
            lambda x, p: right(x, p[:1]),
            lambda x, p: right(x, torch.ones(1)),
        ),
        "That shrinks the vector: a rotation mixes its coordinates.": (
            lambda x, p: x * p.cos()[:, None]
        ),
        "You added the angle: it is to turn the vector.": lambda x, p: x + p[:, None],
        "A sign is missing: a rotation keeps the length.": (
            lambda x, p: x * p.cos()[:, None] + x.flip(-1) * p.sin()[:, None]
        ),
        "The new first coordinate went into the second: that needs the old one.": overwritten,
    }
    cases = [(draw(5, 2), torch.tensor([2, 0, 7, 1, 3])), (draw(3, 2), torch.tensor([4, 11, 2]))]
    return judge(fn, right, cases, wrong)
