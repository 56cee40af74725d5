"""What all checks share: run an answer, compare its results, name the mistake."""

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.checks import guard

UNDONE = "Not done yet: "


def assert_close(
    actual: Tensor, expected: Tensor, atol: float = 1e-5, rtol: float = 1.3e-6
) -> None:
    """Raise ``AssertionError`` unless two tensors of one shape agree to rounding.

    As ``torch.testing.assert_close``, which at its first call imports distributed tensors: most of
    a second in each notebook.
    """
    if actual.shape != expected.shape:
        raise AssertionError(f"shapes {tuple(actual.shape)} and {tuple(expected.shape)} differ")
    if not torch.allclose(actual, expected, atol=atol, rtol=rtol):
        raise AssertionError(f"they differ by up to {(actual - expected).abs().max().item():.2g}")


@dataclass(frozen=True)
class Verdict:
    """What a check found. True when the attempt passed; displays as its message."""

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        sign = "✓" if self.passed else "…" if self.message.startswith(UNDONE) else "✗"
        return f"{sign} {self.message}"


# --- Run, compare, name the mistake ---------------------------------------------------------


class _Unlike(Exception):
    """A result that is not even of the expected type."""


def never_raising(check: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """What hangs, or fails when it is looked at, becomes a verdict as well."""

    @functools.wraps(check)
    def safe(*args: Any, **kwargs: Any) -> Verdict:
        def attempt() -> Verdict:
            try:
                return check(*args, **kwargs)
            except (KeyboardInterrupt, guard.Late, guard.Spoilt):
                raise
            except _Unlike as unlike:
                return Verdict(False, str(unlike))
            except BaseException as error:
                return Verdict(False, f"Your answer cannot be read: {_words(error)}.")

        try:
            return guard.bounded(attempt)
        except (guard.Late, guard.Spoilt) as trouble:
            if not trouble.args:  # on its way to the check that called this one
                raise
            return Verdict(False, str(trouble))

    return safe


@never_raising
def judge(
    attempt: Any,
    right: Callable,
    cases: Sequence[tuple],
    wrong: dict[str, Callable | tuple[Callable, ...]],
    names: Sequence[str] = ("the result",),
    pick: Callable = lambda result: result,
    rtol: float = 2e-4,
    see: str = "",
) -> Verdict:
    """Compare the results of ``attempt`` with the right ones, then with each wrong one.

    Args:
        attempt: what the learner wrote.
        right: the reference; a tensor, or a tuple of them. Its arguments are named in messages.
        cases: the arguments of each call.
        wrong: sentence -> mistake, or several.
        names: what the parts of the result are called.
        pick: takes from the learner's result the part that is asked for.
        rtol: how close, relatively, is equal.
        see: where to read on, such as ``"section 2"``; ends what is said about wrong numbers.
    """
    if undone(attempt):
        return Verdict(False, UNDONE + "put your answer in place of the dots and run again.")
    if not callable(attempt):
        return Verdict(False, f"Expected a function, got {type(attempt).__name__}.")
    arguments = list(inspect.signature(right).parameters)
    wanted = [right(*case) for case in cases]  # before foreign code runs
    wanted = [list(want) if isinstance(want, tuple) else [want] for want in wanted]
    results, edited = [], []
    for case, want in zip(cases, wanted, strict=True):
        result, inputs = _run(attempt, case)
        if changed := guard.put_back():
            raise guard.Spoilt(f"Your function {changed} for everybody: it was put back.")
        if undone(result):
            hint = "does it end with a return?" if result is None else "a part is still missing."
            return Verdict(False, UNDONE + hint)
        results.append(as_values(pick(result), want))
        for name, old, new in zip(arguments, case, inputs, strict=False):
            if isinstance(old, Tensor) and not _same([old], [new], 0.0):
                edited.append(name)

    bad = [i for i, want in enumerate(wanted) if not _same(results[i], want, rtol)]
    if not bad and not edited:
        return Verdict(True, f"Right, on {len(cases)} inputs of different sizes.")
    if not bad:
        return Verdict(False, f"The numbers are right, but you overwrite the input {edited[0]}.")

    def makes(mistake: Callable, i: int) -> bool:
        return _same(results[i], as_values(_run(mistake, cases[i])[0], wanted[i]), rtol)

    got, want, case = results[bad[0]], wanted[bad[0]], cases[bad[0]]
    raised = isinstance(got, BaseException)
    # A mistake that shows in every case; or, of two made at once, the one that shows first. But one
    # small count may equal that of a mistake by chance.
    count = not raised and want[0].ndim == 0 and not want[0].is_floating_point()
    for where in [range(len(cases))] if raised or count else [range(len(cases)), bad[:1]]:
        for sentence, mistakes in wrong.items():
            if any(all(makes(mistake, i) for i in where) for mistake in each(mistakes)):
                return Verdict(False, pointing(sentence, see))
    if raised:
        text = f"your function raised {_words(got)}.{_help(_words(got))}"
    else:
        text = difference(got, want, names, rtol, reveal=bool(case)) + "."
    if case:
        inputs = (tuple(x.shape) if isinstance(x, Tensor) else x for x in case)
        shapes = [f"{name} {x}" for name, x in zip(arguments, inputs, strict=False)]
        text = f"with {', '.join(shapes)} {text}"
    text = text[0].upper() + text[1:]
    return Verdict(False, text if raised else pointing(text, see))


def pointing(sentence: str, see: str) -> str:
    """The sentence and where to read on, once."""
    return f"{sentence} See {see}." if see and f"ee {see}" not in sentence else sentence


def each(mistakes: Callable | tuple[Callable, ...]) -> tuple[Callable, ...]:
    """One mistake or several, as a tuple."""
    return mistakes if isinstance(mistakes, tuple) else (mistakes,)


def _run(function: Callable, case: tuple) -> tuple[Any, list]:
    """What the function returns or raises, and its inputs afterwards."""
    inputs = [x.clone() if isinstance(x, Tensor) else x for x in case]
    try:
        return function(*inputs), inputs
    except (KeyboardInterrupt, guard.Late):
        raise
    except BaseException as error:  # SystemExit too: no answer may end the notebook
        return error, inputs


def undone(result: Any) -> bool:
    """Whether dots, None or NotImplementedError stand where an answer should."""
    if isinstance(result, BaseException):
        words = _words(result)
        by_torch = "implemented for '" in words  # the softmax of integers, for one
        return "ellipsis" in words or (isinstance(result, NotImplementedError) and not by_torch)
    if isinstance(result, tuple | list):
        return any(undone(part) for part in result)
    return result is None or result is ...


def as_values(result: Any, like: list[Tensor]) -> list[Tensor] | BaseException:
    """The result as tensors, one for each of ``like``; an exception as it is."""
    if isinstance(result, BaseException):
        return result
    parts = [result] if len(like) == 1 else result
    if not isinstance(parts, tuple | list) or len(parts) != len(like):
        got = len(parts) if isinstance(parts, tuple | list) else f"one {type(parts).__name__}"
        raise _Unlike(f"Expected {len(like)} results, got {got}.")
    values = []
    for part, wanted in zip(parts, like, strict=True):
        if not wanted.ndim and isinstance(part, numbers.Real) and not isinstance(part, bool):
            part = torch.tensor(float(part), dtype=torch.float64)
        if not isinstance(part, Tensor):
            kind = "torch.Tensor" if wanted.ndim else "number"
            raise _Unlike(f"Expected a {kind}, got {type(part).__name__}.")
        with torch._C.DisableTorchFunctionSubclass():  # a subclass runs code of its own
            values.append(part.detach().cpu().clone().as_subclass(Tensor))
    return values


def _close(x: Tensor, y: Tensor, rtol: float) -> Tensor:
    """Where two tensors of one shape agree: integers exactly, 16-bit floats nearly."""
    atol = 1e-6 if rtol else 0.0
    if not y.is_floating_point():
        rtol = atol = 0.0
    elif x.dtype in (torch.float16, torch.bfloat16):
        rtol = atol = 2e-2
    return torch.isclose(x.double(), y.double(), rtol=rtol, atol=atol, equal_nan=True)


def _same(a: list[Tensor] | BaseException, b: list[Tensor] | BaseException, rtol: float) -> bool:
    """Whether two calls ended alike."""
    if isinstance(a, BaseException) or isinstance(b, BaseException):
        return type(a) is type(b) and _words(a) == _words(b)
    return all(
        x.shape == y.shape and not x.is_complex() and bool(_close(x, y, rtol).all())
        for x, y in zip(a, b, strict=True)
    )


def difference(
    got: Sequence[Tensor], want: Sequence[Tensor], names: Sequence[str], rtol: float, reveal: bool
) -> str:
    """The first thing that is not as it should be, in words; empty if there is none."""
    for name, x, y in zip(names, got, want, strict=True):
        if x.is_complex() and not y.is_complex():
            return f"{name} holds {str(x.dtype)[6:]}, expected floats: use torch.view_as_real(...)"
        if y.is_floating_point() and not x.is_floating_point():
            return f"{name} holds {str(x.dtype)[6:]}, expected floats: use .float()"
        if x.shape != y.shape:
            return f"{name} has shape {tuple(x.shape)}, expected {tuple(y.shape)}"
        places = (~_close(x, y, rtol)).nonzero().tolist()
        if places:
            a, b = (z[tuple(places[0])].item() for z in (x, y))
            at = f" at {places[0]}" if x.ndim else ""
            end = f"expected {_shown(b)}" if reveal else "which is not right"
            return f"{name} is {_shown(a)}{at}, {end}"
    return ""


def _shown(value: bool | float) -> str:
    """One entry of a result."""
    if isinstance(value, bool):
        return str(value)
    return "NaN" if value != value else f"{value:.4g}"


def _words(error: BaseException) -> str:
    """Type and first line of an exception, whatever its ``__str__`` does."""
    try:
        text = str(error).strip().partition("\n")[0]
    except guard.Late:
        raise
    except BaseException:
        text = ""
    text = text.rstrip(".") if len(text) <= 200 else text[:200] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# What to look at when torch complains, by what it says.
_HELP = [
    ("shapes cannot be multiplied", "Is one to be transposed, or is a row missing?"),
    ("must match the size of tensor", "Compare the shapes from the right. Or is * to be @?"),
    ("not implemented for 'Long'", "Those are integers: use .float()."),
    ("could not infer output dtype", "Those are integers: use .float()."),
    ("bitwise_", "A mask is boolean: use .bool()."),
    ("return_types", "max gives values and places: take .values."),
    ("must be tuple of Tensors, not Tensor", "Put both in brackets: torch.cat((a, b))."),
    ("only supports boolean masks", "A mask is boolean: use .bool()."),
    ("only implemented on integer and Boolean", "A mask is boolean: use .bool()."),
    ("were given", "Its arguments have to stay as they were."),
]


def _help(words: str) -> str:
    return next((f" {hint}" for part, hint in _HELP if part in words), "")


# A mistake that several notebooks meet.
TIMES = "0 times infinity is NaN: choose the places to fill, do not multiply."


# --- Inputs ---------------------------------------------------------------------------------


def drawer() -> Callable[..., Tensor]:
    """A source of normal numbers, the same every time, that leaves torch's own seed alone."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")


def some(n_queries: int, n_keys: int) -> Tensor:
    """A mask that is False at one of any three neighbours in a row or column; not symmetric."""
    return (torch.arange(n_queries)[:, None] - torch.arange(n_keys)) % 3 != 1


def hide(scores: Tensor, mask: Tensor, fill: float = -math.inf) -> Tensor:
    """Scores with ``fill`` wherever ``mask`` is False."""
    return scores.masked_fill(~mask, fill)
