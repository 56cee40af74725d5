"""A generated language with ambiguous words, whose entropy is known exactly."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

__all__ = ["Corpus", "Floors", "corpus"]

# A sentence is "a" PERSON SAW THAT ADJECTIVE and an ambiguous word with what it does. Each pair of
# lines below has the word and its sense, the two people who meet it in this sense, and four
# endings: the first two with probability 0.35 each, the last two with 0.15. Every word occurs at
# one position only, so the previous word also tells the position: a model that sees one word and
# no position can still reach the floor `one_word`.

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


Entropy = TypeVar("Entropy", float, Tensor)


class Floors(NamedTuple, Generic[Entropy]):
    """Lowest possible mean loss, in nats per predicted word, by what the model sees.

    ``full``: all previous words; ``one_word``: the previous word only; ``none``: the position only.
    """

    full: Entropy
    one_word: Entropy
    none: Entropy


@dataclass(frozen=True, eq=False)
class Corpus:
    """All sentences of a small language with their probabilities.

    The list is complete, so entropies are sums and not estimates. Words 1 to S-1 are predicted,
    each from those before it; word 0 is given. Treat the tensors as read-only.

    Args:
        words: the vocabulary; an id is an index in it.
        sentences: every possible sentence once, ids ``(n, S)``, int64.
        probabilities: of each sentence, ``(n,)``, float64, positive, summing to 1.
        position: position of the ambiguous word, the same in every sentence; None without one.

    Raises:
        ValueError: if the sentences are not distinct or the probabilities do not fit them.
    """

    words: tuple[str, ...]
    sentences: Tensor
    probabilities: Tensor
    position: int | None = None

    def __post_init__(self) -> None:
        n, p = len(self.sentences), self.probabilities
        if p.shape != (n,):
            raise ValueError(f"probabilities has shape {tuple(p.shape)} for {n} sentences.")
        if not (p > 0).all() or abs(p.sum().item() - 1) > 1e-9:
            found = f"the smallest is {p.min().item():.6g} and the sum {p.sum().item():.6g}"
            raise ValueError(f"probabilities must be positive and sum to 1, but {found}.")
        distinct = len(torch.unique(self.sentences, dim=0))
        if distinct != n:
            raise ValueError(f"sentences must be distinct, but {distinct} of {n} are.")

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw sentences by their probabilities, with replacement: ids ``(count, S)``.

        Raises:
            ValueError: if ``count`` is below 1.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1, but is {count}.")
        rows = torch.multinomial(self.probabilities, count, True, generator=generator)
        return self.sentences[rows]  # (count, S)

    def exact_loss(self, ids: Tensor) -> Tensor:
        """Loss of the best possible model on sentences ``(count, S)``: ``(count, S-1)``, nats.

        Entry ``t`` is -log p(word t+1 | words 0 to t), exactly. A model's mean loss on these
        sentences falls below its mean only by chance or by memorising them; what exceeds it is
        the model's own error. Averaged over the corpus it is ``floors().full``. Beginnings of
        sentences, ``(count, T)``, are accepted too.

        Raises:
            ValueError: if one of them cannot occur in the corpus.
        """
        self._prefix_probability(ids)  # so that an error shows the whole of ids
        log_p = [self._prefix_probability(ids[:, :t]).log() for t in range(1, ids.shape[1] + 1)]
        return -torch.stack(log_p, dim=1).diff(dim=1)  # (count, S-1)

    def floors_by_position(self) -> Floors[Tensor]:
        """As `floors`, but for each predicted word: three tensors ``(S-1,)``, float64."""
        positions = range(1, self.sentences.shape[1])
        # H(next | known) = H(known and next) - H(known)
        full = [self._entropy(0, t + 1) - self._entropy(0, t) for t in positions]
        one_word = [self._entropy(t - 1, t + 1) - self._entropy(t - 1, t) for t in positions]
        none = [self._entropy(t, t + 1) for t in positions]
        return Floors(*(torch.stack(h) for h in (full, one_word, none)))

    def floors(self) -> Floors[float]:
        """Exact entropy of the next word in nats, averaged over the predicted words.

        It is the expected cross-entropy loss of the best model that sees all previous words, the
        previous word only, or no word.
        """
        return Floors(*(h.mean().item() for h in self.floors_by_position()))

    def _entropy(self, start: int, stop: int) -> Tensor:
        """Joint entropy of words ``start`` to ``stop - 1``, in nats."""
        columns = self.sentences[:, start:stop]
        group = torch.unique(columns, dim=0, return_inverse=True)[1]
        p = torch.zeros(len(columns), dtype=torch.float64).index_add_(0, group, self.probabilities)
        return torch.special.entr(p).sum()

    def _prefix_probability(self, ids: Tensor) -> Tensor:
        """Probability ``(count,)`` that a sentence begins with each row of ids ``(count, T)``."""
        shape, longest = tuple(ids.shape), self.sentences.shape[1]
        if ids.ndim != 2 or not 1 <= shape[1] <= longest:
            allowed = f"sentences are (count, T) with T from 1 to {longest}"
            raise ValueError(f"ids has shape {shape}, but {allowed}.")
        both = torch.cat([self.sentences[:, : ids.shape[1]], ids])
        group = torch.unique(both, dim=0, return_inverse=True)[1]  # equal rows, equal numbers
        n = len(self.sentences)
        p = torch.zeros(len(both), dtype=torch.float64)
        p = p.index_add_(0, group[:n], self.probabilities)[group[n:]]
        if (p == 0).any():
            row = int(p.argmin())
            raise ValueError(f"row {row} of ids, {ids[row].tolist()}, cannot occur in the corpus.")
        return p


@cache
def corpus() -> Corpus:
    """The generated corpus: sentences of ten words, each with one ambiguous word.

    In "a fisherman saw that small bank crumble into the river" the word after *bank* depends on
    the person, four words earlier: a banker may see that small bank fail. Drawn uniformly: the
    person, the verb (*saw*, *watched*, *noticed*), *that* or *one*, the adjective, and which of
    two things this person meets; then one of two verbs (0.7, 0.3) and one of its two endings.
    """
    lines = _SENSES.strip().splitlines()
    texts, probabilities = [], []
    for heading, endings in zip(lines[::2], lines[1::2], strict=True):
        sense, people = heading.split(" | ")
        starts = product(people.split(), _SAW, _THAT, _ADJECTIVES, [sense.split(":")[0]])
        ends = zip(endings.split(" | "), _SHARES, strict=True)
        for words, (ending, share) in product(starts, ends):
            texts.append(["a", *words, *ending.split()])
            probabilities.append(share)
    # the vocabulary in the order of positions in the sentence
    words = tuple(dict.fromkeys(word for column in zip(*texts, strict=True) for word in column))
    ids = {word: i for i, word in enumerate(words)}
    sentences = torch.tensor([[ids[word] for word in text] for text in texts])
    p = torch.tensor(probabilities, dtype=torch.float64)
    return Corpus(words, sentences, p / p.sum(), position=5)
