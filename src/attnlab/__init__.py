"""attnlab: the plumbing of a course on self-attention. The ideas stand in its notebooks.

Data walks one way, and so do the imports:

    core -> model -> training       torch only; their names are re-exported here
    data                            the worked example, the corpus, the recorded data
    checks                          one check per exercise
    plots -> explorers              pictures; not imported here
"""

from attnlab.cache import KVCache
from attnlab.core import (
    AttentionSteps,
    attention,
    causal_mask,
    merge_heads,
    padding_mask,
    rope,
    sinusoidal_positions,
    split_heads,
)
from attnlab.generation import generate
from attnlab.model import MultiHeadAttention, TinyCausalAttention, TinyTransformer
from attnlab.training import History, train

__all__ = [
    "AttentionSteps",
    "History",
    "KVCache",
    "MultiHeadAttention",
    "TinyCausalAttention",
    "TinyTransformer",
    "attention",
    "causal_mask",
    "generate",
    "merge_heads",
    "padding_mask",
    "rope",
    "sinusoidal_positions",
    "split_heads",
    "train",
]
