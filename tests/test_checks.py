"""A right answer passes in any form; a wrong one hears what it did; nothing stops the notebook."""

import ast
import asyncio
import inspect
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlab
from attnlab import checks
from attnlab.checks import Verdict

# --- Right answers --------------------------------------------------------------------------


def loop_scores(X, W_Q, W_K):
    table = torch.zeros(len(X), len(X))
    for i in range(len(X)):
        for j in range(len(X)):
            table[i, j] = (X[i] @ W_Q) @ (X[j] @ W_K)
    return table


def loop_causal(scores):
    hidden = scores.clone()
    for i in range(len(scores)):
        for j in range(i + 1, len(scores)):
            hidden[i, j] = -math.inf
    return hidden


def stable_softmax(scores, mask):
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    exp = shifted.exp() * mask
    return exp / exp.sum(-1, keepdim=True)


def loop_softmax(scores, mask):
    rows = []
    for row, allowed in zip(scores.double(), mask, strict=True):
        top = max(x.item() for x in row)
        exp = [math.exp(x - top) if ok else 0.0 for x, ok in zip(row, allowed, strict=True)]
        rows.append([e / sum(exp) for e in exp])
    return torch.tensor(rows)


def loop_attention(q, k, v, mask):
    rows = []
    for i in range(len(q)):
        seen = [j for j in range(len(k)) if mask[i, j]]
        exp = [math.exp(q[i] @ k[j] / math.sqrt(len(q[i]))) for j in seen]
        rows.append(sum(e * v[j] for e, j in zip(exp, seen, strict=True)) / sum(exp))
    return torch.stack(rows)


def sdpa_and_weights(q, k, v, mask):
    return torch.zeros(()), F.scaled_dot_product_attention(q[None], k[None], v[None], mask)[0]


def loop_split(x, n_heads):
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width : (h + 1) * width] for h in range(n_heads)], dim=1)


def rotate_by_matrix(x, positions):
    turn = [[[math.cos(p), -math.sin(p)], [math.sin(p), math.cos(p)]] for p in positions.tolist()]
    return (torch.tensor(turn) @ x[:, :, None])[:, :, 0]


def rotate_complex(x, positions):
    turned = torch.view_as_complex(x.contiguous()) * torch.exp(1j * positions)
    return torch.view_as_real(turned)


def rotate_in_place_on_a_copy(x, positions):
    x = x.clone()
    a, b = x[:, 0].clone(), x[:, 1].clone()
    x[:, 0] = a * positions.cos() - b * positions.sin()
    x[:, 1] = b * positions.cos() + a * positions.sin()
    return x


def loop_step(q_new, k_new, v_new, K, V):
    K, V = torch.cat([K, k_new]), torch.cat([V, v_new])
    exp = [math.exp(float(q_new[0] @ key) / math.sqrt(K.shape[1])) for key in K]
    return (sum(e * v for e, v in zip(exp, V, strict=True)) / sum(exp))[None], K, V


def roomy_step(q_new, k_new, v_new, K, V):
    room_k, room_v = torch.zeros(len(K) + 1, K.shape[1]), torch.zeros(len(V) + 1, V.shape[1])
    room_k[:-1], room_v[:-1], room_k[-1], room_v[-1] = K, V, k_new[0], v_new[0]
    return [(q_new @ room_k.T / room_k.shape[1] ** 0.5).softmax(-1) @ room_v, room_k, room_v]


RIGHT = {
    "lookup": [
        lambda ids, E: F.one_hot(ids, len(E)).float() @ E,
        lambda ids, E: E[ids],
        lambda ids, E: nn.Embedding.from_pretrained(E.double())(ids),
        lambda ids, E: torch.stack([E[i] for i in ids.tolist()]),
        lambda ids, E: torch.einsum("sv,vd->sd", torch.eye(len(E))[ids], E),
        lambda ids, E: E[ids].bfloat16(),
    ],
    "cosine": [
        lambda a, b: a @ b / (a.norm() * b.norm()),
        lambda a, b: float(F.cosine_similarity(a.double(), b.double(), dim=0)),
        lambda a, b: (a * b).sum() / torch.sqrt((a**2).sum() * (b**2).sum()),
        lambda a, b: (a.numpy() @ b.numpy()) / np.linalg.norm(a) / np.linalg.norm(b),
        lambda a, b: sum((a / a.norm()) * (b / b.norm())),
    ],
    "scores": [
        lambda X, W_Q, W_K: (X @ W_Q) @ (X @ W_K).T,
        loop_scores,
        lambda X, W_Q, W_K: torch.einsum("sd,de,fe,tf->st", X, W_Q, W_K, X),
        lambda X, W_Q, W_K: F.linear(X.double() @ W_Q.double(), X.double() @ W_K.double()),
        lambda X, W_Q, W_K: nn.Parameter(X @ W_Q) @ (X @ W_K).mT,
    ],
    "causal_scores": [
        loop_causal,
        lambda s: s.masked_fill(torch.ones(s.shape).triu(1).bool(), float("-inf")),
        lambda s: s + torch.full_like(s, -math.inf).triu(1),
        lambda s: torch.where(torch.arange(len(s))[:, None] >= torch.arange(len(s)), s, -math.inf),
        lambda s: (
            attnlab.attention(
                s.double(),
                torch.eye(len(s)).double(),
                s.double(),
                attnlab.causal_mask(len(s)),
                scale=1.0,
            ).masked
        ),
    ],  # fmt: skip
    "masked_softmax": [
        lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1),
        stable_softmax,
        loop_softmax,
        lambda s, m: s.masked_fill(~m, -1e9).softmax(-1),  # no row is empty, so this is equal
        lambda s, m: (s.double() + torch.zeros(m.shape).masked_fill(~m, -math.inf)).softmax(1),
        lambda s, m: s.softmax(-1) * m / (s.softmax(-1) * m).sum(-1, keepdim=True),
    ],
    "attention_function": [
        attnlab.attention,
        F.scaled_dot_product_attention,
        loop_attention,
        sdpa_and_weights,
        lambda q, k, v, m: (q @ k.T * q.shape[1] ** -0.5).masked_fill(~m, -1e9).softmax(1) @ v,
    ],
    "split": [
        attnlab.split_heads,
        loop_split,
        lambda x, n: x.view(*x.shape[:2], n, -1).transpose(1, 2),
        lambda x, n: torch.stack(x.double().chunk(n, dim=-1), dim=1).contiguous(),
        lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2] // n).permute(0, 2, 1, 3),
    ],
    "rotate_pair": [attnlab.rope, rotate_by_matrix, rotate_complex, rotate_in_place_on_a_copy],
    "cache_bytes": [
        lambda layers, heads, width, n, batch, size: 2 * layers * heads * width * n * batch * size,
        lambda *sizes: 2 * math.prod(sizes),
        lambda *sizes: torch.tensor(sizes).prod() * 2,
        lambda *sizes: float(np.prod(sizes)) / 0.5,
    ],
    "decode_step": [
        loop_step,
        roomy_step,
        lambda q, k, v, K, V: (
            F.scaled_dot_product_attention(
                q[None], torch.cat((K, k))[None], torch.cat((V, v))[None]
            )[0],
            torch.cat((K, k)),
            torch.cat((V, v)),
        ),
    ],
}


@pytest.mark.parametrize(("name", "answer"), [(n, a) for n in RIGHT for a in RIGHT[n]])
def test_a_right_answer_passes_in_any_form(name, answer):
    verdict = getattr(checks, name)(answer)
    assert verdict.passed, verdict
    assert verdict.message.startswith("Right, on ")


@pytest.mark.parametrize(
    "value", [0.125, 1 / 8, 64**-0.5, Fraction(1, 8), torch.tensor(0.125), np.float32(0.125)]
)
def test_the_scale_of_a_head_is_accepted_in_any_form(value):
    assert checks.head_scale(value).passed


@pytest.mark.parametrize(
    ("w_q", "w_k"),
    [
        ([[1.0, 3.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]),
        ([[-1.0, 0.5], [7.0, 7.0]], [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_any_two_matrices_that_make_bank_ask_for_money_pass(w_q, w_k):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        verdict = checks.bank_asks_for_money(
            torch.tensor(w_q, dtype=dtype), nn.Parameter(torch.tensor(w_k, dtype=dtype))
        )
        assert verdict, verdict
    assert verdict.message.startswith("Right: bank scores river ")


# --- Wrong answers --------------------------------------------------------------------------


def softmaxed_without_max(scores, mask):
    exp = torch.where(mask, scores.exp(), 0.0)
    return exp / exp.sum(dim=1)[:, None]


def softmaxed_with_two_mistakes(scores, mask):  # it overflows as well
    return scores.exp() / scores.exp().sum(-1, keepdim=True) * mask


def divided_by_sum(scores, mask):
    kept = scores.masked_fill(~mask, 0.0)
    return kept / kept.sum(1)[:, None]


def attend(scale=None, mask=lambda m: m, axis=-1):
    def answer(q, k, v, m):
        factor = q.shape[-1] ** -0.5 if scale is None else scale(q, k)
        return (q @ k.T * factor).masked_fill(~mask(m), -math.inf).softmax(axis) @ v

    return answer


def rotate_with_signs(x, angles, first, second):
    c, s = angles.cos(), angles.sin()
    columns = [x[:, 0] * c + first * x[:, 1] * s, second * x[:, 0] * s + x[:, 1] * c]
    return torch.stack(columns, dim=1)


def rotate_overwriting(x, positions):
    out = x.clone()
    out[:, 0] = out[:, 0] * positions.cos() - out[:, 1] * positions.sin()
    out[:, 1] = out[:, 0] * positions.sin() + out[:, 1] * positions.cos()
    return out


def step_over(keys, values, scale=None, axis=-1):
    def answer(q, k, v, K, V):
        all_k, all_v = keys(k, K), values(v, V)
        factor = K.shape[1] ** -0.5 if scale is None else scale
        return (q @ all_k.T * factor).softmax(axis) @ all_v, torch.cat((K, k)), torch.cat((V, v))

    return answer


def behind(new, old):
    return torch.cat((old, new))


def step_returning(keys, values):
    def answer(q, k, v, K, V):
        output = step_over(behind, behind)(q, k, v, K, V)[0]
        return output, keys(k, K), values(v, V)

    return answer


def step_left_out(q, k, v, K, V):
    return F.scaled_dot_product_attention(q[None], K[None], V[None])[0], K, V


def step_causal(q, k, v, K, V):
    all_k, all_v = torch.cat((K, k)), torch.cat((V, v))
    out = F.scaled_dot_product_attention(q[None], all_k[None], all_v[None], is_causal=True)[0]
    return out, all_k, all_v


def step_wide(q, k, v, K, V):
    K, V = torch.cat([K, k], dim=1), torch.cat([V, v], dim=1)
    return (q @ K.T).softmax(-1) @ V, K, V


SUM = "You divided by the sum of the scores: that is not what softmax divides."
QUERIES = "Your softmax runs over the queries: each query shares itself out among the keys."
AFTER = "You masked after the softmax: the rows no longer sum to 1."
INVERTED = "True means may attend: you hid those."
ZEROS = "A score of 0 still gets a share: hidden keys get none."
UNUSED = "The mask is not used yet."
NO_SOFTMAX = "The scores are masked, but the softmax is missing."
OVERFLOW = "exp(1000) overflows: subtract the row's maximum first."
ONE_MAXIMUM = "One maximum for the whole table is not enough: each row has its own."
FINITE = "Not quite -inf: float16 cannot hold -1e9, and a row of nothing else turns uniform."
UNSCALED = "The scores are not scaled."

WRONG = {
    "lookup": [
        (lambda i, E: (F.one_hot(i, len(E)).float() @ E).T,
         "Each word is a row of the result: yours are columns."),
        (lambda i, E: sum(E[j] for j in i) / len(i),
         "You averaged the words: each keeps its own row."),
        (lambda i, E: E[:, i], "A word is a row of E: you looked up columns."),
        (lambda i, E: torch.stack([E[:, j] for j in i]),
         "A word is a row of E: you looked up columns."),
        (lambda i, E: F.one_hot(i, len(E)),
         "Those are the one-hot rows: they still have to meet E."),
        (lambda i, E: torch.eye(len(E))[i],
         "Those are the one-hot rows: they still have to meet E."),
        (lambda i, E: F.one_hot(i).float() @ E,
         "A one-hot row is as long as the vocabulary, whichever words occur."),
        (lambda i, E: F.one_hot(i, E.shape[0]) @ E,
         "One-hot rows start as integers: use .float() before the product."),
    ],
    "cosine": [
        (lambda a, b: (a * b).sum(),
         "That is the dot product: it still grows with the lengths."),
        (lambda a, b: float(a @ b) / float(a.norm()),
         "You divided by one length only: both vectors have one."),
        (lambda a, b: a @ (b / b.norm()),
         "You divided by one length only: both vectors have one."),
        (lambda a, b: a @ b / (sum(a**2) * sum(b**2)), "You divided by the squared lengths."),
        (lambda a, b: math.dist(a.tolist(), b.tolist()),
         "That is a distance: it grows as two vectors part."),
        (lambda a, b: math.acos(F.cosine_similarity(a, b, dim=0)), "That is the angle itself."),
        (lambda a, b: (a / a.norm()) * (b / b.norm()),
         "A cosine is one number: the products still have to be added up."),
    ],
    "scores": [
        (lambda X, Q, K: (X @ K) @ (X @ Q).T, "Queries are rows and keys are columns."),
        (lambda X, Q, K: loop_scores(X, Q, K).T, "Queries are rows and keys are columns."),
        (lambda X, Q, K: X @ X.T, "The projections are missing: you compared X with itself."),
        (lambda X, Q, K: X @ Q.T @ (X @ K.T).T,
         "Your W look transposed, as nn.Linear stores them."),
        (lambda X, Q, K: torch.einsum("sd,ed,te->st", X, Q, torch.einsum("td,ed->te", X, K)),
         "Your W look transposed, as nn.Linear stores them."),
        (lambda X, Q, K: F.linear(F.linear(X, Q), F.linear(X, K)),
         "Your W look transposed, as nn.Linear stores them."),
        (lambda X, Q, K: (X @ Q) @ (X @ Q).T,
         "One matrix does both jobs: asking and being asked need one each."),
        (lambda X, Q, K: (X @ K) @ (X @ K).T,
         "One matrix does both jobs: asking and being asked need one each."),
        (lambda X, Q, K: (X @ Q) @ X.T, "Only one side is projected: queries and keys both are."),
        (lambda X, Q, K: X @ (X @ K).T, "Only one side is projected: queries and keys both are."),
        (lambda X, Q, K: loop_scores(X, Q, K) / math.sqrt(Q.shape[-1]),
         "These scores are scaled already: the raw ones are asked for."),
        (lambda X, Q, K: F.softmax(X @ Q @ (X @ K).T, dim=1),
         "These are attention weights: scores come before the softmax."),
        (lambda X, Q, K: attnlab.attention(X @ Q, X @ K, X).weights,
         "These are attention weights: scores come before the softmax."),
    ],
    "causal_scores": [
        (lambda s: s.clone(), "Nothing is hidden yet."),
        (lambda s: s + torch.full_like(s, -math.inf).tril(-1),
         "You hid the past: it is the future that has to go."),
        (lambda s: s.masked_fill(attnlab.causal_mask(len(s)), -math.inf),
         "You hid the past: it is the future that has to go."),
        (lambda s: s + torch.full_like(s, -math.inf).triu(0),
         "Off by one: a word may attend to itself."),
        (lambda s: s + torch.full_like(s, -math.inf).triu(2),
         "Off by one: each word still sees the next."),
        (lambda s: s.masked_fill(~attnlab.causal_mask(len(s)), 0),
         "A score of 0 hides nothing: after the softmax it still has a share."),
        (lambda s: s * attnlab.causal_mask(len(s)),
         "A score of 0 hides nothing: after the softmax it still has a share."),
        (lambda s: s.masked_fill(~attnlab.causal_mask(len(s)), -1e9), FINITE),
        (lambda s: s - 1e9 * (1 - torch.ones_like(s).tril()), FINITE),
        (lambda s: s.masked_fill(~attnlab.causal_mask(len(s)), torch.finfo(s.dtype).min), FINITE),
        (lambda s: s + torch.ones_like(s).triu(1) * -math.inf,
         "0 times infinity is NaN: choose the scores to fill, do not multiply."),
        (lambda s: loop_causal(s).softmax(1),
         "These are attention weights: the softmax comes later."),
        (lambda s: attnlab.causal_mask(len(s)),
         "That is a mask: it still has to meet the scores."),
        (lambda s: torch.ones_like(s).tril(), "That is a mask: it still has to meet the scores."),
        (lambda s: torch.ones_like(s).triu(1), "That is a mask: it still has to meet the scores."),
        (lambda s: torch.full_like(s, -math.inf).triu(1),
         "That is a mask: it still has to meet the scores."),
    ],
    "masked_softmax": [
        (divided_by_sum, SUM),
        (lambda s, m: s / s.sum(1)[:, None] * m, SUM),
        (lambda s, m: s.masked_fill(~m, -math.inf).softmax(0), QUERIES),
        (lambda s, m: s.softmax(1).masked_fill(~m, 0), AFTER),
        (softmaxed_with_two_mistakes, AFTER),
        (lambda s, m: s.masked_fill(m, -math.inf).softmax(-1), INVERTED),
        (softmaxed_without_max, OVERFLOW),
        (lambda s, m: softmaxed_without_max(s.masked_fill(~m, -math.inf), m | True), OVERFLOW),
        (lambda s, m: softmaxed_without_max(s - s.max(), m), ONE_MAXIMUM),
        (lambda s, m: s.masked_fill(~m, 0).softmax(-1), ZEROS),
        (lambda s, m: (s * m.float()).softmax(-1), ZEROS),
        (lambda s, m: s.softmax(-1), UNUSED),
        (lambda s, m: s.masked_fill(~m, -math.inf), NO_SOFTMAX),
    ],
    "attention_function": [
        (attend(lambda q, k: 1), UNSCALED),
        (attend(lambda q, k: 1 / k.shape[1]), "You divided by d_k, not by its square root."),
        (attend(lambda q, k: 1 / math.sqrt(k.shape[0])),
         "You scaled by the number of keys, not by a width."),
        (attend(lambda q, k: math.sqrt(k.shape[1])), "Your scale makes the scores larger."),
        (attend(axis=0), QUERIES),
        (lambda q, k, v, m: attnlab.attention(q, k, v), UNUSED),
        (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v), UNUSED),
        (attend(mask=lambda m: ~m), INVERTED),
        (lambda q, k, v, m: attnlab.attention(q, k, v).weights * m @ v, AFTER),
        (lambda q, k, v, m: ((q @ k.T) * m / q.shape[1] ** 0.5).softmax(-1) @ v, ZEROS),
        (lambda q, k, v, m: divided_by_sum(attnlab.attention(q, k, v).scaled, m) @ v, SUM),
        (lambda q, k, v, m: attend()(k, q, v, m), "q and k are swapped: queries are rows."),
        (lambda q, k, v, m: loop_attention(q, k, torch.eye(len(k)), m),
         "Those are the attention weights: they still have to meet the values."),
        (lambda q, k, v, m: attnlab.attention(q, k, v, m)[:4],
         "Those are the attention weights: they still have to meet the values."),
    ],
    "split": [
        (lambda x, n: x.view(x.shape[0], n, x.shape[1], x.shape[2] // n),
         "Right shape, but tokens are mixed: the order of reshape and transpose matters."),
        (lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1),
         "A head takes neighbouring columns: yours are dealt out in turn."),
        (lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n),
         "A head takes neighbouring columns: yours are dealt out in turn."),
        (lambda x, n: torch.stack(x.chunk(n, dim=2), dim=2),
         "The heads still stand behind the sequence."),
        (lambda x, n: x.view(*x.shape[:2], n, -1).permute(0, 2, 3, 1),
         "Within a head tokens are rows: yours are columns."),
        (lambda x, n: torch.stack(x.chunk(n, dim=1), dim=1),
         "Heads do not split the sentence: each sees every token."),
    ],
    "rotate_pair": [
        (lambda x, p: rotate_with_signs(x, p, 1, -1), "You turn clockwise."),
        (lambda x, p: rotate_with_signs(x, p * math.pi / 180, -1, 1),
         "The angles are radians, not degrees."),
        (lambda x, p: rotate_with_signs(x, p[0], -1, 1),
         "Every row turns by the same angle: each position has its own."),
        (lambda x, p: rotate_with_signs(x, torch.tensor(1.0), -1, 1),
         "Every row turns by the same angle: each position has its own."),
        (lambda x, p: (x.T * p.cos()).T,
         "That shrinks the vector: a rotation mixes its coordinates."),
        (lambda x, p: (x.T + p).T, "You added the angle: it is to turn the vector."),
        (lambda x, p: rotate_with_signs(x, p, 1, 1),
         "A sign is missing: a rotation keeps the length."),
        (rotate_overwriting,
         "The new first coordinate went into the second: that needs the old one."),
    ],
    "cache_bytes": [
        (lambda *n: math.prod(n), "A cache holds more than the keys."),
        (lambda *n: 3 * math.prod(n),
         "A cache holds no queries: old ones are never needed again."),
        (lambda *n: 2 * math.prod(n) * n[3],
         "The cache grows with the positions, not with their square."),
        (lambda layers, *n: 2 * math.prod(n), "That is one layer: each keeps its own."),
        (lambda *n: 2 * math.prod(n) / n[4],
         "That is one sequence: each of the batch keeps its own."),
        (lambda layers, heads, *n: 2 * layers * math.prod(n),
         "That is one head: each keeps its own."),
        (lambda *n: 2 * math.prod(n[:5]), "You counted numbers: each takes some bytes."),
    ],
    "decode_step": [
        (step_left_out, "The new token is left out: it attends to itself too."),
        (step_over(lambda k, K: K, lambda v, V: V),
         "The new token is left out: it attends to itself too."),
        (step_returning(lambda k, K: K, lambda v, V: V),
         "The output is right, but the cache comes back without the new token."),
        (step_returning(lambda k, K: torch.cat((k, K)), lambda v, V: torch.cat((v, V))),
         "The output is right, but the new token stands first in the cache: it comes last."),
        (step_wide, "You joined along the width: a new token is a new row."),
        (lambda q, k, v, K, V: (q, torch.cat((k, K), 1), V),
         "You joined along the width: a new token is a new row."),
        (step_over(behind, behind, scale=1), UNSCALED),
        (step_over(lambda k, K: k, lambda v, V: v),
         "The new token attends to itself only: it may see the whole cache."),
        (step_causal,
         "The new token sees the first key only: your causal mask is aligned at the top left."),
        (step_over(behind, behind, axis=0),
         "Your softmax runs over the queries: with one query every weight is 1."),
    ],
}  # fmt: skip
MISTAKES = [(name, answer, message) for name in WRONG for answer, message in WRONG[name]]
SCALES = [
    (768**-0.5, "You used the width of the model: one head compares less."),
    (0.036, "You used the width of the model: one head compares less."),
    (1 / 64, "You divided by the width of a head, not by its square root."),
    (8, "That makes scores larger: they are to become smaller."),
    (1 / math.sqrt(12), "You used the number of heads: the width of one head counts."),
    (1 / 768, "You divided by the width of the model, and without a square root."),
    (64, "That is the width of a head, not yet the factor."),
]


def said(verdict):
    """What a failing verdict says, without where to read on."""
    assert not verdict.passed
    return verdict.message.partition(" See ")[0]


@pytest.mark.parametrize(("name", "answer", "message"), MISTAKES)
def test_a_known_mistake_is_named(name, answer, message):
    assert said(getattr(checks, name)(answer)) == message


@pytest.mark.parametrize(("value", "message"), SCALES)
def test_a_wrong_scale_is_named(value, message):
    assert said(checks.head_scale(value)) == message
    assert said(checks.head_scale(torch.tensor(float(value)))) == message


def test_every_sentence_about_a_mistake_is_earned_by_somebody():
    rooms = Path(checks.__file__).parent.glob("*.py")
    sentences = {
        key.value
        for room in rooms
        for table in ast.walk(ast.parse(room.read_text(encoding="utf-8")))
        if isinstance(table, ast.Dict)
        for key in table.keys
        if isinstance(key, ast.Constant)
    }
    assert sentences == {m for *_, m in MISTAKES} | {m for _, m in SCALES}
    assert len(sentences) > 60
    assert all(s.endswith(".") and len(s) < 90 for s in sentences)


def inputs_of(name):
    """What a check calls an answer with."""
    seen = []

    def spy(*args):
        seen.append(args)
        return RIGHT[name][0](*args)

    assert getattr(checks, name)(spy)
    return seen


@pytest.mark.parametrize(("name", "answer", "message"), MISTAKES)
def test_on_no_input_does_a_mistake_look_right(name, answer, message):
    def numbers(function, args):
        result = function(*args)
        if name == "decode_step":
            return torch.cat([x.double().flatten() for x in result])
        result = result[-1] if isinstance(result, tuple) else result
        return torch.as_tensor(result).double()

    differs = []
    for args in inputs_of(name):
        right = numbers(RIGHT[name][0], args)
        try:
            got = numbers(answer, args)
        except (RuntimeError, IndexError, ValueError):
            differs.append(True)
        else:
            differs.append(got.shape != right.shape or not torch.allclose(got, right, rtol=1e-2))
    assert any(differs) if message in (OVERFLOW, ONE_MAXIMUM) else all(differs)


@pytest.mark.parametrize("name", RIGHT)
def test_the_sizes_of_one_input_differ_and_so_do_the_inputs(name):
    inputs = inputs_of(name)
    assert len(inputs) >= 2
    sizes = [[n for x in args for n in (x.shape if torch.is_tensor(x) else [x])] for args in inputs]
    assert len({tuple(s) for s in sizes}) == len(sizes)
    assert repr(inputs_of(name)) == repr(inputs)


# --- The matrices that make bank ask --------------------------------------------------------


@pytest.mark.parametrize(
    ("w_q", "start"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], "Money does not lead yet: bank scores river 2, money 0, bank 1"),
        (
            [[1.0, 1.25], [0.0, 1.0]],
            "Money leads, but by less than 1: bank scores river 2, money 2",
        ),
        ([[1.0, 0.0], [0.0, 5.0]], "You changed what another word asks, not what bank asks: bank"),
        ([[0.0, 0.0], [0.0, 0.0]], "Money does not lead yet: bank scores river 0, money 0, bank 0"),
    ],
)
def test_bank_that_does_not_ask_for_money_hears_its_scores(w_q, start):
    verdict = checks.bank_asks_for_money(torch.tensor(w_q), torch.eye(2))
    assert not verdict
    assert verdict.message.startswith(start)


def test_money_asking_for_bank_is_told_apart():
    w_q = torch.tensor([[1.0, 0.0], [3.0, 1.0]])
    assert checks.bank_asks_for_money(w_q, torch.eye(2)).message == (
        "Queries are rows and keys are columns, and here money asks for bank: "
        "bank scores river 2, money 0, bank 1."
    )
    assert checks.bank_asks_for_money(torch.eye(2), w_q.T).passed is False


@pytest.mark.parametrize(
    ("w_q", "w_k", "message"),
    [
        ([[1.0, 0.0]], torch.eye(2), "Expected a torch.Tensor, got list."),
        (torch.eye(2), np.eye(2), "Expected a torch.Tensor, got ndarray."),
        (torch.eye(2).long(), torch.eye(2), "w_q holds int64, expected floats: use .float()."),
        (torch.eye(2), torch.eye(3), "w_k has shape (3, 3), expected (2, 2)."),
        (torch.eye(2) / 0, torch.eye(2), "w_q is inf at [0, 0], which is not right."),
        (torch.full((2, 2), math.nan), torch.eye(2), "w_q is NaN at [0, 0], which is not right."),
        (1j * torch.eye(2), torch.eye(2), "w_q holds complex64, expected floats: use .float()."),
    ],
)
def test_what_is_no_pair_of_matrices_is_refused_in_words(w_q, w_k, message):
    assert checks.bank_asks_for_money(w_q, w_k) == Verdict(False, message)


# --- Not done yet ---------------------------------------------------------------------------


def raises_not_implemented(*args):
    raise NotImplementedError("write me")


def half_filled(*args):
    weights = ...
    return weights @ args[0]


def half_filled_for_torch(*args):
    return torch.softmax(..., dim=-1)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(
    "answer",
    [
        ...,
        None,
        lambda *args: ...,
        lambda *args: None,
        lambda *args: (args[0], ..., args[0]),
        raises_not_implemented,
        half_filled,
        half_filled_for_torch,
    ],
)
def test_an_exercise_not_done_says_so(name, answer):
    verdict = getattr(checks, name)(answer)
    assert not verdict
    assert verdict.message.startswith("Not done yet: ")
    assert repr(verdict).startswith("… Not done yet: ")


def test_values_not_given_yet_say_so():
    for undone in (..., None):
        assert repr(checks.head_scale(undone)).startswith("… Not done yet: ")
        assert repr(checks.bank_asks_for_money(undone, torch.eye(2))).startswith("… Not done yet: ")
        assert repr(checks.bank_asks_for_money(torch.eye(2), undone)).startswith("… Not done yet: ")


def test_a_forgotten_return_is_suspected():
    assert "return" in checks.scores(lambda *args: None).message


# --- Hostile answers ------------------------------------------------------------------------


class Sneaky(BaseException):
    def __str__(self):
        raise Sneaky


class Spiky:
    def __getattribute__(self, name):
        raise RuntimeError("do not touch")

    def __eq__(self, other):
        raise RuntimeError("do not compare")

    __hash__ = None


def raising(error):
    def answer(*args):
        raise error

    return answer


def returns_itself(*args):
    return returns_itself


def calls_itself(*args):
    return calls_itself(*args)


endless = []
endless.append(endless)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(
    "answer",
    [
        5,
        "E[ids]",
        torch.eye(2),
        int,
        lambda: 1,
        raising(ValueError("x" * 10_000)),
        raising(SystemExit(1)),
        raising(GeneratorExit()),
        raising(asyncio.CancelledError()),
        raising(Sneaky()),
        returns_itself,
        calls_itself,
        lambda *args: Spiky(),
        lambda *args: endless,
        lambda *args: [[1.0, 0.0]],
        lambda *args: np.ones((2, 2)),
        lambda *args: (),
        lambda *args: True,
        lambda *args: math.nan,
        lambda *args: 10**400,
        lambda *args: torch.tensor(math.nan),
        lambda *args: torch.full((3, 3), math.nan),
        lambda *args: torch.zeros(0, 3),
        lambda *args: torch.zeros(3, 3, device="meta"),
        lambda *args: torch.eye(3).to_sparse(),
        lambda *args: torch.tensor(1j),
        lambda *args: torch.zeros(1).expand(10**13),
        lambda *args: ValueError,
        lambda *args: (x for x in args),
    ],
)
def test_whatever_comes_in_becomes_a_verdict(name, answer):
    verdict = getattr(checks, name)(answer)
    assert verdict.passed is False
    assert len(verdict.message) < 450
    assert "Traceback" not in verdict.message
    assert repr(verdict)[0] == "✗"


@pytest.mark.parametrize("value", ["0.125", [0.125], True, len, math.nan, 10**400, 1j])
def test_whatever_stands_for_a_value_becomes_a_verdict(value):
    assert not checks.head_scale(value)
    assert not checks.bank_asks_for_money(value, value)


@pytest.mark.parametrize("name", [*RIGHT, "head_scale", "bank_asks_for_money"])
def test_an_object_that_cannot_be_touched_becomes_a_verdict(name):
    args = (Spiky(), Spiky()) if name == "bank_asks_for_money" else (Spiky(),)
    message = getattr(checks, name)(*args).message
    assert message == "Your answer cannot be read: RuntimeError: do not touch."


def test_ctrl_c_still_works():
    with pytest.raises(KeyboardInterrupt):
        checks.scores(raising(KeyboardInterrupt()))


@pytest.mark.parametrize(
    ("check", "answer", "message"),
    [
        (checks.lookup, 5, "Expected a function, got int."),
        (checks.lookup, lambda i, E: E[i].tolist(), "Expected a torch.Tensor, got list."),
        (checks.lookup, lambda i, E: E[i].numpy(), "Expected a torch.Tensor, got ndarray."),
        (checks.cosine, lambda a, b: "1", "Expected a number, got str."),
        (checks.cosine, lambda a, b: True, "Expected a number, got bool."),
        (
            checks.cosine,
            lambda a, b: F.cosine_similarity(a, b, dim=0) + 0j,
            "With a (5,), b (5,) the result holds complex64, expected floats",
        ),
        (checks.lookup, raising(Sneaky()), "With ids (3,), E (5, 11) your function raised Sneaky."),
        (checks.decode_step, lambda q, k, v, K, V: v, "Expected 3 results, got one Tensor."),
        (checks.decode_step, lambda q, k, v, K, V: (v, K), "Expected 3 results, got 2."),
        (
            checks.causal_scores,
            lambda s: s.round().long(),
            "With scores (5, 5) the result holds int64, expected floats: use .float().",
        ),
        (
            checks.scores,
            lambda X, W_Q, W_K: X,
            "With X (5, 3), W_Q (3, 3), W_K (3, 3) the result has shape (5, 3), expected (5, 5).",
        ),
        (
            checks.causal_scores,
            lambda s: loop_causal(s).nan_to_num(nan=0.0, neginf=7.0),
            "With scores (5, 5) the result is 7 at [0, 1], expected -inf.",
        ),
        (
            checks.masked_softmax,
            lambda s, m: s.masked_fill(m, math.nan),
            "With scores (3, 5), mask (3, 5) the result is NaN at [0, 0], expected 0.",
        ),
        (
            checks.split,
            lambda x, n: x.softmax(),
            "With x (2, 6, 15), n_heads 3 your function raised TypeError: softmax() missing 1",
        ),
        (
            checks.lookup,
            raising(SystemExit("bye.")),
            "With ids (3,), E (5, 11) your function raised SystemExit: bye.",
        ),
        (
            checks.cache_bytes,
            lambda *n: 2 * math.prod(n) + 1,
            "With layers 3, kv_heads 5, head_width 7, positions 11, batch 13, bytes_per_number 4 "
            "the result is",
        ),
        (
            checks.decode_step,
            lambda q, k, v, K, V: (v, K[:, :1], V),
            "With q_new (1, 3), k_new (1, 3), v_new (1, 2), K (5, 3), V (5, 2) output is",
        ),
    ],
)
def test_what_nobody_foresaw_is_described(check, answer, message):
    assert check(answer).message.startswith(message)


def test_the_right_number_of_a_single_value_is_not_given_away():
    assert checks.head_scale(0.2).message == "The factor is 0.2, which is not right."


def test_torch_refusing_integers_is_not_taken_for_an_empty_exercise():
    verdict = checks.causal_scores(lambda s: s.long().softmax(-1))
    assert "NotImplementedError" in verdict.message
    assert not verdict.message.startswith("Not done yet")


def test_an_error_alone_is_not_taken_for_a_mistake_that_raises_it_too():
    verdict = checks.scores(lambda X, Q, K: loop_scores(X, Q, K) if len(X) == 5 else X @ Q.T)
    assert verdict.message.startswith("With X (7, 5), W_Q (5, 2), W_K (5, 2) your function raised")


def test_editing_the_input_is_noticed():
    def in_place(scores):
        return scores.masked_fill_(~attnlab.causal_mask(len(scores)), -math.inf)

    verdict = checks.causal_scores(in_place)
    assert verdict == Verdict(False, "The numbers are right, but you overwrite the input scores.")

    def emptied(q, k, v, mask):
        output = attnlab.attention(q, k, v, mask).output
        v.resize_(0)
        return output

    assert checks.attention_function(emptied).message.endswith("you overwrite the input v.")

    def nudged(x, n_heads):
        heads = attnlab.split_heads(x, n_heads).clone()
        x *= 1.01
        return heads

    assert checks.split(nudged).message.endswith("you overwrite the input x.")

    def both(scores):
        return scores.masked_fill_(attnlab.causal_mask(len(scores)), -math.inf)

    assert checks.causal_scores(both).message.startswith("You hid the past")


def test_a_buffer_used_again_and_again_is_read_each_time():
    buffer = torch.zeros(7, 7)

    def answer(scores):
        n = len(scores)
        buffer[:n, :n] = loop_causal(scores)
        return buffer[:n, :n]

    assert checks.causal_scores(answer)


def test_printing_is_left_alone(capsys):
    assert checks.cosine(lambda a, b: print("x" * 1000) or F.cosine_similarity(a, b, dim=0))
    assert "xxx" in capsys.readouterr().out


def test_a_check_leaves_random_numbers_and_gradients_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    weight = nn.Parameter(torch.ones(1))
    assert checks.scores(lambda X, Q, K: weight * ((X @ Q) @ (X @ K).T))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()


# --- What the learner sees ------------------------------------------------------------------


def test_a_verdict_displays_as_its_message():
    assert repr(Verdict(True, "Right.")) == "✓ Right."
    assert str(Verdict(False, "Off by one.")) == "✗ Off by one."
    assert Verdict(True, "Right.") and not Verdict(False, "Off by one.")


@pytest.mark.parametrize("name", [*RIGHT, "head_scale", "bank_asks_for_money"])
def test_every_check_states_its_task(name):
    task = inspect.getdoc(getattr(checks, name))
    assert task.startswith(("Write ``fn(", "Give the ", "Choose "))


def test_every_check_is_tested_here():
    found = {
        name
        for name, check in inspect.getmembers(checks, inspect.isfunction)
        if name in checks.__all__ and check.__module__ != "attnlab.checks.judging"
    } - {"assert_close"}  # checks the course, not an exercise
    assert (
        found
        == {*RIGHT, "head_scale", "bank_asks_for_money"}
        == {*WRONG, "head_scale", "bank_asks_for_money"}
    )


def test_assert_close_wants_one_shape_and_equal_numbers():
    checks.assert_close(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1e-6]))
    with pytest.raises(AssertionError, match=r"shapes \(2,\) and \(1, 2\) differ"):
        checks.assert_close(torch.ones(2), torch.ones(1, 2))
    with pytest.raises(AssertionError, match="they differ by up to 0.001"):
        checks.assert_close(torch.ones(2), torch.ones(2) + torch.tensor([0.0, 1e-3]))
