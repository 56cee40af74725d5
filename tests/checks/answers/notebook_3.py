"""Answers to the exercises of notebook 3."""

import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

from answers import Answers
from attnlab import attention, causal_mask, padding_mask

SECTION_1, SECTION_2, SECTION_3 = (f" See section {n}." for n in (1, 2, 3))
CONVENTIONS = ' See "Two conventions" under Further.'


# --- Hide the future ------------------------------------------------------------------------


def causal_in_a_loop(scores):
    hidden = scores.clone()
    for i in range(len(scores)):
        for j in range(i + 1, len(scores)):
            hidden[i, j] = -math.inf
    return hidden


def causal_by_attention(scores):
    scores, n = scores.double(), len(scores)
    return attention(scores, torch.eye(n).double(), scores, causal_mask(n), scale=1.0).masked


PAST = "You hid the past: hide the future." + SECTION_2
FINITE = "Use -inf: float16 cannot hold -1e9, and a row of -1e9 alone becomes uniform." + SECTION_2
ZERO = "A score of 0 hides nothing: after the softmax it still has a share." + SECTION_2
MASK = "That is a mask: apply it to the scores." + SECTION_2

CAUSAL_SCORES = Answers(
    right=[
        lambda s: s.masked_fill(torch.ones(s.shape).triu(1).bool(), float("-inf")),
        causal_in_a_loop,
        lambda s: s + torch.full_like(s, -math.inf).triu(1),
        lambda s: torch.where(torch.arange(len(s))[:, None] >= torch.arange(len(s)), s, -math.inf),
        causal_by_attention,
    ],
    wrong=[
        (
            lambda s: s.softmax(-1) * causal_mask(len(s)),
            "These are attention weights: the softmax comes later." + SECTION_2,
        ),
        (lambda s: s.clone(), "Nothing is hidden yet." + SECTION_2),
        (lambda s: s + torch.full_like(s, -math.inf).tril(-1), PAST),
        (lambda s: s.masked_fill(causal_mask(len(s)), -math.inf), PAST),
        (lambda s: s * torch.ones_like(s).triu(), PAST),
        (
            lambda s: s + torch.full_like(s, -math.inf).triu(0),
            "Off by one: a word may attend to itself." + SECTION_2,
        ),
        (
            lambda s: s + torch.full_like(s, -math.inf).triu(2),
            "Off by one: each word still sees the next one." + SECTION_2,
        ),
        (lambda s: s.masked_fill(~causal_mask(len(s)), 0), ZERO),
        (lambda s: s * causal_mask(len(s)), ZERO),
        (lambda s: s.masked_fill(~causal_mask(len(s)), -1e9), FINITE),
        (lambda s: s - 1e9 * (1 - torch.ones_like(s).tril()), FINITE),
        (lambda s: s.masked_fill(~causal_mask(len(s)), torch.finfo(s.dtype).min), FINITE),
        (
            lambda s: s + torch.ones_like(s).triu(1) * -math.inf,
            "0 times infinity is NaN: use masked_fill or where instead of a product." + SECTION_2,
        ),
        (
            lambda s: causal_in_a_loop(s).softmax(1),
            "These are attention weights: the softmax comes later." + SECTION_2,
        ),
        (lambda s: causal_mask(len(s)), MASK),
        (lambda s: torch.ones_like(s).tril(), MASK),
        (lambda s: torch.ones_like(s).triu(1), MASK),
        (lambda s: torch.full_like(s, -math.inf).triu(1), MASK),
    ],
)


# --- The scale of a head --------------------------------------------------------------------


MODEL_WIDTH = "You used the width of the model: use the width of one head." + SECTION_1
NO_ROOT = "You divided by the width of a head, not by its square root." + SECTION_1

HEAD_SCALE = Answers(
    right=[0.125, 64**-0.5, Fraction(1, 8), torch.tensor(0.125), np.float32(0.125)],
    wrong=[
        (768**-0.5, MODEL_WIDTH),
        (0.0361, MODEL_WIDTH),
        (torch.tensor(768.0) ** -0.5, MODEL_WIDTH),
        (1 / 64, NO_ROOT),
        (8, "That makes the scores larger: they should become smaller." + SECTION_1),
        (12**-0.5, "You used the number of heads: use the width of one head." + SECTION_1),
        (1 / 12, "You used the number of heads: use the width of one head." + SECTION_1),
        (1 / 768, "You divided by the width of the model, and without a square root." + SECTION_1),
        (64, "That is the width of a head, not yet the factor." + SECTION_1),
        (0.2, "The factor is 0.2, which is not right." + SECTION_1),
    ],
)


# --- Two masks at once ----------------------------------------------------------------------


def both_in_a_loop(lengths, size):
    mask = torch.zeros(len(lengths), size, size, dtype=torch.bool)
    for b, length in enumerate(lengths.tolist()):
        for i in range(size):
            for j in range(size):
                mask[b, i, j] = j <= i and j >= size - length
    return mask


def both_to_add(lengths, size):
    M = torch.zeros(len(lengths), size, size)
    M += torch.full((size, size), -math.inf).triu(1)
    return M.masked_fill(torch.arange(size) < size - lengths[:, None, None], -math.inf)


def words(lengths, size):
    return padding_mask(lengths, size).flip(-1)


def both_of(causal=0, more=0):
    def answer(lengths, size):
        i = torch.arange(size)
        return (i <= i[:, None] + causal) & (size - i <= lengths[:, None, None] + more)

    return answer


NUMBERS = "That hides nothing: numbers are added to the scores, so return booleans." + SECTION_3
NO_PADDING = "Only the future is hidden: padding is still visible." + SECTION_3
NO_CAUSAL = "Only padding is hidden: the future is still visible." + SECTION_3
OPPOSITE = "True means may attend: your mask is inverted." + SECTION_3
ONE_OPPOSITE = "One of the two masks has the opposite polarity." + SECTION_3
PADDING_OFF = "The padding is off by one: with length 2, the last two columns are real." + SECTION_3
CAUSAL_OFF = "The causal mask is off by one: a word sees itself, and not the next." + SECTION_3

BOTH_MASKS = Answers(
    right=[
        lambda lengths, size: causal_mask(size) & words(lengths, size),
        both_in_a_loop,
        both_of(),
        both_to_add,
        lambda lengths, size: torch.stack(
            [causal_mask(size).logical_and(torch.arange(size) >= size - n) for n in lengths]
        ),
        lambda lengths, size: torch.einsum(
            "qk,bk->bqk", causal_mask(size).int(), words(lengths, size)[:, 0].int()
        ).bool(),
        # a query that is padding may be masked fully: it attends to padding only
        lambda lengths, size: both_in_a_loop(lengths, size) & words(lengths, size).mT,
    ],
    wrong=[
        (
            lambda n, size: (~both_in_a_loop(n, size)).float() * -math.inf,
            "0 times infinity is NaN: use masked_fill or where instead of a product." + SECTION_3,
        ),
        (
            lambda n, size: (~both_in_a_loop(n, size)).float() * -1e9,
            "Use -inf: float16 cannot hold -1e9, and a row of -1e9 alone becomes uniform."
            + SECTION_3,
        ),
        (lambda n, size: causal_mask(size).repeat(len(n), 1, 1), NO_PADDING),
        (lambda n, size: torch.ones(size, size).tril().bool(), NO_PADDING),
        (lambda n, size: causal_mask(size).float() * words(n, size).float(), NUMBERS),
        (lambda n, size: torch.ones(size, size).tril() + words(n, size).float(), NUMBERS),
        (lambda n, size: both_in_a_loop(n, size).int(), NUMBERS),
        (lambda n, size: words(n, size).repeat(1, size, 1), NO_CAUSAL),
        (words, NO_CAUSAL),
        (
            lambda n, size: causal_mask(size) | words(n, size),
            "Both masks must allow a position: combine them with &." + SECTION_3,
        ),
        (lambda n, size: ~both_in_a_loop(n, size), OPPOSITE),
        (lambda n, size: causal_mask(size) & ~words(n, size), ONE_OPPOSITE),
        (lambda n, size: torch.ones(size, size).triu(1).bool() & words(n, size), ONE_OPPOSITE),
        (
            lambda n, size: causal_mask(size) & words(n, size).transpose(1, 2),
            "Hide padding as keys, which are columns: you hid its rows." + SECTION_3,
        ),
        (
            lambda n, size: torch.ones(size, size).triu().bool() & words(n, size),
            "You hid the past: the future is what lies above the diagonal." + SECTION_3,
        ),
        (both_of(more=1), PADDING_OFF),
        (both_of(more=-1), PADDING_OFF),
        (both_of(causal=1), CAUSAL_OFF),
        (both_of(causal=-1), CAUSAL_OFF),
        (
            lambda n, size: causal_mask(size) & padding_mask(n, size),
            "Here padding is on the left: you hid the right." + SECTION_3,
        ),
    ],
)


# --- The other convention -------------------------------------------------------------------


def filler_in_a_loop(lengths, size):
    return torch.tensor([[j >= n for j in range(size)] for n in lengths.tolist()])


def filler_to_add(lengths, size):
    M = torch.zeros(len(lengths), size)
    for row, n in zip(M, lengths.tolist(), strict=True):
        row[n:] = -math.inf
    return M


def filler_by_experiment(lengths, size):
    module, x = torch.nn.MultiheadAttention(2, 1), torch.ones(size, len(lengths), 2)
    real = padding_mask(lengths, size)[:, 0]
    for mask in (real, ~real):  # the one with which no filler gets a weight
        weights = module(x, x, x, key_padding_mask=mask)[1]  # (B, S, S)
        if not (weights * ~real[:, None]).any():
            return mask


WORDS_HIDDEN = (
    "In this module True means ignore: yours hides the words and shows the padding." + CONVENTIONS
)
NOTHING_HIDDEN = (
    "That hides nothing: this module takes booleans, or floats with -inf." + CONVENTIONS
)
FILLER_OFF = "Off by one: padding begins at the column whose index is the length." + CONVENTIONS
CAUSAL = "That is a causal mask, which hides the future: hide the padding." + CONVENTIONS

FILLER_FOR_MULTIHEAD = Answers(
    right=[
        lambda lengths, size: ~padding_mask(lengths, size)[:, 0],
        filler_in_a_loop,
        filler_to_add,
        lambda lengths, size: torch.arange(size)[None] >= lengths[:, None],
        lambda lengths, size: padding_mask(lengths, size).squeeze(1).logical_not(),
        filler_by_experiment,
    ],
    wrong=[
        (
            lambda n, size: filler_in_a_loop(n, size).float() * -math.inf,
            "0 times infinity is NaN: use masked_fill or where instead of a product." + CONVENTIONS,
        ),
        (
            lambda n, size: torch.arange(size) >= size - n[:, None],
            "That line was for padding on the left, and there True meant may attend." + CONVENTIONS,
        ),
        (
            lambda n, size: filler_in_a_loop(n, size).float() * -1e4,
            "Use -inf: float16 cannot hold -1e9, and a row of -1e9 alone becomes uniform."
            + CONVENTIONS,
        ),
        (lambda n, size: padding_mask(n, size)[:, 0], WORDS_HIDDEN),
        (padding_mask, WORDS_HIDDEN),
        (lambda n, size: torch.arange(size) < n[:, None], WORDS_HIDDEN),
        (lambda n, size: filler_in_a_loop(n, size).float(), NOTHING_HIDDEN),
        (lambda n, size: filler_in_a_loop(n, size).int(), NOTHING_HIDDEN),
        (lambda n, size: filler_in_a_loop(n, size) * -1e9, FINITE.replace(SECTION_2, CONVENTIONS)),
        (
            lambda n, size: torch.ones(len(n), size).bool(),
            "That hides every key: no query has anything left to attend to." + CONVENTIONS,
        ),
        (lambda n, size: torch.arange(size) > n[:, None], FILLER_OFF),
        (lambda n, size: torch.arange(size) + 1 >= n[:, None], FILLER_OFF),
        (
            lambda n, size: ~padding_mask(n, size),
            "This mask has no axis for the queries: the module expects (B, S)." + CONVENTIONS,
        ),
        (lambda n, size: ~causal_mask(size), CAUSAL),
        (lambda n, size: causal_mask(size), CAUSAL),
        (
            lambda n, size: torch.arange(size) < size - n[:, None],
            "Here padding is on the right: you hid the left." + CONVENTIONS,
        ),
        (
            lambda n, size: filler_in_a_loop(n, size).T,
            "Each sequence is a row: yours are columns." + CONVENTIONS,
        ),
    ],
)


# --- Who sees the answer --------------------------------------------------------------------


def leaks_in_a_loop(allowed):
    return sum(1 for i in range(len(allowed) - 1) if allowed[i, i + 1])


ALWAYS = "That is how many positions have an answer, whatever the mask." + SECTION_2
SEES_PAST = "That is the past, which every position may see." + SECTION_2
NEXT = "Off by one: the answer is the next token." + SECTION_2
WHICH = "That says which ones, or whether any: count them." + SECTION_2

LEAKS = Answers(
    right=[
        lambda allowed: allowed.diagonal(offset=1).sum(),
        leaks_in_a_loop,
        lambda allowed: float(torch.einsum("ii->", allowed[:-1, 1:].double())),
        lambda allowed: int((allowed & torch.ones_like(allowed).triu(1).tril(1)).sum()),
        lambda allowed: np.trace(allowed.numpy(), offset=1, dtype=int).item(),
    ],
    wrong=[
        (
            lambda allowed: sum(bool(allowed[i, i + 1]) for i in range(len(allowed) - 2)),
            "You left out a position: all but the last have a token to predict." + SECTION_2,
        ),
        (
            lambda allowed: allowed.diagonal(1)[1:].sum(),
            "You left out a position: all but the last have a token to predict." + SECTION_2,
        ),
        (
            lambda allowed: 0,
            "Not always 0: in training the whole text is in the input." + SECTION_2,
        ),
        (
            lambda allowed: allowed.diagonal().sum(),
            "Off by one: a word that sees itself does not see the next token." + SECTION_2,
        ),
        (lambda allowed: allowed.diagonal(2).sum(), NEXT),
        (lambda allowed: allowed.triu(2).sum(), NEXT),
        (lambda allowed: allowed.T.diagonal(1).sum().item(), SEES_PAST),
        (lambda allowed: sum(int(row[:i].sum()) for i, row in enumerate(allowed)), SEES_PAST),
        (
            lambda allowed: (allowed & ~causal_mask(len(allowed))).sum(),
            "You counted the whole future: the answer is the next token alone." + SECTION_2,
        ),
        (
            lambda allowed: sum(bool(row[i + 1 :].any()) for i, row in enumerate(allowed)),
            "Seeing some of the future is not enough: count who sees the next token." + SECTION_2,
        ),
        (
            lambda allowed: sum(not allowed[i, i + 1] for i in range(len(allowed) - 1)),
            "You counted the blocked ones: True means may attend." + SECTION_2,
        ),
        (
            lambda allowed: int(allowed.int().sum()),
            "You counted every allowed pair: only the next token is the answer." + SECTION_2,
        ),
        (lambda allowed: len(allowed) - 1, ALWAYS),
        (lambda allowed: len(allowed), ALWAYS),
        (lambda allowed: allowed.diagonal(1), WHICH),
        (lambda allowed: torch.where(allowed.diagonal(1))[0], WHICH),
        (lambda allowed: allowed.diagonal(1).any(), WHICH),
        (lambda allowed: allowed.diagonal(1).float().mean(), WHICH),
        (
            lambda allowed: int(allowed[:2].sum()),
            "With allowed (9, 9) the result is 10, expected 6." + SECTION_2,
        ),
    ],
)


# --- Weights that survive -------------------------------------------------------------------


def sturdy_in_a_loop(scores, allowed):
    weights = torch.zeros(scores.shape)
    for i, row in enumerate(scores.float()):
        keys = allowed[i].nonzero()[:, 0]
        if len(keys):
            weights[i, keys] = row[keys].softmax(dim=0)
    return weights


def sturdy_by_hand(scores, allowed):
    exp = (scores.float() - scores.float().amax(-1, keepdim=True)).exp() * allowed
    return exp / exp.sum(-1, keepdim=True).clamp(min=1e-12)


def kept_after(fill):
    def answer(scores, allowed):
        return scores.masked_fill(~allowed, fill).softmax(dim=-1) * allowed

    return answer


NAN = "NaN: the softmax of a fully masked row is 0/0, and such a row should give zeros." + SECTION_3
HALF = "That number does not fit into float16, whose largest is 65,504." + SECTION_3
SPREAD = (
    "A large negative number is not -inf: a fully masked row attends to hidden keys." + SECTION_3
)
SHARE = "A score of 0 still gets a share: hidden keys get none." + SECTION_3
INVERTED = "True means may attend: you hid those." + SECTION_3

STURDY_WEIGHTS = Answers(
    right=[
        lambda s, m: s.masked_fill(~m, -torch.inf).softmax(dim=-1).masked_fill(~m, 0.0),
        sturdy_in_a_loop,
        sturdy_by_hand,
        lambda s, m: s.masked_fill(~m, -math.inf).softmax(dim=-1).nan_to_num(0.0),
        lambda s, m: kept_after(-1e9)(s.float(), m),
        kept_after(-6e4),
        lambda s, m: attention(s, torch.eye(s.shape[1]).to(s), s.T, m, scale=1.0).weights,
    ],
    wrong=[
        (
            lambda s, m: (s + ~m * -math.inf).softmax(-1),
            "0 times infinity is NaN: use masked_fill or where instead of a product." + SECTION_3,
        ),
        (
            lambda s, m: (s + ~m * -math.inf).softmax(-1).nan_to_num(),
            "0 times infinity is NaN: use masked_fill or where instead of a product." + SECTION_3,
        ),
        (lambda s, m: s.masked_fill(~m, -torch.inf).softmax(dim=-1), NAN),
        (lambda s, m: s.softmax(-1) * m / (s.softmax(-1) * m).sum(-1, keepdim=True), NAN),
        (lambda s, m: s.masked_fill(~m, -1e9).softmax(dim=-1), HALF),
        (kept_after(-1e9), HALF),
        (lambda s, m: s.float().masked_fill(~m, -1e9).softmax(dim=-1), SPREAD),
        (lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(dim=-1), SPREAD),
        (lambda s, m: s.masked_fill(~m, -1e4).softmax(dim=-1), SPREAD),
        (lambda s, m: (s + (~m) * -1e9).softmax(dim=-1), SPREAD),
        (lambda s, m: (s * m).softmax(dim=-1), SHARE),
        (
            lambda s, m: F.softmax(s, dim=-1).masked_fill(~m, 0.0),
            "You masked after the softmax: the rows no longer sum to 1." + SECTION_3,
        ),
        (lambda s, m: s.masked_fill(m, -torch.inf).softmax(dim=-1), INVERTED),
        (lambda s, m: s.masked_fill(m, -torch.inf).softmax(dim=-1).nan_to_num(), INVERTED),
        (
            lambda s, m: s.masked_fill(~m, -torch.inf).softmax(dim=0),
            "Your softmax runs over the queries: let it run over the keys." + SECTION_3,
        ),
        (lambda s, m: s.softmax(dim=-1), "The mask is not used yet." + SECTION_3),
        (
            lambda s, m: torch.where(
                m.any(-1, keepdim=True), s.masked_fill(~m, -torch.inf), s
            ).softmax(-1),
            "A fully masked row attends to hidden keys: it should give zeros." + SECTION_3,
        ),
        (lambda s, m: s.masked_fill(~m, -torch.inf), "The softmax is still missing." + SECTION_3),
    ],
)


ANSWERS = {
    "causal_scores": CAUSAL_SCORES,
    "head_scale": HEAD_SCALE,
    "both_masks": BOTH_MASKS,
    "filler_for_multihead": FILLER_FOR_MULTIHEAD,
    "leaks": LEAKS,
    "sturdy_weights": STURDY_WEIGHTS,
}
