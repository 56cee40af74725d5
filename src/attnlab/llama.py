"""Read a Llama checkpoint, as Hugging Face's tools write it, into a ``TinyTransformer``.

The folder has ``config.json``, one or more ``.safetensors`` files and, as a rule,
``tokenizer.json``. Nothing is downloaded, and no code of a checkpoint runs.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.model import TinyTransformer

SIZES = ["vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers"]
SIZES += ["max_position_embeddings", "num_key_value_heads"]  # so far as TinyTransformer has them
SIZES += ["intermediate_size", "rms_norm_eps"]
OMITTED = {"num_key_value_heads": None, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6}
# Our parameters, and their name or names in the files: rows of two stand one below the other.
OUTSIDE = {"emb.weight": "model.embed_tokens", "norm": "model.norm", "lm_head.weight": "lm_head"}
INSIDE = {f"attention.w_{x}.weight": [f"self_attn.{x}_proj"] for x in "qkvo"}  # a block
INSIDE |= {"attention_norm": ["input_layernorm"], "mlp_norm": ["post_attention_layernorm"]}
INSIDE |= {"gate_up": ["mlp.gate_proj", "mlp.up_proj"], "down": ["mlp.down_proj"]}


def load_llama(folder: str | os.PathLike) -> tuple[TinyTransformer, Any]:
    """Return the model of a checkpoint, and its tokenizer or None if there is none.

    Parameters keep their dtype, float32 or bfloat16. The tokenizer is a ``tokenizers.Tokenizer``:
    ``tokenizer.encode(text).ids`` are the ids of a text, and ``tokenizer.decode(ids)`` is its text.

    Raises:
        FileNotFoundError: a file is missing.
        ModuleNotFoundError: safetensors or tokenizers is not installed.
        TypeError, ValueError: a damaged file, another architecture, or something that a
            ``TinyTransformer`` cannot have: scaled RoPE, biases, another ``head_dim``.
    """
    try:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        advice = "pip install 'attnlab[llama]'"
        raise ModuleNotFoundError(f"this needs safetensors and tokenizers: {advice}") from None
    folder = Path(folder).expanduser()
    config = OMITTED | _read(folder / "config.json")
    base, tied = _check_config(config), bool(config.get("tie_word_embeddings"))
    *sizes, hidden, eps = (config[name] for name in SIZES)
    with torch.device("meta"):  # no memory for parameters that are replaced at once
        model = TinyTransformer(*sizes, hidden=hidden, base=base, eps=eps, tied=tied)
    tokenizer = None
    if (path := folder / "tokenizer.json").is_file():
        tokenizer = _read(path, lambda path: Tokenizer.from_file(str(path)))
        if (n := tokenizer.get_vocab_size()) > model.vocab_size:
            raise ValueError(f"the tokenizer has {n} tokens but the model has {model.vocab_size}")
    files = {*folder.glob("*.safetensors")}
    if (path := folder / "model.safetensors.index.json").is_file():
        listed = _read(path).get("weight_map", {}).values()
        files = {folder / Path(name).name for name in listed}  # never from elsewhere
    if not files:
        raise FileNotFoundError(f"{folder} has no parameters, no file *.safetensors")
    stored: dict[str, Tensor] = {}
    for path in sorted(files):
        stored |= _read(path, load_file)
    if tied and (table := stored.get("model.embed_tokens.weight")) is not None:
        stored["lm_head.weight"] = table  # which some files hold twice
    model.load_state_dict(_renamed(model, stored), assign=True)
    if tied:
        model.lm_head.weight = model.emb.weight
    return model, tokenizer


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _read(path: Path, reader: Callable[[Path], Any] = _read_json) -> Any:
    """What a file holds; whatever goes wrong is said in one sentence."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}")
    try:
        return reader(path)
    except Exception as error:  # the three packages raise three kinds
        raise ValueError(f"{path} cannot be read: {error}") from None


def _check_config(config: dict[str, Any]) -> float:
    """Refuse a configuration that a ``TinyTransformer`` cannot have; return RoPE's base."""
    kind, activation = config.get("model_type"), config.get("hidden_act", "silu")
    if (kind, activation) != ("llama", "silu"):
        raise ValueError(f"the model is {kind!r} with {activation!r}, not 'llama' with 'silu'")
    for name in SIZES:
        if name not in config:
            raise ValueError(f"config.json has no {name}")
    if config.get("attention_bias") or config.get("mlp_bias"):
        raise ValueError("the model has biases in its projections; TinyTransformer has none")
    width, n_heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim")
    if head_dim is not None and head_dim * n_heads != width:
        raise ValueError(f"head_dim is {head_dim}, not hidden_size / heads = {width} / {n_heads}")
    rope = config.get("rope_parameters") or {}  # one entry since transformers 5, before it two
    scaling = config.get("rope_scaling") or rope
    rule = scaling.get("rope_type", scaling.get("type", "default"))
    if rule != "default":
        raise ValueError(f"RoPE is scaled by the rule {rule!r}; TinyTransformer scales it by none")
    return rope.get("rope_theta", config.get("rope_theta", 10000.0))


def _renamed(model: TinyTransformer, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by our names, once none is missing or left over, and shapes and dtypes fit."""
    parameters = {}
    for name, parameter in model.state_dict().items():
        theirs = [f"{OUTSIDE.get(name)}.weight"]
        if name.startswith("blocks."):
            _, i, part = name.split(".", 2)
            theirs = [f"model.layers.{i}.{x}.weight" for x in INSIDE[part]]
        shape = (parameter.shape[0] // len(theirs), *parameter.shape[1:])
        for x in theirs:
            if x not in stored:
                raise ValueError(f"the files have no {x}")
            if (found := tuple(stored[x].shape)) != shape:
                raise ValueError(f"{x} has shape {found} but by config.json it is {shape}")
        parameters[name] = torch.cat([stored.pop(x) for x in theirs])
    left = [name for name in stored if not name.endswith("rotary_emb.inv_freq")]
    if left:
        raise ValueError(f"the files have {left[0]}, which a TinyTransformer has not")
    dtypes = {p.dtype for p in parameters.values()}
    if dtypes not in ({torch.float32}, {torch.bfloat16}):
        kinds = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(f"the parameters are {kinds}, not all float32 or all bfloat16")
    return parameters
