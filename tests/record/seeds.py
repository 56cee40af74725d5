"""What notebook 6 shows for one seed, over several: prints tables and writes nothing.

python tests/record/seeds.py            all
python tests/record/seeds.py knockout   only one of: starts, context, knockout
"""

import math
import sys
from copy import deepcopy

import ladder
import torch
from torch.nn import functional as F

from attnlab import TinyCausalAttention
from attnlab.data import toy_task
from attnlab.training import evaluate, seeded

LANGUAGE = ladder.LANGUAGE
AFTER = LANGUAGE.position + 1  # the word after the ambiguous one, which the person decides
PERSON = 1  # where the person stands
SEEDS = ladder.SETTINGS["seeds"]
LARGE_WEIGHT, LARGE_EFFECT = 0.5, 0.1  # of all attention; in nats


def starts(n=400):
    """How many untrained models are worse than a guess among five words."""
    inputs, targets = toy_task()
    losses = [evaluate(seeded(TinyCausalAttention, s), inputs, targets) for s in range(n)]
    above = sum(loss > math.log(5) for loss in losses)
    print(f"of {n} untrained models {above} ({above / n:.0%}) start above ln 5, mean", end=" ")
    print(f"{sum(losses) / n:.3f}")


@torch.no_grad()
def context():
    """How often the word after an ambiguous one is right, exactly: what notebook 6 samples."""
    known, answer = LANGUAGE.sentences[:, :AFTER], LANGUAGE.sentences[:, AFTER]
    itself_only = torch.eye(AFTER, dtype=torch.bool)
    print("share of right words  visible   W_Q=0  hidden   W_V=0")
    for seed in SEEDS:
        with torch.enable_grad():
            model = ladder.trained("+ second block", seed)

        def right(model, mask=None):
            found = model(known, mask)[:, -1].argmax(dim=-1) == answer
            return (LANGUAGE.probabilities @ found.double()).item()

        rates = [right(model), right(zeroed(model, "w_q")), right(model, itself_only)]
        rates.append(right(zeroed(model, "w_v")))
        print(f"seed {seed}               " + "".join(f"{rate:8.3f}" for rate in rates))


def zeroed(model, name):
    """A copy of the model in which one projection of both blocks is zero."""
    model = deepcopy(model)
    for block in model.blocks:
        getattr(block.attention, name).weight.zero_()
    return model


def loss_after(model):
    """Exact mean loss for the word after the ambiguous one, in nats."""
    logits = model(LANGUAGE.sentences[:, :AFTER])[:, -1]  # (n, vocab)
    losses = F.cross_entropy(logits.double(), LANGUAGE.sentences[:, AFTER], reduction="none")
    return (LANGUAGE.probabilities @ losses).item()


class KnockedOut:
    """Within it, one head's output is its mean over the language, at each position, or zero."""

    def __init__(self, model, block, head, by_mean):
        self.attention = model.blocks[block].attention
        width = self.attention.head_dim
        self.columns = slice(head * width, (head + 1) * width)
        self.by_mean = by_mean

    def __enter__(self):
        def replace(module, arguments):
            merged = arguments[0].clone()  # (n, S, D): the heads side by side, before W_O
            output = merged[..., self.columns]  # (n, S, d)
            weighted = LANGUAGE.probabilities.float() @ output.flatten(1)  # (S * d,)
            mean = weighted.view(output.shape[1:])  # (S, d)
            merged[..., self.columns] = mean if self.by_mean else 0
            return (merged,)

        self.hook = self.attention.w_o.register_forward_pre_hook(replace)

    def __exit__(self, *_):
        self.hook.remove()


@torch.no_grad()
def knockout():
    """Each head's attention weights at the ambiguous word, and what the head is worth there."""
    print("the ambiguous word asks; its loss rises by ... when a head is knocked out")
    print("seed  block  head   to the person   most to        by its mean     by zero")
    table = []
    for seed in SEEDS:
        with torch.enable_grad():
            model = ladder.trained("+ second block", seed)
        normal = loss_after(model)
        steps = model.steps(LANGUAGE.sentences[:, :AFTER])
        for block, step in enumerate(steps):
            p = LANGUAGE.probabilities.float()
            rows = torch.einsum("n,nhs->hs", p, step.weights[:, :, -1])  # (H, S): mean weights
            for head, row in enumerate(rows):
                effects = []
                for by_mean in (True, False):
                    with KnockedOut(model, block, head, by_mean):
                        effects.append(loss_after(model) - normal)
                table.append((seed, block, head, row[PERSON].item(), *effects))
                most = row.argmax().item()
                print(f"{seed:4}  {block + 1:5}  {head + 1:4}   {row[PERSON]:13.2f}", end="   ")
                print(f"{most} {row[most]:10.2f}   {effects[0]:11.3f} {effects[1]:11.3f}")
    summary(table)


def summary(table):
    """How often the attention weight tells what a head is worth."""
    looks = [row[3] > LARGE_WEIGHT for row in table]
    matters = [row[4] > LARGE_EFFECT for row in table]
    pairs = list(zip(looks, matters, strict=True))
    print(f"weight on the person above {LARGE_WEIGHT}, effect above {LARGE_EFFECT} nats:")
    for look in (True, False):
        for matter in (True, False):
            name = f"looks there: {look}, matters: {matter}"
            print(f"  {name:40} {pairs.count((look, matter))} of {len(pairs)} heads")
    for n, kind in ((4, "mean"), (5, "zero")):
        same = sum(
            max(rows, key=lambda row: row[3]) == max(rows, key=lambda row, n=n: row[n])
            for rows in ([row for row in table if row[0] == seed] for seed in SEEDS)
        )
        print(
            f"largest weight on the person = largest effect ({kind}): {same} of {len(SEEDS)} seeds"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    parts = {"starts": starts, "context": context, "knockout": knockout}
    for name in sys.argv[1:] or parts:
        parts[name]()
