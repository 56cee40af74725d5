"""attnlab: the functions and models behind a course on self-attention, which its notebooks derive.

Imports go one way only:

    core -> cache -> model -> generation -> training    torch only; their names are re-exported
    validation, checkpoint                               argument checks and files, for these
    data                                                 worked example, language, recorded data
    lab                                                  pictures, explorers, votes, progress
    checks                                               one object per exercise
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
