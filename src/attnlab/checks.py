"""One check per exercise: it runs a learner's answer and names the mistake, and it never raises.

A check calls the learner's function on several small inputs of different sizes, on copies. Any
computation with the right numbers passes. Otherwise the numbers are compared with those of the
likely wrong answers, listed here beside the sentence each deserves; what is nobody's known mistake
gets a sentence about the first place that differs.

To add a check: a reference, inputs on which no mistake looks right, and ``{sentence: mistake}``,
where several mistakes may share a sentence. ``lookup`` is a small example.
"""

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from attnlab.core import attention, causal_mask, split_heads

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


def _never_raising(check: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Objects that fail when they are looked at become a verdict as well."""

    @functools.wraps(check)
    def safe(*args: Any, **kwargs: Any) -> Verdict:
        try:
            return check(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except _Unlike as unlike:
            return Verdict(False, str(unlike))
        except BaseException as error:
            return Verdict(False, f"Your answer cannot be read: {_words(error)}.")

    return safe


@_never_raising
def _judge(
    attempt: Any,
    right: Callable,
    cases: Sequence[tuple],
    wrong: dict[str, Callable | tuple[Callable, ...]],
    names: Sequence[str] = ("the result",),
    pick: Callable = lambda result: result,
    rtol: float = 2e-4,
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
    """
    if _undone(attempt):
        return Verdict(False, UNDONE + "put your answer in place of the dots and run again.")
    if not callable(attempt):
        return Verdict(False, f"Expected a function, got {type(attempt).__name__}.")
    arguments = list(inspect.signature(right).parameters)
    wanted = [right(*case) for case in cases]  # before foreign code runs
    wanted = [list(want) if isinstance(want, tuple) else [want] for want in wanted]
    results, edited = [], []
    for case, want in zip(cases, wanted, strict=True):
        result, inputs = _run(attempt, case)
        if _undone(result):
            hint = "does it end with a return?" if result is None else "a part is still missing."
            return Verdict(False, UNDONE + hint)
        results.append(_values(pick(result), want))
        for name, old, new in zip(arguments, case, inputs, strict=False):
            if isinstance(old, Tensor) and not _same([old], [new], 0.0):
                edited.append(name)

    bad = [i for i, want in enumerate(wanted) if not _same(results[i], want, rtol)]
    if not bad and not edited:
        return Verdict(True, f"Right, on {len(cases)} inputs of different sizes.")
    if not bad:
        return Verdict(False, f"The numbers are right, but you overwrite the input {edited[0]}.")

    def makes(mistake: Callable, i: int) -> bool:
        return _same(results[i], _values(_run(mistake, cases[i])[0], wanted[i]), rtol)

    got, want, case = results[bad[0]], wanted[bad[0]], cases[bad[0]]
    raised = isinstance(got, BaseException)
    # A mistake that shows in every case; or, of two made at once, the one that shows first.
    for where in [range(len(cases))] if raised else [range(len(cases)), bad[:1]]:
        for sentence, mistakes in wrong.items():
            if any(all(makes(mistake, i) for i in where) for mistake in _each(mistakes)):
                return Verdict(False, sentence)
    if raised:
        text = f"your function raised {_words(got)}."
    else:
        text = _difference(got, want, names, rtol, reveal=bool(case)) + "."
    if case:
        inputs = (tuple(x.shape) if isinstance(x, Tensor) else x for x in case)
        shapes = [f"{name} {x}" for name, x in zip(arguments, inputs, strict=False)]
        text = f"with {', '.join(shapes)} {text}"
    return Verdict(False, text[0].upper() + text[1:])


def _each(mistakes: Callable | tuple[Callable, ...]) -> tuple[Callable, ...]:
    return mistakes if isinstance(mistakes, tuple) else (mistakes,)


def _run(function: Callable, case: tuple) -> tuple[Any, list]:
    """What the function returns or raises, and its inputs afterwards."""
    inputs = [x.clone() if isinstance(x, Tensor) else x for x in case]
    try:
        return function(*inputs), inputs
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: no answer may end the notebook
        return error, inputs


def _undone(result: Any) -> bool:
    """Whether dots, None or NotImplementedError stand where an answer should."""
    if isinstance(result, BaseException):
        words = _words(result)
        by_torch = "implemented for '" in words  # the softmax of integers, for one
        return "ellipsis" in words or (isinstance(result, NotImplementedError) and not by_torch)
    if isinstance(result, tuple | list):
        return any(_undone(part) for part in result)
    return result is None or result is ...


def _values(result: Any, like: list[Tensor]) -> list[Tensor] | BaseException:
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
        values.append(part.detach().cpu().clone())
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


def _difference(
    got: Sequence[Tensor], want: Sequence[Tensor], names: Sequence[str], rtol: float, reveal: bool
) -> str:
    """The first thing that is not as it should be, in words; empty if there is none."""
    for name, x, y in zip(names, got, want, strict=True):
        if y.is_floating_point() and not x.is_floating_point():
            return f"{name} holds {str(x.dtype)[6:]}, expected floats: use .float()"
        if x.shape != y.shape:
            return f"{name} has shape {tuple(x.shape)}, expected {tuple(y.shape)}"
        places = (~_close(x, y, rtol)).nonzero().tolist()
        if places:
            a, b = (z[tuple(places[0])].item() for z in (x, y))
            at = f" at {places[0]}" if x.ndim else ""
            end = f"expected {b:.4g}" if reveal else "which is not right"
            return f"{name} is {'NaN' if a != a else f'{a:.4g}'}{at}, {end}"
    return ""


def _words(error: BaseException) -> str:
    """Type and first line of an exception, whatever its ``__str__`` does."""
    try:
        text = str(error).strip().partition("\n")[0]
    except BaseException:
        text = ""
    text = text.rstrip(".") if len(text) <= 200 else text[:200] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- Inputs ---------------------------------------------------------------------------------


def _drawer() -> Callable[..., Tensor]:
    """A source of normal numbers, the same every time, that leaves torch's own seed alone."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")


def _some(n_queries: int, n_keys: int) -> Tensor:
    """A mask that is False at one of any three neighbours in a row or column; not symmetric."""
    return (torch.arange(n_queries)[:, None] - torch.arange(n_keys)) % 3 != 1


def _hide(scores: Tensor, mask: Tensor, fill: float = -math.inf) -> Tensor:
    return scores.masked_fill(~mask, fill)


# --- 1 Static embeddings --------------------------------------------------------------------


def lookup(fn: Any) -> Verdict:
    """Write ``fn(ids, E)``: the row of ``E`` (V, D) for each of ``ids`` (S,), as (S, D)."""
    draw = _drawer()
    wrong = {
        "Each word is a row of the result: yours are columns.": lambda i, E: E[i].T,
        "You averaged the words: each keeps its own row.": lambda i, E: E[i].mean(0),
        "A word is a row of E: you looked up columns.": (lambda i, E: E[:, i], lambda i, E: E.T[i]),
        "Those are the one-hot rows: they still have to meet E.": lambda i, E: one_hot(i, len(E)),
        "A one-hot row is as long as the vocabulary, whichever words occur.": (
            lambda i, E: one_hot(i).float() @ E
        ),
        "One-hot rows start as integers: use .float() before the product.": (
            lambda i, E: one_hot(i, len(E)) @ E
        ),
    }
    cases = [(torch.tensor([3, 0, 1]), draw(5, 11)), (torch.tensor([1, 2, 1, 0, 2]), draw(4, 7))]
    return _judge(fn, lambda ids, E: E[ids], cases, wrong)


def cosine(fn: Any) -> Verdict:
    """Write ``fn(a, b)``: the cosine of the angle between ``a`` (D,) and ``b`` (D,), a number."""
    draw = _drawer()

    def right(a: Tensor, b: Tensor) -> Tensor:
        return a @ b / (a.norm() * b.norm())

    wrong = {
        "That is the dot product: it still grows with the lengths.": lambda a, b: a @ b,
        "You divided by one length only: both vectors have one.": (
            lambda a, b: a @ b / a.norm(),
            lambda a, b: a @ b / b.norm(),
        ),
        "You divided by the squared lengths.": lambda a, b: a @ b / ((a @ a) * (b @ b)),
        "That is a distance: it grows as two vectors part.": lambda a, b: (a - b).norm(),
        "That is the angle itself.": lambda a, b: right(a, b).acos(),
        "A cosine is one number: the products still have to be added up.": (
            lambda a, b: a * b / (a.norm() * b.norm())
        ),
    }
    return _judge(fn, right, [(3 * draw(n), 2 * draw(n)) for n in (5, 2, 3)], wrong)


# --- 2 Queries, keys, values ----------------------------------------------------------------


def scores(fn: Any) -> Verdict:
    """Write ``fn(X, W_Q, W_K)``: raw scores (S, S) from ``X`` (S, D) and two matrices (D, d)."""
    draw = _drawer()

    def right(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
        return (X @ W_Q) @ (X @ W_K).T

    wrong = {
        "Queries are rows and keys are columns.": lambda X, Q, K: right(X, K, Q),
        "The projections are missing: you compared X with itself.": lambda X, Q, K: X @ X.T,
        "Your W look transposed, as nn.Linear stores them.": lambda X, Q, K: right(X, Q.T, K.T),
        "One matrix does both jobs: asking and being asked need one each.": (
            lambda X, Q, K: right(X, Q, Q),
            lambda X, Q, K: right(X, K, K),
        ),
        "Only one side is projected: queries and keys both are.": (
            lambda X, Q, K: X @ Q @ X.T,
            lambda X, Q, K: X @ (X @ K).T,
        ),
        "These scores are scaled already: the raw ones are asked for.": (
            lambda X, Q, K: right(X, Q, K) / Q.shape[1] ** 0.5,
            lambda X, Q, K: right(X, Q, K) / Q.shape[1],
        ),
        "These are attention weights: scores come before the softmax.": (
            lambda X, Q, K: right(X, Q, K).softmax(-1),
            lambda X, Q, K: (right(X, Q, K) / Q.shape[1] ** 0.5).softmax(-1),
        ),
    }
    # In the first W is square: transposed it still gives numbers.
    sizes = ((5, 3, 3), (7, 5, 2), (2, 3, 5))
    return _judge(fn, right, [(draw(s, D), draw(D, d), draw(D, d)) for s, D, d in sizes], wrong)


@_never_raising
def bank_asks_for_money(w_q: Any, w_k: Any) -> Verdict:
    """Choose ``w_q`` and ``w_k`` (2, 2) so that *bank* scores money at least 1 above the rest.

    The phrase is "river money bank", rows [2, 0], [0, 2], [1, 0]; the scores are raw.
    """
    if _undone((w_q, w_k)):
        return Verdict(False, UNDONE + "put your matrices in place of the dots and run again.")
    size = torch.zeros(2, 2)
    given = _values((w_q, w_k), [size, size])
    for name, w in zip(("w_q", "w_k"), given, strict=True):
        fits = w.shape == size.shape and w.is_floating_point()
        text = _difference([w], [w.nan_to_num() if fits else size], [name], 0.0, reveal=False)
        if text:
            return Verdict(False, f"{text}.")
    X = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]], dtype=torch.float64)
    before, after = X @ X.T, (X @ given[0].double()) @ (X @ given[1].double()).T

    def lead(by_word: Tensor) -> float:
        return float(by_word[1] - max(by_word[0], by_word[2]))

    won = lead(after[2]) > 1 - 1e-6
    if won:
        text = "Right"
    elif lead(after[:, 2]) > 1 - 1e-6:
        text = "Queries are rows and keys are columns, and here money asks for bank"
    elif torch.equal(after[2], before[2]) and not torch.equal(after, before):
        text = "You changed what another word asks, not what bank asks"
    elif lead(after[2]) > 0:
        text = "Money leads, but by less than 1"
    else:
        text = "Money does not lead yet"
    river, money, bank = after[2].tolist()
    text += f": bank scores river {river:.3g}, money {money:.3g}, bank {bank:.3g}."
    return Verdict(won, text)


# --- 3 Scaling and masking ------------------------------------------------------------------


def causal_scores(fn: Any) -> Verdict:
    """Write ``fn(scores)``: the same (S, S), with ``-inf`` wherever a word would see the future."""
    draw = _drawer()

    def past(scores: Tensor, shift: int = 0) -> Tensor:
        return torch.ones_like(scores, dtype=torch.bool).tril(shift)

    def filled(fill: float) -> Callable:
        return lambda s: _hide(s, past(s), fill)

    lowest = torch.finfo(torch.float32).min
    wrong = {
        "Nothing is hidden yet.": lambda s: s,
        "You hid the past: it is the future that has to go.": (
            lambda s: _hide(s, past(s).T),
            lambda s: _hide(s, ~past(s)),
        ),
        "Off by one: a word may attend to itself.": lambda s: _hide(s, past(s, -1)),
        "Off by one: each word still sees the next.": lambda s: _hide(s, past(s, 1)),
        "A score of 0 hides nothing: after the softmax it still has a share.": filled(0.0),
        "Not quite -inf: float16 cannot hold -1e9, and a row of nothing else turns uniform.": (
            tuple(filled(fill) for fill in (-1e9, -1e4, -1e10, -1e20, lowest))
        ),
        "0 times infinity is NaN: choose the scores to fill, do not multiply.": (
            lambda s: s + ~past(s) * -math.inf
        ),
        "These are attention weights: the softmax comes later.": (
            lambda s: _hide(s, past(s)).softmax(-1)
        ),
        "That is a mask: it still has to meet the scores.": (
            past,
            lambda s: ~past(s),
            lambda s: _hide(torch.zeros_like(s), past(s)),
        ),
    }
    cases = [(draw(n, n),) for n in (5, 3, 7)]
    return _judge(fn, lambda scores: _hide(scores, causal_mask(len(scores))), cases, wrong)


@_never_raising
def head_scale(value: Any) -> Verdict:
    """Give the factor that scales the scores in a model of width 768 with 12 heads."""

    def number(x: float) -> Callable[[], Tensor]:
        return lambda: torch.tensor(x, dtype=torch.float64)

    wrong = {
        "You used the width of the model: one head compares less.": number(768**-0.5),
        "You divided by the width of a head, not by its square root.": number(1 / 64),
        "That makes scores larger: they are to become smaller.": number(8),
        "You used the number of heads: the width of one head counts.": number(12**-0.5),
        "You divided by the width of the model, and without a square root.": number(1 / 768),
        "That is the width of a head, not yet the factor.": number(64),
    }
    answer = value if _undone(value) else lambda: value
    verdict = _judge(answer, number(64**-0.5), [()], wrong, names=["the factor"], rtol=5e-3)
    return Verdict(True, "Right: the width of one head counts.") if verdict else verdict


# --- 4 Softmax and values -------------------------------------------------------------------


def _naive_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    exp = scores.exp() * mask
    return exp / exp.sum(-1, keepdim=True)


_SOFTMAX_MISTAKES = {
    "You divided by the sum of the scores: that is not what softmax divides.": (
        lambda s, m: s * m / (s * m).sum(-1, keepdim=True),
        lambda s, m: s / s.sum(-1, keepdim=True) * m,
    ),
    "Your softmax runs over the queries: each query shares itself out among the keys.": (
        lambda s, m: _hide(s, m).softmax(0)
    ),
    "You masked after the softmax: the rows no longer sum to 1.": lambda s, m: s.softmax(-1) * m,
    "True means may attend: you hid those.": lambda s, m: _hide(s, ~m).softmax(-1),
    "A score of 0 still gets a share: hidden keys get none.": lambda s, m: (s * m).softmax(-1),
    "The mask is not used yet.": lambda s, m: s.softmax(-1),
    "The scores are masked, but the softmax is missing.": _hide,
}


def masked_softmax(fn: Any) -> Verdict:
    """Write ``fn(scores, mask)``: attention weights (S_q, S_k), a softmax along each row.

    ``mask`` is boolean (S_q, S_k); True means *may attend*, and every row has one.
    """
    draw = _drawer()
    wrong = _SOFTMAX_MISTAKES | {
        "exp(1000) overflows: subtract the row's maximum first.": (
            _naive_softmax,
            lambda s, m: _naive_softmax(_hide(s, m), torch.ones_like(m)),
        ),
        "One maximum for the whole table is not enough: each row has its own.": (
            lambda s, m: _naive_softmax(s - s.max(), m)
        ),
    }
    large = torch.tensor([[1000.0], [-1000.0], [0.0], [1000.0]])
    cases = [
        (draw(3, 5), _some(3, 5)),
        (draw(7, 4), _some(7, 4)),
        (draw(4, 3) + large, _some(4, 3)),
    ]
    return _judge(fn, lambda scores, mask: _hide(scores, mask).softmax(-1), cases, wrong)


def attention_function(fn: Any) -> Verdict:
    """Write ``fn(q, k, v, mask)``: scaled dot-product attention, the output (S_q, d_v).

    ``q`` (S_q, d_k), ``k`` (S_k, d_k), ``v`` (S_k, d_v), ``mask`` boolean (S_q, S_k), True = may
    attend. Of a tuple, the last part counts.
    """
    draw = _drawer()

    def scaled(scale: Callable[[Tensor, Tensor], float]) -> Callable:
        return lambda q, k, v, m: attention(q, k, v, m, scale(q, k)).output

    def through(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        return lambda q, k, v, m: weights(q @ k.T / q.shape[1] ** 0.5, m) @ v

    wrong = {
        "The scores are not scaled.": scaled(lambda q, k: 1.0),
        "You divided by d_k, not by its square root.": scaled(lambda q, k: 1 / q.shape[1]),
        "You scaled by the number of keys, not by a width.": scaled(lambda q, k: len(k) ** -0.5),
        "Your scale makes the scores larger.": scaled(lambda q, k: q.shape[1] ** 0.5),
        "q and k are swapped: queries are rows.": lambda q, k, v, m: attention(k, q, v, m).output,
        "Those are the attention weights: they still have to meet the values.": (
            lambda q, k, v, m: attention(q, k, v, m).weights
        ),
    }
    for sentence, mistakes in _SOFTMAX_MISTAKES.items():
        wrong[sentence] = tuple(through(mistake) for mistake in _each(mistakes))
    # In the first S_q = S_k: with q and k swapped it still gives numbers.
    sizes = ((5, 5, 3, 2), (3, 7, 5, 4), (5, 3, 2, 7))
    cases = [
        (draw(s_q, d_k), draw(s_k, d_k), draw(s_k, d_v), _some(s_q, s_k))
        for s_q, s_k, d_k, d_v in sizes
    ]

    def right(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return attention(q, k, v, mask).output

    def last(result: Any) -> Any:
        return result[-1] if isinstance(result, tuple) and result else result

    return _judge(fn, right, cases, wrong, pick=last)


# --- 5 Heads and positions ------------------------------------------------------------------


def split(fn: Any) -> Verdict:
    """Write ``fn(x, n_heads)``: ``x`` (B, S, D) as (B, H, S, d), each head a slice of the width."""
    draw = _drawer()
    wrong = {
        "Right shape, but tokens are mixed: the order of reshape and transpose matters.": (
            lambda x, n: x.reshape(len(x), n, x.shape[1], -1)
        ),
        "A head takes neighbouring columns: yours are dealt out in turn.": (
            lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
            lambda x, n: x.unflatten(-1, (-1, n)),
        ),
        "The heads still stand behind the sequence.": lambda x, n: x.unflatten(-1, (n, -1)),
        "Within a head tokens are rows: yours are columns.": lambda x, n: split_heads(x, n).mT,
        "Heads do not split the sentence: each sees every token.": (
            lambda x, n: x.unflatten(1, (n, -1))
        ),
    }
    cases = [(draw(2, 6, 15), 3), (draw(3, 4, 14), 2)]  # H divides S: the last mistake runs
    return _judge(fn, split_heads, cases, wrong)


def rotate_pair(fn: Any) -> Verdict:
    """Write ``fn(x, positions)``: row i of ``x`` (S, 2) turned by ``positions[i]`` radians.

    Counter-clockwise, as RoPE turns its first pair; ``positions`` (S,) are integers.
    """
    draw = _drawer()

    def right(x: Tensor, positions: Tensor) -> Tensor:
        (a, b), cos, sin = x.unbind(-1), positions.cos(), positions.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def overwritten(x: Tensor, positions: Tensor) -> Tensor:
        first, b = right(x, positions)[:, 0], x[:, 1]
        return torch.stack((first, first * positions.sin() + b * positions.cos()), dim=-1)

    wrong = {
        "You turn clockwise.": lambda x, p: right(x, -p),
        "The angles are radians, not degrees.": lambda x, p: right(x, p.deg2rad()),
        "Every row turns by the same angle: each position has its own.": (
            lambda x, p: right(x, p[:1]),
            lambda x, p: right(x, torch.ones(1)),
        ),
        "That shrinks the vector: a rotation mixes its coordinates.": (
            lambda x, p: x * p.cos()[:, None]
        ),
        "You added the angle: it is to turn the vector.": lambda x, p: x + p[:, None],
        "A sign is missing: a rotation keeps the length.": (
            lambda x, p: x * p.cos()[:, None] + x.flip(-1) * p.sin()[:, None]
        ),
        "The new first coordinate went into the second: that needs the old one.": overwritten,
    }
    cases = [(draw(5, 2), torch.tensor([2, 0, 7, 1, 3])), (draw(3, 2), torch.tensor([4, 11, 2]))]
    return _judge(fn, right, cases, wrong)


# --- 6 Tiny trainer and KV cache ------------------------------------------------------------


def cache_bytes(fn: Any) -> Verdict:
    """Write ``fn(layers, kv_heads, head_width, positions, batch, bytes_per_number)``: an int."""

    def right(layers, kv_heads, head_width, positions, batch, bytes_per_number) -> Tensor:
        per_position = 2 * layers * kv_heads * head_width * bytes_per_number
        return torch.tensor(per_position * positions * batch)

    wrong = {
        "A cache holds more than the keys.": lambda *n: right(*n) // 2,
        "A cache holds no queries: old ones are never needed again.": lambda *n: right(*n) * 3 // 2,
        "The cache grows with the positions, not with their square.": lambda *n: right(*n) * n[3],
        "That is one layer: each keeps its own.": lambda *n: right(*n) // n[0],
        "That is one sequence: each of the batch keeps its own.": lambda *n: right(*n) // n[4],
        "That is one head: each keeps its own.": lambda *n: right(*n) // n[1],
        "You counted numbers: each takes some bytes.": lambda *n: right(*n) // n[5],
    }
    return _judge(fn, right, [(3, 5, 7, 11, 13, 4), (5, 3, 11, 7, 17, 8)], wrong)


def decode_step(fn: Any) -> Verdict:
    """Write ``fn(q_new, k_new, v_new, K, V)``: one step with a cache, as (output, K, V).

    ``q_new`` and ``k_new`` (1, d), ``v_new`` (1, d_v), ``K`` (S, d), ``V`` (S, d_v); the output
    is (1, d_v), and the cache comes back one row longer.
    """
    draw = _drawer()

    def right(q_new, k_new, v_new, K, V, scale=None) -> tuple[Tensor, ...]:
        K, V = torch.cat((K, k_new)), torch.cat((V, v_new))
        return attention(q_new, K, V, scale=scale).output, K, V

    def giving(output: Callable[..., Tensor]) -> Callable:
        return lambda *x: (output(*x), *right(*x)[1:])

    wrong = {
        "The new token is left out: it attends to itself too.": (
            lambda q, k, v, K, V: (attention(q, K, V).output, K, V),
            giving(lambda q, k, v, K, V: attention(q, K, V).output),
        ),
        "The output is right, but the cache comes back without the new token.": (
            lambda q, k, v, K, V: (right(q, k, v, K, V)[0], K, V)
        ),
        "The output is right, but the new token stands first in the cache: it comes last.": (
            lambda q, k, v, K, V: right(q, K, V, k, v)
        ),
        "You joined along the width: a new token is a new row.": (
            lambda q, k, v, K, V: torch.cat((K, k), dim=1),
            lambda q, k, v, K, V: torch.cat((k, K), dim=1),
        ),
        "The scores are not scaled.": lambda *x: right(*x, scale=1.0),
        "The new token attends to itself only: it may see the whole cache.": (
            giving(lambda q, k, v, K, V: v)
        ),
        "The new token sees the first key only: your causal mask is aligned at the top left.": (
            giving(lambda q, k, v, K, V: V[:1])
        ),
        "Your softmax runs over the queries: with one query every weight is 1.": (
            giving(lambda q, k, v, K, V: torch.cat((V, v)).sum(0, keepdim=True))
        ),
    }
    cases = [
        (draw(1, d), draw(1, d), draw(1, d_v), draw(s, d), draw(s, d_v))
        for s, d, d_v in ((5, 3, 2), (4, 7, 5))
    ]
    return _judge(fn, right, cases, wrong, names=("output", "K", "V"))
