"""Record what each part of a transformer is worth on the generated language.

See recorded/README.md. It takes a minute or two. Without an argument it replaces the package's
file, else it writes into that folder; with ``--compare`` it only computes everything again and
compares.
"""

import math

import archive
import torch
from torch import nn
from torch.nn import functional as F

from attnlab import MultiHeadAttention, TinyTransformer, causal_mask, train
from attnlab.data import corpus
from attnlab.model import swiglu
from attnlab.training import seeded

LANGUAGE = corpus()
VOCAB, LENGTH, WIDTH, HEADS = len(LANGUAGE.words), LANGUAGE.sentences.shape[1], 32, 4
STEPS, BATCH = 150, 48  # these settings are notebook 6's
SETTINGS = {"width": WIDTH, "heads": HEADS, "steps": STEPS, "batch": BATCH}
SETTINGS |= {"learning rate": 0.02, "seeds": [0, 1, 2, 3, 4]}


class PositionOnly(nn.Module):
    """A vector for each position, and the head: the words are not looked at."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(LENGTH, WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        """Ids ``(B, S)`` -> logits ``(B, S, vocab)``."""
        positions = torch.arange(ids.shape[1]).expand(ids.shape)  # (B, S)
        return self.lm_head(self.emb(positions))


class Parts(nn.Module):
    """The parts of a block that are there, between the embedding and the head; no norm."""

    def __init__(self, n_heads=0, residual=False, mlp=False):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, n_heads, rope="half") if n_heads else None
        self.residual = residual
        if mlp:
            self.gate_up = nn.Linear(WIDTH, 2 * 4 * WIDTH, bias=False).weight  # (2 hidden, D)
            self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False).weight  # (D, hidden)
        self.mlp = mlp
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        """Ids ``(B, S)`` -> logits ``(B, S, vocab)``."""
        x = self.emb(ids)  # (B, S, D)
        if self.attention is not None:
            output = self.attention(x, mask=causal_mask(ids.shape[1])).output
            x = x + output if self.residual else output
        if self.mlp:
            x = x + swiglu(x, self.gate_up, self.down)
        return self.lm_head(x)


def blocks(n):
    """The package's transformer, as notebook 6 has it."""
    return TinyTransformer(VOCAB, WIDTH, HEADS, n_layers=n, max_length=64)


LADDER = {  # name: what it sees, and how it is built
    "position only": ("position", PositionOnly),
    "one word": ("position and this word", Parts),
    "one head": ("all words so far", lambda: Parts(1)),
    "several heads": ("all words so far", lambda: Parts(HEADS)),
    "+ residual": ("all words so far", lambda: Parts(HEADS, residual=True)),
    "+ MLP": ("all words so far", lambda: Parts(HEADS, residual=True, mlp=True)),
    "+ norm": ("all words so far", lambda: blocks(1)),
    "+ second block": ("all words so far", lambda: blocks(2)),
}
FLOORS = {"position": "none", "position and this word": "one_word", "all words so far": "full"}


def batches(step, generator):
    """Each position predicts the next word."""
    sentences = LANGUAGE.sample(BATCH, generator)  # (B, 10)
    return sentences[:, :-1], sentences[:, 1:]


def schedule(step):
    """The learning rate's factor: small first, small last."""
    return min((step + 1) / 20, 1) * (1 + math.cos(math.pi * step / STEPS)) / 2


def trained(name, seed):
    """One rung of the ladder, trained as in notebook 6; the seed decides start and sentences."""
    model = seeded(LADDER[name][1], seed)
    options = {"steps": STEPS, "lr": SETTINGS["learning rate"], "seed": seed}
    train(model, batches, schedule=schedule, **options)
    return model


@torch.no_grad()
def exact_loss(model):
    """Mean loss over the whole language, each sentence by its probability: no sampling."""
    ids = LANGUAGE.sentences  # (n, S)
    logits = model(ids[:, :-1]).transpose(1, 2)  # (n, vocab, S-1)
    losses = F.cross_entropy(logits.double(), ids[:, 1:], reduction="none").mean(dim=1)  # (n,)
    return (LANGUAGE.probabilities @ losses).item()


def rows():
    """One row for each rung."""
    floors = LANGUAGE.floors()._asdict()
    for name, (sees, _) in LADDER.items():
        losses = [round(exact_loss(trained(name, seed)), 4) for seed in SETTINGS["seeds"]]
        yield {"name": name, "sees": sees, "best": floors[FLOORS[sees]], "results": losses}


if __name__ == "__main__":
    archive.table("ladder.json", SETTINGS, rows, tolerance=0.02)
