"""The cache and generation: exact, and nothing else left changed."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnlab import KVCache, MultiHeadAttention, TinyCausalAttention, causal_mask, generate

# --- The cache ------------------------------------------------------------------------------


def averaging_heads():
    """Attention whose queries are zero: each position gets the mean of the values it sees."""
    heads = MultiHeadAttention(1, 1).requires_grad_(False)
    for linear, entry in ((heads.w_q, 0), (heads.w_k, 1), (heads.w_v, 1), (heads.w_o, 1)):
        linear.weight.fill_(entry)
    return heads


def test_a_cached_chunk_sees_the_past_and_not_the_future(close):
    heads, cache = averaging_heads(), KVCache(1, 1, 1, 4, 1)
    values = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1)
    close(heads(values, mask=causal_mask(4)).output.flatten(), [1, 1.5, 2, 2.5])
    first = heads(values[:, :2], mask=causal_mask(2), cache=cache.layer(0))
    close(first.output.flatten(), [1, 1.5])
    second = heads(values[:, 2:], mask=causal_mask(2, 4), cache=cache.layer(0))
    close(second.output.flatten(), [2, 2.5])
    assert second.weights.shape == (1, 1, 2, 4)


def test_a_cache_that_was_reset_forgets(close):
    heads, cache = averaging_heads(), KVCache(1, 1, 1, 2, 1)
    for values, expected in [([1.0, 2.0], [1, 1.5]), ([10.0, 20.0], [10, 15])]:
        x = torch.tensor(values).view(1, 2, 1)
        output = heads(x, mask=causal_mask(2), cache=cache.layer(0)).output
        close(output.flatten(), expected)
        cache.reset()
        assert cache.length == 0


def test_bytes_of_a_cache():
    for n_kv_heads, nbytes in ((8, 4096), (2, 1024), (1, 512)):
        assert KVCache(1, 1, n_kv_heads, 16, 4).nbytes == nbytes
        assert KVCache(3, 5, n_kv_heads, 16, 4, torch.float16).nbytes == nbytes * 15 // 2
    real = KVCache(32, 1, 8, 4096, 128, dtype=torch.bfloat16, device="meta")
    assert real.nbytes == 2**29


def test_the_length_moves_once_after_all_layers():
    cache = KVCache(3, 2, 1, 7, 4)
    k = torch.randn(2, 1, 5, 4)
    for layer in range(3):
        assert (cache.length, cache.layer(layer).length) == (0, 0)
        keys, values = cache.layer(layer).append(k + layer, -k)
        assert torch.equal(keys, k + layer) and torch.equal(values, -k)
    assert (cache.length, cache.capacity) == (5, 7)
    assert torch.equal(cache.keys[2, :, :, :5], k + 2)
    assert repr(cache) == (
        "KVCache(5 of 7 positions; 3 layers, batch 2, 1 key/value heads of width 4)"
    )


def test_nothing_is_written_when_there_is_no_room(small_llama, ids):
    model = small_llama()
    cache = model.new_cache(3, capacity=5)
    model(ids[:, :4], cache=cache)
    before = cache.keys.clone(), cache.values.clone()
    for call in (
        model,
        lambda ids, cache: model.blocks[0].attention(model.emb(ids), cache=cache.layer(0)),
    ):
        with pytest.raises(ValueError, match="holds 4 of 5 positions and 2 more do not fit"):
            call(ids[:, 4:6], cache=cache)
    assert cache.length == 4
    assert torch.equal(cache.keys, before[0]) and torch.equal(cache.values, before[1])
    assert_close(model(ids[:, 4:5], cache=cache), model(ids[:, :5])[:, 4:], atol=1e-5, rtol=0)


class Allocated(TorchDispatchMode):
    """The largest tensor that an operation within made, views of a cache aside."""

    def __init__(self, cache):
        super().__init__()
        self.numbers = 0
        self.known = {x.untyped_storage().data_ptr() for x in (cache.keys, cache.values)}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in filter(torch.is_tensor, tree_leaves(result)):
            if x.untyped_storage().data_ptr() not in self.known:
                self.numbers = max(self.numbers, x.numel())
        return result


@pytest.mark.parametrize("n_kv_heads, batch", [(6, 1), (2, 3)], ids=["MHA", "GQA"])
def test_one_more_token_copies_nothing_of_the_past(n_kv_heads, batch):
    """Keys of width 16 are more numbers than the scores of the queries that share them."""
    heads = MultiHeadAttention(6 * 16, 6, n_kv_heads, rope="half").requires_grad_(False)
    cache = KVCache(1, batch, n_kv_heads, 3000, 16)
    cache.length = 2899
    heads(torch.randn(batch, 1, 96), cache=cache.layer(0))  # fills the cache of angles
    with Allocated(cache) as allocated:
        heads(torch.randn(batch, 1, 96), cache=cache.layer(0))
    assert allocated.numbers == batch * 6 * 2901  # the scores


def test_appending_leaves_cached_positions_alone_and_editing_makes_them_stale(small_llama, ids):
    model, edited = small_llama(), ids.clone()
    edited[:, 2] = (edited[:, 2] + 1) % 11
    caches = [model.new_cache(3) for _ in range(3)]
    for cache, given in zip(caches, (ids, ids[:, :4], edited), strict=True):
        model(given, cache=cache)
    full, shorter, other = (cache.keys for cache in caches)
    assert_close(full[:, :, :, :4], shorter[:, :, :, :4])
    stale = ((full - other).abs() > 1e-3).any(dim=(0, 1, 2, 4))  # per position
    assert stale.tolist() == [False] * 2 + [True] * 5 + [False] * 5


def test_the_longest_sequence_counts_cached_positions(small_llama):
    model, ids = small_llama(), torch.zeros(2, 12).long()
    cache = model.new_cache(2, capacity=20)
    assert_close(model(ids, cache=cache), model(ids))
    with pytest.raises(ValueError, match="13 positions are more than the model's max_length 12"):
        model(ids[:, :1], cache=cache)


# --- Generation -----------------------------------------------------------------------------


class Dice(nn.Module):
    """The same probabilities at every position, whatever the ids; dropout while training."""

    probabilities = (0.15, 0.5, 0.1, 0.25)

    def __init__(self):
        super().__init__()
        self.vocab_size, self.dropout = 4, nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(torch.tensor(self.probabilities).log().expand(*ids.shape, 4))


def greedy(model, ids, n_new):
    """Generation as a loop anybody can read."""
    for _ in range(n_new):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    return ids


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_greedy_generation_takes_the_most_likely_token(use_cache, small_llama, ids):
    model = small_llama(2)
    for n_new in (0, 1, 5):
        text = generate(model, ids, n_new, use_cache)
        assert torch.equal(text, greedy(model, ids, n_new))
        assert torch.equal(generate(model, ids, n_new, use_cache), text)  # nothing is left over
        assert_close(generate(model, ids.int(), n_new, use_cache), text.int())  # the dtype too
    tiny = TinyCausalAttention(11)
    assert torch.equal(generate(tiny, ids, 5, use_cache=False), greedy(tiny, ids, 5))


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_a_row_ends_at_stop(use_cache, small_llama, ids):
    model = small_llama(2)
    free = generate(model, ids, 5)[:, 7:].tolist()
    stop = free[0][2]
    assert free[0].index(stop) == 2 and stop not in free[1]  # row 0 ends early, row 1 never
    text = generate(model, ids[:2], 5, use_cache, stop=stop)
    assert text[:, 7:].tolist() == [[*free[0][:2], stop, stop, stop], free[1]]
    alone = generate(model, ids[:1], 5, use_cache, stop=stop)
    assert alone[:, 7:].tolist() == [free[0][:3]]  # all rows have ended


@pytest.mark.parametrize(
    "options, probabilities",
    [
        ({}, [0.15, 0.5, 0.1, 0.25]),
        ({"temperature": 2.0}, [0.2027, 0.3701, 0.1655, 0.2617]),
        ({"temperature": 0.5}, [0.0652, 0.7246, 0.0290, 0.1812]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_p": 0.8}, [1 / 6, 5 / 9, 0, 5 / 18]),
        ({"top_p": 0.1}, [0, 1, 0, 0]),
        ({"top_p": 1}, [0.15, 0.5, 0.1, 0.25]),
        ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0]),  # half of what is left is two thirds
        ({"temperature": 1e-46}, [0, 1, 0, 0]),  # 0 in float32
        ({"temperature": 0}, [0, 1, 0, 0]),
    ],
    ids=str,
)
def test_sampling_follows_the_probabilities(options, probabilities, close):
    options = {"temperature": 1.0, "generator": torch.Generator().manual_seed(0)} | options
    text = generate(Dice(), torch.zeros(20_000, 1, dtype=torch.long), 1, False, **options)
    shares = text[:, 1].bincount(minlength=4) / 20_000
    close(shares, probabilities, atol=0.012)
    assert ((shares > 0) == (torch.tensor(probabilities) > 0)).all()


def test_top_p_stops_as_soon_as_p_is_reached():
    fair, start = Dice(), torch.zeros(500, 1, dtype=torch.long)
    fair.probabilities = (0.25, 0.25, 0.25, 0.25)
    for p, n_kept in [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (1.0, 4)]:
        assert generate(fair, start, 1, False, 1.0, top_p=p)[:, 1].unique().numel() == n_kept


def test_what_is_impossible_is_never_drawn_however_high_the_temperature():
    model = Dice()
    model.probabilities = (0.3, 0.7, 0.0, 0.0)
    text = generate(model, torch.zeros(500, 1).long(), 1, False, 1e300)  # infinite in float32
    assert text[:, 1].unique().tolist() == [0, 1]


def test_the_generator_decides_and_the_global_state_is_left_alone(small_llama, ids):
    def sample(seed, use_cache=True):
        generator = torch.Generator().manual_seed(seed)
        return generate(model, ids, 5, use_cache, 1.5, generator)

    model, before = small_llama(), torch.get_rng_state()
    first = sample(1)
    assert torch.equal(sample(1), first) and torch.equal(sample(1, use_cache=False), first)
    assert not torch.equal(sample(2), first)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(generate(model, ids, 5, temperature=1.5), first)


def test_generation_leaves_the_model_as_it_was(small_llama, ids):
    model = small_llama()
    model.lm_head.weight.requires_grad_().grad = torch.ones(11, 24)
    model.train()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    generate(model, ids, 3)
    assert [module.training for module in model.modules()] == modes
    assert model.lm_head.weight.requires_grad and not model.emb.weight.requires_grad
    assert torch.equal(model.lm_head.weight.grad, torch.ones(11, 24))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_generation_is_without_dropout_and_restores_the_mode(error, ids):
    model = Dice().train()

    def interrupt(*_):
        assert not model.dropout.training and not torch.is_grad_enabled()
        if error:
            raise error

    model.register_forward_pre_hook(interrupt)
    if error is None:
        assert (generate(model, ids % 4, 5, use_cache=False)[:, 7:] == 1).all()
    else:
        with pytest.raises(error):
            generate(model, ids % 4, 5, use_cache=False)
    assert model.training and model.dropout.training
