"""Whatever the sizes, the chunks, the padding and the heads: the cache changes nothing.

The examples are random, the same ones in every run.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from attnlab import TinyTransformer, generate
from attnlab.training import seeded

VOCAB = 13
LAYOUTS = {
    "MHA": [(1, 1), (3, 3), (4, 4)],
    "GQA": [(4, 2), (6, 3), (6, 2)],
    "MQA": [(3, 1), (4, 1)],
}
each_time = settings(max_examples=40, derandomize=True, deadline=None, database=None)


@st.composite
def models(draw, max_length=14):
    n_heads, n_kv_heads = draw(st.sampled_from(sum(LAYOUTS.values(), [])))
    width = n_heads * draw(st.sampled_from([2, 4, 10]))
    n_layers, seed = draw(st.integers(1, 3)), draw(st.integers(0, 99))
    sizes = (VOCAB, width, n_heads, n_layers, max_length, n_kv_heads)
    return seeded(lambda: TinyTransformer(*sizes), seed).requires_grad_(False)


@st.composite
def prompts(draw, longest=9):
    """Ids (B, S), and how many of each row are valid."""
    batch, size = draw(st.integers(1, 4)), draw(st.integers(1, longest))
    row = st.lists(st.integers(0, VOCAB - 1), min_size=size, max_size=size)
    ids = draw(st.lists(row, min_size=batch, max_size=batch))
    lengths = draw(st.lists(st.integers(1, size), min_size=batch, max_size=batch))
    return torch.tensor(ids), torch.tensor(lengths)


def split(chunks, size):
    """Chunks of the given sizes, and the rest one by one."""
    cut = []
    for chunk in [*chunks, *[1] * size]:
        cut.append(min(chunk, size - sum(cut)))
    return [chunk for chunk in cut if chunk]


@each_time
@given(models(), prompts(), st.lists(st.integers(1, 6)), st.sampled_from([None, "left", "right"]))
def test_cached_logits_are_the_uncached_ones_at_every_step(model, prompt, chunks, padding):
    ids, lengths = prompt
    columns = torch.arange(ids.shape[1])
    valid = columns < lengths[:, None] if padding == "right" else columns >= lengths[:, None] - 1
    for dtype, atol in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model, past = model.to(dtype), 0
        cache = model.new_cache(len(ids), capacity=ids.shape[1])
        for size in split(chunks, ids.shape[1]):
            seen = past + size
            mask = None if padding is None else valid[:, None, :seen]
            cached = model(ids[:, past:seen], mask, cache)
            uncached = model(ids[:, :seen], mask)[:, past:]
            assert_close(cached, uncached, atol=atol, rtol=0)
            past = seen
        assert cache.length == cache.capacity == ids.shape[1]


@each_time
@given(models(), prompts(), st.integers(0, 5), st.booleans())
def test_each_row_is_continued_as_it_would_be_alone(model, prompt, n_new, use_cache):
    ids, lengths = prompt
    model = model.double()  # in float32 two words could be equally likely but for rounding
    together = generate(model, ids, n_new, use_cache, lengths=lengths)
    assert torch.equal(together[:, : ids.shape[1]], ids)
    for row, n in enumerate(lengths.tolist()):
        alone = ids[row : row + 1, :n]
        for _ in range(n_new):
            alone = torch.cat((alone, model(alone)[:, -1:].argmax(-1)), dim=1)
        assert torch.equal(together[row, ids.shape[1] :], alone[0, n:])
