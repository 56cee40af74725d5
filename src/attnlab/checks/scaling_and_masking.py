"""The exercises of notebook 3."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import Verdict, drawer, hide, judge, never_raising, undone
from attnlab.core import causal_mask


def causal_scores(fn: Any) -> Verdict:
    """Write ``fn(scores)``: the same (S, S), with ``-inf`` wherever a word would see the future."""
    draw = drawer()

    def past(scores: Tensor, shift: int = 0) -> Tensor:
        return torch.ones_like(scores, dtype=torch.bool).tril(shift)

    def filled(fill: float) -> Callable:
        return lambda s: hide(s, past(s), fill)

    lowest = torch.finfo(torch.float32).min
    wrong = {
        "Nothing is hidden yet.": lambda s: s,
        "You hid the past: it is the future that has to go.": (
            lambda s: hide(s, past(s).T),
            lambda s: hide(s, ~past(s)),
        ),
        "Off by one: a word may attend to itself.": lambda s: hide(s, past(s, -1)),
        "Off by one: each word still sees the next.": lambda s: hide(s, past(s, 1)),
        "A score of 0 hides nothing: after the softmax it still has a share.": filled(0.0),
        "Not quite -inf: float16 cannot hold -1e9, and a row of nothing else turns uniform.": (
            tuple(filled(fill) for fill in (-1e9, -1e4, -1e10, -1e20, lowest))
        ),
        "0 times infinity is NaN: choose the scores to fill, do not multiply.": (
            lambda s: s + ~past(s) * -math.inf
        ),
        "These are attention weights: the softmax comes later.": (
            lambda s: hide(s, past(s)).softmax(-1)
        ),
        "That is a mask: it still has to meet the scores.": (
            past,
            lambda s: ~past(s),
            lambda s: hide(torch.zeros_like(s), past(s)),
        ),
    }
    cases = [(draw(n, n),) for n in (5, 3, 7)]
    return judge(fn, lambda scores: hide(scores, causal_mask(len(scores))), cases, wrong)


@never_raising
def head_scale(value: Any) -> Verdict:
    """Give the factor that scales the scores in a model of width 768 with 12 heads."""

    def number(x: float) -> Callable[[], Tensor]:
        return lambda: torch.tensor(x, dtype=torch.float64)

    wrong = {
        "You used the width of the model: one head compares less.": number(768**-0.5),
        "You divided by the width of a head, not by its square root.": number(1 / 64),
        "That makes scores larger: they are to become smaller.": number(8),
        "You used the number of heads: the width of one head counts.": number(12**-0.5),
        "You divided by the width of the model, and without a square root.": number(1 / 768),
        "That is the width of a head, not yet the factor.": number(64),
    }
    answer = value if undone(value) else lambda: value
    verdict = judge(answer, number(64**-0.5), [()], wrong, names=["the factor"], rtol=5e-3)
    return Verdict(True, "Right: the width of one head counts.") if verdict else verdict
