"""Ten thousand moves of the explorers' knobs: nothing may be left of them."""

import contextlib
import gc
import inspect
import io
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import matplotlib
import psutil
import pytest
import torch
from report import show

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "course")]
import test_every_explorer  # noqa: E402

MOVES, WARM = 10_000, 500
SLOW = 50  # one move in so many goes to an explorer that trains


def mover(knob, chance: random.Random) -> Callable[[], None]:
    """What moves one knob at random."""
    if not isinstance(knob, test_every_explorer.Matrix):
        settings = test_every_explorer.settings  # some are other ones each time
        return lambda: setattr(knob, "value", chance.choice(settings(knob, chance)))

    def move():
        if knob.presets and chance.random() < 0.1:
            return knob.preset(chance.choice(knob.presets), chance.randint(0, 90))
        value = torch.tensor(knob.value)
        i, j = (chance.randrange(n) for n in value.shape)
        value[i, j] = chance.randint(-30, 30) / 10
        knob.value = value

    return move


def memory() -> float:
    """Resident megabytes of this process."""
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


def run(repeats: int = MOVES) -> None:
    """Moves of all explorers at random; those that train take their time and get fewer."""
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    torch.set_num_threads(1)
    chance, explorers = random.Random(0), []
    for notebook in test_every_explorer.NOTEBOOKS:
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
            explorers += test_every_explorer.explorers_of(notebook, patch)
    quick, slow = [], []
    for explorer in explorers:
        kind = slow if inspect.isgeneratorfunction(explorer._show) else quick
        kind += [(explorer, mover(knob, chance)) for knob in explorer.knobs.values()]
    plt.close("all")
    started, refused, early = time.perf_counter(), Counter(), memory()
    for n in range(repeats):
        explorer, move = chance.choice(slow if slow and n % SLOW == 0 else quick)
        move()
        if explorer.error:
            refused[explorer.error] += 1
        if n + 1 == min(WARM, repeats):
            early = memory()
    took, late = time.perf_counter() - started, memory()
    figures = len(plt.get_fignums())
    growth = late / early - 1
    print(
        f"  {repeats:,} moves of {len(quick + slow)} knobs of {len(explorers)} explorers, one in "
        f"{SLOW} of one that trains, in {show(took)}\n"
        f"  answered with an error in words: {dict(refused) or 'none'}\n"
        f"  resident memory: {early:.0f} MB after {WARM}, {late:.0f} MB at the end, "
        f"{growth:+.1%}   target at most +5%: {'met' if growth <= 0.05 else 'MISSED'}\n"
        f"  open figures of pyplot: {figures}   target 0: {'MISSED' if figures else 'met'}"
    )
