"""The exercises of notebook 6."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, Verdict, Wrong, done, normal_source, numbers
from attnlab.core import attention, rope
from attnlab.generation import generate
from attnlab.model import TinyTransformer


def _steps(*sizes: tuple[int, int, int]) -> list[tuple[Tensor, ...]]:
    """Inputs of one step with a cache, for each ``(S, d, d_v)``."""
    draw = normal_source()
    return [(draw(1, d), draw(1, d), draw(1, d_v), draw(s, d), draw(s, d_v)) for s, d, d_v in sizes]


@exercise("6.3", "my_cache_bytes", section='the cell "Bytes"')
def cache_bytes() -> Comparison:
    """Write ``fn(layers, kv_heads, head_width, positions, batch, bytes_per_number)``: an int."""

    def right(
        layers: int,
        kv_heads: int,
        head_width: int,
        positions: int,
        batch: int,
        bytes_per_number: int,
    ) -> Tensor:
        per_position = 2 * layers * kv_heads * head_width * bytes_per_number
        return torch.tensor(per_position * positions * batch)

    mistakes = {
        "A cache holds more than the keys.": lambda *n: right(*n) // 2,
        "A cache holds no queries: old ones are not needed again.": lambda *n: right(*n) * 3 // 2,
        "The cache grows with the positions, not with their square.": lambda *n: right(*n) * n[3],
        "That is one layer: each has its own cache.": lambda *n: right(*n) // n[0],
        "That is one sequence: each sequence of the batch has its own.": lambda *n: (
            right(*n) // n[4]
        ),
        "That is one head: each has its own keys and values.": lambda *n: right(*n) // n[1],
        "A key is head_width numbers, and so is a value.": lambda *n: right(*n) // n[2],
        "That is one position: each has its own key and value.": lambda *n: right(*n) // n[3],
        "You counted numbers: each takes several bytes.": lambda *n: right(*n) // n[5],
    }
    return Comparison(right, [(3, 5, 7, 11, 13, 4), (5, 3, 11, 7, 17, 8)], mistakes)


@exercise("6.1", "my_decode_step", section="section 5")
def decode_step() -> Comparison:
    """Write ``fn(q_new, k_new, v_new, K, V)``: one step with a cache, as (output, K, V).

    ``q_new`` and ``k_new`` (1, d), ``v_new`` (1, d_v), ``K`` (S, d), ``V`` (S, d_v); the output
    is (1, d_v), and the cache comes back one row longer.
    """

    def right(
        q_new: Tensor,
        k_new: Tensor,
        v_new: Tensor,
        K: Tensor,
        V: Tensor,
        *,
        scale: float | None = None,
    ) -> tuple[Tensor, ...]:
        K, V = torch.cat((K, k_new)), torch.cat((V, v_new))
        return attention(q_new, K, V, scale=scale).output, K, V

    def giving(output: Callable[..., Tensor]) -> Callable:
        return lambda *x: (output(*x), *right(*x)[1:])

    mistakes = {
        "The new token is left out: it also attends to itself.": (
            lambda q, k, v, K, V: (attention(q, K, V).output, K, V),
            giving(lambda q, k, v, K, V: attention(q, K, V).output),
        ),
        "The output is right, but the cache comes back without the new token.": (
            lambda q, k, v, K, V: (right(q, k, v, K, V)[0], K, V)
        ),
        "The output is right, but the new token comes first in the cache: put it last.": (
            lambda q, k, v, K, V: right(q, K, V, k, v)
        ),
        "You concatenated along the width: a new token is a new row.": (
            lambda q, k, v, K, V: torch.cat((K, k), dim=1),
            lambda q, k, v, K, V: torch.cat((k, K), dim=1),
        ),
        "You added the new token to every old one: it is a new row.": (
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
    inputs = _steps((5, 3, 2), (4, 7, 5))
    return Comparison(right, inputs, mistakes, parts=("output", "K", "V"))


@exercise("6.4", "shore_needs", section="section 2")
def what_shore_needs() -> Judge:
    """Say in words what the trained model needs for *shore*: a value, or the residual.

    The answer is one of "value of river", "value of bank", "residual", alone or in a list.
    """

    def judge(answer: Any) -> Verdict | str:
        parts = answer if isinstance(answer, list | tuple | set) else [answer]
        said = {
            " ".join(part.lower().replace("the ", "").split()) if isinstance(part, str) else part
            for part in parts
        }
        if not said or not said <= {"value of river", "value of bank", "residual"}:
            text = 'Answer with "value of river", "value of bank" or "residual".'
            raise Wrong(text)
        if said == {"value of bank"}:
            return done("Right: bank's own value says that no money came before.")
        if len(said) > 1:
            return "One of them is enough: erase one at a time, and see what the model loses."
        if "residual" in said:
            return "Without the residual the model still says shore: attention alone is enough."
        return "River has the weight 0.00: without its value the model still says shore."

    return judge


@exercise(
    "6.5", "stale_in_block_1", "stale_in_block_2", "stale_after_appending", section="section 5"
)
def stale_columns() -> Judge:
    """Count stale columns: a causal model of two blocks, 12 cached words, the fifth is edited.

    The first two are the counts of each block after the edit, the third is the count in both
    together after a word is appended instead.
    """
    past = {"Words to the left never saw the edited one: the model is causal.": tuple(range(9, 13))}
    first = past | {
        "The cache does not change by itself: it still holds the key of the old word.": 0,
        "In block 1 a key is made from its own word alone.": (7, 8),
    }
    second = past | {
        "In block 2 the words to its right had looked at the edited one.": (0, 1),
        "The edited word itself is stale too.": 7,
        "You counted to the left: it is the words after it that had looked.": (4, 5),
    }
    third = {
        "Appending makes nothing stale: old words cannot see the new one.": tuple(range(1, 27))
    }
    return numbers(
        ("the count for block 1", 1, first),
        ("the count for block 2", 8, second),
        ("the count for an appended word", 0, third),
        message="Right: an edit makes stale what attended to it; an appended word, nothing.",
    )


@exercise("6.6", "my_shared_heads", section='the cell "Bytes"')
def share_heads() -> Comparison:
    """Write ``fn(k, n_heads)``: ``k`` (B, H_kv, S, d) as (B, n_heads, S, d), for grouped queries.

    Query head i reads key/value head i // (n_heads / H_kv).
    """
    draw = normal_source()

    def right(k: Tensor, n_heads: int) -> Tensor:
        return k.repeat_interleave(n_heads // k.shape[1], dim=1)

    mistakes = {
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
        "You repeated the words: repeat the heads.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=2),
            lambda k, n: k.repeat(1, 1, n // k.shape[1], 1),
        ),
        "You made each head wider: make more heads.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=3),
            lambda k, n: k.repeat(1, 1, 1, n // k.shape[1]),
        ),
        "You repeated the sequences of the batch: repeat the heads.": (
            lambda k, n: k.repeat_interleave(n // k.shape[1], dim=0),
            lambda k, n: k.repeat(n // k.shape[1], 1, 1, 1),
        ),
        "You averaged the heads: each query head reads one of them.": (
            lambda k, n: k.mean(1, keepdim=True).expand(-1, n, -1, -1)
        ),
        "There are still as few key/value heads as before.": lambda k, n: k,
        "Groups are not always of 2: n_heads / H_kv query heads share one.": (
            lambda k, n: k[:, torch.arange(n) // 2]
        ),
    }
    inputs = [(draw(2, 3, 5, 4), 9), (draw(5, 2, 3, 7), 6), (draw(1, 2, 7, 3), 8)]
    return Comparison(right, inputs, mistakes)


@exercise("6.7", "my_rope_step", section="section 5")
def rope_decode_step() -> Comparison:
    """Write ``fn(q_new, k_new, v_new, K, V)``: as in ``decode_step``, with RoPE.

    The S keys in ``K`` (S, d) have been rotated by their positions 0 to S - 1; ``q_new`` and
    ``k_new`` (1, d) have not been rotated yet.
    """

    def step(in_q: int | None = 0, in_k: int | None = 0, scale: float | None = None) -> Callable:
        """A step whose query and key stand that many positions off; None: not rotated."""

        def answer(
            q_new: Tensor, k_new: Tensor, v_new: Tensor, K: Tensor, V: Tensor
        ) -> tuple[Tensor, ...]:
            q_new, k_new = (
                x if off is None else rope(x, torch.tensor([len(K) + off]))
                for x, off in ((q_new, in_q), (k_new, in_k))
            )
            K, V = torch.cat((K, k_new)), torch.cat((V, v_new))
            return attention(q_new, K, V, scale=scale).output, K, V

        return answer

    def right(
        q_new: Tensor, k_new: Tensor, v_new: Tensor, K: Tensor, V: Tensor
    ) -> tuple[Tensor, ...]:
        return step()(q_new, k_new, v_new, K, V)

    def rotated_again(q: Tensor, k: Tensor, v: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, ...]:
        return right(q, k, v, rope(K, torch.arange(len(K))), V)

    mistakes = {
        "Your positions restart at 0: the new word comes after all cached ones.": step(None, None),
        "Off by one: with S keys in the cache the new word is at position S.": (
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
        "The new query is not rotated: it has the same position as the new key.": (step(None, 0)),
        "The new key is not rotated.": step(0, None),
        "The output is right, but the new key is cached before it is rotated.": (
            lambda q, k, v, K, V: (right(q, k, v, K, V)[0], torch.cat((K, k)), torch.cat((V, v)))
        ),
        "The cached keys are rotated a second time.": (
            rotated_again,
            lambda *x: (rotated_again(*x)[0], *right(*x)[1:]),
        ),
        "You rotated the values too: rotate only queries and keys.": (
            lambda q, k, v, K, V: right(q, k, rope(v, torch.tensor([len(K)])), K, V),
            lambda q, k, v, K, V: (
                right(q, k, rope(v, torch.tensor([len(K)])), K, V)[0],
                *right(q, k, v, K, V)[1:],
            ),
        ),
        "The new word is left out: it also attends to itself.": (
            lambda q, k, v, K, V: (
                attention(rope(q, torch.tensor([len(K)])), K, V).output,
                *right(q, k, v, K, V)[1:],
            ),
            lambda q, k, v, K, V: (attention(rope(q, torch.tensor([len(K)])), K, V).output, K, V),
        ),
    }
    inputs = _steps((5, 8, 2), (3, 6, 4))
    return Comparison(right, inputs, mistakes, parts=("output", "K", "V"))


@exercise("6.8", "my_generate", section="section 5")
def write_with_cache() -> Judge:
    """Write ``fn(model, ids, n_new)``: greedy text, ids (1, S + n_new), with a cache.

    ``model(ids, cache=cache)`` reads new ids (1, S) into ``model.new_cache(1)`` and returns
    logits (1, S, vocab); the most likely word is the next.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)  # no word comes twice in a row, so each mistake shows
        model = TinyTransformer(11, 8, n_heads=2, n_layers=1, max_length=64).requires_grad_(False)
    model.get_parameter("blocks.0.attention.w_o.weight").mul_(20)  # so that all words matter

    def right(ids: Tensor, n_new: int) -> Tensor:
        return generate(model, ids, n_new)

    @torch.no_grad()
    def loop(
        ids: Tensor,
        n_new: int,
        feed: Callable[[Tensor, int], Tensor] = lambda ids, t: ids if t == 0 else ids[:, -1:],
        pick: int = -1,
        cached: bool = True,
    ) -> Tensor:
        cache = model.new_cache(1) if cached else None
        for t in range(n_new):
            logits = model(feed(ids, t), cache=cache)[:, pick]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids

    def last(ids: Tensor, t: int) -> Tensor:
        return ids[:, -1:]

    @torch.no_grad()
    def read_twice(ids: Tensor, n_new: int) -> Tensor:
        cache = model.new_cache(1)
        model(ids, cache=cache)
        for _ in range(n_new):
            logits = model(ids[:, -1:], cache=cache)[:, -1]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids

    mistakes = {
        "The prompt's last word is read twice: the first call predicts the next.": read_twice,
        "The whole text is fed each time: feed only what the cache does not hold yet.": (
            lambda ids, n: loop(ids, n, feed=lambda ids, t: ids)
        ),
        "The prompt is never read: feed all of its words first.": (
            lambda ids, n: loop(ids, n, feed=last)
        ),
        "Without its cache the model sees only one word.": (
            lambda ids, n: loop(ids, n, feed=last, cached=False),
            lambda ids, n: loop(ids, n, cached=False),
        ),
        "Those are the new words alone: the prompt comes before them.": (
            lambda ids, n: right(ids, n)[:, ids.shape[1] :]
        ),
        "One word too few.": lambda ids, n: right(ids, n - 1),
        "One word too many.": lambda ids, n: right(ids, n + 1),
        "You read the logits at the first position: the last one predicts the next word.": (
            lambda ids, n: loop(ids, n, pick=0)
        ),
        "Each word is fed twice: what has been read is in the cache already.": (
            lambda ids, n: loop(ids, n, feed=lambda ids, t: ids if t == 0 else ids[:, -2:])
        ),
    }
    draw = torch.Generator().manual_seed(0)
    inputs = [(torch.randint(11, (1, s), generator=draw), n) for s, n in ((4, 5), (7, 4))]
    compare = Comparison(right, inputs, mistakes)

    def judge(answer: Any) -> Verdict | str:
        if not callable(answer):
            return compare(answer)
        fed: list[int] = []  # how many ids each call of the model reads

        def watched(ids: Tensor, n_new: int) -> Any:
            fed.clear()
            hook = model.emb.register_forward_pre_hook(lambda _, args: fed.append(args[0].shape[1]))
            try:
                return answer(model, ids, n_new)
            finally:
                hook.remove()

        found = compare(watched)
        ids, n_new = inputs[-1]
        if found and not isinstance(found, str) and sum(fed) > ids.shape[1] + n_new:
            return "The words are right, but the cache is exact: compute no old position again."
        return found

    return judge


@exercise("6.2", "my_knock_out", section="section 4")
def knock_out() -> Comparison:
    """Write ``fn(heads, out)``: ``heads`` (B, H, S, d) with head ``out`` replaced by its mean.

    The mean is taken over the batch, at each position; ``heads`` itself stays as it is.
    """
    draw = normal_source()

    def replaced(heads: Tensor, out: int, fill: Callable[[Tensor], Any]) -> Tensor:
        changed = heads.clone()
        changed[:, out] = fill(heads[:, out])  # (B, S, d)
        return changed

    def right(heads: Tensor, out: int) -> Tensor:
        return replaced(heads, out, lambda x: x.mean(dim=0))

    def elsewhere(heads: Tensor, out: int) -> Tensor:
        return torch.stack([x if h == out else x.mean(0).expand_as(x)
                            for h, x in enumerate(heads.unbind(1))], 1)  # fmt: skip

    mistakes = {
        "You put 0 there: a mean was asked for. 0 may be far from all that the head ever says.": (
            lambda h, out: replaced(h, out, torch.zeros_like)
        ),
        "Your mean runs over the positions: it is to run over the batch.": (
            lambda h, out: replaced(h, out, lambda x: x.mean(dim=1, keepdim=True))
        ),
        "Your mean runs over the width of the head: it is to run over the batch.": (
            lambda h, out: replaced(h, out, lambda x: x.mean(dim=-1, keepdim=True))
        ),
        "You took one mean over everything: each position and each number has its own.": (
            lambda h, out: replaced(h, out, lambda x: x.mean())
        ),
        "You took the mean over the batch and the positions: each position has its own.": (
            lambda h, out: replaced(h, out, lambda x: x.mean(dim=(0, 1)))
        ),
        "You took the mean of all heads: only this head's own outputs count.": (
            lambda h, out: replaced(h, out, lambda x: h.mean(dim=(0, 1))),
            lambda h, out: replaced(h, out, lambda x: h.mean(dim=1)),
        ),
        "That head is as it was: nothing has been taken out.": lambda h, out: h,
        "You kept that head and took out the others.": elsewhere,
        "You replaced every head: only one is to be taken out.": (
            lambda h, out: h.mean(dim=0, keepdim=True).expand_as(h)
        ),
        "You took the median: the mean was asked for.": (
            lambda h, out: replaced(h, out, lambda x: x.median(dim=0).values)
        ),
    }
    inputs = [(draw(5, 3, 4, 2), 1), (draw(3, 4, 7, 6), 0), (draw(7, 2, 5, 3), 1)]
    return Comparison(right, inputs, mistakes)
