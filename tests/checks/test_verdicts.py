"""Right answers pass in any form; a wrong one is told its mistake; nothing stops the notebook."""

import asyncio
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answers import bank
from support import SOURCES
from torch import nn

import attnlab
from attnlab import checks
from attnlab.checks import Status, Verdict

BANK = bank()
EXERCISES = [e for path in SOURCES for e in checks.exercises(path.stem[:2])]


def wrong(message):
    return Verdict(Status.WRONG, message)


def said(verdict):
    """The message of a wrong answer, without where to read on."""
    assert verdict.status is Status.WRONG
    return verdict.message.partition(" See ")[0]


# --- Values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [0.125, 1 / 8, 64**-0.5, Fraction(1, 8), torch.tensor(0.125), np.float32(0.125)]
)
def test_the_scale_of_a_head_is_accepted_in_any_form(value):
    assert checks.head_scale(value).passed


@pytest.mark.parametrize(
    ("w_q", "w_k"),
    [
        ([[1.0, 3.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]),
        ([[-1.0, 0.5], [7.0, 7.0]], [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_any_two_matrices_that_make_bank_ask_for_money_pass(w_q, w_k):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        verdict = checks.bank_asks_for_money(
            torch.tensor(w_q, dtype=dtype), nn.Parameter(torch.tensor(w_k, dtype=dtype))
        )
        assert verdict, verdict
    assert verdict.message.startswith("Right: bank scores river ")


# --- The matrices that make bank ask --------------------------------------------------------


@pytest.mark.parametrize(
    ("w_q", "start"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], "Money does not lead yet: bank scores river 2, money 0, bank 1"),
        (
            [[1.0, 1.25], [0.0, 1.0]],
            "Money leads, but by less than 1: bank scores river 2, money 2",
        ),
        ([[1.0, 0.0], [0.0, 5.0]], "You changed what another word asks, not what bank asks: bank"),
        ([[0.0, 0.0], [0.0, 0.0]], "Money does not lead yet: bank scores river 0, money 0, bank 0"),
    ],
)
def test_bank_that_does_not_ask_for_money_hears_its_scores(w_q, start):
    verdict = checks.bank_asks_for_money(torch.tensor(w_q), torch.eye(2))
    assert not verdict
    assert verdict.message.startswith(start)


def test_money_asking_for_bank_is_told_apart():
    w_q = torch.tensor([[1.0, 0.0], [3.0, 1.0]])
    assert said(checks.bank_asks_for_money(w_q, torch.eye(2))) == (
        "Queries are rows and keys are columns, and here money asks for bank: "
        "bank scores river 2, money 0, bank 1."
    )
    assert checks.bank_asks_for_money(torch.eye(2), w_q.T).passed is False


@pytest.mark.parametrize(
    ("w_q", "w_k", "message"),
    [
        ([[1.0, 0.0]], torch.eye(2), "Expected a torch.Tensor, got list."),
        (torch.eye(2), np.eye(2), "Expected a torch.Tensor, got ndarray."),
        (torch.eye(2).long(), torch.eye(2), "my_W_Q holds int64, expected floats: use .float()."),
        (torch.eye(2), torch.eye(3), "my_W_K has shape (3, 3), expected (2, 2)."),
        (torch.eye(2) / 0, torch.eye(2), "my_W_Q is inf at [0, 0], which is not right."),
        (
            torch.full((2, 2), math.nan),
            torch.eye(2),
            "my_W_Q is NaN at [0, 0], which is not right.",
        ),
        (
            1j * torch.eye(2),
            torch.eye(2),
            "my_W_Q holds complex64, expected floats: use torch.view_as_real(...).",
        ),
    ],
)
def test_values_that_are_no_pair_of_matrices_are_refused(w_q, w_k, message):
    assert checks.bank_asks_for_money(w_q, w_k) == wrong(message)


def test_the_right_number_of_a_single_value_is_not_given_away():
    assert said(checks.head_scale(0.2)) == "The factor is 0.2, which is not right."


# --- Not done yet ---------------------------------------------------------------------------


@pytest.mark.parametrize("dots", [..., None, NotImplementedError("write me")])
def test_an_exercise_not_done_says_so(dots):
    for exercise in EXERCISES:
        given = BANK[exercise.name].right[0]
        answers = list(given) if len(exercise.variables) > 1 else [given]
        for i in range(len(answers)):
            verdict = exercise(*answers[:i], dots, *answers[i + 1 :])
            assert verdict.status is Status.NOT_YET, exercise
            text = "… Not done yet: put your answer in place of the dots and run again."
            assert repr(verdict) == text


def raises_not_implemented(*args):
    raise NotImplementedError("write me")


def half_filled(*args):
    weights = ...
    return weights @ args[0]


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda *args: None, "does it end with a return?"),
        (lambda *args: ..., "a part is still missing."),
        (lambda *args: (args[0], ..., args[0]), "a part is still missing."),
        (raises_not_implemented, "a part is still missing."),
        (half_filled, "a part is still missing."),
        (lambda *args: torch.softmax(..., dim=-1), "a part is still missing."),
    ],
)
def test_a_function_not_finished_says_so(answer, hint):
    for check in checks.masked_softmax, checks.decode_step:
        assert check(answer) == Verdict(Status.NOT_YET, f"Not done yet: {hint}")


def test_torch_refusing_integers_is_not_taken_for_an_empty_exercise():
    verdict = checks.causal_scores(lambda s: s.long().softmax(-1))
    assert "NotImplementedError" in verdict.message and verdict.status is Status.WRONG


# --- Hostile answers ------------------------------------------------------------------------


class Sneaky(BaseException):
    def __str__(self):
        raise Sneaky


class Spiky:
    def __getattribute__(self, name):
        raise RuntimeError("do not touch")

    def __eq__(self, other):
        raise RuntimeError("do not compare")

    __hash__ = None


def raising(error):
    def answer(*args):
        raise error

    return answer


def returns_itself(*args):
    return returns_itself


def calls_itself(*args):
    return calls_itself(*args)


endless = []
endless.append(endless)


def check_becomes_a_verdict(verdict):
    assert verdict.status is Status.WRONG
    assert 10 < len(verdict.message) < 450 and "Traceback" not in verdict.message
    assert repr(verdict)[0] == "✗"


@pytest.mark.parametrize("check", [checks.masked_softmax, checks.decode_step], ids=repr)
@pytest.mark.parametrize(
    "answer",
    [
        5,
        "E[ids]",
        torch.eye(2),
        int,
        lambda: 1,
        raising(ValueError("x" * 10_000)),
        raising(SystemExit(1)),
        raising(GeneratorExit()),
        raising(asyncio.CancelledError()),
        raising(Sneaky()),
        returns_itself,
        calls_itself,
        lambda *args: Spiky(),
        lambda *args: endless,
        lambda *args: [[1.0, 0.0]],
        lambda *args: np.ones((2, 2)),
        lambda *args: (),
        lambda *args: True,
        lambda *args: math.nan,
        lambda *args: 10**400,
        lambda *args: torch.tensor(math.nan),
        lambda *args: torch.full((3, 3), math.nan),
        lambda *args: torch.zeros(0, 3),
        lambda *args: torch.zeros(3, 3, device="meta"),
        lambda *args: torch.eye(3).to_sparse(),
        lambda *args: torch.tensor(1j),
        lambda *args: torch.zeros(1).expand(10**13),
        lambda *args: ValueError,
        lambda *args: (x for x in args),
    ],
)
def test_whatever_a_function_does_becomes_a_verdict(check, answer):
    check_becomes_a_verdict(check(answer))


@pytest.mark.parametrize("check", [checks.head_scale, checks.bank_asks_for_money], ids=repr)
@pytest.mark.parametrize(
    "value",
    ["0.125", [0.125], [[0.5]], {}, True, len, math.nan, -math.inf, 10**400, 1j, 7.25, np.eye(5)]
    + [torch.eye(3), torch.eye(2) * math.nan, torch.zeros(0), torch.zeros(1).expand(10**13)]
    + [torch.zeros(2, 2, device="meta"), torch.eye(2).to_sparse(), endless, ValueError()],
)
def test_whatever_stands_for_a_value_becomes_a_verdict(check, value):
    check_becomes_a_verdict(check(*[value for _ in check.variables]))


def test_no_exercise_ever_raises():
    for exercise in EXERCISES:
        for hostile in raising(SystemExit(1)), raising(Sneaky()), lambda *args: endless, endless:
            check_becomes_a_verdict(exercise(*[hostile for _ in exercise.variables]))
        verdict = exercise(*[Spiky() for _ in exercise.variables])
        message = "Your answer could not be checked: RuntimeError: do not touch."
        assert verdict == wrong(message), exercise


def test_ctrl_c_still_works():
    with pytest.raises(KeyboardInterrupt):
        checks.scores(raising(KeyboardInterrupt()))


# --- What a wrong answer is told ---------------------------------------------------------------


def loop_scores(X, W_Q, W_K):
    table = torch.zeros(len(X), len(X))
    for i in range(len(X)):
        for j in range(len(X)):
            table[i, j] = (X[i] @ W_Q) @ (X[j] @ W_K)
    return table


def loop_causal(scores):
    hidden = scores.clone()
    for i in range(len(scores)):
        for j in range(i + 1, len(scores)):
            hidden[i, j] = -math.inf
    return hidden


@pytest.mark.parametrize(
    ("check", "answer", "message"),
    [
        (checks.lookup, 5, "Expected a function, got int."),
        (checks.lookup, lambda i, E: E[i].tolist(), "Expected a torch.Tensor, got list."),
        (checks.lookup, lambda i, E: E[i].numpy(), "Expected a torch.Tensor, got ndarray."),
        (checks.cosine, lambda a, b: "1", "Expected a number, got str."),
        (checks.cosine, lambda a, b: True, "Expected a number, got bool."),
        (
            checks.cosine,
            lambda a, b: F.cosine_similarity(a, b, dim=0) + 0j,
            "With a (5,), b (5,) the result holds complex64, expected floats",
        ),
        (checks.lookup, raising(Sneaky()), "With ids (3,), E (5, 11) your function raised Sneaky."),
        (checks.decode_step, lambda q, k, v, K, V: v, "Expected 3 results, got 1."),
        (checks.decode_step, lambda q, k, v, K, V: (v, K), "Expected 3 results, got 2."),
        (
            checks.causal_scores,
            lambda s: s.round().long(),
            "With scores (5, 5) the result holds int64, expected floats: use .float().",
        ),
        (
            checks.scores,
            lambda X, W_Q, W_K: X,
            "With X (5, 3), W_Q (3, 3), W_K (3, 3) the result has shape (5, 3), expected (5, 5).",
        ),
        (
            checks.causal_scores,
            lambda s: loop_causal(s).nan_to_num(nan=0.0, neginf=7.0),
            "With scores (5, 5) the result is 7 at [0, 1], expected -inf.",
        ),
        (
            checks.masked_softmax,
            lambda s, m: s.masked_fill(m, math.nan),
            "With scores (3, 5), allowed (3, 5) the result is NaN at [0, 0], expected 0.",
        ),
        (
            checks.split,
            lambda x, n: x.softmax(),
            "With x (2, 6, 15), n_heads 3 your function raised TypeError: softmax() missing 1",
        ),
        (
            checks.lookup,
            raising(SystemExit("bye.")),
            "With ids (3,), E (5, 11) your function raised SystemExit: bye.",
        ),
        (
            checks.cache_bytes,
            lambda *n: 2 * math.prod(n) + 1,
            "With layers 3, kv_heads 5, head_width 7, positions 11, batch 13, bytes_per_number 4 "
            "the result is",
        ),
        (
            checks.decode_step,
            lambda q, k, v, K, V: (v, K[:, :1], V),
            "With q_new (1, 3), k_new (1, 3), v_new (1, 2), K (5, 3), V (5, 2) output is",
        ),
    ],
)
def test_any_other_wrong_answer_is_described(check, answer, message):
    assert check(answer).message.startswith(message)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (lambda X, Q, K: Q @ X, "Does one need to be transposed, or is a row missing?"),
        (lambda X, Q, K: X @ Q - X.sum(1), "from the right. Did you mean @ instead of *?"),
        (lambda X, Q, K: X.long().softmax(-1), "Those are integers: use .float()."),
        (lambda X, Q, K: X.long().mean(0), "Those are integers: use .float()."),
        (lambda X, Q, K: X & X, "A mask is boolean: use .bool()."),
        (lambda X, Q, K: ~X, "A mask is boolean: use .bool()."),
        (lambda X, Q: X, "Keep the arguments of the function as they were."),
        (lambda X, Q, K: X.softmax(), '"dim".'),
    ],
)  # fmt: skip
def test_what_torch_complains_about_gets_a_hint(answer, end):
    message = checks.scores(answer).message
    assert "your function raised" in message and message.endswith(end)


def test_an_error_alone_is_not_taken_for_a_mistake_that_raises_it_too():
    verdict = checks.scores(lambda X, Q, K: loop_scores(X, Q, K) if len(X) == 5 else X @ Q.T)
    assert verdict.message.startswith("With X (7, 5), W_Q (5, 2), W_K (5, 2) your function raised")


def test_editing_the_input_is_noticed():
    def in_place(scores):
        return scores.masked_fill_(~attnlab.causal_mask(len(scores)), -math.inf)

    verdict = checks.causal_scores(in_place)
    assert verdict == wrong("The numbers are right, but you overwrite the input scores.")

    def emptied(q, k, v, mask):
        output = attnlab.attention(q, k, v, mask).output
        v.resize_(0)
        return output

    assert checks.attention_function(emptied).message.endswith("you overwrite the input v.")

    def nudged(x, n_heads):
        heads = attnlab.split_heads(x, n_heads).clone()
        x *= 1.01
        return heads

    assert checks.split(nudged).message.endswith("you overwrite the input x.")

    def both(scores):
        return scores.masked_fill_(attnlab.causal_mask(len(scores)), -math.inf)

    assert checks.causal_scores(both).message.startswith("You hid the past")


def test_a_buffer_used_again_and_again_is_read_each_time():
    buffer = torch.zeros(7, 7)

    def answer(scores):
        n = len(scores)
        buffer[:n, :n] = loop_causal(scores)
        return buffer[:n, :n]

    assert checks.causal_scores(answer)


def test_assert_close_wants_one_shape_and_equal_numbers():
    checks.assert_close(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1e-6]))
    with pytest.raises(AssertionError, match=r"shapes \(2,\) and \(1, 2\) differ"):
        checks.assert_close(torch.ones(2), torch.ones(1, 2))
    with pytest.raises(AssertionError, match="they differ by up to 0.001"):
        checks.assert_close(torch.ones(2), torch.ones(2) + torch.tensor([0.0, 1e-3]))
