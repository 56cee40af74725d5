"""Checks: one object per exercise, which judges a learner's answer and names the mistake.

``checks.lookup(my_lookup)`` calls the learner's function on several small inputs of different
sizes, on copies. Any computation with the right numbers passes. Otherwise the numbers are compared
with those of the likely mistakes, each listed beside its sentence; any other wrong answer gets a
sentence about the first difference. A check never raises.

To add an exercise, write it in the module of its notebook: a reference, inputs on which no mistake
looks right, and ``{sentence: mistake}``. ``lookup`` is a small example.
"""

from attnlab.checks import (  # noqa: F401  (most register their exercises)
    eight_questions,
    heads_and_positions,
    queries_keys_values,
    scaling_and_masking,
    softmax_and_values,
    static_embeddings,
    trainer_and_cache,
)
from attnlab.checks.exercise import REGISTRY, Exercise, exercises
from attnlab.checks.judging import Status, Verdict, assert_close
from attnlab.checks.my_model import load_model, stand_in, write_model

__all__ = ["Exercise", "Status", "Verdict", "assert_close", "exercises"]
__all__ += ["load_model", "stand_in", "write_model"]

globals().update(REGISTRY)  # checks.lookup, and so on
