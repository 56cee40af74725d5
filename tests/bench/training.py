"""The overhead of ``train`` over a bare loop, and how close it gets to the entropy floor."""

import math
import time

import torch
from report import alternate, line, show
from torch.nn import functional as F

from attnlab import TinyTransformer, train
from attnlab.data import corpus
from attnlab.training import evaluate, seeded

LANGUAGE = corpus()


def make() -> TinyTransformer:
    """Two layers of four heads, width 32, as in notebook 6."""
    return TinyTransformer(len(LANGUAGE.words), width=32, n_heads=4, n_layers=2, max_length=16)


def batches(count: int):
    """New sentences at every step, for ``train``."""

    def batch(step, generator):
        sentences = LANGUAGE.sample(count, generator)
        return sentences[:, :-1], sentences[:, 1:]

    return batch


def bare(steps: int, seed: int) -> torch.nn.Module:
    """What ``train`` does, without its checks."""
    model, generator = seeded(make, seed), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    losses, batch = [], batches(64)
    for step in range(steps):
        inputs, targets = batch(step, generator)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def to_the_floor(seed: int, steps: int = 400) -> tuple[float, float]:
    """Seconds of training, and the loss on held-out sentences over the best that is possible."""

    def schedule(step):  # up in 40 steps, down along a cosine
        return min((step + 1) / 40, 1) * (1 + math.cos(math.pi * step / steps)) / 2

    model, started = seeded(make, seed), time.perf_counter()
    train(model, batches(64), steps=steps, lr=0.01, seed=seed, schedule=schedule)
    seconds = time.perf_counter() - started
    held_out = LANGUAGE.sample(2000, torch.Generator().manual_seed(1000 + seed))
    loss = evaluate(model, held_out[:, :-1], held_out[:, 1:])
    return seconds, loss / LANGUAGE.exact_loss(held_out).mean().item()


def run(repeats: int = 20) -> None:
    """Compare the loops in alternation; then three runs to the floor."""
    torch.set_num_threads(1)
    ours = seeded(make, 3)
    train(ours, batches(64), steps=5, lr=0.01, seed=3)
    assert torch.equal(bare(5, 3).lm_head.weight, ours.lm_head.weight), "another model"
    seconds = alternate(
        repeats,
        bare=lambda: bare(20, 0),
        train=lambda: train(seeded(make, 0), batches(64), steps=20, lr=0.01),
    )
    line("20 steps of train / of a bare loop", seconds["train"], seconds["bare"],
         "at most 1.05", lambda ratio: ratio <= 1.05)  # fmt: skip
    for seed in range(3):
        took, ratio = to_the_floor(seed)
        met = "met" if ratio <= 1.02 and took < 15 else "MISSED"
        print(f"  400 steps from seed {seed}: {show(took)}, loss / exact floor = {ratio:.4f}   "
              f"target at most 1.02 in under 15 s: {met}")  # fmt: skip
