"""Bad input is refused in one short sentence that names the argument and shows both sides."""
# ruff: noqa: E501 (in the tables of bad input a row is a line)

import math

import numpy as np
import pytest
import torch
from torch import nn

from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    attention,
    causal_mask,
    generate,
    merge_heads,
    padding_mask,
    rope,
    sinusoidal_positions,
    split_heads,
    train,
)
from attnlab.training import evaluate, train_seeds

Q, K, V = torch.randn(2, 3, 7), torch.randn(2, 5, 7), torch.randn(2, 5, 12)
X, AT = torch.randn(2, 3, 12), torch.arange(3)
HEADS, ROTATING = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, rope="half")
TINY, LLAMA = TinyCausalAttention(7), TinyTransformer(7, 12, 3, 2, 8)
FROZEN = TinyCausalAttention(7).requires_grad_(False)
IDS = torch.arange(10).reshape(2, 5) % 7  # (B, S), every id from 0 to 6
NONE = torch.full((2, 5), -100)  # targets that are not counted


def trained(model=TINY, inputs=IDS, targets=IDS, **options):
    return train(model, inputs, targets, **{"steps": 1, "lr": 0.1} | options)


def generated(model=LLAMA, ids=IDS, max_new_tokens=1, *arguments, **options):
    return generate(model, ids, max_new_tokens, *arguments, **options)


def layer(*shape, written=0, **options):
    """The view of a cache whose only layer holds that many positions."""
    cache = KVCache(1, *shape, **options)
    cache.length = written
    return cache.layer(0)


# --- Tensors --------------------------------------------------------------------------------

# where a tensor is an argument: the call, its name, a good one, its least rank
FLOATS = {
    "attention q": (lambda x: attention(x, K, V), "q", Q, 2),
    "attention k": (lambda x: attention(Q, x, V), "k", K, 2),
    "attention v": (lambda x: attention(Q, K, x), "v", V, 2),
    "rope x": (lambda x: rope(x, AT), "x", X, 2),
    "MultiHeadAttention x": (HEADS, "x", X, 3),
    "MultiHeadAttention context": (lambda x: HEADS(X, x), "context", X, 3),
}
INTEGERS = {
    "TinyCausalAttention": (TINY, "ids", IDS, 2),
    "TinyTransformer": (LLAMA, "ids", IDS, 2),
    "TinyTransformer.steps": (LLAMA.steps, "ids", IDS, 2),
    "generate": (lambda x: generated(ids=x), "ids", IDS, 2),
    "train inputs": (lambda x: trained(inputs=x), "ids", IDS, 2),
}
TENSORS = FLOATS | INTEGERS | {
    "train targets": (lambda x: trained(targets=x), "targets", IDS, 1),
    "split_heads x": (lambda x: split_heads(x, 2), "x", X, 2),
    "merge_heads x": (merge_heads, "x", X, 3),
    "rope positions": (lambda x: rope(X, x), "positions", AT, 1),
    "append k": (lambda x: layer(2, 3, 5, 4).append(x, torch.ones(2, 3, 2, 4)), "keys", torch.ones(2, 3, 2, 4), 0),
    "append v": (lambda x: layer(2, 3, 5, 4).append(torch.ones(2, 3, 2, 4), x), "values", torch.ones(2, 3, 2, 4), 0),
}  # fmt: skip


def each(table):
    return pytest.mark.parametrize("call, name, good, rank", table.values(), ids=table)


@each(TENSORS)
def test_what_is_not_a_tensor_of_the_rank_is_refused(refuses, call, name, good, rank):
    call(good)
    for bad in (good.detach().numpy(), [1.5]):
        sentence = f"{name} must be a torch.Tensor, not {type(bad).__name__}: torch.tensor(...)"
        refuses(TypeError, sentence, call, bad)
    if rank:
        flat = good[(0,) * (good.ndim - rank + 1)]
        sentence = f"{name} needs at least {rank} axes but has shape {tuple(flat.shape)}"
        refuses(ValueError, sentence, call, flat)
    for axis in range(good.ndim):
        empty = good.narrow(axis, 0, 0)
        refuses(ValueError, f"{name} is empty: its shape is {tuple(empty.shape)}", call, empty)


@each(FLOATS)
def test_what_is_not_float_is_refused_with_the_remedy(refuses, call, name, good, rank):
    for dtype in (torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64):
        sentence = f"{name} must hold floats but holds {dtype}: call {name}.float()"
        refuses(TypeError, sentence, call, good.detach().to(dtype))


@each(INTEGERS)
def test_ids_are_integers_inside_the_vocabulary(refuses, call, name, good, rank):
    call(good.int())
    for bad in (good.float(), good > 0, good[None]):
        kind = f"{bad.dtype} of shape {tuple(bad.shape)}"
        refuses(TypeError, f"ids must be integers of shape (B, S) but are {kind}", call, bad)
    for wrong in (7, -1):
        bad = good.clone()
        bad[1, 4] = wrong
        refuses(ValueError, f"ids holds {wrong} but the vocabulary goes from 0 to 6", call, bad)


def test_an_id_outside_the_vocabulary_is_found_among_many(refuses):
    many = torch.zeros(12, 12, dtype=torch.int64)  # from 100 on they are searched in another way
    many[7, 11] = 9
    refuses(ValueError, "ids holds 9 but the vocabulary goes from 0 to 6", TINY, many)


MASKED = {
    "attention": (lambda mask: attention(Q, Q, Q, mask), torch.ones(3, 3).bool(), "mask of shape (2, 5) does not broadcast to the scores (2, 3, 3)"),
    "MultiHeadAttention": (lambda mask: HEADS(X, mask=mask), torch.ones(2, 1, 3).bool(), "mask of shape (2, 5) is none of (3, 3), (2, 1, 3) and (2, 3, 3)"),
    "TinyTransformer": (lambda mask: LLAMA(IDS[:, :3], mask), torch.ones(2, 3, 3).bool(), "mask of shape (2, 5) is none of (3, 3), (2, 1, 3) and (2, 3, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("call, good, misfit", MASKED.values(), ids=MASKED)
def test_masks_are_boolean_tensors_that_fit(refuses, call, good, misfit):
    call(good)
    for bad in (good.tolist(), True):
        kind = type(bad).__name__
        refuses(TypeError, f"mask must be a boolean torch.Tensor, not {kind}", call, bad)
    sentence = "mask must be boolean (True = may attend) but holds torch.int64: call mask.bool()"
    refuses(TypeError, sentence, call, good.long())
    refuses(ValueError, misfit, call, torch.ones(2, 5).bool())
    for shape in [(), (0, 3), (7, 3, 3), (1, 2, 3, 3)]:
        with pytest.raises(ValueError, match=r"mask of shape .* (does not broadcast|is none of)"):
            call(torch.ones(shape).bool())


FAR = {  # the call, given a tensor on another device; its name; what it must be with
    "k": (lambda: attention(Q, K.to("meta"), V), "k", "q"),
    "v": (lambda: attention(Q, K, V.to("meta")), "v", "q"),
    "mask of attention": (lambda: attention(Q, Q, Q, causal_mask(3, device="meta")), "mask", "q"),
    "positions": (lambda: rope(X, AT.to("meta")), "positions", "x"),
    "x of heads": (lambda: HEADS(X.to("meta")), "x", "the parameters"),
    "context": (lambda: HEADS(X, X.to("meta")), "context", "the parameters"),
    "mask of heads": (lambda: HEADS(X, mask=causal_mask(3, device="meta")), "mask", "the queries"),
    "mask of a model": (lambda: LLAMA(IDS, causal_mask(5, device="meta")), "mask", "the queries"),
    "ids": (lambda: LLAMA(IDS.to("meta")), "ids", "the parameters"),
    "ids of the tiny model": (lambda: TINY(IDS.to("meta")), "ids", "the parameters"),
    "prompts": (lambda: generated(ids=IDS.to("meta")), "ids", "the parameters"),
    "lengths": (lambda: generated(lengths=torch.tensor([3, 5], device="meta")), "lengths", "ids"),
    "inputs": (lambda: trained(inputs=IDS.to("meta")), "inputs", "the model"),
    "targets": (lambda: trained(targets=IDS.to("meta")), "targets", "the model"),
    "a callable's": (lambda: trained(inputs=lambda i, g: (IDS, IDS.to("meta")), targets=None), "targets", "the model"),
    "evaluated targets": (lambda: evaluate(TINY, IDS, IDS.to("meta")), "targets", "the logits"),
}  # fmt: skip


@pytest.mark.parametrize("call, name, other", FAR.values(), ids=FAR)
def test_tensors_are_on_one_device(refuses, call, name, other):
    sentence = f"{name} must be on cpu like {other}, not on meta: {name}.to('cpu')"
    refuses(ValueError, sentence, call)


# --- Numbers --------------------------------------------------------------------------------

# where an int is an argument: the call, its name, its minimum
INTS = [
    (lambda n: causal_mask(n, 5), "n_queries", 1),
    (lambda n: causal_mask(1, n), "n_keys", 1),
    (lambda n: padding_mask([1], n), "size", 1),
    (lambda n: padding_mask([3, n], 5), "lengths", 1),
    (lambda n: split_heads(X, n), "n_heads", 1),
    (lambda n: sinusoidal_positions(n, 2), "n", 1),
    (lambda n: sinusoidal_positions(2, n), "width", 1),
    (lambda n: MultiHeadAttention(n, 1), "width", 1),
    (lambda n: MultiHeadAttention(12, n), "n_heads", 1),
    (lambda n: MultiHeadAttention(12, 3, n), "n_kv_heads", 1),
    (lambda n: TinyCausalAttention(n), "vocab_size", 1),
    (lambda n: TinyCausalAttention(5, n), "dim", 1),
    (lambda n: TinyTransformer(n, 12, 3, 2, 8), "vocab_size", 1),
    (lambda n: TinyTransformer(7, n, 3, 2, 8), "width", 1),
    (lambda n: TinyTransformer(7, 12, n, 2, 8), "n_heads", 1),
    (lambda n: TinyTransformer(7, 12, 3, n, 8), "n_layers", 1),
    (lambda n: TinyTransformer(7, 12, 3, 2, n), "max_length", 1),
    (lambda n: KVCache(n, 1, 1, 1, 1), "n_layers", 1),
    (lambda n: KVCache(1, n, 1, 1, 1), "batch", 1),
    (lambda n: KVCache(1, 1, n, 1, 1), "n_kv_heads", 1),
    (lambda n: KVCache(1, 1, 1, n, 1), "capacity", 1),
    (lambda n: KVCache(1, 1, 1, 1, n), "head_dim", 1),
    (lambda n: KVCache(3, 1, 1, 1, 1).layer(n), "layer", 0),
    (lambda n: generated(max_new_tokens=n), "max_new_tokens", 0),
    (lambda n: generated(top_k=n), "top_k", 1),
    (lambda n: generated(stop=n), "stop", 0),
    (lambda n: trained(steps=n), "steps", 1),
    (lambda n: trained(seed=n), "seed", 0),
    (lambda n: trained(checkpoint_every=n), "checkpoint_every", 1),
    (
        lambda n: train_seeds(lambda: TinyCausalAttention(7), IDS, IDS, seeds=[n], steps=1, lr=0.1),
        "seed",
        0,
    ),
]


@pytest.mark.parametrize("call, name, minimum", INTS, ids=[row[1] for row in INTS])
def test_sizes_are_ints_in_range(refuses, call, name, minimum):
    for bad in (1.0, "3", True, np.float32(1)):
        refuses(TypeError, f"{name} must be an int, not {type(bad).__name__}", call, bad)
    refuses(
        ValueError, f"{name} must be at least {minimum} but is {minimum - 1}", call, minimum - 1
    )
    with pytest.raises(
        ValueError, match=f"^{name} must be at most [0-9]+ but is an integer of 333"
    ):
        call(10**100)
    if name not in ("width", "n_heads"):  # 1 is odd, or leaves an odd head for RoPE
        call(np.int64(max(minimum, 1)))


REALS = {  # the call, and the limit that the number must be above
    "scale": (lambda x: attention(Q, K, V, scale=x), None),
    "base": (lambda x: rope(X, AT, base=x), 0),
    "temperature": (lambda x: generated(temperature=x), None),
    "top_p": (lambda x: generated(temperature=1, top_p=x), None),
    "lr": (lambda x: trained(lr=x), 0),
    "clip": (lambda x: trained(clip=x), 0),
    "schedule": (lambda x: trained(schedule=lambda step: x), None),
}


@pytest.mark.parametrize("name, call, above", [(name, *row) for name, row in REALS.items()])
def test_real_numbers_are_finite_numbers(refuses, name, call, above):
    for bad in ("big", True, [0.5], torch.tensor(0.5)):
        refuses(TypeError, f"{name} must be a number, not {type(bad).__name__}", call, bad)
    for bad, shown in [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float64("inf"), "inf"),
        (10**400, "an integer of 1329 bits"),
        (-(10**5000), "an integer of 16610 bits"),  # Python cannot even print it
    ]:
        refuses(ValueError, f"{name} must be a finite float but is {shown}", call, bad)
    if above is not None:
        refuses(ValueError, f"{name} must be above {above} but is {above}", call, above)
    call(1)
    call(np.float64(0.5))


# --- What does not fit together -------------------------------------------------------------

ONES = torch.ones(2, 3, 2, 4)  # keys that fit layer(2, 3, 5, 4)
SIZES = [
    (lambda: attention(Q, K[..., :2], V), "k has width 2 but q has width 7"),
    (lambda: attention(Q, K, V[:, :3]), "v has 3 positions but k has 5"),
    (lambda: attention(torch.zeros(5, 3, 7), K, V), "the leading axes do not broadcast: q (5, 3, 7), k (2, 5, 7), v (2, 5, 12)"),
    (lambda: attention(Q, K, torch.zeros(3, 5, 2)), "the leading axes do not broadcast: q (2, 3, 7), k (2, 5, 7), v (3, 5, 2)"),
    (lambda: attention(*[torch.zeros(3, 3, 5, 2)] * 3, torch.ones(3, 5, 5).bool()), "mask of shape (3, 5, 5) for scores (3, 3, 5, 5) would take its first axis for heads: put in the head axis with mask.unsqueeze(1)"),
    (lambda: causal_mask(5, 3), "n_queries 5 is more than n_keys 3"),
    (lambda: causal_mask(2**63), "n_queries must be at most 2147483647 but is 9223372036854775808"),
    (lambda: padding_mask([5], 10**30), "size must be at most 2147483647 but is an integer of 100 bits"),
    (lambda: padding_mask([3, 9], 7), "lengths must be from 1 to 7 but one of them is 9"),
    (lambda: padding_mask(torch.tensor([0, 2]), 7), "lengths must be from 1 to 7 but one of them is 0"),
    (lambda: padding_mask([], 7), "lengths is empty: its shape is (0,)"),
    (lambda: split_heads(X, 5), "the width of x 12 is not divisible by n_heads 5"),
    (lambda: sinusoidal_positions(3, 5), "width must be even, to form pairs, but is 5"),
    (lambda: rope(Q, AT), "the width of x must be even, to form pairs, but is 7"),
    (lambda: rope(X, AT, layout="pairs"), "layout must be 'interleaved' or 'half' but is 'pairs'"),
    (lambda: rope(X, torch.arange(2)), "positions of shape (2,) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X, torch.arange(1)), "positions of shape (1,) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X, torch.zeros(7, 3)), "positions of shape (7, 3) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X[None], torch.zeros(2, 3)), "positions of shape (2, 3) do not fit x of shape (1, 2, 3, 12)"),
    (lambda: MultiHeadAttention(12, 5), "width 12 is not divisible by n_heads 5"),
    (lambda: MultiHeadAttention(12, 4, 3), "n_heads 4 is not divisible by n_kv_heads 3"),
    (lambda: MultiHeadAttention(12, 4, rope="half"), "the head width for RoPE must be even, to form pairs, but is 3"),
    (lambda: MultiHeadAttention(12, 3, rope=True), "layout must be 'interleaved' or 'half' but is True"),
    (lambda: HEADS(Q), "x has shape (2, 3, 7), not (B, S, 12)"),
    (lambda: HEADS(X[None]), "x has shape (1, 2, 3, 12), not (B, S, 12)"),
    (lambda: HEADS(X, Q), "context has shape (2, 3, 7), not (B, S, 12)"),
    (lambda: HEADS(X, X[:1]), "context has batch 1 but x has 2"),
    (lambda: ROTATING(X, X), "context cannot be combined with RoPE or a cache"),
    (lambda: HEADS(X, X, cache=layer(2, 3, 5, 4)), "context cannot be combined with RoPE or a cache"),
    (lambda: HEADS(X, mask=causal_mask(3), cache=layer(2, 3, 5, 4, written=2)), "mask of shape (3, 3) is none of (3, 5), (2, 1, 5) and (2, 3, 5)"),
    (lambda: HEADS(X, cache=layer(2, 1, 5, 4)), "keys of shape (2, 3, 3, 4) do not fit a cache for batch 2, 1 key/value heads of width 4"),
    (lambda: HEADS(X, cache=layer(2, 3, 5, 7)), "keys of shape (2, 3, 3, 4) do not fit a cache for batch 2, 3 key/value heads of width 7"),
    (lambda: HEADS(X, cache=layer(2, 3, 4, 4, written=2)), "the cache holds 2 of 4 positions and 3 more do not fit"),
    (lambda: layer(2, 3, 5, 4).append(ONES, ONES[:, :1]), "values of shape (2, 1, 2, 4) do not fit a cache for batch 2, 3 key/value heads of width 4"),
    (lambda: layer(2, 3, 5, 4).append(ONES, ONES[0]), "values of shape (3, 2, 4) do not fit a cache for batch 2, 3 key/value heads of width 4"),
    (lambda: layer(2, 3, 5, 4).append(ONES, ONES[:, :, :1]), "values have 1 positions but keys have 2"),
    (lambda: layer(2, 3, 5, 4, written=4).append(ONES, ONES), "the cache holds 4 of 5 positions and 2 more do not fit"),
    (lambda: KVCache(3, 1, 1, 1, 1).layer(3), "layer must be at most 2 but is 3"),
    (lambda: LLAMA(IDS, cache=KVCache(3, 2, 3, 8, 4)), "cache has 3 layers but the model has 2"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 1, 3, 8, 4)), "keys of shape (2, 3, 5, 4) do not fit a cache for batch 1, 3 key/value heads of width 4"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 2, 3, 4, 4)), "the cache holds 0 of 4 positions and 5 more do not fit"),
    (lambda: LLAMA(torch.zeros(2, 9).long()), "9 positions are more than the model's max_length 8"),
    (lambda: generated(max_new_tokens=4), "5 tokens and 4 new ones are more than the model's max_length 8"),
    (lambda: generated(lengths=[5]), "lengths has 1 entries but ids has batch 2"),
    (lambda: generated(lengths=[6, 2]), "lengths must be from 1 to 5 but one of them is 6"),
    (lambda: generated(temperature=-0.5), "temperature must be at least 0 but is -0.5"),
    (lambda: generated(top_p=0), "top_p must be above 0 and at most 1 but is 0"),
    (lambda: generated(top_p=10**100), "top_p must be above 0 and at most 1 but is an integer of 333 bits"),
    (lambda: generated(stop=7), "stop must be at most 6 but is 7"),
    (lambda: trained(targets=IDS[:1, 0]), "targets of shape (1,) fit neither (2,) nor (2, 5)"),
    (lambda: trained(targets=IDS[:, :4]), "targets of shape (2, 4) fit neither (2,) nor (2, 5)"),
    (lambda: trained(targets=IDS + 3), "targets holds 9 but the vocabulary goes from 0 to 6"),
    (lambda: trained(targets=IDS - 1), "targets holds -1 but the vocabulary goes from 0 to 6"),
    (lambda: trained(targets=NONE), "targets are all -100, which is not counted"),
    (lambda: trained(FROZEN), "the model has no trainable parameter: all are frozen"),
    (lambda: trained(TinyCausalAttention(7).to("meta")), "the model is on the meta device, which holds no data"),
    (lambda: train_seeds(TinyCausalAttention, IDS, IDS, seeds=[], steps=1, lr=0.1), "seeds is empty"),
]  # fmt: skip
KINDS = [
    (lambda: attention(Q, K.double(), V), "k is torch.float64 but q is torch.float32"),
    (lambda: attention(Q, K, V.half()), "v is torch.float16 but q is torch.float32"),
    (lambda: padding_mask(3, 5), "lengths must be a torch.Tensor, not int: torch.tensor(...)"),
    (lambda: padding_mask(torch.ones(2), 5), "lengths must be integers of shape (B,) but are torch.float32 of shape (2,)"),
    (lambda: padding_mask(IDS, 5), "lengths must be integers of shape (B,) but are torch.int64 of shape (2, 5)"),
    (lambda: rope(X, AT > 0), "positions must be numbers but hold torch.bool"),
    (lambda: HEADS(X.double()), "x is torch.float64 but the parameters are torch.float32"),
    (lambda: HEADS(X, X.half()), "context is torch.float16 but the parameters are torch.float32"),
    (lambda: HEADS(X, cache=KVCache(1, 2, 3, 5, 4)), "cache must be KVCache.layer(i), not KVCache"),
    (lambda: HEADS(X, cache=layer(2, 3, 5, 4, dtype=torch.half)), "keys are torch.float32 on cpu but the cache holds torch.float16 on cpu"),
    (lambda: layer(2, 3, 5, 4).append(ONES, ONES.half()), "values are torch.float16 on cpu but the cache holds torch.float32 on cpu"),
    (lambda: KVCache(1, 1, 1, 1, 1, torch.int64), "dtype must be a floating point torch.dtype, not torch.int64"),
    (lambda: KVCache(1, 1, 1, 1, 1, torch.float8_e5m2), "dtype must be a floating point torch.dtype, not torch.float8_e5m2"),
    (lambda: LLAMA(IDS, cache=layer(2, 3, 8, 4)), "cache must be a KVCache, not LayerCache"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 2, 3, 8, 4, device="meta")), "keys are torch.float32 on cpu but the cache holds torch.float32 on meta"),
    (lambda: generated(None), "model must be a module with a vocab_size, not NoneType"),
    (lambda: generated(nn.Linear(2, 3)), "model must be a module with a vocab_size, not Linear"),
    (lambda: generated(TINY), "TinyCausalAttention has no cache: pass use_cache=False"),
    (lambda: generated(TINY, use_cache=False, lengths=[5, 2]), "TinyCausalAttention takes no mask: lengths cannot be used"),
    (lambda: generated(LLAMA, IDS, 1, 0.8), "use_cache must be True or False, not float"),
    (lambda: generated(temperature=1, generator=3), "generator must be a torch.Generator, not int"),
    (lambda: generated(lengths=np.array([1, 2])), "lengths must be a torch.Tensor, not ndarray: torch.tensor(...)"),
    (lambda: trained(print), "model must be a torch.nn.Module, not builtin_function_or_method"),
    (lambda: trained(inputs=lambda i, g: IDS, targets=None), "inputs must return (inputs, targets), not Tensor"),
    (lambda: trained(targets=None), "targets go with a tensor of inputs; a callable returns its own targets"),
    (lambda: trained(inputs=lambda i, g: (IDS, IDS)), "targets go with a tensor of inputs; a callable returns its own targets"),
    (lambda: trained(targets=IDS.float()), "targets must be integers of shape (B, S) but are torch.float32 of shape (2, 5)"),
    (lambda: trained(on_step=3), "on_step must be callable, not int"),
    (lambda: trained(schedule=0.5), "schedule must be callable, not float"),
]  # fmt: skip


@pytest.mark.parametrize("call, sentence", SIZES, ids=[sentence for _, sentence in SIZES])
def test_what_does_not_fit_is_refused_with_both_numbers(refuses, call, sentence):
    refuses(ValueError, sentence, call)


@pytest.mark.parametrize("call, sentence", KINDS, ids=[sentence for _, sentence in KINDS])
def test_the_wrong_kind_of_argument_is_refused_with_the_right_one(refuses, call, sentence):
    refuses(TypeError, sentence, call)


def test_bad_input_leaves_model_and_cache_unchanged():
    before = {name: p.clone() for name, p in TINY.named_parameters()}
    with pytest.raises(ValueError):
        trained(targets=IDS[:1, 0], lr=1.0)
    assert all(torch.equal(p, before[name]) for name, p in TINY.named_parameters())
    cache, one_layer = LLAMA.new_cache(2), layer(2, 3, 5, 4)
    with pytest.raises(TypeError):
        LLAMA(IDS, torch.ones(5, 5), cache)
    with pytest.raises(ValueError):
        one_layer.append(ONES, ONES[:, :, :1])
    for buffers in (cache, one_layer.cache):
        assert buffers.length == 0 and not buffers.keys.any() and not buffers.values.any()
