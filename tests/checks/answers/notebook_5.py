"""Answers to the exercises of notebook 5."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from answers import Answers
from attnlab import attention, merge_heads, rope, split_heads

SECTION_1, SECTION_2, SECTION_3 = " See section 1.", " See section 2.", " See section 3."


def pointing(where, wrong):
    return [(answer, message + where) for answer, message in wrong]


# --- Split, and turn one pair ---------------------------------------------------------------


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


def rotate_with_signs(x, angles, first, second):
    c, s = angles.cos(), angles.sin()
    columns = [x[:, 0] * c + first * x[:, 1] * s, second * x[:, 0] * s + x[:, 1] * c]
    return torch.stack(columns, dim=1)


def rotate_overwriting(x, positions):
    out = x.clone()
    out[:, 0] = out[:, 0] * positions.cos() - out[:, 1] * positions.sin()
    out[:, 1] = out[:, 0] * positions.sin() + out[:, 1] * positions.cos()
    return out


SPLIT = Answers(
    right=[
        split_heads,
        loop_split,
        lambda x, n: x.view(*x.shape[:2], n, -1).transpose(1, 2),
        lambda x, n: torch.stack(x.double().chunk(n, dim=-1), dim=1).contiguous(),
        lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2] // n).permute(0, 2, 1, 3),
    ],
    wrong=pointing(
        SECTION_1,
        [
            (
                lambda x, n: x.view(x.shape[0], n, x.shape[1], x.shape[2] // n),
                "Right shape, but tokens are mixed: the order of reshape and transpose matters.",
            ),
            (
                lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1),
                "A head takes neighbouring columns: yours are dealt out one by one.",
            ),
            (
                lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n),
                "A head takes neighbouring columns: yours are dealt out one by one.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=2), dim=2),
                "The axis of heads comes before the sequence: yours comes after it.",
            ),
            (
                lambda x, n: x.view(*x.shape[:2], n, -1).permute(0, 2, 3, 1),
                "Within a head tokens are rows: yours are columns.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=1), dim=1),
                "Heads split the width, not the sentence: each sees every token.",
            ),
            (
                lambda x, n: x.unflatten(-1, (n, -1)).movedim(2, 0),
                "With x (2, 6, 15), n_heads 3 the result has shape (3, 2, 6, 5), "
                "expected (2, 3, 6, 5).",
            ),
        ],
    ),
)

ROTATE_PAIR = Answers(
    right=[rope, rotate_by_matrix, rotate_complex, rotate_in_place_on_a_copy],
    wrong=pointing(
        SECTION_3,
        [
            (
                lambda x, p: rotate_with_signs(x, torch.arange(len(x)), -1, 1),
                "You counted 0, 1, 2, ...: the positions are given.",
            ),
            (
                lambda x, p: torch.stack(
                    (x[:, 0] * p.cos() - x[:, 1] * p.sin(), x[:, 0] * p.sin() - x[:, 1] * p.cos()),
                    -1,
                ),
                "A sign is wrong: a rotation keeps the length.",
            ),
            (lambda x, p: rotate_with_signs(x, p, 1, -1), "You rotate clockwise."),
            (
                lambda x, p: rotate_with_signs(x, p * math.pi / 180, -1, 1),
                "The angles are radians, not degrees.",
            ),
            (
                lambda x, p: rotate_with_signs(x, p[0], -1, 1),
                "Every row is rotated by the same angle: each position has its own.",
            ),
            (
                lambda x, p: rotate_with_signs(x, torch.tensor(1.0), -1, 1),
                "Every row is rotated by the same angle: each position has its own.",
            ),
            (
                lambda x, p: (x.T * p.cos()).T,
                "That shrinks the vector: a rotation mixes its coordinates.",
            ),
            (lambda x, p: (x.T + p).T, "You added the angle: rotate the vector by it."),
            (
                lambda x, p: rotate_with_signs(x, p, 1, 1),
                "A sign is wrong: a rotation keeps the length.",
            ),
            (
                rotate_overwriting,
                "You computed the second coordinate from the new first one: use the old one.",
            ),
        ],
    ),
)


# --- Merge ----------------------------------------------------------------------------------


def merged_word_by_word(x):
    B, H, S, d = x.shape
    out = torch.zeros(B, S, H * d)
    for h in range(H):
        out[:, :, h * d : (h + 1) * d] = x[:, h]
    return out


MERGE = Answers(
    right=[
        merge_heads,
        merged_word_by_word,
        lambda x: torch.cat(list(x.unbind(1)), dim=-1),
        lambda x: x.double().permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
        lambda x: torch.einsum("bhsd->bshd", x).flatten(2),
        lambda x: torch.hstack([x[:, h].mT for h in range(x.shape[1])]).mT,
    ],
    wrong=pointing(
        SECTION_1,
        [
            (
                lambda x: x.view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
                "Right shape, but words are mixed: swap the axes before you reshape.",
            ),
            (
                lambda x: sum(x[:, h] for h in range(x.shape[1])) / x.shape[1],
                "An average loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.cat([x.mean(1)] * x.shape[1], dim=-1),
                "An average loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.einsum("bhsd->bsd", x),
                "A sum loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.stack(list(x.unbind(1)), dim=-1).flatten(2),
                "The columns of a head stay together: yours are dealt out one by one.",
            ),
            (
                lambda x: torch.cat(list(x.unbind(1)), dim=1),
                "You put the heads one after the other, as if they were more words.",
            ),
            (
                lambda x: torch.stack(list(x.unbind(1)), dim=2),
                "The axes are swapped; the last two still have to become one.",
            ),
            (
                lambda x: torch.cat(list(x.unbind(1))[::-1], dim=-1),
                "Head 0 comes first: your order is reversed.",
            ),
            (lambda x: x[:, 0], "That is only one head: return all of them."),
            (
                lambda x: x,
                "With x (2, 3, 5, 4) the result has shape (2, 3, 5, 4), expected (2, 5, 12).",
            ),
        ],
    ),
)

# --- Parameters -----------------------------------------------------------------------------

N = 4 * 768**2
ONE_HEAD_ALL = "Each head has only its own 64 columns: 12 heads do not cost 12 times as much."

PARAMETERS_OF_HEADS = Answers(
    right=[
        (2_359_296, 2_359_296),
        (N, N),
        (4 * 768.0 * 768, float(N)),
        (torch.tensor(N), torch.tensor(float(N))),
        (np.int64(N), 12 * 3 * 768 * 64 + 768 * 768),
        (12 * (3 * 768 * 64) + 768**2, 24 * (3 * 768 * 32) + 768**2),
    ],
    wrong=pointing(
        SECTION_1,
        [
            ((N, 2 * N), "Twice the heads are half as wide each: nothing is added."),
            ((N, N // 2), "Half as wide each, but twice as many: nothing is lost."),
            ((12 * N, 24 * N), ONE_HEAD_ALL),
            ((12 * 3 * 768**2, 24 * 3 * 768**2), ONE_HEAD_ALL),
            ((3 * 768**2, 3 * 768**2), "One of the four is missing: W_Q, W_K, W_V and W_O."),
            ((768 * 768, 768 * 768), "That is one matrix: there are W_Q, W_K, W_V and W_O."),
            (
                (3 * 768 * 64, 3 * 768 * 32),
                "Too few: there are twelve heads, and each reads all 768 columns.",
            ),
            ((4 * 768, 4 * 768), "A matrix from 768 to 768 has 768 rows of 768 numbers."),
            ((N + 4 * 768, N + 4 * 768), "You counted biases: these four matrices have none."),
            (
                (N + 12 * 10 * 10, N + 24 * 10 * 10),
                "The count for 12 heads is 2.36e+06, which is not right.",
            ),
        ],
    ),
)

# --- Positions ------------------------------------------------------------------------------


def added_in_a_loop(e, p):
    out = e.clone()
    for i in range(e.shape[1]):
        out[:, i] += p[i]
    return out


def added_in_place(e, p):
    e += p[: e.shape[1]]
    return e


ADD_POSITIONS = Answers(
    right=[
        lambda e, p: e + p[: e.shape[1]],
        added_in_a_loop,
        lambda e, p: e.double() + p.double()[None, : e.shape[1]],
        lambda e, p: e + F.embedding(torch.arange(e.shape[1]), p),
        lambda e, p: torch.stack([sentence + p[: len(sentence)] for sentence in e]),
        lambda e, p: e + F.one_hot(torch.arange(e.shape[1]), len(p)).float() @ p,
    ],
    wrong=pointing(
        SECTION_2,
        [
            (
                lambda e, p: torch.stack([row + p[b] for b, row in enumerate(e)]),
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[: len(e)],
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[: e.shape[0]].unsqueeze(1),
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[0][None, None],
                "Every word got the same position: row i belongs to word i.",
            ),
            (
                lambda e, p: e + p[e.shape[1]],
                "Every word got the same position: row i belongs to word i.",
            ),
            (
                lambda e, p: e + p,
                "p has more rows than the sentence has words: take the rows you need.",
            ),
            (
                lambda e, p: torch.stack([e[:, i] + p[i + 1] for i in range(e.shape[1])], dim=1),
                "Off by one: the first word is at position 0.",
            ),
            (
                lambda e, p: e + p[len(p) - e.shape[1] :],
                "You started at the wrong end: the first word takes the first row.",
            ),
            (
                lambda e, p: torch.cat([e, p[: e.shape[1]].repeat(len(e), 1, 1)], dim=2),
                "You concatenated the position: add it.",
            ),
            (lambda e, p: e * p[: e.shape[1]], "You multiplied by the position: add it."),
            (
                lambda e, p: e + torch.arange(float(e.shape[1]))[None, :, None],
                "You added the index of the position: its vector is a row of p.",
            ),
            (
                lambda e, p: p[: e.shape[1]].repeat(len(e), 1, 1),
                "Those are the positions alone: the embeddings are gone.",
            ),
        ],
    )
    + [(added_in_place, "The numbers are right, but you overwrite the input e.")],
)

# --- A key that is liked from afar ----------------------------------------------------------

Q = torch.tensor([1.0, 0.5])


def turned(x, angle):
    c, s = math.cos(angle), math.sin(angle)
    return x @ torch.tensor([[c, s], [-s, c]])


FAR_KEY = Answers(
    right=[
        turned(Q, 5),
        turned(Q, 5).double() * 3,
        torch.tensor([1.0, -1.0]),
        -Q,
        (-Q).bfloat16(),
        torch.nn.Parameter(torch.tensor([0.0, -1.0])),
    ],
    wrong=pointing(
        SECTION_3,
        [
            (Q, "The near key still scores higher: here 1.25, five positions away 0.35."),
            (
                torch.tensor([2.0, 0.0]),
                "The near key still scores higher: here 2.00, five positions away 1.53.",
            ),
            (
                torch.zeros(2),
                "A key of zeros scores 0 at every distance: here 0.00, five positions away 0.00.",
            ),
            (
                turned(Q, -5),
                "That key scores higher after the query, not before it: "
                "here 0.35, five positions away -1.05.",
            ),
            (
                torch.tensor([0.0, 1.0]),
                "That key scores higher after the query, not before it: "
                "here 0.50, five positions away -0.82.",
            ),
            (
                0.1 * turned(Q, 5),
                "The far key leads by less than 0.5: here 0.04, five positions away 0.13.",
            ),
            (
                torch.tensor([0.0, -0.1]),
                "The far key leads by less than 0.5: here -0.05, five positions away 0.08.",
            ),
        ],
    )
    + [
        ([1.0, -1.0], "Expected a torch.Tensor, got list."),
        (torch.tensor([1, -1]), "key holds int64, expected floats: use .float()."),
        (torch.tensor([[1.0, -1.0]]), "key has shape (1, 2), expected (2,)."),
    ],
)

# --- Attention with RoPE --------------------------------------------------------------------


def roped(q, k, v, positions, in_q=1, in_k=1, in_v=0, **more):
    q, k, v = (
        rope(x, n * positions, **more) if n else x for x, n in ((q, in_q), (k, in_k), (v, in_v))
    )
    return (q @ k.T / math.sqrt(q.shape[1])).softmax(dim=-1) @ v


def turned_word_by_word(q, k, v, positions):
    scores = torch.zeros(len(q), len(k))
    for i, m in enumerate(positions.tolist()):
        for j, n in enumerate(positions.tolist()):
            for pair in range(0, q.shape[1], 2):
                speed = 10000 ** (-pair / q.shape[1])
                key = turned(k[j, pair : pair + 2], (n - m) * speed)  # only the distance counts
                scores[i, j] += q[i, pair : pair + 2] @ key
    return (scores / q.shape[1] ** 0.5).softmax(1) @ v


def turned_as_complex_numbers(q, k, v, positions):
    speeds = 10000 ** (-torch.arange(0, q.shape[1], 2).double() / q.shape[1])
    turns = torch.polar(torch.ones(()).double(), positions[:, None] * speeds)
    q, k = (
        torch.view_as_real(torch.view_as_complex(x.double().unflatten(1, (-1, 2))) * turns)
        for x in (q, k)
    )
    return attention(q.flatten(1), k.flatten(1), v.double()).output


ROPE_ATTENTION = Answers(
    right=[
        roped,
        turned_word_by_word,
        turned_as_complex_numbers,
        lambda q, k, v, p: attention(rope(q, p), rope(k, p), v).output,
        lambda q, k, v, p: attention(rope(q, p + 100), rope(k, p + 100), v).output,
        lambda q, k, v, p: F.scaled_dot_product_attention(
            rope(q, p)[None], rope(k, p)[None], v[None]
        )[0],
    ],
    wrong=pointing(
        SECTION_3,
        [
            (
                lambda q, k, v, p: (
                    attention(rope(q, p), rope(k, p), v, scale=1 / q.shape[1]).output
                ),
                "You divided by d_k, not by its square root.",
            ),
            (
                lambda *a: roped(*a, in_v=1),
                "You rotated the values too: rotate only queries and keys.",
            ),
            (
                lambda q, k, v, p: rope(roped(q, k, v, p), p),
                "You rotated the output: rotate only queries and keys.",
            ),
            (
                lambda *a: roped(*a, in_k=0),
                "Only one side is rotated: the score needs the angle between both.",
            ),
            (
                lambda *a: roped(*a, in_q=0),
                "Only one side is rotated: the score needs the angle between both.",
            ),
            (
                lambda *a: roped(*a, in_q=0, in_k=0),
                "Nothing is rotated: this attention ignores the order.",
            ),
            (
                lambda *a: roped(*a, in_q=0, in_k=0, in_v=1),
                "You rotated the values instead of queries and keys.",
            ),
            (
                lambda *a: roped(*a, in_k=-1),
                "Query and key rotate in opposite directions: rotate both the same way.",
            ),
            (lambda *a: roped(*a, in_q=-1, in_k=-1), "You rotate clockwise."),
            (
                lambda q, k, v, p: roped(q, k, v, torch.arange(len(q))),
                "You counted 0, 1, 2, ...: the positions are given, and they have gaps.",
            ),
            (
                lambda q, k, v, p: roped(q + p[:, None], k + p[:, None], v, p, 0, 0),
                "You added the positions: RoPE rotates.",
            ),
            (
                lambda *a: roped(*a, layout="half"),
                "Here neighbouring columns form a pair: yours come from the two halves.",
            ),
            (
                lambda q, k, v, p: (rope(q, p) @ rope(k, p).T).softmax(-1) @ v,
                "The scores are not scaled.",
            ),
            (
                lambda q, k, v, p: roped(k, q, v, p),
                "Queries are rows and keys are columns: yours are swapped.",
            ),
        ],
    ),
)

ANSWERS = {
    "split": SPLIT,
    "rotate_pair": ROTATE_PAIR,
    "merge": MERGE,
    "parameters_of_heads": PARAMETERS_OF_HEADS,
    "add_positions": ADD_POSITIONS,
    "far_key": FAR_KEY,
    "rope_attention": ROPE_ATTENTION,
}
