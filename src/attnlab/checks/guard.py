"""Foreign code, bounded: however an answer behaves, the kernel and the checks stay usable.

An answer runs in a thread that is given up when it is late: of all ways to bound a call, the one
that works on every platform and also when the answer sleeps. What it replaces in ``torch`` is put
back, what it prints is kept short, and random numbers are drawn as if it had not run.

Nothing here helps against one endless call in C that never lets Python go on, such as
``10 ** 10 ** 10``, nor against filling the memory.
"""

import builtins
import contextlib
import contextvars
import ctypes
import io
import math
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

import attnlab.core

LIMIT = 5.0  # seconds for a check, which takes milliseconds; tests lower it
LINES, CHARACTERS = 10, 2000  # of what an answer prints

_here = threading.local()  # .grad and .dtype, in a thread that runs a check


class Spoilt(Exception):
    """Foreign code changed something for everybody; it has been put back."""


class Late(BaseException):
    """Raised inside an answer that runs too long, and by ``bounded`` in its place."""


def bounded(work: Callable[[], Any]) -> Any:
    """The result of ``work``, which may call foreign code, within ``LIMIT`` seconds.

    Raises:
        Late: with a sentence, if there is none by then. KeyboardInterrupt, whether from the
            learner or from the work, passes through. Anything else is the work's to catch.
        Spoilt: if torch was no longer torch before it started.
    """
    if hasattr(_here, "grad"):  # one check calls another
        return work()
    if changed := put_back():
        raise Spoilt(f"This notebook {changed}: it was put back, run this cell again.")
    before = _State()
    printed = _Printed()
    runner = _Runner(work)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            runner.run()
    finally:
        before.restore()
        put_back()
    if printed.text():
        print(printed.text())
    if not runner.outcome:
        end = "still runs: restart the kernel" if runner.thread.is_alive() else "was stopped"
        raise Late(f"Your function was not done after {LIMIT:g} seconds and {end}.")
    kind, value = runner.outcome[0]
    if kind == "raised":
        raise value
    return value


class _Runner:
    """Runs ``work`` in a thread of its own and gives it up when it is late."""

    def __init__(self, work: Callable[[], Any]):
        self.work, self.outcome, self.over = work, [], False
        self.lock, self.done = threading.Lock(), threading.Event()
        self.grad = torch.is_grad_enabled()  # like the random state, it belongs to the caller
        context = contextvars.copy_context()
        self.thread = threading.Thread(target=context.run, args=(self.body,), daemon=True)

    def run(self) -> None:
        try:
            self.thread.start()
        except RuntimeError:  # a Python without threads, in a browser
            self.body()
            return
        # Short waits: on Windows a long one cannot be interrupted.
        end = time.monotonic() + LIMIT
        try:
            while time.monotonic() < end and not self.done.wait(0.05):
                pass
        except KeyboardInterrupt:
            self.stop()
            raise
        self.stop()

    def body(self) -> None:
        try:
            self.guarded()
        except Late:  # at the last moment
            pass
        finally:
            self.over = True
            self.done.set()

    def guarded(self) -> None:
        try:
            _here.grad, _here.dtype = self.grad, torch.get_default_dtype()
            torch.set_grad_enabled(self.grad)
            try:
                result = "returned", self.work()
            except Late:
                self.over = True
                return
            except BaseException as error:
                result = "raised", error
            with self.lock:  # from here on it is not late
                self.over = True
                self.outcome.append(result)
        finally:
            del _here.grad, _here.dtype  # without threads this one lives on

    def stop(self) -> None:
        """Raise ``Late`` in the thread until it ends, for half a second at most."""
        for _ in range(25):
            with self.lock:
                if self.over:
                    return
                thread = ctypes.c_ulong(self.thread.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Late))
            if self.done.wait(0.02):
                return


class _Printed(io.TextIOBase):
    """Keeps the first lines of what is printed and counts the rest."""

    def __init__(self):
        self.kept, self.length = "", 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.kept += text[: max(0, CHARACTERS - len(self.kept))]
        self.length += len(text)
        return len(text)

    def text(self) -> str:
        shown = "".join(self.kept.splitlines(keepends=True)[:LINES])
        left = self.length - len(shown)
        return shown.rstrip("\n") + (f"\n... and {left:,} characters more." if left else "")


class _State:
    """Settings of the process that a check must leave as they were."""

    def __init__(self):
        self.random, self.torch = random.getstate(), torch.get_rng_state()
        self.numpy = sys.modules["numpy"].random if "numpy" in sys.modules else None
        self.arrays = self.numpy and self.numpy.get_state()
        self.folder, self.depth = os.getcwd(), sys.getrecursionlimit()
        self.dtype = torch.get_default_dtype()
        self.threads = torch.get_num_threads()
        random.seed(0)  # so that an answer that draws numbers gets the same verdict every time
        torch.default_generator.manual_seed(0)

    def restore(self) -> None:
        random.setstate(self.random)
        torch.set_rng_state(self.torch)
        torch.set_default_dtype(self.dtype)
        if self.numpy:
            self.numpy.set_state(self.arrays)
        if os.getcwd() != self.folder:
            os.chdir(self.folder)
        if sys.getrecursionlimit() != self.depth:
            sys.setrecursionlimit(self.depth)
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)


# --- What must not be replaced ---------------------------------------------------------------

# Some are replaced by every notebook, or by torch when it compiles.
_OURS = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": torch.nn.functional}
_OURS |= {"torch.linalg": torch.linalg, "math": math, "attnlab.core": attnlab.core}
_OURS |= {"builtins": builtins}
_FREE = {"input", "open", "print", "exit", "quit", "help", "copyright", "credits", "license"}
_FREE |= {"get_ipython", "display", "manual_seed"}  # the first is there while a cell runs


def _functions(owner: Any) -> dict[str, Any]:
    """What a module or class offers to call; names with one underscore are its own affair."""
    return {
        name: value
        for name, value in vars(owner).items()
        if (callable(value) or isinstance(value, property | staticmethod | classmethod))
        and (name.startswith("__") or not name.startswith("_"))
        and (owner is builtins or not isinstance(value, type))
        and name not in _FREE
    }


_ORIGINAL = {label: _functions(owner) for label, owner in _OURS.items()}
_INHERITED = {name for name in dir(torch.Tensor) if name not in vars(torch.Tensor)}


def put_back() -> str:
    """Undo what foreign code changed for everybody; say what it was, or nothing."""
    changed = ""
    for label, owner in _OURS.items():
        now = vars(owner)
        for name, original in _ORIGINAL[label].items():
            if now.get(name) is not original:
                setattr(owner, name, original)
                changed = f"replaces {label}.{name}"
    for name in _INHERITED & vars(torch.Tensor).keys():
        delattr(torch.Tensor, name)
        changed = f"replaces torch.Tensor.{name}"
    if getattr(_here, "grad", torch.is_grad_enabled()) != torch.is_grad_enabled():
        torch.set_grad_enabled(_here.grad)
        changed = "switches gradients on or off"
    if getattr(_here, "dtype", torch.get_default_dtype()) != torch.get_default_dtype():
        torch.set_default_dtype(_here.dtype)
        changed = "changes the default dtype"
    return changed
