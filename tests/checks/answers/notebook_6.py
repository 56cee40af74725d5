"""Answers to the exercises of notebook 6."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from answers import Answers
from attnlab import attention, generate, rope

SECTION_2, SECTION_3, BYTES = " See section 2.", " See section 5.", ' See the cell "Bytes".'


def pointing(where, wrong):
    return [(answer, message + where) for answer, message in wrong]


# --- Bytes, and a step with a cache ---------------------------------------------------------


def loop_step(q_new, k_new, v_new, K, V):
    K, V = torch.cat([K, k_new]), torch.cat([V, v_new])
    exp = [math.exp(float(q_new[0] @ key) / math.sqrt(K.shape[1])) for key in K]
    return (sum(e * v for e, v in zip(exp, V, strict=True)) / sum(exp))[None], K, V


def roomy_step(q_new, k_new, v_new, K, V):
    room_k, room_v = torch.zeros(len(K) + 1, K.shape[1]), torch.zeros(len(V) + 1, V.shape[1])
    room_k[:-1], room_v[:-1], room_k[-1], room_v[-1] = K, V, k_new[0], v_new[0]
    return [(q_new @ room_k.T / room_k.shape[1] ** 0.5).softmax(-1) @ room_v, room_k, room_v]


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


def step_adding(q, k, v, K, V):
    K, V = K + k, V + v
    return (q @ K.T / K.shape[1] ** 0.5).softmax(-1) @ V, K, V


def step_overwriting(q, k, v, K, V):
    K[-1], V[-1] = k, v
    return (q @ K.T / K.shape[1] ** 0.5).softmax(-1) @ V, K, V


def step_left_out(q, k, v, K, V):
    return F.scaled_dot_product_attention(q[None], K[None], V[None])[0], K, V


def step_causal(q, k, v, K, V):
    all_k, all_v = torch.cat((K, k)), torch.cat((V, v))
    out = F.scaled_dot_product_attention(q[None], all_k[None], all_v[None], is_causal=True)[0]
    return out, all_k, all_v


def step_wide(q, k, v, K, V):
    K, V = torch.cat([K, k], dim=1), torch.cat([V, v], dim=1)
    return (q @ K.T).softmax(-1) @ V, K, V


TOP_LEFT = "The new token sees the first key only: your causal mask is aligned at the top left."
UNSCALED = "The scores are not scaled."

CACHE_BYTES = Answers(
    right=[
        lambda layers, heads, width, n, batch, size: 2 * layers * heads * width * n * batch * size,
        lambda *sizes: 2 * math.prod(sizes),
        lambda *sizes: torch.tensor(sizes).prod() * 2,
        lambda *sizes: float(np.prod(sizes)) / 0.5,
    ],
    wrong=pointing(
        BYTES,
        [
            (
                lambda layers, heads, width, positions, batch, size: (
                    2 * layers * heads * positions * batch * size
                ),
                "A key is head_width numbers, and so is a value.",
            ),
            (
                lambda layers, heads, width, positions, batch, size: (
                    2 * layers * heads * width * batch * size
                ),
                "That is one position: each has its own key and value.",
            ),
            (lambda *n: math.prod(n), "A cache holds more than the keys."),
            (
                lambda *n: 3 * math.prod(n),
                "A cache holds no queries: old ones are not needed again.",
            ),
            (
                lambda *n: 2 * math.prod(n) * n[3],
                "The cache grows with the positions, not with their square.",
            ),
            (lambda layers, *n: 2 * math.prod(n), "That is one layer: each has its own cache."),
            (
                lambda *n: 2 * math.prod(n) / n[4],
                "That is one sequence: each sequence of the batch has its own.",
            ),
            (
                lambda layers, heads, *n: 2 * layers * math.prod(n),
                "That is one head: each has its own keys and values.",
            ),
            (lambda *n: 2 * math.prod(n[:5]), "You counted numbers: each takes several bytes."),
        ],
    ),
)

DECODE_STEP = Answers(
    right=[
        loop_step,
        roomy_step,
        lambda q, k, v, K, V: (
            attention(q, torch.cat((K, k)), torch.cat((V, v))).output.double(),
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
    wrong=pointing(
        SECTION_3,
        [
            (step_left_out, "The new token is left out: it also attends to itself."),
            (
                step_over(lambda k, K: K, lambda v, V: V),
                "The new token is left out: it also attends to itself.",
            ),
            (
                step_returning(lambda k, K: K, lambda v, V: V),
                "The output is right, but the cache comes back without the new token.",
            ),
            (
                step_returning(lambda k, K: torch.cat((k, K)), lambda v, V: torch.cat((v, V))),
                "The output is right, but the new token comes first in the cache: put it last.",
            ),
            (step_wide, "You concatenated along the width: a new token is a new row."),
            (
                lambda q, k, v, K, V: (q, torch.cat((k, K), 1), V),
                "You concatenated along the width: a new token is a new row.",
            ),
            (step_adding, "You added the new token to every old one: it is a new row."),
            (step_overwriting, "You overwrote the last token: the cache grows by a row."),
            (step_over(behind, behind, scale=1), UNSCALED),
            (
                lambda q, k, v, K, V: step_over(behind, behind, (len(K) + 1) ** -0.5)(
                    q, k, v, K, V
                ),
                "You scaled by the number of keys, not by a width.",
            ),
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
)


# --- What shore needs -----------------------------------------------------------------------

ONE_IS_ENOUGH = (
    "One of them is enough: erase one at a time, and see what the model loses." + SECTION_2
)
THE_THREE = 'Answer with "value of river", "value of bank" or "residual".'

WHAT_SHORE_NEEDS = Answers(
    right=[
        "value of bank",
        "The value of bank",
        " value  of BANK ",
        ["value of bank"],
        {"value of bank"},
        ("value of bank",),
    ],
    wrong=[
        (
            "value of river",
            "River has the weight 0.00: without its value the model still says shore." + SECTION_2,
        ),
        (
            ["the value of river"],
            "River has the weight 0.00: without its value the model still says shore." + SECTION_2,
        ),
        (
            "residual",
            "Without the residual the model still says shore: attention alone is enough."
            + SECTION_2,
        ),
        (["value of river", "value of bank"], ONE_IS_ENOUGH),
        (["value of bank", "residual"], ONE_IS_ENOUGH),
        (["value of river", "residual"], ONE_IS_ENOUGH),
        ("nothing", THE_THREE),
        ("the attention weight of river", THE_THREE),
        ("", THE_THREE),
        ([], THE_THREE),
        ([0.0], THE_THREE),
        (5, THE_THREE),
    ],
)

# --- Stale columns --------------------------------------------------------------------------

STALE_COLUMNS = Answers(
    right=[
        (1, 8, 0),
        (1.0, 8.0, 0.0),
        (torch.tensor(1), torch.tensor(8.0), torch.tensor(0)),
        (np.int64(1), 12 - 4, False + 0),
        (len([4]), len(range(4, 12)), 0),
    ],
    wrong=pointing(
        SECTION_3,
        [
            (
                (0, 0, 0),
                "The cache does not change by itself: it still holds the key of the old word.",
            ),
            ((8, 8, 0), "In block 1 a key is made from its own word alone."),
            ((12, 12, 0), "Words to the left never saw the edited one: the model is causal."),
            ((1, 12, 0), "Words to the left never saw the edited one: the model is causal."),
            ((1, 1, 0), "In block 2 the words to its right had looked at the edited one."),
            ((1, 7, 0), "The edited word itself is stale too."),
            ((1, 5, 0), "You counted to the left: it is the words after it that had looked."),
            ((1, 4, 0), "You counted to the left: it is the words after it that had looked."),
            ((1, 8, 1), "Appending makes nothing stale: old words cannot see the new one."),
            ((1, 8, 12), "Appending makes nothing stale: old words cannot see the new one."),
            ((1, 8, 24), "Appending makes nothing stale: old words cannot see the new one."),
            ((2, 8, 0), "The count for block 1 is 2, which is not right."),
            ((1, 8.5, 0), "The count for block 2 is 8.5, which is not right."),
        ],
    ),
)

# --- Shared heads ---------------------------------------------------------------------------


def shared_in_a_loop(k, n_heads):
    group = n_heads // k.shape[1]
    return torch.stack([k[:, i // group] for i in range(n_heads)], dim=1)


def expanded(k, n_heads):
    B, H, S, d = k.shape
    return k[:, :, None].expand(B, H, n_heads // H, S, d).reshape(B, n_heads, S, d)


def sorted_after_tiling(k, n_heads):
    group = n_heads // k.shape[1]
    order = torch.arange(n_heads) % group * k.shape[1] + torch.arange(n_heads) // group
    return k.double().repeat(1, group, 1, 1)[:, order]


def by_one_hot(k, n_heads):
    reads = torch.arange(n_heads) // (n_heads // k.shape[1])
    return torch.einsum("nh,bhsd->bnsd", F.one_hot(reads).float(), k)


SHARE_HEADS = Answers(
    right=[
        shared_in_a_loop,
        expanded,
        sorted_after_tiling,
        by_one_hot,
        lambda k, n: k.repeat_interleave(n // k.shape[1], dim=1),
        lambda k, n: torch.cat([k[:, [h] * (n // k.shape[1])] for h in range(k.shape[1])], dim=1),
    ],
    wrong=pointing(
        BYTES,
        [
            (
                lambda k, n: k[:, torch.arange(n) // 2],
                "Groups are not always of 2: n_heads / H_kv query heads share one.",
            ),
            (
                lambda k, n: torch.cat([k] * (n // k.shape[1]), dim=1),
                "You tiled: neighbouring query heads share one, as in 0 0 1 1, not in 0 1 0 1.",
            ),
            (
                lambda k, n: torch.stack([k[:, i % k.shape[1]] for i in range(n)], dim=1),
                "You tiled: neighbouring query heads share one, as in 0 0 1 1, not in 0 1 0 1.",
            ),
            (
                lambda k, n: k.repeat_interleave(n, 1),
                "n_heads is how many there are in the end, not how often each is copied.",
            ),
            (
                lambda k, n: k[:, [0] * n],
                "All query heads read the first key/value head: that would be MQA.",
            ),
            (
                lambda k, n: torch.cat([k] * (n // k.shape[1]), dim=-2),
                "You repeated the words: repeat the heads.",
            ),
            (
                lambda k, n: torch.cat([k] * (n // k.shape[1]), dim=-1),
                "You made each head wider: make more heads.",
            ),
            (
                lambda k, n: k.repeat_interleave(n // k.shape[1], dim=0),
                "You repeated the sequences of the batch: repeat the heads.",
            ),
            (
                lambda k, n: torch.stack([k.mean(1)] * n, dim=1),
                "You averaged the heads: each query head reads one of them.",
            ),
            (lambda k, n: k.clone(), "There are still as few key/value heads as before."),
            (
                lambda k, n: k[:, torch.arange(n).clamp(max=k.shape[1] - 1)],
                "With k (2, 3, 5, 4), n_heads 9 the result is 0.5988 at [0, 1, 0, 0], "
                "expected -1.126.",
            ),
        ],
    ),
)

# --- A step with RoPE and a cache -----------------------------------------------------------


def at(x, position):
    return rope(x, torch.tensor([position]))


def roped_step(q, k, v, K, V, q_at=0, k_at=0):
    """Query and key that many positions beside the right one; None: not rotated."""
    q = q if q_at is None else at(q, len(K) + q_at)
    k = k if k_at is None else at(k, len(K) + k_at)
    K, V = torch.cat([K, k]), torch.cat([V, v])
    return (q @ K.T / math.sqrt(K.shape[1])).softmax(-1) @ V, K, V


def roped_by_hand(q, k, v, K, V):
    def turn(x):
        angle = len(K) * 10000 ** (-torch.arange(0, x.shape[1], 2) / x.shape[1])
        a, b = x[:, ::2], x[:, 1::2]
        pair = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
        return torch.stack(pair, dim=-1).flatten(1)

    q, K, V = turn(q), torch.vstack([K, turn(k)]), torch.vstack([V, v])
    exp = [math.exp(float(q[0] @ key) / math.sqrt(K.shape[1])) for key in K]
    return (sum(e * v for e, v in zip(exp, V, strict=True)) / sum(exp))[None], K, V


def unturned_and_all_at_once(q, k, v, K, V):
    everything = torch.cat((rope(K.double(), -torch.arange(len(K))), k.double()))
    turned = rope(everything, torch.arange(len(K) + 1))
    V = torch.cat((V, v)).double()
    return attention(at(q.double(), len(K)), turned, V).output, turned, V


def by_sdpa(q, k, v, K, V):
    K, V = torch.cat([K, at(k, len(K))]), torch.cat([V, v])
    return [F.scaled_dot_product_attention(at(q, len(K) - 1)[None], K[None], V[None])[0], K, V]


def all_turned_again(q, k, v, K, V):
    n, V = len(K), torch.cat([V, v])
    K = rope(torch.cat([K, k]), torch.arange(n + 1))
    return attention(at(q, n), K, V).output, K, V


def with_turned_value(q, k, v, K, V):
    return roped_step(q, k, at(v, len(K)), K, V)


def cached_before_turned(q, k, v, K, V):
    return roped_step(q, k, v, K, V)[0], torch.cat([K, k]), torch.cat([V, v])


def restarted(q, k, v, K, V):
    return roped_step(at(q, 0), at(k, 0), v, K, V, None, None)


def left_out(q, k, v, K, V):
    output = attention(at(q, len(K)), K, V).output
    return output, torch.cat([K, at(k, len(K))]), torch.cat([V, v])


OFF = "Off by one: with S keys in the cache the new word is at position S."

ROPE_DECODE_STEP = Answers(
    right=[roped_step, roped_by_hand, unturned_and_all_at_once, by_sdpa],
    wrong=pointing(
        SECTION_3,
        [
            (
                lambda q, k, v, K, V: roped_step(q, k, v, K, V, *[K.shape[1] - len(K)] * 2),
                "That is the width of a key: its position is the number of cached rows.",
            ),
            (
                lambda q, k, v, K, V: roped_step(q, k, v, K, V, 1, 0),
                "Off by one: with S keys in the cache the new word is at position S.",
            ),
            (restarted, "Your positions restart at 0: the new word comes after all cached ones."),
            (
                lambda *a: roped_step(*a, None, None),
                "Your positions restart at 0: the new word comes after all cached ones.",
            ),
            (lambda *a: roped_step(*a, 1, 1), OFF),
            (lambda *a: roped_step(*a, -1, -1), OFF),
            (
                lambda *a: roped_step(*a, None, 0),
                "The new query is not rotated: it has the same position as the new key.",
            ),
            (lambda *a: roped_step(*a, 0, None), "The new key is not rotated."),
            (
                cached_before_turned,
                "The output is right, but the new key is cached before it is rotated.",
            ),
            (all_turned_again, "The cached keys are rotated a second time."),
            (with_turned_value, "You rotated the values too: rotate only queries and keys."),
            (left_out, "The new word is left out: it also attends to itself."),
            (
                lambda q, k, v, K, V: (attention(at(q, len(K)), K, V).output, K, V),
                "The new word is left out: it also attends to itself.",
            ),
        ],
    ),
)

# --- Write with a cache ---------------------------------------------------------------------


def first_all_then_one(model, ids, n_new):
    cache = model.new_cache(1)
    new = ids
    for _ in range(n_new):
        new = model(new, cache=cache)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, new], dim=1)
    return ids


def one_by_one(model, ids, n_new):
    cache = model.new_cache(batch=1, capacity=ids.shape[1] + n_new)
    words = ids[0].tolist()
    for t in range(ids.shape[1] + n_new - 1):
        logits = model(torch.tensor([[words[t]]]), cache=cache)
        if t + 1 == len(words):
            words.append(int(logits[0, 0].argmax()))
    return torch.tensor([words])


def into_a_ready_row(model, ids, n_new):
    S, cache = ids.shape[1], model.new_cache(1)
    row = torch.zeros(1, S + n_new, dtype=torch.long)
    row[:, :S] = ids
    row[0, S] = model(ids=ids, cache=cache)[0, -1].argmax()
    for t in range(S, S + n_new - 1):
        row[0, t + 1] = model(ids=row[:, t : t + 1], cache=cache)[0, -1].softmax(-1).argmax()
    return row


def feeding_one_too_many(model, ids, n_new):  # the last word is read as well: no harm
    cache = model.new_cache(1)
    logits = model(ids, cache=cache)
    for _ in range(n_new):
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
        logits = model(ids[:, -1:], cache=cache)
    return ids


def writing(feed, cached=True, at=-1):
    def answer(model, ids, n_new):
        cache = model.new_cache(1) if cached else None
        for t in range(n_new):
            logits = model(feed(ids, t), cache=cache)
            ids = torch.cat([ids, logits[:, at].argmax(-1, keepdim=True)], dim=1)
        return ids

    return answer


def fresh_cache_each_time(model, ids, n_new):
    for _ in range(n_new):
        logits = model(ids, cache=model.new_cache(1))
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


def reading_the_last_word_twice(model, ids, n_new):
    cache = model.new_cache(1)
    model(ids, cache=cache)
    for _ in range(n_new):
        logits = model(ids[:, -1:], cache=cache)
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return ids


def past_the_hook(model, ids, n_new):
    for _ in range(n_new):
        ids = torch.cat([ids, model.forward(ids)[:, -1:].argmax(-1)], dim=1)
    return ids


def whole(ids, t):
    return ids


def newest(ids, t):
    return ids[:, -1:]


def prompt_then_newest(ids, t):
    return ids if t == 0 else ids[:, -1:]


def prompt_then_two(ids, t):
    return ids if t == 0 else ids[:, -2:]


WRITE_WITH_CACHE = Answers(
    right=[
        first_all_then_one,
        one_by_one,
        into_a_ready_row,
        feeding_one_too_many,
        generate,
        lambda model, ids, n: generate(model, ids, n).int(),
    ],
    wrong=pointing(
        SECTION_3,
        [
            (
                past_the_hook,
                "The words are right, but the cache is exact: compute no old position again.",
            ),
            (
                reading_the_last_word_twice,
                "The prompt's last word is read twice: the first call predicts the next.",
            ),
            (
                writing(whole, cached=False),
                "The words are right, but the cache is exact: compute no old position again.",
            ),
            (
                fresh_cache_each_time,
                "The words are right, but the cache is exact: compute no old position again.",
            ),
            (
                lambda model, ids, n: generate(model, ids, n, use_cache=False),
                "The words are right, but the cache is exact: compute no old position again.",
            ),
            (
                writing(whole),
                "The whole text is fed each time: feed only what the cache does not hold yet.",
            ),
            (writing(newest), "The prompt is never read: feed all of its words first."),
            (writing(newest, cached=False), "Without its cache the model sees only one word."),
            (
                writing(prompt_then_newest, cached=False),
                "Without its cache the model sees only one word.",
            ),
            (
                lambda model, ids, n: first_all_then_one(model, ids, n)[:, ids.shape[1] :],
                "Those are the new words alone: the prompt comes before them.",
            ),
            (lambda model, ids, n: first_all_then_one(model, ids, n - 1), "One word too few."),
            (lambda model, ids, n: first_all_then_one(model, ids, n + 1), "One word too many."),
            (
                writing(prompt_then_newest, at=0),
                "You read the logits at the first position: the last one predicts the next word.",
            ),
            (
                writing(prompt_then_two),
                "Each word is fed twice: what has been read is in the cache already.",
            ),
        ],
    ),
)

# --- Take out a head ------------------------------------------------------------------------


def with_head(heads, out, values):
    changed = heads.clone()
    changed[:, out] = values
    return changed


def by_loop(heads, out):
    rows = []
    for sentence in heads:
        kept = [x for x in sentence]
        kept[out] = sum(other[out] for other in heads) / len(heads)
        rows.append(torch.stack(kept))
    return torch.stack(rows)


def by_where(heads, out):
    is_out = (torch.arange(heads.shape[1]) == out)[:, None, None]
    return torch.where(is_out, heads.mean(dim=0, keepdim=True), heads)


def in_place(heads, out):
    heads[:, out] = heads[:, out].mean(dim=0)
    return heads


KNOCK_OUT = Answers(
    right=[
        lambda h, out: with_head(h, out, h[:, out].mean(dim=0)),
        by_loop,
        by_where,
        lambda h, out: with_head(
            h.double(), out, torch.einsum("bsd->sd", h[:, out].double()) / len(h)
        ),
        lambda h, out: torch.cat(
            [
                h[:, :out],
                h[:, out : out + 1].mean(0, keepdim=True).expand(len(h), -1, -1, -1),
                h[:, out + 1 :],
            ],
            dim=1,
        ),
    ],
    wrong=[
        (answer, message + " See section 4.")
        for answer, message in [
            (
                lambda h, out: with_head(h, out, 0.0),
                "You put 0 there: a mean was asked for. "
                "0 may be far from all that the head ever says.",
            ),
            (
                lambda h, out: with_head(h, out, h[:, out].mean(dim=1, keepdim=True)),
                "Your mean runs over the positions: it is to run over the batch.",
            ),
            (
                lambda h, out: with_head(h, out, h[:, out].mean(dim=2, keepdim=True)),
                "Your mean runs over the width of the head: it is to run over the batch.",
            ),
            (
                lambda h, out: with_head(h, out, h[:, out].mean()),
                "You took one mean over everything: each position and each number has its own.",
            ),
            (
                lambda h, out: with_head(h, out, h[:, out].mean(dim=(0, 1))),
                "You took the mean over the batch and the positions: each position has its own.",
            ),
            (
                lambda h, out: with_head(h, out, h.mean(dim=1)),
                "You took the mean of all heads: only this head's own outputs count.",
            ),
            (lambda h, out: h.clone(), "That head is as it was: nothing has been taken out."),
            (
                lambda h, out: with_head(h.mean(0).repeat(len(h), 1, 1, 1), out, h[:, out]),
                "You kept that head and took out the others.",
            ),
            (
                lambda h, out: h.mean(0).repeat(len(h), 1, 1, 1),
                "You replaced every head: only one is to be taken out.",
            ),
            (
                lambda h, out: with_head(h, out, h[:, out].median(dim=0).values),
                "You took the median: the mean was asked for.",
            ),
        ]
    ]
    + [(in_place, "The numbers are right, but you overwrite the input heads.")],
)

ANSWERS = {
    "knock_out": KNOCK_OUT,
    "cache_bytes": CACHE_BYTES,
    "decode_step": DECODE_STEP,
    "what_shore_needs": WHAT_SHORE_NEEDS,
    "stale_columns": STALE_COLUMNS,
    "share_heads": SHARE_HEADS,
    "rope_decode_step": ROPE_DECODE_STEP,
    "write_with_cache": WRITE_WITH_CACHE,
}
