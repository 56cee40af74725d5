"""Hostile answers: the verdict says what happened, and kernel and checks work as before."""

import _thread
import contextlib
import os
import pdb
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from attnlab import checks
from attnlab.checks import Status, sandbox

RELEASE = threading.Event()  # ends what would never end


@pytest.fixture(autouse=True)
def no_thread_outlives_its_test(patient):
    before = set(threading.enumerate())
    RELEASE.clear()
    yield
    RELEASE.set()
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(10)
    assert [thread for thread in left if thread.is_alive()] == []


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(sandbox, "LIMIT", 0.2)


def softmax(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def process():
    """What an answer must not change."""
    return (
        torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_rng_state().tolist(),
        random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads(),
        os.getcwd(), sys.getrecursionlimit(), sys.stdout, sys.stderr, input, sys.breakpointhook,
    )  # fmt: skip


# --- Late -----------------------------------------------------------------------------------


def loops(*args):
    while not RELEASE.is_set():
        pass


def sleeps(*args):
    RELEASE.wait()  # in C, where no exception can reach it


def loops_and_catches_everything(*args):
    while not RELEASE.is_set():
        with contextlib.suppress(BaseException):
            loops()


def catches_exceptions(scores, mask):
    try:
        loops()
    except Exception:
        return softmax(scores, mask)


def prints(*args):
    while not RELEASE.is_set():
        print("still here")


class EndlessTuple(tuple):
    __iter__ = loops


class EndlessError(Exception):
    __str__ = loops


def raises_endless(*args):
    raise EndlessError


class SlowToClear:
    def __del__(self):
        time.sleep(0.3)


local = threading.local()


def is_cleared_away_slowly(*args):
    local.value = SlowToClear()  # the thread is alive until this is gone
    loops()


WAS_STOPPED = "Your function was not done after 0.2 seconds and was stopped."
STILL_RUNS = "Your function was not done after 0.2 seconds and still runs: restart the kernel."


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (loops, WAS_STOPPED),
        (catches_exceptions, WAS_STOPPED),
        (raises_endless, WAS_STOPPED),
        (lambda s, m: (EndlessTuple([s]),), WAS_STOPPED),
        (prints, WAS_STOPPED),
        (is_cleared_away_slowly, WAS_STOPPED),
        (sleeps, STILL_RUNS),
        (loops_and_catches_everything, STILL_RUNS),
    ],
)
def test_an_answer_that_never_ends_is_late(impatient, answer, message):
    before = process()
    verdict = checks.masked_softmax(answer)
    assert (verdict.status, verdict.message) == (Status.LATE, message)
    assert repr(verdict) == f"✗ {message}" and not verdict
    assert process() == before
    sandbox.LIMIT = 60.0
    assert checks.masked_softmax(softmax)


def test_settings_that_an_endless_answer_has_changed_are_restored(impatient):
    def answer(scores, mask):
        torch.set_default_dtype(torch.float16)
        os.chdir("/")
        loops()

    before = process()
    assert checks.masked_softmax(answer).status is Status.LATE
    assert process() == before


def test_code_that_a_result_brings_along_is_not_run():
    class EndlessTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            loops()

    assert checks.masked_softmax(lambda s, m: softmax(s, m).as_subclass(EndlessTensor))
    assert checks.masked_softmax(lambda s, m: nn.Parameter(softmax(s, m)))


def test_a_slow_answer_is_waited_for():
    assert checks.masked_softmax(lambda s, m: (time.sleep(0.06), softmax(s, m))[1])


def test_an_answer_that_calls_its_own_check_becomes_a_verdict():
    def answer(scores, mask):
        return checks.masked_softmax(answer)

    assert checks.masked_softmax(answer).status is Status.WRONG
    assert checks.masked_softmax(lambda s, m: (checks.head_scale(0.1), softmax(s, m))[1])


@pytest.fixture
def ctrl_c():
    """As in a terminal: what runs in a shell's background is told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_an_answer_that_never_ends(ctrl_c):
    def answer(scores, mask):
        _thread.interrupt_main()
        loops()

    before = process()
    with pytest.raises(KeyboardInterrupt):
        checks.masked_softmax(answer)
    assert process() == before
    assert checks.masked_softmax(softmax)


# --- Other libraries, and what an answer replaces ----------------------------------------------


def test_what_another_library_has_patched_stays_patched(monkeypatch):
    def lovely(tensor, **options):
        return "lovely"

    monkeypatch.setattr(torch.Tensor, "__repr__", lovely)
    monkeypatch.setattr(torch, "softmax", lambda *args, **options: None)
    patched = torch.softmax
    assert checks.masked_softmax(softmax)
    assert torch.Tensor.__repr__ is lovely and torch.softmax is patched


@pytest.mark.parametrize(
    ("owner", "name"), [(torch.Tensor, "softmax"), (torch, "isclose"), (torch, "softmax")]
)
def test_replacing_a_function_makes_no_wrong_answer_right(monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, getattr(owner, name))  # put back after the test

    def answer(scores, mask):
        setattr(owner, name, lambda *args, **options: torch.ones(scores.shape))
        return torch.ones(scores.shape)

    assert checks.masked_softmax(answer).status is Status.WRONG


@pytest.mark.parametrize("name", ["lookup", "head_scale", "bank_asks_for_money"])
def test_a_check_that_cannot_prepare_its_inputs_says_so(monkeypatch, name):
    def gone(*args, **options):
        raise OSError("gone")

    for function in "randn", "tensor", "zeros":
        monkeypatch.setattr(torch, function, gone)
    exercise = getattr(checks, name)
    verdict = exercise(*[0.125 for _ in exercise.variables])
    assert verdict.status is Status.WRONG
    assert verdict.message == "Your answer could not be checked: OSError: gone."


# --- Settings of the process ------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.manual_seed(5),
        lambda: torch.randn(3),
        lambda: random.random(),
        lambda: np.random.rand(),
        lambda: torch.set_num_threads(2),
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_grad_enabled(False),
        lambda: torch.set_default_device("meta"),
        lambda: os.chdir("/"),
        lambda: sys.setrecursionlimit(5000),
        lambda: setattr(sys, "stdout", None),
        lambda: setattr(sys, "breakpointhook", None),
        lambda: contextlib.redirect_stdout(None).__enter__(),
    ],
)
def test_settings_that_an_answer_changes_are_restored(change, capsys):
    # None of these makes a right answer wrong: a module with random weights draws numbers, too.
    before = process()
    assert checks.masked_softmax(lambda s, m: (softmax(s, m), change())[0])
    assert process() == before
    assert torch.ones(1).device.type == "cpu"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("draw", [torch.rand, np.random.rand, lambda n: [random.random()] * n])
def test_an_answer_that_draws_numbers_gets_the_same_verdict_every_time(draw):
    def answer(scores, mask):
        return torch.as_tensor(draw(5)).expand(scores.shape[0], 5)

    first = checks.masked_softmax(answer)
    draw(7)
    assert checks.masked_softmax(answer) == first


def test_the_settings_of_the_caller_hold_inside():
    seen = []

    def answer(scores, mask):
        seen.append((torch.is_grad_enabled(), torch.get_default_dtype()))
        return softmax(scores, mask)

    with torch.no_grad():
        assert checks.masked_softmax(answer)
    torch.set_default_dtype(torch.float64)
    try:
        assert checks.masked_softmax(answer)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert seen[0] == (False, torch.float32) and seen[-1] == (True, torch.float64)


# --- Printing and asking ----------------------------------------------------------------------


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


def test_a_few_lines_are_printed_as_they_are(capsys):
    assert checks.masked_softmax(lambda s, m: (print(tuple(s.shape)), softmax(s, m))[1])
    assert capsys.readouterr().out == "(3, 5)\n(7, 4)\n(4, 3)\n"


@pytest.mark.parametrize("ask", [lambda: input(), breakpoint, lambda: pdb.Pdb().set_trace()])
def test_an_answer_that_waits_for_input_is_told_where_to_debug(ask):
    def answer(scores, mask):
        ask()
        return softmax(scores, mask)

    before = process()
    verdict = checks.masked_softmax(answer)
    assert verdict.status is Status.WRONG
    assert verdict.message == (
        "With scores (3, 5), allowed (3, 5) your function raised RuntimeError: a check cannot "
        "wait for input: debug your function in another cell."
    )
    assert process() == before
