"""Recordings of models, real and small; recorded/README.md has their sources and checksums."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnlab.data import minilm
from attnlab.data.example import encode

__all__ = ["glove", "read_sentence", "recorded_attention", "recorded_ladder", "recorded_mole"]
__all__ += ["recorded_positions", "word_vectors"]

FOLDER = Path(__file__).parent / "recorded"
SHA256 = {
    "glove.npz": "3d4c2d2660ade1c9278ab2a41425d0472d206e4b600fa40d741100c7c7156c44",
    "ladder.json": "6efc2ba7c4c69ab07a1746d9eb33b861e2b813c5ce5872e4af32a053376b3c92",
    "minilm.npz": "1c74bc0a3f3c8d1694b031da8f353fa8bbb6fba55703e14e0b40e26f348ed5be",
    "positions.json": "3d030230132081a4a7304ef6374a4e570e2dfc54cb769d72f25fab066b9552ad",
}


def glove() -> tuple[tuple[str, ...], Tensor]:
    """Real static embeddings: words ``(V,)``, frequent ones first, and vectors ``(V, 50)``.

    A slice of GloVe 6B (Pennington, Socher and Manning, 2014; public domain, PDDL), rounded to
    float16: the 4,700 most frequent words, then the others that the course uses.

    Raises:
        FileNotFoundError: if the recorded file is missing.
        ValueError: if it is damaged.
    """
    arrays = _load("glove.npz")
    return arrays["words"], arrays["vectors"]


def word_vectors(text: str) -> Tensor:
    """The GloVe vectors of a phrase, ``(S, 50)``; errors as in `encode` and `glove`."""
    words, vectors = glove()
    return vectors[encode(text, words)]


class Reading(NamedTuple):
    """What all-MiniLM-L6-v2 (6 layers, 12 heads, width 384) computed for one sentence.

    ``tokens``: S strings, the first ``[CLS]``, the last ``[SEP]``. ``weights``: attention
    weights ``(L, H, S, S)``, rows are queries. ``states``: hidden states ``(L+1, S, D)``, of
    which the first is the input of layer 1; None where they were not recorded.
    """

    text: str
    tokens: tuple[str, ...]
    weights: Tensor
    states: Tensor | None = None


class MoleStates(NamedTuple):
    """How all-MiniLM-L6-v2 represents *mole* in twelve sentences.

    ``static``: its row of the embedding table, ``(D,)``, the same in all sentences. ``states``:
    its hidden states ``(12, L+1, D)``; ``states[:, 0]``, the input of layer 1, is that row plus
    the position's, normalised. In each sense *mole* stands at positions 2, 3, 4 and 5 once.
    """

    sentences: tuple[str, ...]
    senses: tuple[str, ...]
    static: Tensor
    states: Tensor


def recorded_attention() -> tuple[Reading, ...]:
    """Attention weights of all-MiniLM-L6-v2 (Apache-2.0) for nine sentences, without states.

    It is an encoder: every token may attend to every other. Errors as in `glove`.
    """
    stored = _load("minilm.npz")
    texts = enumerate(stored["sentences"])
    return tuple(Reading(t, stored[f"tokens_{i}"], stored[f"weights_{i}"]) for i, t in texts)


def recorded_mole() -> MoleStates:
    """*mole* in three senses, skin, chemistry and animal, four times each; errors as in `glove`."""
    stored = _load("minilm.npz")
    return MoleStates(*(stored[f"mole_{name}"] for name in MoleStates._fields))


def read_sentence(text: str) -> Reading:
    """Run all-MiniLM-L6-v2 on any sentence of at most 510 tokens; errors as in `minilm.read`."""
    tokens, weights, states = minilm.read(text)
    return Reading(text, tuple(tokens), weights.float(), states.float())


class Trained(NamedTuple):
    """What one kind of small model reached after training, once for each of five seeds.

    ``name``: of this kind. ``sees``: what it may look at. ``best``: the best result that is
    possible with that, exactly. ``results``: of seeds 0 to 4.
    """

    name: str
    sees: str
    best: float
    results: tuple[float, ...]


def recorded_positions() -> tuple[Trained, ...]:
    """How often small transformers name the previous token, by what tells them the order.

    Names are none, learned, sinusoidal and RoPE, first seeing *all tokens*, then with a causal mask
    *tokens so far*; results are accuracies. Sequences are sixteen of eight symbols at random, so
    a guess is right once in eight. Made by ``tests/record/positions.py``; errors as in `glove`.
    """
    return _trained("positions.json")


def recorded_ladder() -> tuple[Trained, ...]:
    """What each part of notebook 6's transformer is worth on the language of `corpus`.

    Eight models, each with one part more, trained with that notebook's settings; results are exact
    mean losses over the whole language, in nats, and ``best`` is the floor of what the model sees.
    Made by ``tests/record/ladder.py``; errors as in `glove`.
    """
    return _trained("ladder.json")


def _trained(name: str) -> tuple[Trained, ...]:
    """The rows of a recorded table."""
    rows = json.loads(_read(name))["rows"]
    return tuple(Trained(**row | {"results": tuple(row["results"])}) for row in rows)


def _load(name: str) -> dict[str, Any]:
    """The arrays of a recorded file: text as a tuple of lines, numbers as float32 tensors."""
    with np.load(io.BytesIO(_read(name)), allow_pickle=False) as arrays:
        stored = dict(arrays)
    text = {k: _lines(array) for k, array in stored.items() if array.dtype == np.uint8}
    return {k: torch.from_numpy(array).float() for k, array in stored.items()} | text


def _lines(array: np.ndarray) -> tuple[str, ...]:
    """Lines of text from their bytes, a form that needs no pickling."""
    return tuple(array.tobytes().decode().split("\n"))


def _read(name: str) -> bytes:
    """The bytes of a recorded file, once its checksum has been compared."""
    path = FOLDER / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; install the package again to restore it.")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256[name]:
        raise ValueError(f"{path} is damaged; install the package again to restore it.")
    return data
