"""The cache and generation: exact, and nothing else left changed."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    causal_mask,
    generate,
    padding_mask,
)


def close(actual, expected, atol=1e-4):
    assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=atol, rtol=0)


def small_llama(n_kv_heads=None, n_layers=2, dtype=torch.float32):
    torch.manual_seed(5)
    return TinyTransformer(11, 24, 6, n_layers, 12, n_kv_heads).to(dtype).requires_grad_(False)


IDS = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(2))


# --- The cache ------------------------------------------------------------------------------


def averaging_heads():
    """Attention whose queries are zero: each position gets the mean of the values it sees."""
    heads = MultiHeadAttention(1, 1).requires_grad_(False)
    for linear, entry in ((heads.w_q, 0), (heads.w_k, 1), (heads.w_v, 1), (heads.w_o, 1)):
        linear.weight.fill_(entry)
    return heads


def test_a_cached_chunk_sees_the_past_and_not_the_future():
    heads, cache = averaging_heads(), KVCache(1, 1, 1, 4, 1)
    values = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1)
    close(heads(values, mask=causal_mask(4)).output.flatten(), [1, 1.5, 2, 2.5])
    first = heads(values[:, :2], mask=causal_mask(2), cache=cache.layer(0))
    close(first.output.flatten(), [1, 1.5])
    second = heads(values[:, 2:], mask=causal_mask(2, 4), cache=cache.layer(0))
    close(second.output.flatten(), [2, 2.5])
    assert second.weights.shape == (1, 1, 2, 4)


def test_a_cache_that_was_reset_forgets():
    heads, cache = averaging_heads(), KVCache(1, 1, 1, 2, 1)
    for values, expected in [([1.0, 2.0], [1, 1.5]), ([10.0, 20.0], [10, 15])]:
        x = torch.tensor(values).view(1, 2, 1)
        output = heads(x, mask=causal_mask(2), cache=cache.layer(0)).output
        close(output.flatten(), expected)
        cache.reset()
        assert cache.length == 0


@pytest.mark.parametrize("n_kv_heads, nbytes", [(8, 4096), (2, 1024), (1, 512)])
def test_bytes_of_a_cache(n_kv_heads, nbytes):
    assert KVCache(1, 1, n_kv_heads, 16, 4).nbytes == nbytes
    assert KVCache(3, 5, n_kv_heads, 16, 4, torch.float16).nbytes == nbytes * 15 // 2


@pytest.mark.parametrize("heads, gib", [(32, 2), (8, 0.5), (1, 0.0625)])
def test_bytes_of_a_real_cache(heads, gib):
    cache = KVCache(32, 1, heads, 4096, 128, dtype=torch.bfloat16, device="meta")
    assert cache.nbytes == gib * 2**30


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


@pytest.mark.parametrize("plan", [[7], [1] * 7, [4, 3], [2, 5], [3, 1, 1, 1, 1]], ids=str)
@pytest.mark.parametrize("n_kv_heads", [6, 3, 2, 1])
@pytest.mark.parametrize("dtype, atol", [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_the_cache_is_exact(plan, n_kv_heads, dtype, atol):
    model = small_llama(n_kv_heads, dtype=dtype)
    cache, mask = model.new_cache(3), padding_mask([7, 5, 2], 7)
    for options in ({}, {"mask": mask}):
        cache.reset()
        whole, logits = model(IDS, **options), []
        for chunk in IDS.split(plan, dim=1):
            seen = cache.length + chunk.shape[1]
            if options:
                options["mask"] = mask[..., :seen]
            logits.append(model(chunk, cache=cache, **options))
            assert cache.length == seen
        assert_close(torch.cat(logits, dim=1), whole, atol=atol, rtol=0)


def test_nothing_is_written_when_there_is_no_room():
    model = small_llama()
    cache = model.new_cache(3, capacity=5)
    model(IDS[:, :4], cache=cache)
    before = cache.keys.clone(), cache.values.clone()
    for call in (
        model,
        lambda ids, cache: model.blocks[0].attention(model.emb(ids), cache=cache.layer(0)),
    ):
        with pytest.raises(ValueError, match="holds 4 of 5 positions and 2 more do not fit"):
            call(IDS[:, 4:6], cache=cache)
    assert cache.length == 4
    assert torch.equal(cache.keys, before[0]) and torch.equal(cache.values, before[1])
    assert_close(model(IDS[:, 4:5], cache=cache), model(IDS[:, :5])[:, 4:], atol=1e-5, rtol=0)


def test_the_cache_holds_numbers_and_not_gradients():
    model = small_llama().requires_grad_()
    cache = model.new_cache(3)
    model(IDS[:, :5], cache=cache)
    assert model(IDS[:, 5:], cache=cache).requires_grad
    assert not cache.keys.requires_grad and not cache.values.requires_grad


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # PyTorch's own use of it
def test_nor_does_the_cache_hold_tangents_of_forward_mode():
    heads = MultiHeadAttention(24, 6, rope="half").requires_grad_(False)
    cache, x = KVCache(1, 3, 6, 7, 4), torch.randn(3, 7, 24)
    with forward_ad.dual_level():
        heads(forward_ad.make_dual(x, torch.ones_like(x)), cache=cache.layer(0))
        assert forward_ad.unpack_dual(cache.keys).tangent is None
        assert forward_ad.unpack_dual(cache.values).tangent is None


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


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("n_kv_heads", [6, 2, 1], ids=["MHA", "GQA", "MQA"])
def test_one_more_token_copies_nothing_of_the_past(n_kv_heads, batch):
    """Keys of width 16 are more numbers than the scores of the queries that share them."""
    heads = MultiHeadAttention(6 * 16, 6, n_kv_heads, rope="half").requires_grad_(False)
    cache = KVCache(1, batch, n_kv_heads, 3000, 16)
    cache.length = 2899
    heads(torch.randn(batch, 1, 96), cache=cache.layer(0))  # makes the table of angles
    with Allocated(cache) as allocated:
        heads(torch.randn(batch, 1, 96), cache=cache.layer(0))
    assert allocated.numbers == batch * 6 * 2901  # the scores


def test_appending_leaves_cached_columns_alone_and_editing_makes_them_stale():
    model, edited = small_llama(), IDS.clone()
    edited[:, 2] = (edited[:, 2] + 1) % 11
    caches = [model.new_cache(3) for _ in range(3)]
    for cache, ids in zip(caches, (IDS, IDS[:, :4], edited), strict=True):
        model(ids, cache=cache)
    full, shorter, other = (cache.keys for cache in caches)
    assert_close(full[:, :, :, :4], shorter[:, :, :, :4])
    stale = ((full - other).abs() > 1e-3).any(dim=(0, 1, 2, 4))  # per position
    assert stale.tolist() == [False] * 2 + [True] * 5 + [False] * 5


def test_the_longest_sequence_counts_cached_positions():
    model, ids = small_llama(), torch.zeros(2, 12).long()
    cache = model.new_cache(2, capacity=20)
    assert_close(model(ids, cache=cache), model(ids))
    with pytest.raises(ValueError, match="13 positions are more than the model's max_length 12"):
        model(ids[:, :1], cache=cache)


def test_everything_is_made_where_the_model_lives():
    model, tiny = small_llama(2), TinyCausalAttention(11)
    lengths = torch.tensor([7, 5, 2])
    with torch.device("meta"):  # whatever is made on the default device cannot be mixed in
        cache = model.new_cache(3)
        assert cache.keys.device.type == model(IDS, padding_mask(lengths, 7), cache).device.type
        assert tiny(IDS).device.type == "cpu"
        for use_cache in (True, False):
            ids = generate(model, IDS, 2, use_cache, lengths=lengths, stop=3)
            assert ids.device.type == "cpu"
    assert KVCache(1, 2, 3, 5, 7, device="meta").values.device.type == "meta"
    steps = MultiHeadAttention(12, 3, 1, "half").to("meta")(torch.empty(2, 5, 12, device="meta"))
    assert steps.output.device.type == "meta"


# --- Generation -----------------------------------------------------------------------------


class Dice(nn.Module):
    """The same chances at every position, whatever came before; dropout while training."""

    chances = (0.15, 0.5, 0.1, 0.25)

    def __init__(self):
        super().__init__()
        self.vocab_size, self.dropout = 4, nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(torch.tensor(self.chances).log().expand(*ids.shape, 4))


def greedy(model, ids, n_new):
    """Generation as a loop anybody can read."""
    for _ in range(n_new):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    return ids


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("n_kv_heads", [6, 2, 1])
@pytest.mark.parametrize("n_new", [0, 1, 5])
def test_greedy_generation_takes_the_most_likely_token(n_new, n_kv_heads, use_cache):
    model = small_llama(n_kv_heads)
    ids = generate(model, IDS, n_new, use_cache)
    assert torch.equal(ids, greedy(model, IDS, n_new))
    assert torch.equal(generate(model, IDS, n_new, use_cache), ids)  # nothing is left over
    assert_close(generate(model, IDS.int(), n_new, use_cache), ids.int())  # the dtype too


def test_a_model_without_a_cache_generates_too():
    tiny = TinyCausalAttention(11)
    assert torch.equal(generate(tiny, IDS, 5, use_cache=False), greedy(tiny, IDS, 5))


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("lengths", [[3, 7, 1], torch.tensor([2, 6, 5])], ids=str)
def test_prompts_of_different_length_continue_as_they_would_alone(lengths, use_cache):
    model = small_llama(2)
    ids = generate(model, IDS, 5, use_cache, lengths=lengths)
    assert torch.equal(ids[:, :7], IDS)
    for row, n in enumerate(lengths):
        assert torch.equal(ids[row, 7:], greedy(model, IDS[row : row + 1, :n], 5)[0, n:])


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_a_row_ends_at_stop(use_cache):
    model = small_llama(2)
    free = generate(model, IDS, 5)[:, 7:].tolist()
    stop = free[0][2]
    assert free[0].index(stop) == 2 and stop not in free[1]  # row 0 ends early, row 1 never
    ids = generate(model, IDS[:2], 5, use_cache, stop=stop)
    assert ids[:, 7:].tolist() == [[*free[0][:2], stop, stop, stop], free[1]]
    alone = generate(model, IDS[:1], 5, use_cache, stop=stop)
    assert alone[:, 7:].tolist() == [free[0][:3]]  # all rows have ended


@pytest.mark.parametrize(
    "options, chances",
    [
        ({}, [0.15, 0.5, 0.1, 0.25]),
        ({"temperature": 2.0}, [0.2027, 0.3701, 0.1655, 0.2617]),
        ({"temperature": 0.5}, [0.0652, 0.7246, 0.0290, 0.1812]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_k": 7}, [0.15, 0.5, 0.1, 0.25]),
        ({"top_p": 0.8}, [1 / 6, 5 / 9, 0, 5 / 18]),
        ({"top_p": 0.7}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_p": 0.1}, [0, 1, 0, 0]),
        ({"top_p": 1}, [0.15, 0.5, 0.1, 0.25]),
        ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0]),  # half of what is left is two thirds
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"temperature": 1e-46}, [0, 1, 0, 0]),  # 0 in float32
        ({"temperature": 0}, [0, 1, 0, 0]),
    ],
    ids=str,
)
def test_sampling_follows_the_chances(options, chances):
    options = {"temperature": 1.0, "generator": torch.Generator().manual_seed(0)} | options
    ids = generate(Dice(), torch.zeros(20_000, 1, dtype=torch.long), 1, False, **options)
    shares = ids[:, 1].bincount(minlength=4) / 20_000
    close(shares, chances, atol=0.012)
    assert ((shares > 0) == (torch.tensor(chances) > 0)).all()


def test_top_p_stops_as_soon_as_p_is_reached():
    fair, start = Dice(), torch.zeros(500, 1, dtype=torch.long)
    fair.chances = (0.25, 0.25, 0.25, 0.25)
    for p, n_kept in [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (1.0, 4)]:
        assert generate(fair, start, 1, False, 1.0, top_p=p)[:, 1].unique().numel() == n_kept


def test_the_generator_decides_and_the_global_state_is_left_alone():
    def sample(seed, use_cache=True):
        generator = torch.Generator().manual_seed(seed)
        return generate(model, IDS, 5, use_cache, 1.5, generator)

    model, before = small_llama(), torch.get_rng_state()
    first = sample(1)
    assert torch.equal(sample(1), first) and torch.equal(sample(1, use_cache=False), first)
    assert not torch.equal(sample(2), first)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(generate(model, IDS, 5, temperature=1.5), first)


def test_what_was_generated_can_be_trained_on():
    model = small_llama()
    ids = generate(model, IDS, 3)
    assert not ids.is_inference()
    model.requires_grad_()(ids).sum().backward()
    assert model.emb.weight.grad.any()


class Keeper(nn.Module):
    """Makes its mask when it first runs, and keeps it."""

    def __init__(self):
        super().__init__()
        self.vocab_size, self.scale, self.mask = 5, nn.Parameter(torch.ones(5)), None

    def forward(self, ids):
        if self.mask is None:
            self.mask = torch.ones(5) / 2
        return (self.scale * self.mask).expand(*ids.shape, 5)


def test_what_a_model_keeps_while_generating_serves_training():
    model = Keeper()
    generate(model, IDS % 5, 3, use_cache=False)
    model(IDS % 5).sum().backward()
    assert model.scale.grad.all()


def test_generation_leaves_the_model_as_it_was():
    model = small_llama()
    model.lm_head.weight.requires_grad_().grad = torch.ones(11, 24)
    model.train()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    generate(model, IDS, 3)
    assert [module.training for module in model.modules()] == modes
    assert model.lm_head.weight.requires_grad and not model.emb.weight.requires_grad
    assert torch.equal(model.lm_head.weight.grad, torch.ones(11, 24))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_generation_is_without_dropout_and_puts_the_mode_back(error):
    model = Dice().train()

    def interrupt(*_):
        assert not model.dropout.training and not torch.is_grad_enabled()
        if error:
            raise error

    model.register_forward_pre_hook(interrupt)
    if error is None:
        assert (generate(model, IDS % 4, 5, use_cache=False)[:, 7:] == 1).all()
    else:
        with pytest.raises(error):
            generate(model, IDS % 4, 5, use_cache=False)
    assert model.training and model.dropout.training
