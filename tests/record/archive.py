"""How the recordings are stored: arrays compressed, tables as JSON, with a printed checksum."""

import hashlib
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parents[2] / "src/attnlab/data/recorded"


def text(lines):
    """Lines of text as bytes, which load without pickling."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def write(name, arrays):
    """Write ``name`` into the folder given on the command line, by default the package's."""
    target = _folder() / name
    np.savez_compressed(target, **arrays)
    _tell(target)


def table(name, settings, make_rows, tolerance):
    """Write a table of trained models, ``{"with", "settings", "rows"}``, in the same way.

    With ``--compare`` nothing is written: all is computed again, and the largest difference from
    the recorded results is printed. It ends with status 1 if that is more than ``tolerance``, or if
    anything else differs.
    """
    torch.set_num_threads(1)
    started = time.process_time()
    rows = list(make_rows())
    print(f"{time.process_time() - started:.0f} seconds of CPU time")
    if sys.argv[1:] == ["--compare"]:
        recorded = json.loads((FOLDER / name).read_text(encoding="utf-8"))
        sys.exit(compare(recorded, settings, rows, tolerance))
    made_with = {"python": platform.python_version(), "torch": torch.__version__}
    head = {"with": made_with, "settings": settings}
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    target = _folder() / name
    with open(target, "w", encoding="utf-8", newline="\n") as file:  # the same on Windows
        file.write(f'{json.dumps(head)[:-1]},\n "rows": [\n  {lines}\n ]}}\n')
    _tell(target)


def compare(recorded, settings, rows, tolerance):
    """Print how far apart two runs are; return 0 if they agree, else 1."""
    pairs = list(zip(rows, recorded["rows"], strict=True))
    largest = max(np.abs(np.subtract(new["results"], old["results"])).max() for new, old in pairs)
    rest = all(new | {"results": 0} == old | {"results": 0} for new, old in pairs)
    same = rest and settings == recorded["settings"]
    print(f"largest difference {largest:.2g} (at most {tolerance}), all else equal: {same}")
    return int(largest > tolerance or not same)


def _folder():
    return Path(*sys.argv[1:2] or [FOLDER])


def _tell(target):
    data = target.read_bytes()
    print(f"{target}: {len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
