"""The exercises of notebook 5."""

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, Verdict, done, normal_source, numbers, values
from attnlab.core import attention, merge_heads, rope, split_heads


@exercise("5.1", "my_split", section="section 1")
def split() -> Comparison:
    """Write ``fn(x, n_heads)``: ``x`` (B, S, D) as (B, H, S, d), each head a slice of the width."""
    draw = normal_source()
    mistakes = {
        "Right shape, but tokens are mixed: the order of reshape and transpose matters.": (
            lambda x, n: x.reshape(len(x), n, x.shape[1], -1)
        ),
        "A head takes neighbouring columns: yours are dealt out one by one.": (
            lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
            lambda x, n: x.unflatten(-1, (-1, n)),
        ),
        "The axis of heads comes before the sequence: yours comes after it.": lambda x, n: (
            x.unflatten(-1, (n, -1))
        ),
        "Within a head tokens are rows: yours are columns.": lambda x, n: split_heads(x, n).mT,
        "Heads split the width, not the sentence: each sees every token.": (
            lambda x, n: x.unflatten(1, (n, -1))
        ),
    }
    inputs = [(draw(2, 6, 15), 3), (draw(3, 4, 14), 2)]  # H divides S: the last mistake runs
    return Comparison(split_heads, inputs, mistakes)


@exercise("5.2", "my_rotation", section="section 3")
def rotate_pair() -> Comparison:
    """Write ``fn(x, positions)``: row i of ``x`` (S, 2) rotated by ``positions[i]`` radians.

    Counter-clockwise, as RoPE rotates its first pair; ``positions`` (S,) are integers.
    """
    draw = normal_source()

    def right(x: Tensor, positions: Tensor) -> Tensor:
        (a, b), cos, sin = x.unbind(-1), positions.cos(), positions.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def overwritten(x: Tensor, positions: Tensor) -> Tensor:
        first, b = right(x, positions)[:, 0], x[:, 1]
        return torch.stack((first, first * positions.sin() + b * positions.cos()), dim=-1)

    mistakes = {
        "You rotate clockwise.": lambda x, p: right(x, -p),
        "The angles are radians, not degrees.": lambda x, p: right(x, p.deg2rad()),
        "Every row is rotated by the same angle: each position has its own.": (
            lambda x, p: right(x, p[:1]),
            lambda x, p: right(x, torch.ones(1)),
        ),
        "You counted 0, 1, 2, ...: the positions are given.": (
            lambda x, p: right(x, torch.arange(len(x)))
        ),
        "That shrinks the vector: a rotation mixes its coordinates.": (
            lambda x, p: x * p.cos()[:, None]
        ),
        "You added the angle: rotate the vector by it.": lambda x, p: x + p[:, None],
        "A sign is wrong: a rotation keeps the length.": (
            lambda x, p: x * p.cos()[:, None] + x.flip(-1) * p.sin()[:, None],
            lambda x, p: right(x, p) - 2 * torch.stack((0 * p, x[:, 1] * p.cos()), dim=-1),
        ),
        "You computed the second coordinate from the new first one: use the old one.": overwritten,
    }
    inputs = [(draw(5, 2), torch.tensor([2, 0, 7, 1, 3])), (draw(3, 2), torch.tensor([4, 11, 2]))]
    return Comparison(right, inputs, mistakes)


@exercise("5.3", "my_merge", section="section 1")
def merge() -> Comparison:
    """Write ``fn(x)``: heads ``x`` (B, H, S, d) side by side again, as (B, S, H * d)."""
    draw = normal_source()
    mistakes = {
        "Right shape, but words are mixed: swap the axes before you reshape.": (
            lambda x: x.reshape(len(x), x.shape[2], -1)
        ),
        "An average loses what distinguishes the heads: put them side by side.": (
            lambda x: x.mean(1),
            lambda x: x.mean(1).repeat(1, 1, x.shape[1]),
        ),
        "A sum loses what distinguishes the heads: put them side by side.": lambda x: x.sum(1),
        "The columns of a head stay together: yours are dealt out one by one.": (
            lambda x: x.permute(0, 2, 3, 1).flatten(2)
        ),
        "You put the heads one after the other, as if they were more words.": (
            lambda x: x.flatten(1, 2)
        ),
        "The axes are swapped; the last two still have to become one.": (
            lambda x: x.transpose(1, 2)
        ),
        "Head 0 comes first: your order is reversed.": lambda x: merge_heads(x.flip(1)),
        "That is only one head: return all of them.": lambda x: x[:, 0],
    }
    return Comparison(merge_heads, [(draw(2, 3, 5, 4),), (draw(3, 2, 4, 7),)], mistakes)


@exercise("5.4", "with_12_heads", "with_24_heads", section="section 1")
def parameters_of_heads() -> Judge:
    """Give the count of parameters in W_Q, W_K, W_V and W_O at width 768, with 12 and 24 heads."""
    square, right = 768**2, 4 * 768**2
    first = {
        "That is one matrix: there are W_Q, W_K, W_V and W_O.": square,
        "One of the four is missing: W_Q, W_K, W_V and W_O.": 3 * square,
        "Each head has only its own 64 columns: 12 heads do not cost 12 times as much.": (
            12 * right,
            12 * 3 * square,
            12 * 3 * square + square,
        ),
        "Too few: there are twelve heads, and each reads all 768 columns.": (
            3 * 768 * 64,
            4 * 768 * 64,
        ),
        "A matrix from 768 to 768 has 768 rows of 768 numbers.": (768, 4 * 768, 3 * 768),
        "You counted biases: these four matrices have none.": right + 4 * 768,
    }
    second = {
        "Twice the heads are half as wide each: nothing is added.": 2 * right,
        "Half as wide each, but twice as many: nothing is lost.": right // 2,
    }
    return numbers(
        ("the count for 12 heads", right, first),
        ("the count for 24 heads", right, second),
        message="Right: heads divide the width; the number of parameters stays the same.",
    )


@exercise("5.5", "my_positions", section="section 2")
def add_positions() -> Comparison:
    """Write ``fn(e, p)``: a position added to each word of ``e`` (B, S, D), row i to word i.

    The table of positions ``p`` (M, D) has more rows than a sentence has words.
    """
    draw = normal_source()
    mistakes = {
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
        "Off by one: the first word is at position 0.": (lambda e, p: e + p[1 : e.shape[1] + 1]),
        "You started at the wrong end: the first word takes the first row.": (
            lambda e, p: e + p[-e.shape[1] :],
            lambda e, p: e + p[: e.shape[1]].flip(0),
        ),
        "You concatenated the position: add it.": (
            lambda e, p: torch.cat((e, p[: e.shape[1]].expand_as(e)), dim=-1)
        ),
        "You multiplied by the position: add it.": lambda e, p: e * p[: e.shape[1]],
        "You added the index of the position: its vector is a row of p.": (
            lambda e, p: e + torch.arange(e.shape[1])[:, None]
        ),
        "Those are the positions alone: the embeddings are gone.": (
            lambda e, p: p[: e.shape[1]],
            lambda e, p: p[: e.shape[1]].expand_as(e),
        ),
    }
    inputs = [(draw(2, 3, 4), draw(7, 4)), (draw(5, 2, 6), draw(11, 6))]
    return Comparison(lambda e, p: e + p[: e.shape[1]], inputs, mistakes)


@exercise("5.6", "my_key", section="section 3")
def far_key() -> Judge:
    """Choose ``key`` (2,), whose score with the query [1, 0.5] is higher five positions away.

    Both are rotated by one radian per position; the key comes before the query, and the score
    five positions away must be at least 0.5 above the score at the same position.
    """

    def judge(key: Tensor) -> Verdict | str:
        q = torch.tensor([[1.0, 0.5]], dtype=torch.float64)
        near, far, after = ((rope(q, torch.tensor([t])) @ key).item() for t in (0, 5, -5))
        if far - near >= 0.5 - 1e-6:
            return done(f"Right: {near:.2f} here, {far:.2f} five positions away.")
        if not key.any():
            text = "A key of zeros scores 0 at every distance"
        elif after - near >= 0.5:
            text = "That key scores higher after the query, not before it"
        elif far > near:
            text = "The far key leads by less than 0.5"
        else:
            text = "The near key still scores higher"
        return f"{text}: here {near:.2f}, five positions away {far:.2f}."

    return values(judge, key=(2,))


@exercise("5.7", "my_rope_attention", section="section 3")
def rope_attention() -> Comparison:
    """Write ``fn(q, k, v, positions)``: attention with RoPE, no mask, the output (S, d_v).

    ``q`` and ``k`` (S, d), ``v`` (S, d_v), ``positions`` (S,); pairs are neighbours.
    """
    draw = normal_source()

    def rotated(in_q: int, in_k: int, in_v: int = 0, layout: str = "interleaved") -> Callable:
        def answer(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
            q, k, v = (
                rope(x, times * positions, layout=layout)
                for x, times in ((q, in_q), (k, in_k), (v, in_v))
            )
            return attention(q, k, v).output

        return answer

    def right(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
        return rotated(1, 1)(q, k, v, positions)

    mistakes = {
        "You rotated the values too: rotate only queries and keys.": rotated(1, 1, 1),
        "You rotated the output: rotate only queries and keys.": (
            lambda q, k, v, p: rope(right(q, k, v, p), p)
        ),
        "Only one side is rotated: the score needs the angle between both.": (
            rotated(1, 0),
            rotated(0, 1),
        ),
        "Nothing is rotated: this attention ignores the order.": rotated(0, 0),
        "You rotated the values instead of queries and keys.": rotated(0, 0, 1),
        "Query and key rotate in opposite directions: rotate both the same way.": (
            rotated(1, -1),
            rotated(-1, 1),
        ),
        "You rotate clockwise.": rotated(-1, -1),
        "You counted 0, 1, 2, ...: the positions are given, and they have gaps.": (
            lambda q, k, v, p: right(q, k, v, torch.arange(len(p)))
        ),
        "You added the positions: RoPE rotates.": (
            lambda q, k, v, p: attention(q + p[:, None], k + p[:, None], v).output
        ),
        "Here neighbouring columns form a pair: yours come from the two halves.": rotated(
            1, 1, 0, "half"
        ),
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
    inputs = [
        (draw(5, 4), draw(5, 4), draw(5, 2), torch.tensor([2, 0, 7, 1, 3])),
        (draw(3, 6), draw(3, 6), draw(3, 4), torch.tensor([4, 11, 2])),
    ]
    return Comparison(right, inputs, mistakes)
