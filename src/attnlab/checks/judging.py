"""What the checks share: run an answer, compare its results, name the mistake."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any

import torch
from torch import Tensor, allclose, isclose  # by name: an answer may replace torch.isclose

from attnlab.checks import sandbox


class Status(StrEnum):
    """How an attempt at an exercise ended."""

    DONE = "done"
    WRONG = "wrong"
    NOT_YET = "not yet"
    LATE = "late"


@dataclass(frozen=True)
class Verdict:
    """What a check found. True if the attempt passed; displayed as its message."""

    status: Status
    message: str

    @property
    def passed(self) -> bool:
        """Whether the exercise is done."""
        return self.status is Status.DONE

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        sign = {Status.DONE: "✓", Status.NOT_YET: "…"}.get(self.status, "✗")
        return f"{sign} {self.message}"


def done(message: str) -> Verdict:
    """The verdict on a right answer."""
    return Verdict(Status.DONE, message)


def not_yet(message: str) -> Verdict:
    """The verdict while dots or None stand where an answer should."""
    return Verdict(Status.NOT_YET, f"Not done yet: {message}")


class Wrong(Exception):
    """An answer that cannot be compared, or whose fault is not in its numbers; says which."""


def assert_close(got: Tensor, expected: Tensor, atol: float = 1e-5, rtol: float = 1.3e-6) -> None:
    """Raise ``AssertionError`` unless two tensors have one shape and agree to rounding.

    Like ``torch.testing.assert_close``, whose first call imports distributed tensors and so takes
    most of a second in each notebook.
    """
    if got.shape != expected.shape:
        raise AssertionError(f"shapes {tuple(got.shape)} and {tuple(expected.shape)} differ")
    if not allclose(got, expected, atol=atol, rtol=rtol):
        raise AssertionError(f"they differ by up to {(got - expected).abs().max().item():.2g}")


# --- Three kinds of exercise ----------------------------------------------------------------

# Called with the learner's answers, each gives a verdict, or a sentence about a mistake.


@dataclass(frozen=True)
class Comparison:
    """A function, whose results are compared with those of a reference and of known mistakes.

    Any computation with the right numbers passes.

    Attributes:
        reference: returns a tensor, or a tuple of them; messages use its parameter names.
        inputs: the arguments of each call, of different sizes; no mistake may look right on them.
        mistakes: sentence -> a function that makes the mistake, or the value it gives, or a tuple.
        parts: the names of what is returned.
        read: takes the part that counts from the learner's result.
        rtol: relative tolerance.
    """

    reference: Callable[..., Any]
    inputs: Sequence[tuple]
    mistakes: dict[str, Any]
    parts: Sequence[str] = ("the result",)
    read: Callable[[Any], Any] = lambda result: result
    rtol: float = 2e-4

    def __call__(self, answer: Any) -> Verdict | str:
        """Compare all results before anything is said, so that the mistake made is named."""
        if not callable(answer):
            raise Wrong(f"Expected a function, got {type(answer).__name__}.")
        names = list(inspect.signature(self.reference).parameters)
        wanted = [self.reference(*args) for args in self.inputs]  # before the answer runs
        wanted = [[*want] if isinstance(want, tuple) else [want] for want in wanted]
        results, overwritten = [], []
        for args, want in zip(self.inputs, wanted, strict=True):
            result, copies = _call(answer, args)
            if undone(result):
                hint = "a part is still missing." if result is not None else ""
                return not_yet(hint or "does it end with a return?")
            results.append(as_tensors(self.read(result), want))
            tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
            overwritten += [names[i] for i in tensors if not args[i].equal(copies[i])]
        for i, want in enumerate(wanted):
            if not _same(results[i], want, self.rtol):
                sentence = self._mistake(results, wanted, i)
                return sentence or self._difference(results[i], want, names, self.inputs[i])
        if overwritten:
            raise Wrong(f"The numbers are right, but you overwrite the input {overwritten[0]}.")
        return done(f"Right, on {len(self.inputs)} inputs of different sizes.")

    def _mistake(self, results: list, wanted: list, first: int) -> str:
        """The sentence about a known mistake, if one gives the same results."""

        def makes(mistake: Any, i: int) -> bool:
            value = _call(mistake, self.inputs[i])[0] if callable(mistake) else number(mistake)
            return _same(results[i], as_tensors(value, wanted[i]), self.rtol)

        # A mistake that shows on every input; or, of two made at once, the one that shows first.
        # But an exception or a small count may equal that of a mistake by chance.
        every, chance = range(len(wanted)), isinstance(results[first], BaseException)
        chance = chance or not (wanted[first][0].ndim or wanted[first][0].is_floating_point())
        for where in [every] if chance else [every, [first]]:
            for sentence, mistakes in self.mistakes.items():
                if any(all(makes(mistake, i) for i in where) for mistake in each(mistakes)):
                    return sentence
        return ""

    def _difference(self, got: Any, want: list, names: list, args: tuple) -> str:
        """How the result differs, after the shapes of the inputs."""
        shown = (tuple(x.shape) if isinstance(x, Tensor) else x for x in args)
        given = f"With {', '.join(map('{} {}'.format, names, shown))} " if args else ""
        if isinstance(got, BaseException):
            error = describe(got)
            hints = (f" {hint}" for part, hint in _HINTS.items() if re.search(part, error))
            raise Wrong(f"{given}your function raised {error}.{next(hints, '')}")
        text = given + difference(got, want, self.parts, self.rtol, reveal=bool(args))
        return text[0].upper() + text[1:]


def numbers(*parts: tuple[str, float, dict[str, Any]], message: str) -> Callable[..., Any]:
    """Judges numbers, each compared with the right one and with those of known mistakes.

    Args:
        parts: for each number its name, its value, and {sentence: mistakes}. Whole numbers are
            compared exactly, others to half a per cent.
        message: what is said if all are right.
    """

    def judge(*answers: Any) -> Verdict | str:
        for answer, (name, right, mistakes) in zip(answers, parts, strict=True):
            compare = Comparison(lambda x=right: number(x), [()], mistakes, [name], rtol=5e-3)
            found = compare(lambda x=answer: x)
            if isinstance(found, str) or not found:
                return found
        return done(message)

    return judge


def values(judge: Callable[..., Verdict | str], **shapes: tuple[int, ...]) -> Callable[..., Any]:
    """Judges vectors, matrices or numbers: ``judge`` gets float64 tensors of these shapes."""

    def read(*answers: Any) -> Verdict | str:
        zeros = [torch.zeros(shape) for shape in shapes.values()]
        given = as_tensors(answers if len(answers) > 1 else answers[0], zeros)
        pairs = zip(given, zeros, strict=True)
        finite = [x.real.double().nan_to_num() if x.shape == y.shape else y for x, y in pairs]
        if text := difference(given, finite, shapes, 0.0, reveal=False):
            raise Wrong(text)
        return judge(*(x.double() for x in given))

    return read


# --- Run and compare ------------------------------------------------------------------------


def each(mistakes: Any) -> tuple:
    """One mistake or several, as a tuple."""
    return mistakes if isinstance(mistakes, tuple) else (mistakes,)


def number(x: float) -> Tensor:
    """A float as float64; an int as it is, so that it is compared exactly."""
    return torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else None)


def undone(result: Any) -> bool:
    """Whether dots, None or NotImplementedError stand where an answer should."""
    if isinstance(result, BaseException):
        text = describe(result)
        by_torch = "implemented for '" in text  # such as the softmax of integers
        return "ellipsis" in text or (isinstance(result, NotImplementedError) and not by_torch)
    if isinstance(result, tuple | list):
        return any(undone(part) for part in result)
    return result is None or result is ...


def _call(function: Callable, args: tuple) -> tuple[Any, list]:
    """What the function returns or raises, and the copies of ``args`` that it was called with."""
    copies = [x.clone() if isinstance(x, Tensor) else x for x in args]
    try:
        return function(*copies), copies
    except (KeyboardInterrupt, sandbox.Stop):
        raise
    except BaseException as error:  # SystemExit too: no answer may end the notebook
        return error, copies


def as_tensors(result: Any, like: list[Tensor]) -> Any:
    """The result as tensors, one for each of ``like``; an exception as it is."""
    if isinstance(result, BaseException):
        return result
    parts = result if len(like) > 1 and isinstance(result, tuple | list) else [result]
    if len(parts) != len(like):
        raise Wrong(f"Expected {len(like)} results, got {len(parts)}.")
    values = []
    for part, wanted in zip(parts, like, strict=True):
        if not wanted.ndim and isinstance(part, Real) and not isinstance(part, bool):
            part = number(float(part))
        if not isinstance(part, Tensor):
            kind = "torch.Tensor" if wanted.ndim else "number"
            raise Wrong(f"Expected a {kind}, got {type(part).__name__}.")
        with torch._C.DisableTorchFunctionSubclass():  # a subclass runs code of its own
            values.append(part.detach().cpu().clone().as_subclass(Tensor))
    return values


def _close(x: Tensor, y: Tensor, rtol: float, atol: float = 1e-6) -> Tensor:
    """Where two tensors of one shape agree: integers exactly, 16-bit floats nearly."""
    if not y.is_floating_point():
        rtol = atol = 0.0
    elif x.dtype in (torch.float16, torch.bfloat16):
        rtol = atol = 2e-2
    return isclose(x.double(), y.double(), rtol=rtol, atol=atol, equal_nan=True)


def _same(a: Any, b: Any, rtol: float) -> bool:
    """Whether two calls gave the same tensors or raised the same exception."""
    if isinstance(a, BaseException) or isinstance(b, BaseException):
        return type(a) is type(b) and describe(a) == describe(b)
    return all(
        x.shape == y.shape and not x.is_complex() and bool(_close(x, y, rtol).all())
        for x, y in zip(a, b, strict=True)
    )


def difference(got: Any, want: Any, names: Any, rtol: float, reveal: bool) -> str:
    """A sentence about the first difference, or nothing; ``reveal`` says what was expected."""

    def shown(value: Any) -> str:
        return str(value) if isinstance(value, bool) else f"{value:.4g}".replace("nan", "NaN")

    for name, x, y in zip(names, got, want, strict=True):
        if x.is_complex() or y.is_floating_point() > x.is_floating_point():
            use = "torch.view_as_real(...)" if x.is_complex() else ".float()"
            return f"{name} holds {str(x.dtype)[6:]}, expected floats: use {use}."
        if x.shape != y.shape:
            return f"{name} has shape {tuple(x.shape)}, expected {tuple(y.shape)}."
        for place in (~_close(x, y, rtol)).nonzero().tolist():
            a, b = (shown(z[tuple(place)].item()) for z in (x, y))
            at = f" at {place}" if place else ""
            return f"{name} is {a}{at}, {f'expected {b}' if reveal else 'which is not right'}."
    return ""


def describe(error: BaseException) -> str:
    """Type and first line of an exception, whatever its ``__str__`` does."""
    try:
        text = str(error).strip().partition("\n")[0].rstrip(".")[:200]
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_HINTS = {  # what torch complains about -> what to do
    "shapes cannot be multiplied": "Does one need to be transposed, or is a row missing?",
    "size of tensor": "Compare the shapes from the right. Did you mean @ instead of *?",
    "not implemented for 'Long'|output dtype": "Those are integers: use .float().",
    "bitwise_|boolean mask|integer and Boolean": "A mask is boolean: use .bool().",
    "return_types": "max gives values and indices: take .values.",
    "must be tuple of Tensors, not Tensor": "Put both in brackets: torch.cat((a, b)).",
    "were given": "Keep the arguments of the function as they were.",
}


def normal_source() -> Callable[..., Tensor]:
    """A source of normal numbers, the same every time, apart from torch's global generator."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")
