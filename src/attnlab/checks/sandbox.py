"""Sandbox for learner code: however an answer behaves, the kernel stays usable.

The code runs in a thread that is abandoned at the time limit. Of all ways to bound a call this is
the one that works on every platform and also stops waiting for code that sleeps. Output is cut
short, and random states and the settings of the process in ``_SETTINGS`` are restored afterwards.

Not protected:

* memory, and a single call into C that never returns to Python, such as ``10 ** 10 ** 10``;
* what the code replaces inside a module or class (``torch.softmax = ...``): it stays replaced, as
  it would after any other cell. Undoing it would also undo what other libraries have patched.
"""

import builtins
import contextlib
import contextvars
import ctypes
import io
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch

LIMIT = 5.0  # seconds for a check, which takes milliseconds
LINES, CHARACTERS = 10, 2000  # of the output of an answer

_inside = contextvars.ContextVar("inside", default=False)


class Timeout(Exception):
    """The code was not done within ``LIMIT`` seconds."""


class Stop(BaseException):
    """Raised inside code that runs too long."""


def run(work: Callable[[], Any]) -> Any:
    """The result of ``work``, or the exception that it raised, within ``LIMIT`` seconds.

    Random numbers start from the same seed each time. Asking for input, as ``breakpoint`` and the
    debugger also do, raises a ``RuntimeError`` inside ``work``. A call inside another one shares
    the outer call's limit.

    Raises:
        Timeout: with a sentence for the learner.
    """
    if _inside.get():
        return work()
    outcome: list[tuple[Any, BaseException | None]] = []
    grad = torch.is_grad_enabled()  # PyTorch keeps it for each thread
    lock, over = threading.Lock(), threading.Event()

    def body() -> None:
        try:
            try:
                _inside.set(True)
                torch.set_grad_enabled(grad)
                outcome.append((work(), None))
            except BaseException as error:
                outcome.append((None, error))
            with lock:  # Stop is not raised after this
                over.set()
        except Stop:  # for the second time
            over.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), daemon=True)
    printed = _Printed()
    with _restored(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            thread.start()
            for _ in range(round(LIMIT / 0.05)):  # on Windows a long wait cannot be interrupted
                if over.wait(0.05):
                    break
        finally:  # after Ctrl-C as well
            late = not over.is_set()
            for _ in range(25):  # half a second at most
                with lock:
                    if over.is_set():
                        break
                    name = ctypes.c_ulong(thread.ident or 0)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(name, ctypes.py_object(Stop))
                over.wait(0.02)
    if printed.length:
        print(printed.text())
    if late:
        # Not thread.is_alive(): Python may still be clearing away a thread that was stopped.
        end = "was stopped" if over.is_set() else "still runs: restart the kernel"
        raise Timeout(f"Your function was not done after {LIMIT:g} seconds and {end}.")
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


class _Printed(io.TextIOBase):
    """Keeps the beginning of what is printed and counts the rest."""

    beginning, length = "", 0

    def write(self, text: str) -> int:
        self.beginning += text[: CHARACTERS - len(self.beginning)]
        self.length += len(text)
        return len(text)

    def text(self) -> str:
        shown = "".join(self.beginning.splitlines(keepends=True)[:LINES])
        left = self.length - len(shown)
        return shown.rstrip("\n") + (f"\n... and {left:,} characters more." if left else "")


def _refuse_input(*args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("a check cannot wait for input: debug your function in another cell")


_SETTINGS: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [  # how to read, how to write
    (random.getstate, random.setstate),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (os.getcwd, os.chdir),
    (lambda: builtins.input, lambda value: setattr(builtins, "input", value)),
    (lambda: sys.breakpointhook, lambda value: setattr(sys, "breakpointhook", value)),
]


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Refuse input and seed random numbers; restore them and the settings afterwards."""
    arrays = np.random.get_state()
    settings = [(read, write, read()) for read, write in _SETTINGS]
    try:
        with torch.random.fork_rng(devices=[]):
            builtins.input = sys.breakpointhook = _refuse_input
            for seed in random.seed, np.random.seed, torch.default_generator.manual_seed:
                seed(0)
            yield
    finally:
        np.random.set_state(arrays)
        for read, write, value in settings:
            if read() != value:
                write(value)
