"""The exercises of notebook 1."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from attnlab.checks.judging import Verdict, drawer, judge


def lookup(fn: Any) -> Verdict:
    """Write ``fn(ids, E)``: the row of ``E`` (V, D) for each of ``ids`` (S,), as (S, D)."""
    draw = drawer()
    wrong = {
        "Each word is a row of the result: yours are columns.": lambda i, E: E[i].T,
        "You averaged the words: each keeps its own row.": lambda i, E: E[i].mean(0),
        "A word is a row of E: you looked up columns.": (lambda i, E: E[:, i], lambda i, E: E.T[i]),
        "Those are the one-hot rows: they still have to meet E.": lambda i, E: one_hot(i, len(E)),
        "A one-hot row is as long as the vocabulary, whichever words occur.": (
            lambda i, E: one_hot(i).float() @ E
        ),
        "One-hot rows start as integers: use .float() before the product.": (
            lambda i, E: one_hot(i, len(E)) @ E
        ),
    }
    cases = [(torch.tensor([3, 0, 1]), draw(5, 11)), (torch.tensor([1, 2, 1, 0, 2]), draw(4, 7))]
    return judge(fn, lambda ids, E: E[ids], cases, wrong)


def cosine(fn: Any) -> Verdict:
    """Write ``fn(a, b)``: the cosine of the angle between ``a`` (D,) and ``b`` (D,), a number."""
    draw = drawer()

    def right(a: Tensor, b: Tensor) -> Tensor:
        return a @ b / (a.norm() * b.norm())

    wrong = {
        "That is the dot product: it still grows with the lengths.": lambda a, b: a @ b,
        "You divided by one length only: both vectors have one.": (
            lambda a, b: a @ b / a.norm(),
            lambda a, b: a @ b / b.norm(),
        ),
        "You divided by the squared lengths.": lambda a, b: a @ b / ((a @ a) * (b @ b)),
        "That is a distance: it grows as two vectors part.": lambda a, b: (a - b).norm(),
        "That is the angle itself.": lambda a, b: right(a, b).acos(),
        "A cosine is one number: the products still have to be added up.": (
            lambda a, b: a * b / (a.norm() * b.norm())
        ),
    }
    return judge(fn, right, [(3 * draw(n), 2 * draw(n)) for n in (5, 2, 3)], wrong)
