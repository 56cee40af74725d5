"""Hostile answers: the verdict says what happened, and kernel and checks work as before."""

import _thread
import builtins
import contextlib
import math
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answers import bank
from torch import nn

import attnlab
from attnlab import checks
from attnlab.checks import guard


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(guard, "LIMIT", 0.5)


def softmax(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def everything():
    """What an answer must not change."""
    return (
        torch.softmax, F.softmax, torch.Tensor.softmax, torch.Tensor.__matmul__, math.exp, sum,
        attnlab.core.attention, torch.get_default_dtype(), torch.is_grad_enabled(),
        torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist(),
        torch.get_num_threads(), os.getcwd(), sys.getrecursionlimit(), sys.stdout, sys.stderr,
    )  # fmt: skip


def never_ends(scores, mask):
    while True:
        pass


def sleeps_for_ever(scores, mask):
    time.sleep(30)  # in C, where no exception can reach it


def does_not_want_to_end(scores, mask):
    while True:
        try:
            while True:
                time.sleep(0.001)
        except BaseException:
            pass


def hides_from_exceptions(scores, mask):
    try:
        never_ends(scores, mask)
    except Exception:
        return softmax(scores, mask)


class Endless:
    def __len__(self):
        never_ends(0, 0)

    __str__ = __array__ = __iter__ = __len__


class EndlessTuple(tuple):
    def __iter__(self):
        never_ends(0, 0)


class EndlessError(Exception):
    def __str__(self):
        never_ends(0, 0)


def raises_endless(scores, mask):
    raise EndlessError


class EndlessTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        never_ends(0, 0)


WAS_STOPPED = "Your function was not done after 0.5 seconds and was stopped."
STILL_RUNS = "Your function was not done after 0.5 seconds and still runs: restart the kernel."


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (never_ends, WAS_STOPPED),
        (hides_from_exceptions, WAS_STOPPED),
        (raises_endless, WAS_STOPPED),
        (lambda s, m: (EndlessTuple([s]),), WAS_STOPPED),
        (sleeps_for_ever, STILL_RUNS),
        (does_not_want_to_end, STILL_RUNS),
    ],
)
def test_an_answer_that_never_ends_is_given_up(answer, message):
    before, start = everything(), time.perf_counter()
    verdict = checks.masked_softmax(answer)
    assert (verdict.passed, verdict.message) == (False, message)
    assert time.perf_counter() - start < 3
    assert everything() == before
    assert checks.masked_softmax(softmax)


BANK = bank()
FUNCTIONS = [name for name in BANK if callable(BANK[name].right[0])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_check_survives_the_worst(name, monkeypatch):
    def unending(*args):
        while True:
            pass

    def replacing(*args):
        torch.softmax = print
        return right(*args)

    right, check, before = BANK[name].right[0], getattr(checks, name), everything()
    assert check(replacing).message.startswith("Your function replaces torch.softmax for")
    monkeypatch.setattr(guard, "LIMIT", 0.1)
    assert check(unending).message.endswith("0.1 seconds and was stopped.")
    assert check(sleeps_a_second).message.endswith(
        "0.1 seconds and still runs: restart the kernel."
    )
    monkeypatch.setattr(guard, "LIMIT", 5.0)
    assert everything() == before
    assert check(right)


def sleeps_a_second(*args):
    time.sleep(1)


def test_objects_that_never_end_do_no_harm():
    assert not checks.masked_softmax(lambda s, m: Endless())
    assert not checks.masked_softmax(Endless())
    assert not checks.head_scale(Endless())
    # Its own code is never called.
    assert checks.masked_softmax(lambda s, m: softmax(s, m).as_subclass(EndlessTensor))


def test_a_slow_answer_is_waited_for():
    assert checks.masked_softmax(lambda s, m: (time.sleep(0.06), softmax(s, m))[1])


def test_no_threads_pile_up():
    before = threading.active_count()
    for _ in range(20):
        checks.masked_softmax(softmax)
        checks.masked_softmax(lambda s, m: 1 / 0)
    checks.masked_softmax(never_ends)
    assert threading.active_count() <= before


@pytest.fixture
def ctrl_c():
    """As in a terminal: what runs in a shell's background is told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_an_answer_that_never_ends(ctrl_c):
    guard.LIMIT = 20
    before, start = threading.active_count(), time.perf_counter()
    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        checks.masked_softmax(never_ends)
    assert time.perf_counter() - start < 5
    assert threading.active_count() <= before
    assert checks.masked_softmax(softmax)


def test_a_python_without_threads_still_checks(monkeypatch):
    def no_threads(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_threads)
    assert checks.masked_softmax(softmax)
    assert not checks.masked_softmax(lambda s, m: s)
    assert not hasattr(guard._here, "grad")


# --- Replacing things -----------------------------------------------------------------------


def replacing(owner, name, value=None):
    def answer(scores, mask):
        result = softmax(scores, mask)
        setattr(owner, name, value or (lambda *args, **kwargs: torch.zeros(3, 5)))
        return result

    return answer


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (replacing(torch, "softmax"), "replaces torch.softmax"),
        (replacing(torch, "isclose"), "replaces torch.isclose"),
        (replacing(torch, "softmax", 5), "replaces torch.softmax"),
        (replacing(torch, "exp", torch.sin), "replaces torch.exp"),
        (replacing(F, "softmax"), "replaces torch.nn.functional.softmax"),
        (replacing(torch.Tensor, "softmax"), "replaces torch.Tensor.softmax"),
        (replacing(torch.Tensor, "__matmul__"), "replaces torch.Tensor.__matmul__"),
        (replacing(torch.Tensor, "norm"), "replaces torch.Tensor.norm"),
        (replacing(torch.Tensor, "shape", property(lambda x: ())), "replaces torch.Tensor.shape"),
        (replacing(math, "exp"), "replaces math.exp"),
        (replacing(builtins, "sum"), "replaces builtins.sum"),
        (replacing(attnlab.core, "attention"), "replaces attnlab.core.attention"),
        (lambda s, m: (softmax(s, m), torch.set_default_dtype(torch.float64))[0],
         "changes the default dtype"),
        (lambda s, m: (softmax(s, m), torch.set_grad_enabled(False))[0],
         "switches gradients on or off"),
    ],
)  # fmt: skip
def test_what_an_answer_replaces_is_put_back_and_named(answer, what):
    before = everything()
    verdict = checks.masked_softmax(answer)
    message = f"Your function {what} for everybody: it was put back."
    assert (verdict.passed, verdict.message) == (False, message)
    assert everything() == before
    assert checks.masked_softmax(softmax)
    assert checks.masked_softmax(lambda s, m: s.softmax(-1)).message.startswith("The mask is not")


def test_what_an_endless_answer_has_replaced_is_put_back():
    def answer(scores, mask):
        torch.softmax = torch.set_default_dtype(torch.float16)
        os.chdir("/")
        never_ends(scores, mask)

    before = everything()
    assert checks.masked_softmax(answer).message == WAS_STOPPED
    assert everything() == before


@pytest.mark.parametrize("function", ["softmax", "randn", "arange", "isclose"])
@pytest.mark.parametrize("name", ["masked_softmax", "head_scale", "bank_asks_for_money", "lookup"])
def test_what_a_cell_has_replaced_before_is_noticed(monkeypatch, function, name):
    monkeypatch.setattr(torch, function, lambda *args, **options: 5)
    answer = BANK[name].right[0]
    given = answer if isinstance(answer, tuple) else (answer,)
    verdict = getattr(checks, name)(*given)
    assert not verdict
    assert verdict.message == (
        f"This notebook replaces torch.{function}: it was put back, run this cell again."
    )
    assert getattr(checks, name)(*given)


def test_a_lazy_import_is_not_taken_for_a_replacement():
    import torch._dynamo
    import torch.func

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    torch.func.vmap(lambda x: x * 2)(torch.ones(3))
    assert guard.put_back() == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.manual_seed(5),
        lambda: torch.randn(3),
        lambda: random.random(),
        lambda: np.random.rand(),
        lambda: torch.set_num_threads(2),
        lambda: os.chdir("/"),
        lambda: sys.setrecursionlimit(5000),
        lambda: setattr(sys, "stdout", None),
        lambda: contextlib.redirect_stdout(None).__enter__(),
    ],
)
def test_settings_are_restored_in_silence(change, capsys):
    # None of these makes a right answer wrong: a module with random weights draws numbers, too.
    before = everything()
    assert checks.masked_softmax(lambda s, m: (change(), softmax(s, m))[1])
    assert everything() == before
    assert capsys.readouterr() == ("", "")


def test_an_answer_that_draws_numbers_gets_the_same_verdict_every_time():
    def answer(scores, mask):
        return torch.randn(scores.shape)

    first = checks.masked_softmax(answer)
    torch.randn(7)
    assert checks.masked_softmax(answer) == first


def test_gradients_are_as_the_caller_wants_them():
    seen = []

    def answer(scores, mask):
        seen.append(torch.is_grad_enabled())
        return softmax(scores, mask)

    with torch.no_grad():
        assert checks.masked_softmax(answer)
    assert checks.masked_softmax(answer)
    assert seen[0] is False and seen[-1] is True
    torch.set_default_dtype(torch.float64)  # the learner's own choice stays
    try:
        assert checks.masked_softmax(answer)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


# --- Printing -------------------------------------------------------------------------------


def test_a_megabyte_is_printed_in_a_few_lines(capsys):
    def answer(scores, mask):
        print("line\n" * 200_000, end="")
        print("error", file=sys.stderr)
        return softmax(scores, mask)

    assert checks.masked_softmax(answer)
    out, err = capsys.readouterr()
    assert out.startswith("line\n" * 10 + "... and ") and out.endswith(" characters more.\n")
    assert len(out) < 200 and err == ""
    checks.masked_softmax(lambda s, m: print("x" * 10**6))
    assert len(capsys.readouterr().out) < 2100


def test_what_is_printed_to_look_at_is_shown(capsys):
    assert checks.masked_softmax(lambda s, m: (print(tuple(s.shape)), softmax(s, m))[1])
    assert capsys.readouterr().out.startswith("(3, 5)\n")


def test_printing_for_ever_ends():
    def answer(scores, mask):
        while True:
            print("still here")

    assert checks.masked_softmax(answer).message == WAS_STOPPED


# --- Forms ----------------------------------------------------------------------------------


def test_a_check_is_cheap():
    checks.masked_softmax(softmax)
    start = time.perf_counter()
    for _ in range(20):
        checks.masked_softmax(softmax)
    assert (time.perf_counter() - start) / 20 < 0.05  # measured: 2 ms


def test_subclasses_of_tensor_are_tensors():
    assert checks.masked_softmax(lambda s, m: nn.Parameter(softmax(s, m)))
    assert checks.masked_softmax(lambda s, m: nn.Buffer(softmax(s, m)))


def test_what_ipython_adds_to_the_builtins_while_a_cell_runs_is_no_replacement(monkeypatch):
    # A button's callback runs between cells, where they are gone.
    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    monkeypatch.setattr(builtins, "display", print, raising=False)
    monkeypatch.setattr(
        guard, "_ORIGINAL", {k: guard._functions(v) for k, v in guard._OURS.items()}
    )
    monkeypatch.delattr(builtins, "get_ipython")
    monkeypatch.delattr(builtins, "display")
    assert guard.put_back() == ""
    assert checks.lookup(lambda ids, E: E[ids])
