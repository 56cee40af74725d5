"""Given the same parameters, Hugging Face's Llama and ours compute the same.

transformers is needed here and in tests/bench only; the course never imports it.
"""

import re
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import attnlab
from attnlab import MultiHeadAttention, TinyTransformer, causal_mask, generate, padding_mask, rope
from attnlab.training import seeded

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[test]'")
from bench.llama import llama_of  # noqa: E402
from transformers.models.llama import modeling_llama  # noqa: E402

HEADS = pytest.mark.parametrize("n_kv_heads", [6, 2], ids=["MHA", "GQA"])
IDS = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(2))


def both(n_kv_heads):
    """Our transformer, its norms no longer all ones, and a Llama with the same parameters."""
    ours = seeded(lambda: TinyTransformer(11, 24, 6, 2, 12, n_kv_heads), 5)
    for name, p in ours.requires_grad_(False).named_parameters():
        if "norm" in name:
            p.uniform_(0.5, 2, generator=torch.Generator().manual_seed(len(name)))
    return ours, llama_of(ours)


def close(actual, expected):
    assert_close(actual, expected, atol=1e-5, rtol=0)


def test_rope_in_the_half_layout_is_theirs():
    """The Hugging Face port, that is; Meta's own code pairs neighbours."""
    _, llama = both(2)
    q, k, positions = torch.randn(2, 6, 5, 4), torch.randn(2, 2, 5, 4), torch.arange(3, 8)
    cos, sin = modeling_llama.LlamaRotaryEmbedding(llama.config)(q, positions[None])
    theirs = modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)
    for ours, rotated in zip((q, k), theirs, strict=True):
        close(rope(ours, positions, layout="half"), rotated)
        assert not torch.allclose(rope(ours, positions), rotated, atol=1e-2)


@HEADS
def test_grouped_query_attention_is_theirs(n_kv_heads):
    ours, llama = both(n_kv_heads)
    attention = llama.model.layers[0].self_attn
    assert isinstance(ours.blocks[0].attention, MultiHeadAttention)
    x, mask = torch.randn(3, 7, 24), causal_mask(7)
    angles = llama.model.rotary_emb(x, torch.arange(7)[None])
    bias = torch.zeros(7, 7).masked_fill(~mask, -torch.inf)[None, None]
    output, weights = attention(x, position_embeddings=angles, attention_mask=bias)
    steps = ours.blocks[0].attention(x, mask=mask)
    close(steps.output, output)
    close(steps.weights, weights)


@HEADS
def test_logits_are_theirs(n_kv_heads):
    ours, llama = both(n_kv_heads)
    close(ours(IDS), llama(IDS).logits)
    valid = padding_mask([7, 5, 2], 7)
    padded = llama(IDS, attention_mask=valid[:, 0].long()).logits
    for row, n in enumerate([7, 5, 2]):
        close(ours(IDS, valid)[row, :n], padded[row, :n])


@HEADS
def test_generation_is_theirs(n_kv_heads):
    ours, llama = both(n_kv_heads)
    options = {"do_sample": False, "max_new_tokens": 5, "min_new_tokens": 5}
    theirs = llama.generate(IDS, attention_mask=torch.ones_like(IDS), **options)
    assert torch.equal(generate(ours, IDS, 5), theirs)


def test_the_course_does_not_import_transformers():
    files = list(Path(attnlab.__file__).parent.rglob("*.py"))
    assert len(files) > 10
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) transformers", text, re.MULTILINE), path
