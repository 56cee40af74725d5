"""Whatever state PyTorch is in: the functions still work, and leave nothing of it behind."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    attention,
    causal_mask,
    generate,
    padding_mask,
    rope,
    train,
)
from attnlab.core import rope_at, rope_cache
from attnlab.training import evaluate, next_token_loss, seeded, train_seeds

PHRASES, SENSES = torch.tensor([[0, 2], [1, 2]]), torch.tensor([3, 4])


# --- Where no values can be read ------------------------------------------------------------


def test_models_are_exported_with_any_length(small_llama, ids):
    model, length = small_llama(2), torch.export.Dim("length", min=2, max=12)
    exported = torch.export.export(model, (ids,), dynamic_shapes=({1: length},)).module()
    for n in (7, 3):
        assert_close(exported(ids[:, :n]), model(ids[:, :n]))
    assert type(model(ids)) is torch.Tensor  # nothing of the export is left in the cached angles


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Guards may run slower on Python 3.13.0:RuntimeWarning")
def test_models_compile_to_a_single_graph(small_llama, ids):
    model = small_llama(2)
    heads = MultiHeadAttention(24, 6, rope="half").requires_grad_(False)
    x, cache, lengths = torch.randn(3, 5, 24), KVCache(1, 3, 6, 5, 4), torch.tensor([7, 3, 5])
    for function, argument in [
        (lambda ids: next_token_loss(model(ids, padding_mask(lengths, 7)), ids), ids),
        (lambda x: heads(x, mask=causal_mask(5), cache=cache.layer(0)).output, x),
    ]:
        compiled = torch.compile(function, fullgraph=True, backend="eager")(argument)
        cache.reset()
        assert_close(compiled, function(argument))


def test_shapes_are_computed_without_values(small_llama, ids):
    rope_cache.cache_clear()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        model = TinyTransformer(11, 24, 6, 2, 12)
        assert next_token_loss(model(mode.from_tensor(ids)), mode.from_tensor(ids)).shape == ()
        heads = MultiHeadAttention(24, 6, rope="half")
        assert heads(torch.randn(3, 7, 24)).output.shape == (3, 7, 24)
    on_meta = small_llama(2).to("meta")
    cache = on_meta.new_cache(3)
    assert on_meta(ids.to("meta"), cache=cache).shape == (3, 7, 11)
    assert next_token_loss(on_meta(ids.to("meta")), ids.to("meta")).is_meta
    assert padding_mask(torch.tensor([3, 5], device="meta"), 7).shape == (2, 1, 7)
    assert TinyCausalAttention(11).to("meta")(ids.to("meta")).shape == (3, 7, 11)
    assert type(small_llama(2)(ids)) is torch.Tensor  # the cached angles hold values


@pytest.mark.parametrize("make", [TinyCausalAttention, lambda: TinyTransformer(5, 12, 3, 2, 8)])
def test_gradients_per_sample(make):
    model = seeded(make, 3)

    def loss(parameters, x, y):
        logits = torch.func.functional_call(model, parameters, (x[None],))
        return next_token_loss(logits, y[None])

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    together = per_sample(dict(model.named_parameters()), PHRASES, SENSES)
    for i in range(2):
        alone = next_token_loss(model(PHRASES[i : i + 1]), SENSES[i : i + 1])
        expected = torch.autograd.grad(alone, list(model.parameters()))
        assert_close([grad[i] for grad in together.values()], list(expected))


@pytest.mark.parametrize("transform", [torch.func.functionalize, torch.func.grad, torch.func.vmap])
def test_angles_cached_inside_a_transform_serve_outside(transform):
    rope_cache.cache_clear()
    x = torch.randn(5, 12) if transform is not torch.func.vmap else torch.randn(3, 5, 12)
    transform(lambda x: (rope_at(0, x, "half") ** 3).sum())(x)
    again = x.clone().requires_grad_()
    (rope_at(0, again, "half") ** 2).sum().backward()
    assert_close(again.grad, 2 * x)


# --- Autocast, inference mode, default device and dtype -------------------------------------


def decided(model):
    """The model with logits that rounding to bfloat16 does not reorder."""
    model.lm_head.weight.copy_(torch.eye(11, 24))
    model.emb.weight.mul_(8)
    return model


@pytest.mark.parametrize("n_kv_heads", [6, 2], ids=["MHA", "GQA"])
def test_autocast_writes_the_same_text_with_and_without_the_cache(small_llama, ids, n_kv_heads):
    model = decided(small_llama(n_kv_heads))
    text = generate(model, ids, 5)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            assert model.new_cache(1).keys.dtype == dtype
            for options in ({}, {"lengths": [7, 7, 7]}):
                cached = generate(model, ids, 5, **options)
                assert torch.equal(cached, generate(model, ids, 5, use_cache=False, **options))
                assert torch.equal(cached, text)
            double = small_llama(n_kv_heads, torch.float64)  # autocast leaves it alone
            assert torch.equal(generate(double, ids, 5), generate(double, ids, 5, False))


def test_autocast_mixes_dtypes_as_in_pytorch():
    x = torch.randn(2, 5, 12)
    heads = MultiHeadAttention(12, 3).requires_grad_(False)
    with torch.autocast("cpu", torch.bfloat16):
        expected = heads(x).output
        assert_close(heads(x, x.bfloat16()).output, expected, atol=2e-2, rtol=0)
        assert_close(heads(x.bfloat16()).output, expected, atol=2e-2, rtol=0)
        mixed = attention(x, x.bfloat16(), x).output
        assert_close(mixed, attention(x, x, x).output, atol=2e-2, rtol=0)
        assert train(TinyCausalAttention(), PHRASES, SENSES, steps=2, lr=0.1).losses


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_what_was_made_without_gradients_serves_outside(small_llama, ids, mode):
    model = small_llama()
    rope_cache.cache_clear()
    with mode():
        cache = model.new_cache(3)
        model(ids[:, :5], cache=cache)
    assert_close(model(ids[:, 5:], cache=cache), model(ids)[:, 5:])
    model.requires_grad_()(ids).sum().backward()
    assert model.emb.weight.grad.any()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_training_needs_no_gradients_of_the_caller(mode):
    def make():
        return TinyCausalAttention().double()

    def losses():
        model = seeded(make, 42)
        return train(model, PHRASES, SENSES, steps=3, lr=0.03).losses

    expected = losses()
    model = seeded(make, 42)
    with mode():
        history = train(model, PHRASES, SENSES, steps=3, lr=0.03)
        together = train_seeds(make, PHRASES, SENSES, seeds=[42], steps=3, lr=0.03)[1]
        assert not torch.is_grad_enabled()
    assert history.losses == expected == pytest.approx(together[0].tolist())


def test_a_model_made_in_inference_mode_cannot_be_trained(refuses):
    with torch.inference_mode():
        model = TinyCausalAttention()
    sentence = "the model was made in inference mode and cannot be trained"
    refuses(ValueError, sentence, train, model, PHRASES, SENSES, steps=1, lr=0.1)


def test_the_default_device_is_not_used_where_a_tensor_has_one(small_llama, ids, tmp_path):
    model, tiny, lengths = small_llama(2), TinyCausalAttention(), [7, 5, 2]
    x, positions = torch.randn(2, 3, 4), torch.arange(3)
    mask = padding_mask(torch.tensor(lengths), 7)
    rope_cache.cache_clear()
    with torch.device("meta"):
        assert rope(x, positions).device.type == "cpu"
        assert attention(x, x, x, causal_mask(3, device="cpu")).output.device.type == "cpu"
        cache = model.new_cache(3)
        assert cache.keys.device.type == model(ids, mask, cache).device.type == "cpu"
        for use_cache in (True, False):
            text = generate(model, ids, 2, use_cache, lengths=lengths, stop=3)
            assert text.device.type == "cpu"
        options = {"lr": 0.1, "clip": 1.0}
        train(tiny, PHRASES, SENSES, steps=2, checkpoint=tmp_path / "run.pt", **options)
        train(tiny, PHRASES, SENSES, steps=3, resume=tmp_path / "run.pt", **options)
        assert evaluate(tiny, PHRASES, SENSES) > 0


def test_the_default_dtype_decides_parameters_and_nothing_else(ids):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        model = TinyTransformer(11, 24, 6, 2, 12)
        assert {x.dtype for x in model.steps(ids)[1]} == {torch.float64}
        assert model.new_cache(1).keys.dtype == torch.float64
        assert torch.equal(generate(model, ids, 3), generate(model, ids, 3, use_cache=False))
        assert rope(torch.randn(3, 4).float(), torch.arange(3)).dtype == torch.float32
        assert train(model, ids, ids, steps=2, lr=0.01).losses
    finally:
        torch.set_default_dtype(before)


# --- Devices --------------------------------------------------------------------------------


def test_results_are_on_the_device_of_the_inputs():
    x = torch.empty(2, 3, 5, 12, device="meta")
    assert {step.device.type for step in attention(x, x, x, causal_mask(5, device="meta"))} == {
        "meta"
    }
    assert rope(x, torch.arange(5, device="meta")).is_meta
    assert KVCache(1, 2, 3, 5, 7, device="meta").values.is_meta
    heads = MultiHeadAttention(12, 3, 1, "half").to("meta")
    assert heads(x[0]).output.is_meta


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # PyTorch's own use of it
def test_the_cache_stores_values_without_gradients_and_tangents(small_llama, ids):
    model, (fw, x) = (
        small_llama().requires_grad_(),
        (torch.autograd.forward_ad, torch.ones(3, 7, 24)),
    )
    cache = model.new_cache(3)
    model(ids[:, :5], cache=cache)
    assert model(ids[:, 5:], cache=cache).requires_grad
    assert not cache.keys.requires_grad and not cache.values.requires_grad
    heads = MultiHeadAttention(24, 6, rope="half").requires_grad_(False)
    cache = KVCache(1, 3, 6, 7, 4)
    with fw.dual_level():
        heads(fw.make_dual(x, torch.ones_like(x)), cache=cache.layer(0))
        assert fw.unpack_dual(cache.keys).tangent is None
        assert fw.unpack_dual(cache.values).tangent is None


class Caching(nn.Module):
    """A user's model that makes its mask when it first runs, and caches it."""

    def __init__(self):
        super().__init__()
        self.vocab_size, self.scale, self.mask = 5, nn.Parameter(torch.ones(5)), None

    def forward(self, ids):
        if self.mask is None:
            self.mask = torch.ones(5) / 2
        return (self.scale * self.mask).expand(*ids.shape, 5)


def test_what_a_model_caches_while_generating_serves_training():
    model = Caching()
    text = generate(model, PHRASES, 3, use_cache=False)
    assert not text.is_inference()
    model(text).sum().backward()
    assert model.scale.grad.all()
