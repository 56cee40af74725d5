"""Checkpoints of a real architecture: made here by transformers, read here, the same numbers."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from attnlab import TinyTransformer, causal_mask, generate, padding_mask, rope
from attnlab.core import rope_at
from attnlab.llama import load_llama

REASON = "is not installed: pip install '.[test]'"
transformers = pytest.importorskip("transformers", reason=f"transformers {REASON}")
tokenizers = pytest.importorskip("tokenizers", reason=f"tokenizers {REASON}")
safetensors_torch = pytest.importorskip("safetensors.torch", reason=f"safetensors {REASON}")

SHAPES = {
    "MHA": {},
    "GQA": {"num_key_value_heads": 2},
    "MQA, tied": {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "wide MLP, another base": {"intermediate_size": 100, "rope_theta": 300.0},
    "one block, large eps": {"num_hidden_layers": 1, "rms_norm_eps": 0.3},
}
IDS = torch.randint(37, (3, 7), generator=torch.Generator().manual_seed(2))


def make(folder, dtype=torch.float32, shards="1GB", **settings):
    """Save a random Llama in a folder and return it; its norms are not all ones."""
    config = transformers.LlamaConfig(
        **{
            "vocab_size": 37,
            "hidden_size": 24,
            "intermediate_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "max_position_embeddings": 32,
            "attn_implementation": "eager",
            "pad_token_id": 0,
            "eos_token_id": None,
        }
        | settings
    )
    torch.manual_seed(len(settings))
    theirs = transformers.LlamaForCausalLM(config).to(dtype).eval().requires_grad_(False)
    for name, p in theirs.named_parameters():
        p.uniform_(0.5, 2) if "norm" in name else p.normal_(0, 0.3)
    theirs.save_pretrained(folder, max_shard_size=shards)
    return theirs


def edit(folder, **settings):
    """Change the entries of a configuration; None takes one away."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | settings
    kept = {name: value for name, value in config.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")


def retensor(folder, **tensors):
    """Change the tensors in a folder's file; None takes one away."""
    path = folder / "model.safetensors"
    named = {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    stored = safetensors_torch.load_file(path) | named
    kept = {name: tensor.clone() for name, tensor in stored.items() if tensor is not None}
    safetensors_torch.save_file(kept, path)


def close(actual, expected, atol=2e-5):
    assert_close(actual, expected, atol=atol, rtol=1e-4)


# --- The same numbers ---


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_logits_and_attention_weights_are_theirs(settings, tmp_path):
    theirs = make(tmp_path, **settings)
    ours, tokenizer = load_llama(tmp_path)
    assert tokenizer is None
    assert isinstance(ours, TinyTransformer) and ours.max_length == 32
    expected = theirs(IDS, output_attentions=True)
    close(ours(IDS), expected.logits)
    for steps, weights in zip(ours.steps(IDS), expected.attentions, strict=True):
        close(steps.weights, weights)
    assert (ours.lm_head.weight is ours.emb.weight) == settings.get("tie_word_embeddings", False)
    assert not any(p.is_meta for p in ours.parameters())
    ours_total, theirs_total = (sum(p.numel() for p in m.parameters()) for m in (ours, theirs))
    assert ours_total == theirs_total


def test_each_setting_changes_the_logits_so_that_ignoring_one_would_be_seen(tmp_path):
    make(tmp_path)
    reference = load_llama(tmp_path)[0](IDS)
    for changed in ({"rope_parameters": {"rope_theta": 300.0}}, {"rms_norm_eps": 0.3}):
        edit(tmp_path, **changed)
        assert (load_llama(tmp_path)[0](IDS) - reference).abs().max() > 0.01
        edit(tmp_path, rope_parameters=None, rms_norm_eps=None)
    assert torch.equal(load_llama(tmp_path)[0](IDS), reference)  # 10,000 and 1e-6 if omitted


def test_bfloat16_stays_bfloat16(tmp_path):
    theirs = make(tmp_path, torch.bfloat16, num_key_value_heads=3)
    ours = load_llama(tmp_path)[0]
    assert {p.dtype for p in ours.parameters()} == {torch.bfloat16}
    logits, expected = ours(IDS), theirs(IDS).logits
    assert logits.dtype == torch.bfloat16
    assert (logits - expected).abs().max() < 0.05 * expected.abs().max()


def test_a_sharded_checkpoint_is_the_same_model(tmp_path):
    make(tmp_path / "whole")
    make(tmp_path / "sharded", shards="9KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 2
    (tmp_path / "sharded/other.safetensors").write_bytes(b"not listed by the index")
    whole, sharded = (load_llama(tmp_path / name)[0] for name in ("whole", "sharded"))
    for name, p in whole.named_parameters():
        assert torch.equal(sharded.get_parameter(name), p), name


def test_generation_with_our_cache_is_theirs(tmp_path):
    theirs = make(tmp_path, num_key_value_heads=2, rope_theta=500.0)
    ours = load_llama(tmp_path)[0]
    options = {"do_sample": False, "max_new_tokens": 9, "min_new_tokens": 9}
    expected = theirs.generate(IDS, attention_mask=torch.ones_like(IDS), **options)
    assert torch.equal(generate(ours, IDS, 9), expected)
    assert torch.equal(generate(ours, IDS, 9, use_cache=False), expected)


def test_the_cache_in_pieces_and_padding_give_the_same_logits_with_another_base(tmp_path):
    make(tmp_path, rope_theta=500.0, num_key_value_heads=2)
    ours = load_llama(tmp_path)[0]
    whole, cache = ours(IDS), ours.new_cache(3)
    close(torch.cat([ours(x, cache=cache) for x in IDS.split((3, 1, 3), dim=1)], dim=1), whole)
    padded = ours(IDS, padding_mask([7, 4, 2], 7))
    close(padded[2, :2], ours(IDS[2:, :2])[0])


def test_it_can_be_trained_further_and_a_tied_table_stays_one(tmp_path):
    make(tmp_path, tie_word_embeddings=True)
    ours = load_llama(tmp_path)[0]
    ours(IDS).sum().backward()
    torch.optim.SGD(ours.parameters(), lr=0.1).step()
    assert ours.lm_head.weight is ours.emb.weight
    again = TinyTransformer(37, 24, 6, 2, 32, hidden=20, tied=True)
    again.load_state_dict(ours.state_dict())
    close(again(IDS), ours(IDS))


def test_older_names_of_entries_are_understood(tmp_path):
    theirs = make(tmp_path, rope_theta=700.0)
    edit(tmp_path, rope_parameters=None, rope_theta=700.0, num_key_value_heads=None, head_dim=None)
    retensor(tmp_path, **{"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)})
    close(load_llama(tmp_path)[0](IDS), theirs(IDS).logits)


def test_a_second_copy_of_a_tied_table_is_left_out(tmp_path):
    theirs = make(tmp_path, tie_word_embeddings=True)
    retensor(tmp_path, lm_head__weight=torch.zeros(37, 24))
    close(load_llama(str(tmp_path))[0](IDS), theirs(IDS).logits)


# --- A tokenizer ---


def add_tokenizer(folder, words):
    vocabulary = {word: i for i, word in enumerate(["<unk>", *words])}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


def test_its_own_words_are_read_and_written(tmp_path):
    make(tmp_path)
    add_tokenizer(tmp_path, "the river bank was green again in spring".split())
    model, tokenizer = load_llama(tmp_path)
    ids = torch.tensor([tokenizer.encode("the green bank").ids])  # (1, S)
    assert ids.tolist() == [[1, 5, 3]]
    written = generate(model, ids, 4)[0].tolist()
    assert tokenizer.decode(written).startswith("the green bank")
    steps = model.steps(ids)
    assert steps[0].weights.shape == (1, 6, 3, 3)
    assert not steps[1].weights[0, :, ~causal_mask(3)].any()
    assert [tokenizer.id_to_token(i) for i in ids[0].tolist()] == ["the", "green", "bank"]


def test_a_tokenizer_with_more_words_than_the_model_is_refused(tmp_path):
    make(tmp_path)
    add_tokenizer(tmp_path, [f"word{i}" for i in range(40)])
    with pytest.raises(ValueError, match="^the tokenizer has 41 tokens but the model has 37$"):
        load_llama(tmp_path)


# --- Refusals, one sentence each ---

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "rope_theta": 500.0}
REFUSED = {
    "another architecture": ({"model_type": "gpt2"}, "^the model is 'gpt2' with 'silu', not 'llam"),
    "another activation": (
        {"hidden_act": "gelu"},
        "^the model is 'llama' with 'gelu', not 'llama'",
    ),
    "scaled RoPE": (
        {"rope_parameters": LLAMA3},
        "^RoPE is scaled by the rule 'llama3'; TinyTransf",
    ),
    "scaled RoPE, older": (
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        "^RoPE is scaled by the rule 'linear'; TinyTransformer scales it by none$",
    ),
    "biases in attention": ({"attention_bias": True}, "^the model has biases in its projections; "),
    "biases in the MLP": ({"mlp_bias": True}, "^the model has biases in its projections; TinyTran"),
    "another head_dim": ({"head_dim": 8}, "^head_dim is 8, not hidden_size / heads = 24 / 6$"),
    "no width": ({"hidden_size": None}, "^config.json has no hidden_size$"),
    "too many heads": (
        {"num_attention_heads": 5, "head_dim": None},
        "^width 24 is not divisible by n_heads 5",
    ),
    "an eps of zero": ({"rms_norm_eps": 0.0}, "^eps must be above 0 but is 0.0$"),
    "a wrong width of the MLP": (
        {"intermediate_size": 21},
        r"^model.layers.0.mlp.gate_proj.weight has shape \(20, 24\) but by config.json it is \(21,",
    ),
    "a block too many": (
        {"num_hidden_layers": 3},
        "^the files have no model.layers.2.input_layernorm.weight$",
    ),
    "a block too few": (
        {"num_hidden_layers": 1},
        "^the files have model.layers.1.input_layernorm.weight, which a TinyTransformer has not$",
    ),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    make(folder)
    return folder


@pytest.fixture
def copy(checkpoint, tmp_path):
    return shutil.copytree(checkpoint, tmp_path / "copy")


def refused(folder, kind, message):
    with pytest.raises(kind, match=message) as caught:
        load_llama(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings, message", REFUSED.values(), ids=REFUSED)
def test_a_configuration_that_does_not_fit_is_refused(settings, message, copy):
    edit(copy, **settings)
    refused(copy, ValueError, message)


def test_a_size_that_is_no_number_is_refused(copy):
    edit(copy, vocab_size="37")
    refused(copy, TypeError, "^vocab_size must be an int")


@pytest.mark.parametrize(
    "tensors, message",
    [
        ({"lm_head__weight": None}, "^the files have no lm_head.weight$"),
        (
            {"model__norm__weight": torch.ones(23)},
            r"has shape \(23,\) but by config.json it is \(24",
        ),
        (
            {"model__layers__1__self_attn__q_proj__bias": torch.ones(24)},
            "^the files have model.layers.1.self_attn.q_proj.bias, which a TinyTransformer has n",
        ),
        (
            {"model__norm__weight": torch.ones(24).bfloat16()},
            "^the parameters are torch.bfloat16, torch.float32, not all float32 or all bfloat16$",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensors, message, copy):
    retensor(copy, **tensors)
    refused(copy, ValueError, message)


def test_float16_is_refused(tmp_path):
    make(tmp_path, torch.float16)
    refused(tmp_path, ValueError, "^the parameters are torch.float16, not all float32 or all bflo")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(name, copy):
    (copy / name).unlink()
    kind = "no parameters, no file .*.safetensors" if "safe" in name else "no config.json"
    refused(copy, FileNotFoundError, f"copy has {kind}$")


def test_a_missing_folder_and_a_missing_shard_are_named(tmp_path):
    refused(tmp_path / "nowhere", FileNotFoundError, "nowhere has no config.json$")
    make(tmp_path, shards="9KB")
    lost = sorted(tmp_path.glob("*.safetensors"))[1]
    lost.unlink()
    refused(tmp_path, FileNotFoundError, f"has no {lost.name}$")


def test_an_index_cannot_name_files_elsewhere(tmp_path):
    make(tmp_path / "inside", shards="9KB")
    index = tmp_path / "inside/model.safetensors.index.json"
    text = index.read_text(encoding="utf-8")
    shard = sorted((tmp_path / "inside").glob("*.safetensors"))[0]
    shutil.move(shard, tmp_path / shard.name)
    index.write_text(text.replace(shard.name, f"../{shard.name}"), encoding="utf-8")
    refused(tmp_path / "inside", FileNotFoundError, f"has no {shard.name}$")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{]", b"[1, 2]", b"\xff\xfe\x00" * 9])
def test_a_damaged_file_is_named(name, content, copy):
    (copy / name).write_bytes(content)
    refused(copy, ValueError, f"{name} cannot be read: ")


@pytest.mark.parametrize("package", ["safetensors", "tokenizers"])
def test_without_a_package_one_sentence_says_how_to_get_it(package, copy, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    advice = r"pip install 'attnlab\[llama\]'"
    refused(copy, ModuleNotFoundError, f"^this needs safetensors and tokenizers: {advice}$")


def test_importing_the_module_needs_neither_package():
    code = "import sys, attnlab.llama; print(*sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    assert not {"safetensors", "tokenizers", "transformers"} & set(printed.split())


# --- The arguments that it needs ---


@pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter], ids=["cached", "traced"])
@pytest.mark.parametrize("base", [10000.0, 300.0])
def test_each_base_has_its_own_angles(kind, base):
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(3))
    x = x if kind is torch.Tensor else torch.nn.Parameter(x)  # of which no angles are cached
    expected = rope(x, torch.arange(4, 9), base, "half")
    close(rope_at(4, x, "half", base), expected)


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"hidden": 0}, ValueError, "^hidden must be at least 1 but is 0$"),
        ({"hidden": 2.0}, TypeError, "^hidden must be an int"),
        ({"base": 0.0}, ValueError, "^base must be above 0 but is 0.0$"),
        ({"base": "large"}, TypeError, "^base must be a number"),
        ({"eps": -1.0}, ValueError, "^eps must be above 0 but is -1.0$"),
    ],
)
def test_bad_arguments_of_the_model_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        TinyTransformer(5, 12, 3, 2, 7, **options)
