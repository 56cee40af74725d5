"""The exercises of notebook 4."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import Verdict, drawer, each, hide, judge, some
from attnlab.core import attention


def _naive_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    exp = scores.exp() * mask
    return exp / exp.sum(-1, keepdim=True)


_SOFTMAX_MISTAKES = {
    "You divided by the sum of the scores: that is not what softmax divides.": (
        lambda s, m: s * m / (s * m).sum(-1, keepdim=True),
        lambda s, m: s / s.sum(-1, keepdim=True) * m,
    ),
    "Your softmax runs over the queries: each query shares itself out among the keys.": (
        lambda s, m: hide(s, m).softmax(0)
    ),
    "You masked after the softmax: the rows no longer sum to 1.": lambda s, m: s.softmax(-1) * m,
    "True means may attend: you hid those.": lambda s, m: hide(s, ~m).softmax(-1),
    "A score of 0 still gets a share: hidden keys get none.": lambda s, m: (s * m).softmax(-1),
    "The mask is not used yet.": lambda s, m: s.softmax(-1),
    "The scores are masked, but the softmax is missing.": hide,
}


def masked_softmax(fn: Any) -> Verdict:
    """Write ``fn(scores, mask)``: attention weights (S_q, S_k), a softmax along each row.

    ``mask`` is boolean (S_q, S_k); True means *may attend*, and every row has one.
    """
    draw = drawer()
    wrong = _SOFTMAX_MISTAKES | {
        "exp(1000) overflows: subtract the row's maximum first.": (
            _naive_softmax,
            lambda s, m: _naive_softmax(hide(s, m), torch.ones_like(m)),
        ),
        "One maximum for the whole table is not enough: each row has its own.": (
            lambda s, m: _naive_softmax(s - s.max(), m)
        ),
    }
    large = torch.tensor([[1000.0], [-1000.0], [0.0], [1000.0]])
    cases = [(draw(3, 5), some(3, 5)), (draw(7, 4), some(7, 4)), (draw(4, 3) + large, some(4, 3))]
    return judge(fn, lambda scores, mask: hide(scores, mask).softmax(-1), cases, wrong)


def attention_function(fn: Any) -> Verdict:
    """Write ``fn(q, k, v, mask)``: scaled dot-product attention, the output (S_q, d_v).

    ``q`` (S_q, d_k), ``k`` (S_k, d_k), ``v`` (S_k, d_v), ``mask`` boolean (S_q, S_k), True = may
    attend. Of a tuple, the last part counts.
    """
    draw = drawer()

    def scaled(scale: Callable[[Tensor, Tensor], float]) -> Callable:
        return lambda q, k, v, m: attention(q, k, v, m, scale(q, k)).output

    def through(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        return lambda q, k, v, m: weights(q @ k.T / q.shape[1] ** 0.5, m) @ v

    wrong = {
        "The scores are not scaled.": scaled(lambda q, k: 1.0),
        "You divided by d_k, not by its square root.": scaled(lambda q, k: 1 / q.shape[1]),
        "You scaled by the number of keys, not by a width.": scaled(lambda q, k: len(k) ** -0.5),
        "Your scale makes the scores larger.": scaled(lambda q, k: q.shape[1] ** 0.5),
        "q and k are swapped: queries are rows.": lambda q, k, v, m: attention(k, q, v, m).output,
        "Those are the attention weights: they still have to meet the values.": (
            lambda q, k, v, m: attention(q, k, v, m).weights
        ),
    }
    for sentence, mistakes in _SOFTMAX_MISTAKES.items():
        wrong[sentence] = tuple(through(mistake) for mistake in each(mistakes))
    # In the first S_q = S_k: with q and k swapped it still gives numbers.
    sizes = ((5, 5, 3, 2), (3, 7, 5, 4), (5, 3, 2, 7))
    cases = [
        (draw(s_q, d_k), draw(s_k, d_k), draw(s_k, d_v), some(s_q, s_k))
        for s_q, s_k, d_k, d_v in sizes
    ]

    def right(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return attention(q, k, v, mask).output

    def last(result: Any) -> Any:
        return result[-1] if isinstance(result, tuple) and result else result

    return judge(fn, right, cases, wrong, pick=last)
