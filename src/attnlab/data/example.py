"""The worked example of the course: three words, their embeddings, and the two phrases of *bank*.

This is the only place in the package where its numbers are written down.
"""

import hashlib

import torch
from torch import Tensor

__all__ = ["TOY_WORDS", "WORDS", "WORD_COLOURS", "decode", "embed", "embedding_table", "encode"]
__all__ += ["toy_task"]

WORDS = ("river", "money", "bank")
TOY_WORDS = (*WORDS, "shore", "loan")
# The colour of each word in every picture, on light and on dark paper; any other word's is that of
# "". No other thing has one of these colours.
WORD_COLOURS = {
    "river": ("#005fcc", "#4da3ff"), "money": ("#b54000", "#f08a3c"),
    "bank": ("#12804f", "#7fe8c0"), "shore": ("#7a1070", "#f7a6ee"),
    "loan": ("#332000", "#fff0a0"), "": ("#5a5a5a", "#a0a0a0"),
}  # fmt: skip
MAX_WORDS = 8  # of a phrase that a learner types; its pictures stay readable


def embedding_table() -> Tensor:
    """The embeddings of `WORDS`, a new ``(3, 2)`` float32 tensor at each call.

    >>> embedding_table()[encode("money bank")]
    tensor([[0., 2.],
            [1., 0.]])
    """
    return torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])


def encode(text: str, words: tuple[str, ...] = WORDS) -> Tensor:
    """Convert a phrase of space-separated words to ids ``(S,)``, int64.

    The id of a word is its index in ``words``, the vocabulary.

    Raises:
        ValueError: if the phrase is empty or contains a word that is not in ``words``.

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


def decode(ids: Tensor, words: tuple[str, ...] = WORDS) -> str:
    """Convert ids ``(S,)`` to their phrase; the inverse of `encode`."""
    return " ".join(words[i] for i in ids.tolist())


def embed(text: str) -> tuple[list[str], Tensor]:
    """Split a phrase of at most 8 words into tokens, and embed them: ``(S, 2)``, float32.

    Words of the worked example have their rows of `embedding_table`. Any other word gets two
    numbers from -2 to 2 that are computed from its letters (a checksum), so they are always
    the same.

    Raises:
        ValueError: if the phrase is empty or has more than 8 words.

    >>> embed("river cat")[1]
    tensor([[ 2.0000,  0.0000],
            [ 1.7000, -0.9000]])
    """
    tokens = text.split()
    if not 1 <= len(tokens) <= MAX_WORDS:
        raise ValueError(f"text has {len(tokens)} words, but 1 to {MAX_WORDS} are needed.")
    table = dict(zip(WORDS, embedding_table(), strict=True))
    return tokens, torch.stack([table.get(token, _made_up(token)) for token in tokens])


def _made_up(token: str) -> Tensor:
    """An embedding ``(2,)`` for a word outside the worked example."""
    first, second = hashlib.sha256(token.encode()).digest()[:2]
    return torch.tensor([first % 41 / 10 - 2, second % 41 / 10 - 2])


def toy_task() -> tuple[Tensor, Tensor]:
    """The training data of notebook 6: inputs ``(2, 2)`` and the id that follows each, ``(2,)``.

    "river bank" is followed by *shore*, "money bank" by *loan*; ids are indices in `TOY_WORDS`.
    """
    inputs = torch.stack([encode("river bank", TOY_WORDS), encode("money bank", TOY_WORDS)])
    return inputs, encode("shore loan", TOY_WORDS)
