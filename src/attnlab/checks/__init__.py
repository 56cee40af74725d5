"""One check per exercise: it runs a learner's answer and names the mistake, and it never raises.

A check calls the learner's function on several small inputs of different sizes, on copies. Any
computation with the right numbers passes. Otherwise the numbers are compared with those of the
likely wrong answers, listed beside the sentence each deserves; what is nobody's known mistake
gets a sentence about the first place that differs.

To add a check: a reference, inputs on which no mistake looks right, and ``{sentence: mistake}``,
where several mistakes may share a sentence. ``lookup`` is a small example.
"""

from attnlab.checks.heads_and_positions import (
    add_positions,
    far_key,
    merge,
    parameters_of_heads,
    rope_attention,
    rotate_pair,
    split,
)
from attnlab.checks.judging import Verdict, assert_close, never_raising
from attnlab.checks.queries_keys_values import (
    bank_asks_for_money,
    bank_ignores_money,
    look_for,
    receive,
    scores,
    what_moves,
)
from attnlab.checks.scaling_and_masking import (
    both_masks,
    causal_scores,
    filler_for_multihead,
    head_scale,
    leaks,
    sturdy_weights,
)
from attnlab.checks.softmax_and_values import (
    article_row,
    attention_function,
    attention_sublayer,
    look_and_carry_nothing,
    masked_softmax,
    sharp_temperature,
)
from attnlab.checks.static_embeddings import (
    average_row,
    cosine,
    long_not_near,
    lookup,
    mix_in_average,
    nearest,
)
from attnlab.checks.trainer_and_cache import (
    cache_bytes,
    decode_step,
    rope_decode_step,
    share_heads,
    stale_columns,
    what_shore_needs,
    write_with_cache,
)

__all__ = [
    "Verdict",
    "assert_close",
    "lookup",
    "cosine",
    "average_row",
    "long_not_near",
    "nearest",
    "mix_in_average",
    "scores",
    "bank_asks_for_money",
    "receive",
    "what_moves",
    "bank_ignores_money",
    "look_for",
    "causal_scores",
    "head_scale",
    "both_masks",
    "filler_for_multihead",
    "leaks",
    "sturdy_weights",
    "masked_softmax",
    "attention_function",
    "article_row",
    "sharp_temperature",
    "look_and_carry_nothing",
    "attention_sublayer",
    "split",
    "rotate_pair",
    "merge",
    "parameters_of_heads",
    "add_positions",
    "far_key",
    "rope_attention",
    "cache_bytes",
    "decode_step",
    "what_shore_needs",
    "stale_columns",
    "share_heads",
    "rope_decode_step",
    "write_with_cache",
]

# The whole of each check is bounded, also what it prepares before it calls the answer.
for _name in __all__[2:]:
    globals()[_name] = never_raising(globals()[_name])
