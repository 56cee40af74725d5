"""Answers to the exercises in the core of notebooks 4, 5 and 6."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import attnlab
from answers import Answers


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
TOP_LEFT = "The new token sees the first key only: your causal mask is aligned at the top left."
UNSCALED = "The scores are not scaled."

ANSWERS = {
    "masked_softmax": Answers(
        right=[
            lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1),
            stable_softmax,
            loop_softmax,
            lambda s, m: s.masked_fill(~m, -1e9).softmax(-1),  # no row is empty, so this is equal
            lambda s, m: (s.double() + torch.zeros(m.shape).masked_fill(~m, -math.inf)).softmax(1),
            lambda s, m: s.softmax(-1) * m / (s.softmax(-1) * m).sum(-1, keepdim=True),
        ],
        wrong=[
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
    ),
    "attention_function": Answers(
        right=[
            attnlab.attention,
            F.scaled_dot_product_attention,
            loop_attention,
            sdpa_and_weights,
            lambda q, k, v, m: (q @ k.T * q.shape[1] ** -0.5).masked_fill(~m, -1e9).softmax(1) @ v,
        ],
        wrong=[
            (attend(lambda q, k: 1), UNSCALED),
            (attend(lambda q, k: 1 / k.shape[1]), "You divided by d_k, not by its square root."),
            (
                attend(lambda q, k: 1 / math.sqrt(k.shape[0])),
                "You scaled by the number of keys, not by a width.",
            ),
            (attend(lambda q, k: math.sqrt(k.shape[1])), "Your scale makes the scores larger."),
            (attend(axis=0), QUERIES),
            (lambda q, k, v, m: attnlab.attention(q, k, v), UNUSED),
            (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v), UNUSED),
            (attend(mask=lambda m: ~m), INVERTED),
            (lambda q, k, v, m: attnlab.attention(q, k, v).weights * m @ v, AFTER),
            (lambda q, k, v, m: ((q @ k.T) * m / q.shape[1] ** 0.5).softmax(-1) @ v, ZEROS),
            (lambda q, k, v, m: divided_by_sum(attnlab.attention(q, k, v).scaled, m) @ v, SUM),
            (lambda q, k, v, m: attend()(k, q, v, m), "q and k are swapped: queries are rows."),
            (
                lambda q, k, v, m: loop_attention(q, k, torch.eye(len(k)), m),
                "Those are the attention weights: they still have to meet the values.",
            ),
            (
                lambda q, k, v, m: attnlab.attention(q, k, v, m)[:4],
                "Those are the attention weights: they still have to meet the values.",
            ),
        ],
    ),
    "split": Answers(
        right=[
            attnlab.split_heads,
            loop_split,
            lambda x, n: x.view(*x.shape[:2], n, -1).transpose(1, 2),
            lambda x, n: torch.stack(x.double().chunk(n, dim=-1), dim=1).contiguous(),
            lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2] // n).permute(0, 2, 1, 3),
        ],
        wrong=[
            (
                lambda x, n: x.view(x.shape[0], n, x.shape[1], x.shape[2] // n),
                "Right shape, but tokens are mixed: the order of reshape and transpose matters.",
            ),
            (
                lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1),
                "A head takes neighbouring columns: yours are dealt out in turn.",
            ),
            (
                lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n),
                "A head takes neighbouring columns: yours are dealt out in turn.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=2), dim=2),
                "The heads still stand behind the sequence.",
            ),
            (
                lambda x, n: x.view(*x.shape[:2], n, -1).permute(0, 2, 3, 1),
                "Within a head tokens are rows: yours are columns.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=1), dim=1),
                "Heads do not split the sentence: each sees every token.",
            ),
        ],
    ),
    "rotate_pair": Answers(
        right=[attnlab.rope, rotate_by_matrix, rotate_complex, rotate_in_place_on_a_copy],
        wrong=[
            (lambda x, p: rotate_with_signs(x, p, 1, -1), "You turn clockwise."),
            (
                lambda x, p: rotate_with_signs(x, p * math.pi / 180, -1, 1),
                "The angles are radians, not degrees.",
            ),
            (
                lambda x, p: rotate_with_signs(x, p[0], -1, 1),
                "Every row turns by the same angle: each position has its own.",
            ),
            (
                lambda x, p: rotate_with_signs(x, torch.tensor(1.0), -1, 1),
                "Every row turns by the same angle: each position has its own.",
            ),
            (
                lambda x, p: (x.T * p.cos()).T,
                "That shrinks the vector: a rotation mixes its coordinates.",
            ),
            (lambda x, p: (x.T + p).T, "You added the angle: it is to turn the vector."),
            (
                lambda x, p: rotate_with_signs(x, p, 1, 1),
                "A sign is missing: a rotation keeps the length.",
            ),
            (
                rotate_overwriting,
                "The new first coordinate went into the second: that needs the old one.",
            ),
        ],
    ),
    "cache_bytes": Answers(
        right=[
            lambda layers, heads, width, n, batch, size: (
                2 * layers * heads * width * n * batch * size
            ),
            lambda *sizes: 2 * math.prod(sizes),
            lambda *sizes: torch.tensor(sizes).prod() * 2,
            lambda *sizes: float(np.prod(sizes)) / 0.5,
        ],
        wrong=[
            (lambda *n: math.prod(n), "A cache holds more than the keys."),
            (
                lambda *n: 3 * math.prod(n),
                "A cache holds no queries: old ones are never needed again.",
            ),
            (
                lambda *n: 2 * math.prod(n) * n[3],
                "The cache grows with the positions, not with their square.",
            ),
            (lambda layers, *n: 2 * math.prod(n), "That is one layer: each keeps its own."),
            (
                lambda *n: 2 * math.prod(n) / n[4],
                "That is one sequence: each of the batch keeps its own.",
            ),
            (
                lambda layers, heads, *n: 2 * layers * math.prod(n),
                "That is one head: each keeps its own.",
            ),
            (lambda *n: 2 * math.prod(n[:5]), "You counted numbers: each takes some bytes."),
        ],
    ),
    "decode_step": Answers(
        right=[
            loop_step,
            roomy_step,
            lambda q, k, v, K, V: (
                attnlab.attention(q, torch.cat((K, k)), torch.cat((V, v))).output.double(),
                torch.cat((K, k)),
                torch.cat((V, v)),
            ),
            lambda q, k, v, K, V: (
                F.scaled_dot_product_attention(
                    q[None], torch.cat((K, k))[None], torch.cat((V, v))[None]
                )[0],
                torch.cat((K, k)),
                torch.cat((V, v)),
            ),
        ],
        wrong=[
            (step_left_out, "The new token is left out: it attends to itself too."),
            (
                step_over(lambda k, K: K, lambda v, V: V),
                "The new token is left out: it attends to itself too.",
            ),
            (
                step_returning(lambda k, K: K, lambda v, V: V),
                "The output is right, but the cache comes back without the new token.",
            ),
            (
                step_returning(lambda k, K: torch.cat((k, K)), lambda v, V: torch.cat((v, V))),
                "The output is right, but the new token stands first in the cache: it comes last.",
            ),
            (step_wide, "You joined along the width: a new token is a new row."),
            (
                lambda q, k, v, K, V: (q, torch.cat((k, K), 1), V),
                "You joined along the width: a new token is a new row.",
            ),
            (step_over(behind, behind, scale=1), UNSCALED),
            (
                step_over(lambda k, K: k, lambda v, V: v),
                "The new token attends to itself only: it may see the whole cache.",
            ),
            (step_causal, TOP_LEFT),
            (
                step_over(behind, behind, axis=0),
                "Your softmax runs over the queries: with one query every weight is 1.",
            ),
        ],
    ),
}
