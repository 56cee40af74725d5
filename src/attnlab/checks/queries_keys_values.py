"""The exercises of notebook 2."""

from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import (
    UNDONE,
    Verdict,
    as_values,
    difference,
    drawer,
    judge,
    never_raising,
    undone,
)


def scores(fn: Any) -> Verdict:
    """Write ``fn(X, W_Q, W_K)``: raw scores (S, S) from ``X`` (S, D) and two matrices (D, d)."""
    draw = drawer()

    def right(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
        return (X @ W_Q) @ (X @ W_K).T

    wrong = {
        "Queries are rows and keys are columns.": lambda X, Q, K: right(X, K, Q),
        "The projections are missing: you compared X with itself.": lambda X, Q, K: X @ X.T,
        "Your W look transposed, as nn.Linear stores them.": lambda X, Q, K: right(X, Q.T, K.T),
        "One matrix does both jobs: asking and being asked need one each.": (
            lambda X, Q, K: right(X, Q, Q),
            lambda X, Q, K: right(X, K, K),
        ),
        "Only one side is projected: queries and keys both are.": (
            lambda X, Q, K: X @ Q @ X.T,
            lambda X, Q, K: X @ (X @ K).T,
        ),
        "These scores are scaled already: the raw ones are asked for.": (
            lambda X, Q, K: right(X, Q, K) / Q.shape[1] ** 0.5,
            lambda X, Q, K: right(X, Q, K) / Q.shape[1],
        ),
        "These are attention weights: scores come before the softmax.": (
            lambda X, Q, K: right(X, Q, K).softmax(-1),
            lambda X, Q, K: (right(X, Q, K) / Q.shape[1] ** 0.5).softmax(-1),
        ),
    }
    # In the first W is square: transposed it still gives numbers.
    sizes = ((5, 3, 3), (7, 5, 2), (2, 3, 5))
    return judge(fn, right, [(draw(s, D), draw(D, d), draw(D, d)) for s, D, d in sizes], wrong)


@never_raising
def bank_asks_for_money(w_q: Any, w_k: Any) -> Verdict:
    """Choose ``w_q`` and ``w_k`` (2, 2) so that *bank* scores money at least 1 above the rest.

    The phrase is "river money bank", rows [2, 0], [0, 2], [1, 0]; the scores are raw.
    """
    if undone((w_q, w_k)):
        return Verdict(False, UNDONE + "put your matrices in place of the dots and run again.")
    size = torch.zeros(2, 2)
    given = as_values((w_q, w_k), [size, size])
    for name, w in zip(("w_q", "w_k"), given, strict=True):
        fits = w.shape == size.shape and w.is_floating_point()
        text = difference([w], [w.nan_to_num() if fits else size], [name], 0.0, reveal=False)
        if text:
            return Verdict(False, f"{text}.")
    X = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]], dtype=torch.float64)
    before, after = X @ X.T, (X @ given[0].double()) @ (X @ given[1].double()).T

    def lead(by_word: Tensor) -> float:
        return float(by_word[1] - max(by_word[0], by_word[2]))

    won = lead(after[2]) > 1 - 1e-6
    if won:
        text = "Right"
    elif lead(after[:, 2]) > 1 - 1e-6:
        text = "Queries are rows and keys are columns, and here money asks for bank"
    elif torch.equal(after[2], before[2]) and not torch.equal(after, before):
        text = "You changed what another word asks, not what bank asks"
    elif lead(after[2]) > 0:
        text = "Money leads, but by less than 1"
    else:
        text = "Money does not lead yet"
    river, money, bank = after[2].tolist()
    text += f": bank scores river {river:.3g}, money {money:.3g}, bank {bank:.3g}."
    return Verdict(won, text)
