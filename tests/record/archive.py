"""How the recordings are stored: compressed arrays, text as bytes, with a printed checksum."""

import hashlib
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "src/attnlab/data/recorded"


def text(lines):
    """Lines of text as bytes, which load without pickling."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def write(name, arrays):
    """Write ``name`` into the folder given on the command line, by default the package's."""
    target = Path(*sys.argv[1:2] or [FOLDER]) / name
    np.savez_compressed(target, **arrays)
    data = target.read_bytes()
    print(f"{target}: {len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
