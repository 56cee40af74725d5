"""One way to measure and one way to print it."""

import statistics
import time
from collections.abc import Callable


def alternate(repeats: int, **jobs: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of every job, one after the other in each round, after one round to warm up.

    What else the machine does then slows all of them alike, and their ratio stays.
    """
    seconds = {name: [] for name in jobs}
    for n in range(repeats + 1):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            if n:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def line(name: str, above: list[float], below: list[float], target: str, met: Callable) -> None:
    """Print medians, their ratio, the target, and how much the ratio moves between rounds."""
    ratio = statistics.median(above) / statistics.median(below)
    rounds = sorted(a / b for a, b in zip(above, below, strict=True))
    low, high = rounds[len(rounds) // 4], rounds[-1 - len(rounds) // 4]
    print(
        f"  {name}: {show(statistics.median(above))} / {show(statistics.median(below))} "
        f"= {ratio:.2f}   target {target}: {'met' if met(ratio) else 'MISSED'}   "
        f"(the middle half of {len(rounds)} rounds: {low:.2f} to {high:.2f})"
    )


def show(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds * 1000:.1f} ms"
