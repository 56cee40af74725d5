"""Record which small transformers can name the previous token; see recorded/README.md.

Some minutes. Without an argument it replaces the package's file, else it writes into that folder;
with ``--compare`` it only computes everything again and compares.
"""

import math
from fractions import Fraction

import archive
import torch
from torch import nn

from attnlab import TinyTransformer, causal_mask, sinusoidal_positions, train
from attnlab.model import rms_norm
from attnlab.training import IGNORE, seeded

SYMBOLS, LENGTH, BATCH, STEPS = 8, 16, 32, 400
SETTINGS = {"symbols": SYMBOLS, "length": LENGTH, "width": 32, "heads": 4, "blocks": 3}
SETTINGS |= {"batch": BATCH, "steps": STEPS, "learning rate": 0.02, "seeds": [0, 1, 2, 3, 4]}
POSITIONS = ("none", "learned", "sinusoidal", "RoPE")


class Reader(nn.Module):
    """A transformer of three blocks, causal or not, told about positions in one of four ways."""

    def __init__(self, positions, causal):
        super().__init__()
        width = SETTINGS["width"]
        self.model = TinyTransformer(SYMBOLS, width, SETTINGS["heads"], SETTINGS["blocks"], LENGTH)
        self.mask = causal_mask(LENGTH) if causal else None
        for block in self.model.blocks:
            block.attention.rope = "half" if positions == "RoPE" else None
        self.added = 0
        if positions == "learned":
            self.added = nn.Parameter(torch.randn(LENGTH, width))
        elif positions == "sinusoidal":
            self.added = sinusoidal_positions(LENGTH, width)  # (S, D)

    def forward(self, ids):
        """Ids ``(B, S)`` -> logits of the previous token, ``(B, S, symbols)``."""
        x = self.model.emb(ids) + self.added  # (B, S, D)
        for block in self.model.blocks:
            x = block(x, self.mask)[0]
        return self.model.lm_head(rms_norm(x, self.model.norm))


def draw(count, generator):
    """Random tokens ``(count, S)``, and before each its target: the token before it."""
    ids = torch.randint(SYMBOLS, (count, LENGTH), generator=generator)
    targets = ids.roll(1, dims=1)
    targets[:, 0] = IGNORE  # the first has none
    return ids, targets


def accuracy(positions, causal, seed):
    """Train one reader; return how often it is right on other sequences."""
    reader = seeded(lambda: Reader(positions, causal), seed)

    def schedule(step):
        return min((step + 1) / 20, 1) * (1 + math.cos(math.pi * step / STEPS)) / 2

    options = {"steps": STEPS, "lr": SETTINGS["learning rate"], "seed": seed}
    train(reader, lambda step, generator: draw(BATCH, generator), **options, schedule=schedule)
    ids, targets = draw(1000, torch.Generator().manual_seed(1_000_000))
    with torch.no_grad():
        right = reader(ids).argmax(dim=-1) == targets  # (B, S)
    return right[:, 1:].float().mean().item()


def best_without_order(others=LENGTH - 1, symbols=SYMBOLS):
    """The best accuracy of whoever sees which tokens there are, but not their order.

    The previous token is any of the ``others`` with the same probability, so the best guess is the
    most frequent of them. ``n! / symbols^n`` times the coefficient of ``x^n`` in
    ``(1 + x + ... + x^m / m!)^symbols`` is the probability that none is there more than m times.
    """
    expected = Fraction(0)  # of the largest count: the sum of P(largest > m)
    for m in range(others):
        series = [Fraction(1)] + [Fraction(0)] * others
        for _ in range(symbols):
            series = [
                sum(series[n - j] / math.factorial(j) for j in range(min(m, n) + 1))
                for n in range(others + 1)
            ]
        expected += 1 - series[others] * math.factorial(others) / symbols**others
    return float(expected / others)


def rows():
    """One row for each way, without the causal mask and with it."""
    for sees in ("all tokens", "tokens so far"):
        for name in POSITIONS:
            causal = sees == "tokens so far"
            best = best_without_order() if name == "none" and not causal else 1.0
            results = [round(accuracy(name, causal, seed), 4) for seed in SETTINGS["seeds"]]
            yield {"name": name, "sees": sees, "best": best, "results": results}


if __name__ == "__main__":
    archive.table("positions.json", SETTINGS, rows, tolerance=0.01)
