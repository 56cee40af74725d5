"""Importing ``attnlab`` costs little more than importing ``torch``: no pictures, no widgets."""

import statistics
import subprocess
import sys

from report import alternate, line, show

APART = """
import sys, time
import torch
started = time.perf_counter()
import attnlab
print(time.perf_counter() - started)
print(*[name for name in ("matplotlib", "ipywidgets", "IPython", "PIL") if name in sys.modules])
"""


def python(program: str) -> str:
    """What a new Python process prints."""
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8"
    ).stdout


def run(repeats: int = 20) -> None:
    """Compare new Python processes in alternation."""
    seconds = alternate(
        repeats, torch=lambda: python("import torch"), attnlab=lambda: python("import attnlab")
    )
    line("import attnlab / import torch", seconds["attnlab"], seconds["torch"],
         "at most 1.05", lambda ratio: ratio <= 1.05)  # fmt: skip
    apart = [python(APART).splitlines() for _ in range(5)]
    alone = statistics.median(float(seconds) for seconds, _ in apart)
    print(f"  import attnlab after torch: {show(alone)}")
    print(f"  plotting and widget packages loaded: {apart[0][1] or 'none'}")
