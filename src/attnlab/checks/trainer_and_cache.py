"""The exercises of notebook 6."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import Verdict, drawer, judge
from attnlab.core import attention


def cache_bytes(fn: Any) -> Verdict:
    """Write ``fn(layers, kv_heads, head_width, positions, batch, bytes_per_number)``: an int."""

    def right(layers, kv_heads, head_width, positions, batch, bytes_per_number) -> Tensor:
        per_position = 2 * layers * kv_heads * head_width * bytes_per_number
        return torch.tensor(per_position * positions * batch)

    wrong = {
        "A cache holds more than the keys.": lambda *n: right(*n) // 2,
        "A cache holds no queries: old ones are never needed again.": lambda *n: right(*n) * 3 // 2,
        "The cache grows with the positions, not with their square.": lambda *n: right(*n) * n[3],
        "That is one layer: each keeps its own.": lambda *n: right(*n) // n[0],
        "That is one sequence: each of the batch keeps its own.": lambda *n: right(*n) // n[4],
        "That is one head: each keeps its own.": lambda *n: right(*n) // n[1],
        "You counted numbers: each takes some bytes.": lambda *n: right(*n) // n[5],
    }
    return judge(fn, right, [(3, 5, 7, 11, 13, 4), (5, 3, 11, 7, 17, 8)], wrong)


def decode_step(fn: Any) -> Verdict:
    """Write ``fn(q_new, k_new, v_new, K, V)``: one step with a cache, as (output, K, V).

    ``q_new`` and ``k_new`` (1, d), ``v_new`` (1, d_v), ``K`` (S, d), ``V`` (S, d_v); the output
    is (1, d_v), and the cache comes back one row longer.
    """
    draw = drawer()

    def right(q_new, k_new, v_new, K, V, scale=None) -> tuple[Tensor, ...]:
        K, V = torch.cat((K, k_new)), torch.cat((V, v_new))
        return attention(q_new, K, V, scale=scale).output, K, V

    def giving(output: Callable[..., Tensor]) -> Callable:
        return lambda *x: (output(*x), *right(*x)[1:])

    wrong = {
        "The new token is left out: it attends to itself too.": (
            lambda q, k, v, K, V: (attention(q, K, V).output, K, V),
            giving(lambda q, k, v, K, V: attention(q, K, V).output),
        ),
        "The output is right, but the cache comes back without the new token.": (
            lambda q, k, v, K, V: (right(q, k, v, K, V)[0], K, V)
        ),
        "The output is right, but the new token stands first in the cache: it comes last.": (
            lambda q, k, v, K, V: right(q, K, V, k, v)
        ),
        "You joined along the width: a new token is a new row.": (
            lambda q, k, v, K, V: torch.cat((K, k), dim=1),
            lambda q, k, v, K, V: torch.cat((k, K), dim=1),
        ),
        "The scores are not scaled.": lambda *x: right(*x, scale=1.0),
        "The new token attends to itself only: it may see the whole cache.": (
            giving(lambda q, k, v, K, V: v)
        ),
        "The new token sees the first key only: your causal mask is aligned at the top left.": (
            giving(lambda q, k, v, K, V: V[:1])
        ),
        "Your softmax runs over the queries: with one query every weight is 1.": (
            giving(lambda q, k, v, K, V: torch.cat((V, v)).sum(0, keepdim=True))
        ),
    }
    cases = [
        (draw(1, d), draw(1, d), draw(1, d_v), draw(s, d), draw(s, d_v))
        for s, d, d_v in ((5, 3, 2), (4, 7, 5))
    ]
    return judge(fn, right, cases, wrong, names=("output", "K", "V"))
