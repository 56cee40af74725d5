"""One check per exercise: it runs a learner's answer and names the mistake, and it never raises.

A check calls the learner's function on several small inputs of different sizes, on copies. Any
computation with the right numbers passes. Otherwise the numbers are compared with those of the
likely wrong answers, listed beside the sentence each deserves; what is nobody's known mistake
gets a sentence about the first place that differs.

To add a check: a reference, inputs on which no mistake looks right, and ``{sentence: mistake}``,
where several mistakes may share a sentence. ``lookup`` is a small example.
"""

from attnlab.checks.heads_and_positions import rotate_pair, split
from attnlab.checks.judging import Verdict, assert_close
from attnlab.checks.queries_keys_values import bank_asks_for_money, scores
from attnlab.checks.scaling_and_masking import causal_scores, head_scale
from attnlab.checks.softmax_and_values import attention_function, masked_softmax
from attnlab.checks.static_embeddings import cosine, lookup
from attnlab.checks.trainer_and_cache import cache_bytes, decode_step

__all__ = [
    "Verdict",
    "assert_close",
    "lookup",
    "cosine",
    "scores",
    "bank_asks_for_money",
    "causal_scores",
    "head_scale",
    "masked_softmax",
    "attention_function",
    "split",
    "rotate_pair",
    "cache_bytes",
    "decode_step",
]
