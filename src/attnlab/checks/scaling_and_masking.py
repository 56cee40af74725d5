"""The exercises of notebook 3."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, normal_source, numbers
from attnlab.core import causal_mask, padding_mask

TIMES_INFINITY = "0 times infinity is NaN: use masked_fill or where instead of a product."
LARGE = "Use -inf: float16 cannot hold -1e9, and a row of -1e9 alone becomes uniform."


def uneven_mask(n_queries: int, n_keys: int) -> Tensor:
    """A mask, not symmetric, that is False at one of any three neighbours in a row or column."""
    return (torch.arange(n_queries)[:, None] - torch.arange(n_keys)) % 3 != 1


def hide(scores: Tensor, mask: Tensor, fill: float = -math.inf) -> Tensor:
    """Scores with ``fill`` wherever ``mask`` is False."""
    return scores.masked_fill(~mask, fill)


def _as_boolean(result: Any, hides: Callable) -> Any:
    """An additive mask as booleans, unless its numbers are unsuitable; a boolean one as it is."""
    if not torch.is_tensor(result) or result.dtype == torch.bool:
        return result
    if not (result < torch.inf).all():  # NaN included
        return result
    large = (result < -1000) & (result > -torch.inf)
    return torch.where(large, -1e9, result.double()) if large.any() else hides(result)


@exercise("3.1", "my_causal_scores", section="section 2")
def causal_scores() -> Comparison:
    """Write ``fn(scores)``: the same (S, S), with ``-inf`` wherever a word would see the future."""
    draw = normal_source()

    def past(scores: Tensor, shift: int = 0) -> Tensor:
        return torch.ones_like(scores, dtype=torch.bool).tril(shift)

    def filled(fill: float) -> Callable:
        return lambda s: hide(s, past(s), fill)

    lowest = torch.finfo(torch.float32).min
    mistakes = {
        "Nothing is hidden yet.": lambda s: s,
        "You hid the past: hide the future.": (
            lambda s: hide(s, past(s).T),
            lambda s: hide(s, ~past(s)),
            lambda s: s.triu(),
        ),
        "Off by one: a word may attend to itself.": lambda s: hide(s, past(s, -1)),
        "Off by one: each word still sees the next one.": lambda s: hide(s, past(s, 1)),
        "A score of 0 hides nothing: after the softmax it still has a share.": filled(0.0),
        LARGE: tuple(filled(fill) for fill in (-1e9, -1e4, -1e10, -1e20, lowest)),
        TIMES_INFINITY: lambda s: s + ~past(s) * -math.inf,
        "These are attention weights: the softmax comes later.": (
            lambda s: hide(s, past(s)).softmax(-1),
            lambda s: s.softmax(-1) * past(s),
        ),
        "That is a mask: apply it to the scores.": (
            past,
            lambda s: ~past(s),
            lambda s: hide(torch.zeros_like(s), past(s)),
        ),
    }
    inputs = [(draw(n, n),) for n in (5, 3, 7)]

    def right(scores: Tensor) -> Tensor:
        return hide(scores, causal_mask(len(scores)))

    return Comparison(right, inputs, mistakes)


@exercise("3.2", "my_scale", section="section 1")
def head_scale() -> Judge:
    """Give the factor that scales the scores in a model of width 768 with 12 heads."""
    mistakes = {
        "You used the width of the model: use the width of one head.": 768**-0.5,
        "You divided by the width of a head, not by its square root.": 1 / 64,
        "That makes the scores larger: they should become smaller.": 8.0,
        "You used the number of heads: use the width of one head.": (12**-0.5, 1 / 12),
        "You divided by the width of the model, and without a square root.": 1 / 768,
        "That is the width of a head, not yet the factor.": 64.0,
    }
    return numbers(
        ("the factor", 64**-0.5, mistakes), message="Right: it depends on the width of one head."
    )


@exercise("3.3", "my_both_masks", section="section 3")
def both_masks() -> Comparison:
    """Write ``fn(lengths, size)``: the mask (B, S, S) that hides the future and the padding.

    ``lengths`` (B,) counts the real tokens of each sequence, padding is on the left, ``size``
    is S. True means may attend.
    """

    def past(n: int, shift: int = 0) -> Tensor:
        return torch.ones(n, n, dtype=torch.bool).tril(shift)

    def valid(lengths: Tensor, size: int, more: int = 0) -> Tensor:  # (B, 1, S)
        return (torch.arange(size) >= size - lengths[:, None] - more)[:, None]

    def right(lengths: Tensor, size: int) -> Tensor:
        return past(size) & valid(lengths, size)

    def allowed(result: Any) -> Any:  # numbers are added to the scores: only -inf hides
        return _as_boolean(result, lambda numbers: numbers > -torch.inf)

    def nothing(*shape: int) -> Tensor:
        return torch.ones(shape, dtype=torch.bool)

    mistakes = {
        "That hides nothing: numbers are added to the scores, so return booleans.": (
            lambda n, size: nothing(len(n), size, size),
            lambda n, size: nothing(size, size),
            lambda n, size: nothing(len(n), 1, size),
        ),
        TIMES_INFINITY: lambda n, size: (~right(n, size)).float() * -math.inf,
        LARGE: lambda n, size: hide(torch.zeros(len(n), size, size), right(n, size), -1e9),
        "Only the future is hidden: padding is still visible.": (
            lambda n, size: past(size).expand(len(n), -1, -1),
            lambda n, size: past(size),
        ),
        "Only padding is hidden: the future is still visible.": (
            lambda n, size: valid(n, size).expand(-1, size, -1),
            valid,
            lambda n, size: valid(n, size)[:, 0],
        ),
        "Both masks must allow a position: combine them with &.": (
            lambda n, size: past(size) | valid(n, size)
        ),
        "True means may attend: your mask is inverted.": (
            lambda n, size: ~right(n, size),
            lambda n, size: ~past(size) & ~valid(n, size),
        ),
        "One of the two masks has the opposite polarity.": (
            lambda n, size: past(size) & ~valid(n, size),
            lambda n, size: ~past(size) & valid(n, size),
        ),
        "Hide padding as keys, which are columns: you hid its rows.": (
            lambda n, size: past(size) & valid(n, size).mT
        ),
        "You hid the past: the future is what lies above the diagonal.": (
            lambda n, size: past(size).T & valid(n, size)
        ),
        "The padding is off by one: with length 2, the last two columns are real.": (
            lambda n, size: past(size) & valid(n, size, 1),
            lambda n, size: past(size) & valid(n, size, -1),
        ),
        "The causal mask is off by one: a word sees itself, and not the next.": (
            lambda n, size: past(size, 1) & valid(n, size),
            lambda n, size: past(size, -1) & valid(n, size),
        ),
        "Here padding is on the left: you hid the right.": (
            lambda n, size: past(size) & valid(n, size).flip(-1)
        ),
    }
    inputs = [
        (torch.tensor(n), size) for n, size in (([4, 2, 3], 6), ([3, 1], 5), ([2, 4, 5, 3], 7))
    ]
    return Comparison(right, inputs, mistakes, read=allowed)


@exercise("3.4", "my_filler", section='"Two conventions" under Further')
def filler_for_multihead() -> Comparison:
    """Write ``fn(lengths, size)``: a ``key_padding_mask`` (B, S) for ``nn.MultiheadAttention``.

    There True means *ignore*. ``lengths`` (B,) counts the real tokens, padding is on the right.
    """

    def padding(lengths: Tensor, size: int, shift: int = 0) -> Tensor:
        return torch.arange(size) >= lengths[:, None] + shift

    def ignored(result: Any) -> Any:  # a float mask is added: only -inf hides
        return _as_boolean(result, lambda numbers: numbers == -torch.inf)

    mistakes = {
        "In this module True means ignore: yours hides the words and shows the padding.": (
            lambda n, size: ~padding(n, size),
            padding_mask,
        ),
        "That hides nothing: this module takes booleans, or floats with -inf.": (
            lambda n, size: torch.zeros(len(n), size, dtype=torch.bool)
        ),
        TIMES_INFINITY: lambda n, size: padding(n, size).float() * -math.inf,
        LARGE: lambda n, size: padding(n, size).float() * -1e9,
        "That line was for padding on the left, and there True meant may attend.": (
            lambda n, size: torch.arange(size) >= size - n[:, None]
        ),
        "That hides every key: no query has anything left to attend to.": (
            lambda n, size: torch.ones(len(n), size, dtype=torch.bool)
        ),
        "Off by one: padding begins at the column whose index is the length.": (
            lambda n, size: padding(n, size, 1),
            lambda n, size: padding(n, size, -1),
        ),
        "This mask has no axis for the queries: the module expects (B, S).": (
            lambda n, size: padding(n, size)[:, None],
            lambda n, size: padding(n, size)[:, None].expand(-1, size, -1),
        ),
        "That is a causal mask, which hides the future: hide the padding.": (
            lambda n, size: ~causal_mask(size),
            lambda n, size: causal_mask(size),
        ),
        "Here padding is on the right: you hid the left.": (
            lambda n, size: padding(n, size).flip(-1)
        ),
        "Each sequence is a row: yours are columns.": lambda n, size: padding(n, size).T,
    }
    inputs = [
        (torch.tensor(n), size) for n, size in (([4, 2, 3], 6), ([3, 1], 5), ([2, 4, 5, 3], 7))
    ]
    return Comparison(padding, inputs, mistakes, read=ignored)


@exercise("3.5", "my_leaks", section="section 2")
def leaks() -> Comparison:
    """Write ``fn(allowed)``: how many positions may attend to the token they are to predict.

    ``allowed`` (S, S), True means may attend. Position i predicts the token at i + 1, so the last
    position has nothing to predict here.
    """

    def right(allowed: Tensor) -> Tensor:
        return allowed.diagonal(1).sum()

    mistakes = {
        "Not always 0: in training the whole text is in the input.": (
            lambda allowed: torch.tensor(0)
        ),
        "Off by one: a word that sees itself does not see the next token.": (
            lambda allowed: allowed.diagonal().sum()
        ),
        "You left out a position: all but the last have a token to predict.": (
            lambda allowed: allowed.diagonal(1)[:-1].sum(),
            lambda allowed: allowed.diagonal(1)[1:].sum(),
        ),
        "Off by one: the answer is the next token.": (
            lambda allowed: allowed.diagonal(2).sum(),
            lambda allowed: allowed.triu(2).sum(),
        ),
        "That is the past, which every position may see.": (
            lambda allowed: allowed.diagonal(-1).sum(),
            lambda allowed: allowed.tril(-1).sum(),
        ),
        "You counted the whole future: the answer is the next token alone.": (
            lambda allowed: allowed.triu(1).sum(),
            lambda allowed: allowed[:-1, 1:].sum(),
        ),
        "Seeing some of the future is not enough: count who sees the next token.": (
            lambda allowed: allowed.triu(1).any(1).sum()
        ),
        "You counted the blocked ones: True means may attend.": (
            lambda allowed: (~allowed).diagonal(1).sum()
        ),
        "You counted every allowed pair: only the next token is the answer.": (
            lambda allowed: allowed.sum()
        ),
        "That is how many positions have an answer, whatever the mask.": (
            lambda allowed: torch.tensor(len(allowed) - 1),
            lambda allowed: torch.tensor(len(allowed)),
        ),
        "That says which ones, or whether any: count them.": (
            lambda allowed: allowed.diagonal(1),
            lambda allowed: allowed.diagonal(1).nonzero()[:, 0],
            lambda allowed: allowed.diagonal(1).any(),
            lambda allowed: allowed.diagonal(1).float().mean(),
        ),
    }

    def odd(n: int, p: int, q: int, period: int, share: int) -> Tensor:
        i = torch.arange(n)
        return (p * i[:, None] ** 2 + q * i) % period < share

    # Arbitrary masks, for which each mistake gives another count.
    inputs = [(odd(9, 5, 1, 7, 4),), (odd(8, 7, 7, 6, 3),), (odd(10, 1, 1, 9, 5),)]
    return Comparison(right, inputs, mistakes)


@exercise("3.6", "my_sturdy_weights", section="section 3")
def sturdy_weights() -> Comparison:
    """Write ``fn(scores, allowed)``: the softmax over the keys that ``allowed`` permits.

    A fully masked row gets zeros. ``scores`` (S_q, S_k) are float16; True means may attend.
    """
    draw = normal_source()

    def filled(fill: float = -math.inf, dim: int = -1) -> Callable:
        return lambda s, m: hide(s.float(), m, fill).softmax(dim)

    def right(scores: Tensor, allowed: Tensor) -> Tensor:
        return filled()(scores, allowed).masked_fill(~allowed, 0.0)

    def empty(mask: Tensor) -> Tensor:
        return ~mask.any(1, keepdim=True)

    mistakes = {
        "NaN: the softmax of a fully masked row is 0/0, and such a row should give zeros.": (
            filled()
        ),
        TIMES_INFINITY: (
            lambda s, m: torch.full_like(s, math.nan),
            lambda s, m: torch.zeros_like(s),
        ),
        "That number does not fit into float16, whose largest is 65,504.": (
            lambda s, m: hide(s, m, -1e9).softmax(-1),
            lambda s, m: hide(s, m, -1e9).softmax(-1) * m,
        ),
        "A large negative number is not -inf: a fully masked row attends to hidden keys.": (
            filled(-1e9),
            lambda s, m: right(s, m) + empty(m) / s.shape[1],
        ),
        "A score of 0 still gets a share: hidden keys get none.": (
            filled(0.0),
            lambda s, m: filled(0.0)(s, m) * ~empty(m),
        ),
        "You masked after the softmax: the rows no longer sum to 1.": (
            lambda s, m: s.float().softmax(-1) * m
        ),
        "True means may attend: you hid those.": (
            lambda s, m: filled()(s, ~m),
            lambda s, m: filled()(s, ~m).nan_to_num(),
        ),
        "Your softmax runs over the queries: let it run over the keys.": (filled(dim=0)),
        "The mask is not used yet.": lambda s, m: s.float().softmax(-1),
        "A fully masked row attends to hidden keys: it should give zeros.": (
            lambda s, m: filled()(s, m | empty(m))
        ),
        "The softmax is still missing.": (hide, lambda s, m: hide(s, m).nan_to_num(neginf=0.0)),
    }
    inputs = []
    for s_q, s_k in ((3, 5), (5, 4), (4, 7)):
        allowed = uneven_mask(s_q, s_k)
        allowed[1] = False
        inputs.append(((2 * draw(s_q, s_k)).half(), allowed))
    return Comparison(right, inputs, mistakes)
