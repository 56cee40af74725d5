"""The exercises of notebook 5."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import Verdict, drawer, judge, never_raising, pointing
from attnlab.checks.typed import judge_counts, number, typed
from attnlab.core import attention, merge_heads, rope, split_heads


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
    return judge(fn, split_heads, cases, wrong, see="section 1")


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
        "You counted 0, 1, 2, ...: the positions are given.": (
            lambda x, p: right(x, torch.arange(len(x)))
        ),
        "That shrinks the vector: a rotation mixes its coordinates.": (
            lambda x, p: x * p.cos()[:, None]
        ),
        "You added the angle: it is to turn the vector.": lambda x, p: x + p[:, None],
        "A sign is wrong: a rotation keeps the length.": (
            lambda x, p: x * p.cos()[:, None] + x.flip(-1) * p.sin()[:, None],
            lambda x, p: right(x, p) - 2 * torch.stack((0 * p, x[:, 1] * p.cos()), dim=-1),
        ),
        "The new first coordinate went into the second: that needs the old one.": overwritten,
    }
    cases = [(draw(5, 2), torch.tensor([2, 0, 7, 1, 3])), (draw(3, 2), torch.tensor([4, 11, 2]))]
    return judge(fn, right, cases, wrong, see="section 3")


def merge(fn: Any) -> Verdict:
    """Write ``fn(x)``: heads ``x`` (B, H, S, d) side by side again, as (B, S, H * d)."""
    draw = drawer()
    wrong = {
        "Right shape, but words are mixed: swap the axes before you reshape.": (
            lambda x: x.reshape(len(x), x.shape[2], -1)
        ),
        "An average loses what told the heads apart: lay them side by side.": (
            lambda x: x.mean(1),
            lambda x: x.mean(1).repeat(1, 1, x.shape[1]),
        ),
        "A sum loses what told the heads apart: lay them side by side.": lambda x: x.sum(1),
        "The columns of a head stay together: yours are dealt out in turn.": (
            lambda x: x.permute(0, 2, 3, 1).flatten(2)
        ),
        "You laid the heads one after the other, as if they were more words.": (
            lambda x: x.flatten(1, 2)
        ),
        "The axes are swapped; the last two still have to become one.": (
            lambda x: x.transpose(1, 2)
        ),
        "Head 0 comes first: yours stand in reverse.": lambda x: merge_heads(x.flip(1)),
        "That is one head only: all of them are asked for.": lambda x: x[:, 0],
    }
    return judge(
        fn, merge_heads, [(draw(2, 3, 5, 4),), (draw(3, 2, 4, 7),)], wrong, see="section 1"
    )


@never_raising
def parameters_of_heads(with_12: Any, with_24: Any) -> Verdict:
    """Give the count of parameters in W_Q, W_K, W_V and W_O at width 768, with 12 and 24 heads."""
    square, right = 768**2, 4 * 768**2
    first = {
        "That is one matrix: there are W_Q, W_K, W_V and W_O.": number(square),
        "One of the four is missing: W_Q, W_K, W_V and W_O.": number(3 * square),
        "Each head has only its own 64 columns: 12 heads do not cost 12 times as much.": (
            number(12 * right),
            number(12 * 3 * square),
            number(12 * 3 * square + square),
        ),
        "Too few: there are twelve heads, and each reads all 768 columns.": (
            number(3 * 768 * 64),
            number(4 * 768 * 64),
        ),
        "A matrix from 768 to 768 has 768 rows of 768 numbers.": (
            number(768),
            number(4 * 768),
            number(3 * 768),
        ),
        "You counted biases: these four matrices have none.": number(right + 4 * 768),
    }
    second = {
        "Twice the heads are half as wide each: nothing is added.": number(2 * right),
        "Half as wide each, but twice as many: nothing is lost.": number(right // 2),
    }
    return judge_counts(
        [
            (with_12, right, "the count for 12 heads", first),
            (with_24, right, "the count for 24 heads", second),
        ],
        "Right: heads divide the width, and the parameters stay as many.",
        see="section 1",
    )


def add_positions(fn: Any) -> Verdict:
    """Write ``fn(e, p)``: a position added to each word of ``e`` (B, S, D), row i to word i.

    The table of positions ``p`` (M, D) has more rows than a sentence has words.
    """
    draw = drawer()
    wrong = {
        "Your positions run along the batch: all words of a sentence got the same one.": (
            lambda e, p: e + p[: len(e), None],
            lambda e, p: e + p[: len(e)],
        ),
        "Every word got the same position: row i belongs to word i.": (
            lambda e, p: e + p[0],
            lambda e, p: e + p[e.shape[1]],
            lambda e, p: e + p[: e.shape[1]].sum(0),
            lambda e, p: e + p[: e.shape[1]].mean(0),
        ),
        "p has more rows than the sentence has words: take the rows you need.": (
            lambda e, p: e + p,
            lambda e, p: e + p[None],
        ),
        "Off by one: the first word stands at position 0.": (
            lambda e, p: e + p[1 : e.shape[1] + 1]
        ),
        "You counted from the wrong end: the first word takes the first row.": (
            lambda e, p: e + p[-e.shape[1] :],
            lambda e, p: e + p[: e.shape[1]].flip(0),
        ),
        "You laid the position beside the embedding: it is added.": (
            lambda e, p: torch.cat((e, p[: e.shape[1]].expand_as(e)), dim=-1)
        ),
        "You multiplied: a position is added.": lambda e, p: e * p[: e.shape[1]],
        "You added the number of the position: its vector is a row of p.": (
            lambda e, p: e + torch.arange(e.shape[1])[:, None]
        ),
        "Those are the positions alone: the embeddings are gone.": (
            lambda e, p: p[: e.shape[1]],
            lambda e, p: p[: e.shape[1]].expand_as(e),
        ),
    }
    cases = [(draw(2, 3, 4), draw(7, 4)), (draw(5, 2, 6), draw(11, 6))]
    return judge(fn, lambda e, p: e + p[: e.shape[1]], cases, wrong, see="section 2")


@never_raising
def far_key(key: Any) -> Verdict:
    """Choose ``key`` (2,), which the query [1, 0.5] likes better five positions away than here.

    Both are turned by one radian per position; the key stands before the query, and the score
    five positions away must be at least 0.5 above the score at the same position.
    """
    given = typed(key=(key, (2,)))
    if isinstance(given, Verdict):
        return given
    (k,) = given
    q = torch.tensor([[1.0, 0.5]], dtype=torch.float64)
    near, far, after = ((rope(q, torch.tensor([t])) @ k).item() for t in (0, 5, -5))
    end = f"here {near:.2f}, five positions away {far:.2f}."
    if far - near >= 0.5 - 1e-6:
        return Verdict(True, f"Right: {near:.2f} here, {far:.2f} five positions away.")
    if not k.any():
        text = "A key of zeros scores 0 at every distance: "
    elif after - near >= 0.5:
        text = "That key wins after the query, not before it: "
    elif far > near:
        text = "The far one leads, but by less than 0.5: "
    else:
        text = "The near one still wins: "
    return Verdict(False, pointing(text + end, "section 3"))


def rope_attention(fn: Any) -> Verdict:
    """Write ``fn(q, k, v, positions)``: attention with RoPE, no mask, the output (S, d_v).

    ``q`` and ``k`` (S, d), ``v`` (S, d_v), ``positions`` (S,); pairs are neighbours.
    """
    draw = drawer()

    def turned(in_q: int, in_k: int, in_v: int = 0, layout: str = "interleaved") -> Callable:
        def answer(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
            q, k, v = (
                rope(x, times * positions, layout=layout)
                for x, times in ((q, in_q), (k, in_k), (v, in_v))
            )
            return attention(q, k, v).output

        return answer

    def right(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
        return turned(1, 1)(q, k, v, positions)

    wrong = {
        "You turned the values too: what a word hands over has no place.": turned(1, 1, 1),
        "You turned the output: only queries and keys are turned.": (
            lambda q, k, v, p: rope(right(q, k, v, p), p)
        ),
        "Only one side is turned: the score needs the angle between both.": (
            turned(1, 0),
            turned(0, 1),
        ),
        "Nothing is turned: this attention does not know the order.": turned(0, 0),
        "You turned the values instead of queries and keys.": turned(0, 0, 1),
        "Query and key turn against each other: that is the sum of positions, no distance.": (
            turned(1, -1),
            turned(-1, 1),
        ),
        "You turn clockwise.": turned(-1, -1),
        "You counted 0, 1, 2, ...: the positions are given, and they have gaps.": (
            lambda q, k, v, p: right(q, k, v, torch.arange(len(p)))
        ),
        "You added the positions: RoPE turns.": (
            lambda q, k, v, p: attention(q + p[:, None], k + p[:, None], v).output
        ),
        "Here neighbours form a pair: yours are the two halves.": turned(1, 1, 0, "half"),
        "The scores are not scaled.": (
            lambda q, k, v, p: attention(rope(q, p), rope(k, p), v, scale=1.0).output
        ),
        "You divided by d_k, not by its square root.": (
            lambda q, k, v, p: attention(rope(q, p), rope(k, p), v, scale=1 / q.shape[1]).output
        ),
        "Queries are rows and keys are columns: yours are swapped.": (
            lambda q, k, v, p: right(k, q, v, p)
        ),
    }
    cases = [
        (draw(5, 4), draw(5, 4), draw(5, 2), torch.tensor([2, 0, 7, 1, 3])),
        (draw(3, 6), draw(3, 6), draw(3, 4), torch.tensor([4, 11, 2])),
    ]
    return judge(fn, right, cases, wrong, see="section 3")
