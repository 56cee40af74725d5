"""Heads and the two models: by hand, against PyTorch and by property."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from attnlab import (
    MultiHeadAttention,
    TinyCausalAttention,
    causal_mask,
    merge_heads,
    padding_mask,
    rope,
    split_heads,
)
from attnlab.model import rms_norm


def identity_heads(width, n_heads, **options):
    """Multi-head attention whose four projections change nothing."""
    heads = MultiHeadAttention(width, n_heads, **options)
    for linear in (heads.w_q, heads.w_k, heads.w_v, heads.w_o):
        nn.init.eye_(linear.weight)
    return heads.requires_grad_(False)


# --- Multi-head attention by hand -----------------------------------------------------------


def test_scores_are_divided_by_the_root_of_the_head_width(close):
    """The root of the model width would give 0.8044, of the number of heads 0.9442."""
    x = torch.stack((torch.ones(8), torch.zeros(8)))[None]
    weights = identity_heads(8, 2)(x).weights
    close(weights[0, :, 0], [[0.8808, 0.1192], [0.8808, 0.1192]])


def test_each_head_looks_where_it_wants(close):
    x, context = torch.tensor([[[30.0, 30.0]]]), torch.tensor([[[30.0, 0.0], [0.0, 30.0]]])
    steps = identity_heads(2, 2)(x, context)
    close(steps.weights, [[[[1, 0]], [[0, 1]]]])
    close(steps.output, [[[30, 30]]])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_queries_and_keys_are_rotated_and_values_are_not(layout, close):
    x = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]])
    itself = torch.eye(3, dtype=torch.bool)
    steps = identity_heads(2, 1, rope=layout)(x, mask=itself)
    close(steps.output, x)
    angle = torch.tensor(1.0)
    close(steps.raw[0, 0, 2, 1], angle.cos())  # one position further
    close(steps.raw[0, 0, 1, 0], angle.sin())


def test_linear_layers_store_the_transpose(close):
    heads = identity_heads(2, 1)
    heads.w_v.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T)  # W_V = [[1, 2], [3, 4]]
    close(heads(torch.tensor([[[1.0, 0.0]]])).output, [[[1, 2]]])


# --- Multi-head attention against PyTorch ---------------------------------------------------


def masks(n_keys):
    some = torch.rand(2, 5, n_keys, generator=torch.Generator().manual_seed(3)) > 0.5
    some[..., 0] = True  # PyTorch's module gives NaN for a query that may attend to nothing
    return {
        "none": None,
        "queries x keys": some[0],
        "keys of each sequence": padding_mask([n_keys, 2], n_keys),
        "one for each sequence": some,
        "one for all sequences": some[:1],
    }


@pytest.mark.parametrize("kind", masks(5))
@pytest.mark.parametrize("crossed, bias", [(False, True), (True, False)], ids=["self", "cross"])
def test_equals_pytorchs_module_given_the_same_parameters(kind, crossed, bias):
    ours = MultiHeadAttention(12, 3, bias=bias)
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True)
    linears = (ours.w_q, ours.w_k, ours.w_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
        theirs.out_proj.weight.copy_(ours.w_o.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
            theirs.out_proj.bias.copy_(ours.w_o.bias)
    x = torch.randn(2, 5, 12)
    context = torch.randn(2, 7, 12) if crossed else None
    source = context if crossed else x
    mask = masks(source.shape[1])[kind]
    hidden = None  # True means ignore there, and heads and batch share an axis
    if mask is not None:
        hidden = ~mask.expand(2, 5, source.shape[1]).repeat_interleave(3, dim=0)
    output, weights = theirs(x, source, source, attn_mask=hidden, average_attn_weights=False)
    steps = ours(x, context, mask)
    assert_close(steps.output, output, atol=1e-5, rtol=0)
    assert_close(steps.weights, weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "n_kv_heads, layout", [(None, "half"), (3, None), (2, "interleaved"), (1, "half")]
)
def test_query_heads_share_key_value_heads_in_groups(n_kv_heads, layout):
    heads = MultiHeadAttention(24, 6, n_kv_heads, layout).double()
    x = torch.randn(2, 5, 24, dtype=torch.float64)
    mask = causal_mask(5)
    q = split_heads(x @ heads.w_q.weight.T, 6)
    k, v = (split_heads(x @ w.weight.T, n_kv_heads or 6) for w in (heads.w_k, heads.w_v))
    if layout:
        q, k = (rope(z, torch.arange(5), layout=layout) for z in (q, k))
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    steps = heads(x, mask=mask)
    assert_close(steps.output, merge_heads(expected) @ heads.w_o.weight.T)
    assert [tuple(z.shape) for z in steps] == [(2, 6, 5, 5)] * 4 + [(2, 5, 24)]
    assert steps.output.dtype == torch.float64


@pytest.mark.parametrize("n_kv_heads", [6, 2], ids=["MHA", "GQA"])
def test_the_scale_is_that_of_the_queries_there_are(n_kv_heads):
    heads = MultiHeadAttention(24, 6, n_kv_heads)
    heads.w_q, heads.w_k = nn.Linear(24, 12), nn.Linear(24, 2 * n_kv_heads)  # d_k = 2, not 4
    steps = heads(torch.randn(1, 3, 24))
    assert_close(steps.scaled, steps.raw / 2**0.5)


def test_what_multi_head_attention_learns():
    for n_kv_heads, width in ((None, 24), (3, 12), (1, 4)):
        shapes = {"w_q": (24, 24), "w_k": (width, 24), "w_v": (width, 24), "w_o": (24, 24)}
        heads = MultiHeadAttention(24, 6, n_kv_heads)
        assert {n: tuple(p.shape) for n, p in heads.named_parameters()} == {
            f"{name}.weight": shape for name, shape in shapes.items()
        }
        biased = dict(MultiHeadAttention(24, 6, n_kv_heads, bias=True).named_parameters())
        assert {f"{name}.bias" for name in shapes} <= set(biased)


def test_hooks_run_and_another_attention_module_takes_the_place_of_ours(small_llama, ids):
    """Within a block the module is called as any other, though its check is skipped."""
    model, seen = small_llama(), []
    hook = model.blocks[1].attention.register_forward_hook(lambda *args: seen.append(args[2]))
    steps = model.steps(ids)
    assert seen[0].weights is steps[1].weights
    hook.remove()

    class Last(nn.Module):
        def forward(self, x, mask=None, cache=None):
            return inner(x, mask=mask, cache=cache)

    expected, inner = model(ids), model.blocks[1].attention
    model.blocks[1].attention = Last()
    assert torch.equal(model(ids), expected)


def test_a_fully_masked_row_costs_neither_the_output_nor_the_gradients():
    heads = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12, requires_grad=True)
    mask = causal_mask(5) & ~torch.eye(5, dtype=torch.bool)  # the first may attend to nothing
    steps = heads(x, mask=mask)
    assert not steps.output[:, 0].any() and steps.output[:, 1:].isfinite().all()
    steps.output.square().sum().backward()
    for tensor in (x, *heads.parameters()):
        assert tensor.grad.isfinite().all() and tensor.grad.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_heads_keep_the_dtype(dtype):
    heads = MultiHeadAttention(12, 3, rope="half").to(dtype)
    steps = heads(torch.randn(2, 5, 12, dtype=dtype), mask=causal_mask(5))
    assert {x.dtype for x in steps} == {dtype}


# --- Two models -----------------------------------------------------------------------------


def test_tiny_causal_attention_is_its_formula(ids):
    model = TinyCausalAttention(7, 12).requires_grad_(False)
    assert [name for name, _ in model.named_children()] == "emb q k v o norm lm_head".split()
    x = model.emb.weight[ids % 7]
    q, k, v = (x @ linear.weight.T for linear in (model.q, model.k, model.v))
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    steps = model.steps(ids % 7)
    assert_close(steps.output, heads)
    assert_close(steps.raw, q @ k.mT)
    hidden = F.layer_norm(x + heads @ model.o.weight.T, (12,), model.norm.weight, model.norm.bias)
    logits = hidden @ model.lm_head.weight.T + model.lm_head.bias
    assert_close(model(ids % 7), logits)
    assert logits.shape == (3, 7, 7)


def test_the_seed_fixes_the_start_of_tiny_causal_attention():
    """Parameters are made in this order, so a seed gives the curriculum's figures."""
    torch.manual_seed(42)
    made = [nn.Embedding(5, 12)] + [nn.Linear(12, 12, bias=False) for _ in range(4)]
    made += [nn.LayerNorm(12), nn.Linear(12, 5)]
    torch.manual_seed(42)
    ours = list(TinyCausalAttention().parameters())
    theirs = [p for module in made for p in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def llama_by_hand(p, ids, n_heads, n_kv_heads, mask):
    """The transformer once more, from its parameters by name, with PyTorch's own functions."""

    def rotated(z):  # "half" layout: the two halves are real and imaginary parts
        n, d = z.shape[-2:]
        angles = torch.outer(torch.arange(n), 10000.0 ** (-torch.arange(d // 2) * 2 / d).double())
        z = torch.complex(z[..., : d // 2], z[..., d // 2 :]) * torch.exp(1j * angles)
        return torch.cat((z.real, z.imag), dim=-1)

    def norm(z, name):
        return z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-6) * p[name]

    def linear(z, name):
        return z @ p[name + ".weight"].T

    x = p["emb.weight"][ids]
    for i in range(2):
        at = f"blocks.{i}."
        z = norm(x, at + "attention_norm")
        q = linear(z, at + "attention.w_q").unflatten(-1, (n_heads, -1)).transpose(1, 2)
        k = linear(z, at + "attention.w_k").unflatten(-1, (n_kv_heads, -1)).transpose(1, 2)
        v = linear(z, at + "attention.w_v").unflatten(-1, (n_kv_heads, -1)).transpose(1, 2)
        z = F.scaled_dot_product_attention(
            rotated(q), rotated(k), v, attn_mask=mask, enable_gqa=True
        )
        x = x + linear(z.transpose(1, 2).flatten(2), at + "attention.w_o")
        z = norm(x, at + "mlp_norm")
        gate, up = (z @ p[at + "gate_up"].T).chunk(2, dim=-1)
        x = x + (F.silu(gate) * up) @ p[at + "down"].T
    return linear(norm(x, "norm"), "lm_head")


@pytest.mark.parametrize("n_kv_heads, size", [(6, 1.0), (2, 1e-3)], ids=["MHA", "GQA, small"])
def test_the_transformer_is_a_small_llama(n_kv_heads, size, small_llama, ids):
    """At the small size the eps of the norms counts."""
    model = small_llama(n_kv_heads, dtype=torch.float64)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.normal_()
    model.emb.weight.mul_(size)
    parameters = dict(model.named_parameters())
    expected = llama_by_hand(parameters, ids, 6, n_kv_heads, causal_mask(7))
    assert_close(model(ids), expected, atol=1e-9, rtol=0)
    ragged = causal_mask(7) & padding_mask([7, 3, 5], 7)
    expected = llama_by_hand(parameters, ids, 6, n_kv_heads, ragged[:, None])
    assert_close(model(ids, padding_mask([7, 3, 5], 7)), expected, atol=1e-9, rtol=0)
    assert parameters["blocks.1.gate_up"].shape == (2 * 4 * 24, 24)
    assert not any("bias" in name for name in parameters)
    assert parameters["lm_head.weight"] is not parameters["emb.weight"]


def test_steps_of_the_transformer(small_llama, ids):
    steps = small_llama().steps(ids)
    assert len(steps) == 2
    for layer in steps:
        assert [tuple(x.shape) for x in layer] == [(3, 6, 7, 7)] * 4 + [(3, 7, 24)]
        assert not layer.weights.triu(1).any()
        assert_close(layer.weights.sum(-1), torch.ones(3, 6, 7))
    model = small_llama()
    first, x = model.blocks[0], model.emb(ids)
    alone = first.attention(rms_norm(x, first.attention_norm), mask=causal_mask(7))
    assert_close(steps[0].raw, alone.raw)
    assert not torch.isclose(steps[1].raw, alone.raw).any()


def test_in_a_model_too_the_future_changes_nothing(small_llama, ids):
    edited = ids.clone()
    edited[:, 4:] = (edited[:, 4:] + 1) % 11
    for model in (TinyCausalAttention(11), small_llama()):
        before, after = model(ids), model(edited)
        assert_close(after[:, :4], before[:, :4])
        assert not torch.isclose(after[:, 4:], before[:, 4:]).all(dim=-1).any()
        assert_close(model(ids[:, :4]), before[:, :4])


def test_the_transformer_stays_causal_whatever_the_mask(small_llama, ids):
    model = small_llama()
    for given in (causal_mask(7), torch.ones(3, 7, 7, dtype=torch.bool)):
        assert_close(model(ids, given), model(ids))
