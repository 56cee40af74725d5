"""The exercises of notebook 6."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.judging import UNDONE, Verdict, drawer, judge, never_raising, pointing, undone
from attnlab.checks.typed import judge_counts, number
from attnlab.core import attention, rope
from attnlab.generation import generate
from attnlab.model import TinyTransformer


def _steps(*sizes: tuple[int, int, int]) -> list[tuple[Tensor, ...]]:
    """Inputs of one step with a cache, for each ``(S, d, d_v)``."""
    draw = drawer()
    return [(draw(1, d), draw(1, d), draw(1, d_v), draw(s, d), draw(s, d_v)) for s, d, d_v in sizes]


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
        "A key is head_width numbers, and so is a value.": lambda *n: right(*n) // n[2],
        "That is one position: each keeps its own.": lambda *n: right(*n) // n[3],
        "You counted numbers: each takes some bytes.": lambda *n: right(*n) // n[5],
    }
    return judge(fn, right, [(3, 5, 7, 11, 13, 4), (5, 3, 11, 7, 17, 8)], wrong, see="section 3")


def decode_step(fn: Any) -> Verdict:
    """Write ``fn(q_new, k_new, v_new, K, V)``: one step with a cache, as (output, K, V).

    ``q_new`` and ``k_new`` (1, d), ``v_new`` (1, d_v), ``K`` (S, d), ``V`` (S, d_v); the output
    is (1, d_v), and the cache comes back one row longer.
    """

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
        "You added the new token to every old one: it is a row of its own.": (
            lambda q, k, v, K, V: (attention(q, K + k, V + v).output, K + k, V + v)
        ),
        "You overwrote the last token: the cache grows by a row.": (
            lambda q, k, v, K, V: right(q, k, v, K[:-1], V[:-1])
        ),
        "The scores are not scaled.": lambda *x: right(*x, scale=1.0),
        "You divided by d_k, not by its square root.": (
            lambda *x: right(*x, scale=1 / x[0].shape[1])
        ),
        "You scaled by the number of keys, not by a width.": lambda *x: right(
            *x, scale=(len(x[3]) + 1) ** -0.5
        ),
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
    cases = _steps((5, 3, 2), (4, 7, 5))
    return judge(fn, right, cases, wrong, names=("output", "K", "V"), see="section 3")


@never_raising
def what_shore_needs(answer: Any) -> Verdict:
    """Say in words what the trained model needs for *shore*: a value, or the residual.

    ``answer`` is one of "value of river", "value of bank", "residual", alone or in a list.
    """
    if undone(answer):
        return Verdict(False, UNDONE + "run the experiment, then put your answer for the dots.")
    parts = answer if isinstance(answer, list | tuple | set) else [answer]
    names = ("value of river", "value of bank", "residual")
    said = {
        " ".join(part.lower().replace("the ", "").split()) if isinstance(part, str) else part
        for part in parts
    }
    if not said or not said <= set(names):
        return Verdict(False, 'Answer with "value of river", "value of bank" or "residual".')
    if said == {"value of bank"}:
        return Verdict(True, "Right: bank's own value says that no money came before.")
    if len(said) > 1:
        text = "One of them is enough: erase one thing at a time, and see what the model loses."
    elif "residual" in said:
        text = "Erase the residual, and shore stays: attention alone carries it."
    else:
        text = "River has the weight 0.00: erase its value, and shore stays."
    return Verdict(False, pointing(text, "section 2"))


@never_raising
def stale_columns(block_1: Any, block_2: Any, appended: Any) -> Verdict:
    """Count stale columns: a causal model of two blocks, 12 cached words, the fifth is edited.

    ``block_1`` and ``block_2`` are the counts of each block after the edit, ``appended`` is the
    count in both together after a word is appended instead.
    """
    past = {
        "Words to the left never saw the edited one: the model is causal.": tuple(
            number(n) for n in range(9, 13)
        )
    }
    first = past | {
        "A cache does not notice: the edited word's key is still that of the old word.": number(0),
        "In block 1 a key is made from its own word alone.": (number(7), number(8)),
    }
    second = past | {
        "In block 2 the words to its right had looked at the edited one.": (number(0), number(1)),
        "The edited word itself is stale too.": number(7),
        "You counted to the left: it is the words after it that had looked.": (
            number(4),
            number(5),
        ),
    }
    third = {
        "Appending spoils nothing: old words cannot see the new one.": tuple(
            number(n) for n in range(1, 27)
        )
    }
    return judge_counts(
        [
            (block_1, 1, "the count for block 1", first),
            (block_2, 8, "the count for block 2", second),
            (appended, 0, "the count for an appended word", third),
        ],
        "Right: an edit spoils what looked at it, an appended word nothing.",
        see="section 3",
    )


def share_heads(fn: Any) -> Verdict:
    """Write ``fn(k, n_heads)``: ``k`` (B, H_kv, S, d) as (B, n_heads, S, d), for grouped queries.

    Query head i reads key/value head i // (n_heads / H_kv).
    """
    draw = drawer()

    def right(k: Tensor, n_heads: int) -> Tensor:
        return k.repeat_interleave(n_heads // k.shape[1], dim=1)

    wrong = {
        "You tiled: neighbouring query heads share one, as in 0 0 1 1, not in 0 1 0 1.": (
            lambda k, n: k.repeat(1, n // k.shape[1], 1, 1)
        ),
        "n_heads is how many there are in the end, not how often each is copied.": (
            lambda k, n: k.repeat_interleave(n, dim=1),
            lambda k, n: k.repeat(1, n, 1, 1),
        ),
        "All query heads read the first key/value head: that would be MQA.": (
            lambda k, n: k[:, :1].expand(-1, n, -1, -1)
        ),
        "You repeated the words: the axis of heads is another.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=2),
            lambda k, n: k.repeat(1, 1, n // k.shape[1], 1),
        ),
        "You made each head wider: there are to be more of them.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=3),
            lambda k, n: k.repeat(1, 1, 1, n // k.shape[1]),
        ),
        "You repeated the sentences of the batch: the axis of heads is another.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=0),
            lambda k, n: k.repeat(n // k.shape[1], 1, 1, 1),
        ),
        "An average of the heads is none of them.": (
            lambda k, n: k.mean(1, keepdim=True).expand(-1, n, -1, -1)
        ),
        "The key/value heads are still as few as before.": lambda k, n: k,
        "Groups are not always of 2: n_heads / H_kv query heads share one.": (
            lambda k, n: k[:, torch.arange(n) // 2]
        ),
    }
    cases = [(draw(2, 3, 5, 4), 9), (draw(5, 2, 3, 7), 6), (draw(1, 2, 7, 3), 8)]
    return judge(fn, right, cases, wrong, see="section 3")


def rope_decode_step(fn: Any) -> Verdict:
    """Write ``fn(q_new, k_new, v_new, K, V)``: as in ``decode_step``, with RoPE.

    The S keys in ``K`` (S, d) have been turned by their positions 0 to S - 1; ``q_new`` and
    ``k_new`` (1, d) have not been turned yet.
    """

    def step(in_q: int | None = 0, in_k: int | None = 0, scale: float | None = None) -> Callable:
        """A step whose query and key stand that many positions off; None: not turned."""

        def answer(q_new, k_new, v_new, K, V) -> tuple[Tensor, ...]:
            q_new, k_new = (
                x if off is None else rope(x, torch.tensor([len(K) + off]))
                for x, off in ((q_new, in_q), (k_new, in_k))
            )
            K, V = torch.cat((K, k_new)), torch.cat((V, v_new))
            return attention(q_new, K, V, scale=scale).output, K, V

        return answer

    def right(q_new, k_new, v_new, K, V) -> tuple[Tensor, ...]:
        return step()(q_new, k_new, v_new, K, V)

    def turned_again(q, k, v, K, V) -> tuple[Tensor, ...]:
        return right(q, k, v, rope(K, torch.arange(len(K))), V)

    wrong = {
        "Positions restart at 0: the new word stands after all that are cached.": step(None, None),
        "Off by one: with S keys in the cache the new word stands at position S.": (
            step(1, 1),
            step(-1, -1),
            step(1, 0),
            step(-1, 0),
            step(0, 1),
            step(0, -1),
        ),
        "That is the width of a key: its position is the number of cached rows.": (
            lambda q, k, v, K, V: step(*[K.shape[1] - len(K)] * 2)(q, k, v, K, V)
        ),
        "The scores are not scaled.": step(scale=1.0),
        "The new query is not turned: it stands at the same position as the new key.": (
            step(None, 0)
        ),
        "The new key is not turned.": step(0, None),
        "The output is right, but the new key is cached before it is turned.": (
            lambda q, k, v, K, V: (right(q, k, v, K, V)[0], torch.cat((K, k)), torch.cat((V, v)))
        ),
        "The cached keys are turned a second time: they already were.": (
            turned_again,
            lambda *x: (turned_again(*x)[0], *right(*x)[1:]),
        ),
        "You turned the values too: what a word hands over has no place.": (
            lambda q, k, v, K, V: right(q, k, rope(v, torch.tensor([len(K)])), K, V),
            lambda q, k, v, K, V: (
                right(q, k, rope(v, torch.tensor([len(K)])), K, V)[0],
                *right(q, k, v, K, V)[1:],
            ),
        ),
        "The new word is left out: it attends to itself too.": (
            lambda q, k, v, K, V: (
                attention(rope(q, torch.tensor([len(K)])), K, V).output,
                *right(q, k, v, K, V)[1:],
            ),
            lambda q, k, v, K, V: (attention(rope(q, torch.tensor([len(K)])), K, V).output, K, V),
        ),
    }
    cases = _steps((5, 8, 2), (3, 6, 4))
    return judge(fn, right, cases, wrong, names=("output", "K", "V"), see="section 3")


@never_raising
def write_with_cache(fn: Any) -> Verdict:
    """Write ``fn(model, ids, n_new)``: greedy text, ids (1, S + n_new), with a cache.

    ``model(ids, cache=cache)`` reads new ids (1, S) into ``model.new_cache(1)`` and returns
    logits (1, S, vocab); the most likely word is the next.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)  # no word comes twice in a row, so each mistake shows
        model = TinyTransformer(11, 8, n_heads=2, n_layers=1, max_length=64).requires_grad_(False)
    model.blocks[0].attention.w_o.weight *= 20  # the next word hangs on all words before it
    fed = []

    def watched(ids: Tensor, n_new: int) -> Any:
        fed.clear()
        hook = model.emb.register_forward_pre_hook(lambda _, read: fed.append(read[0].shape[1]))
        try:
            return fn(model, ids, n_new)
        finally:
            hook.remove()

    def right(ids: Tensor, n_new: int) -> Tensor:
        return generate(model, ids, n_new)

    @torch.no_grad()
    def loop(ids, n_new, feed=lambda ids, t: ids if t == 0 else ids[:, -1:], pick=-1, cached=True):
        cache = model.new_cache(1) if cached else None
        for t in range(n_new):
            logits = model(feed(ids, t), cache=cache)[:, pick]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids

    def last(ids, t):
        return ids[:, -1:]

    @torch.no_grad()
    def read_twice(ids, n_new):
        cache = model.new_cache(1)
        model(ids, cache=cache)
        for _ in range(n_new):
            logits = model(ids[:, -1:], cache=cache)[:, -1]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids

    wrong = {
        "The prompt's last word is read twice: the first call foretells the next one.": read_twice,
        "The whole text is fed each time: the cache holds it already, and gets it twice.": (
            lambda ids, n: loop(ids, n, feed=lambda ids, t: ids)
        ),
        "The prompt is never read: all of its words belong into the cache first.": (
            lambda ids, n: loop(ids, n, feed=last)
        ),
        "Without its cache the model sees one word only.": (
            lambda ids, n: loop(ids, n, feed=last, cached=False),
            lambda ids, n: loop(ids, n, cached=False),
        ),
        "Those are the new words alone: the prompt comes before them.": (
            lambda ids, n: right(ids, n)[:, ids.shape[1] :]
        ),
        "One word too few.": lambda ids, n: right(ids, n - 1),
        "One word too many.": lambda ids, n: right(ids, n + 1),
        "You read the logits at the first position: the last one foretells the next word.": (
            lambda ids, n: loop(ids, n, pick=0)
        ),
        "Each word is fed twice: what has been read is in the cache.": (
            lambda ids, n: loop(ids, n, feed=lambda ids, t: ids if t == 0 else ids[:, -2:])
        ),
    }
    draw = torch.Generator().manual_seed(0)
    cases = [(torch.randint(11, (1, s), generator=draw), n) for s, n in ((4, 5), (7, 4))]
    attempt = watched if callable(fn) and not undone(fn) else fn
    verdict = judge(attempt, right, cases, wrong, see="section 3")
    if verdict and sum(fed) > cases[-1][0].shape[1] + cases[-1][1]:
        text = "The words are right, but old positions are computed again: use the cache."
        return Verdict(False, pointing(text, "section 3"))
    return verdict
