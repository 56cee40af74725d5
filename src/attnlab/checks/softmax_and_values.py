"""The exercises of notebook 4."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, Verdict, done, each, normal_source, values
from attnlab.checks.scaling_and_masking import TIMES_INFINITY, hide, uneven_mask
from attnlab.core import attention, causal_mask
from attnlab.data import embedding_table


def _exponentials(scores: Tensor, mask: Tensor) -> Tensor:
    hidden = hide(scores, mask)
    return (hidden - hidden.amax(-1, keepdim=True)).exp()


def _naive_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    exp = scores.exp() * mask
    return exp / exp.sum(-1, keepdim=True)


_SOFTMAX_MISTAKES = {
    TIMES_INFINITY: lambda s, m: (s + ~m * -math.inf).softmax(-1),
    "You divided by the sum of the scores: softmax takes exponentials first.": (
        lambda s, m: s * m / (s * m).sum(-1, keepdim=True),
        lambda s, m: s / s.sum(-1, keepdim=True) * m,
        lambda s, m: s / s.sum(-1, keepdim=True),
    ),
    "You divided by the sum of the whole table: each row has its own.": (
        lambda s, m: s.exp() * m / (s.exp() * m).sum(),
        lambda s, m: s.exp() / s.exp().sum(),
    ),
    "Your softmax runs over the queries: let it run over the keys.": (
        lambda s, m: hide(s, m).softmax(0),
        lambda s, m: _exponentials(s, m) / _exponentials(s, m).sum(0, keepdim=True),
    ),
    "Divide by the sum of the row: the weights of a row sum to 1.": _exponentials,
    "You masked after the softmax: the rows no longer sum to 1.": lambda s, m: s.softmax(-1) * m,
    "True means may attend: you hid those.": lambda s, m: hide(s, ~m).softmax(-1),
    "A score of 0 still gets a share: hidden keys get none.": lambda s, m: (s * m).softmax(-1),
    "The mask is not used yet.": lambda s, m: s.softmax(-1),
    "The scores are masked, but the softmax is missing.": hide,
}


@exercise("4.3", "my_masked_softmax", section="section 1")
def masked_softmax() -> Comparison:
    """Write ``fn(scores, allowed)``: attention weights (S_q, S_k), a softmax along each row.

    ``allowed`` is boolean (S_q, S_k); True means *may attend*, and every row has one.
    """
    draw = normal_source()
    mistakes = _SOFTMAX_MISTAKES | {
        "exp(1000) overflows: subtract the row's maximum first.": (
            _naive_softmax,
            lambda s, m: _naive_softmax(hide(s, m), torch.ones_like(m)),
        ),
        "One maximum for the whole table is not enough: each row has its own.": (
            lambda s, m: _naive_softmax(s - s.max(), m)
        ),
    }
    large = torch.tensor([[1000.0], [-1000.0], [0.0], [1000.0]])
    inputs = [
        (draw(3, 5), uneven_mask(3, 5)),
        (draw(7, 4), uneven_mask(7, 4)),
        (draw(4, 3) + large, uneven_mask(4, 3)),
    ]
    return Comparison(lambda scores, allowed: hide(scores, allowed).softmax(-1), inputs, mistakes)


@exercise("4.4", "my_whole_attention", section="section 3")
def attention_function() -> Comparison:
    """Write ``fn(q, k, v, allowed)``: scaled dot-product attention, the output (S_q, d_v).

    ``q`` (S_q, d_k), ``k`` (S_k, d_k), ``v`` (S_k, d_v), ``allowed`` boolean (S_q, S_k), True = may
    attend. Of a tuple, the last part counts.
    """
    draw = normal_source()

    def scaled(scale: Callable[[Tensor, Tensor], float]) -> Callable:
        return lambda q, k, v, m: attention(q, k, v, m, scale(q, k)).output

    def through(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        return lambda q, k, v, m: weights(q @ k.T / q.shape[1] ** 0.5, m) @ v

    mistakes = {
        "The scores are not scaled.": scaled(lambda q, k: 1.0),
        "You divided by d_k, not by its square root.": scaled(lambda q, k: 1 / q.shape[1]),
        "You scaled by a number of words, not by a width.": (
            scaled(lambda q, k: len(k) ** -0.5),
            scaled(lambda q, k: len(q) ** -0.5),
        ),
        "Your scale makes the scores larger.": scaled(lambda q, k: q.shape[1] ** 0.5),
        "q and k are swapped: queries are rows.": lambda q, k, v, m: attention(k, q, v, m).output,
        "Those are the attention weights: return the output alone, weights times values.": (
            lambda q, k, v, m: attention(q, k, v, m).weights
        ),
    }
    for sentence, made in _SOFTMAX_MISTAKES.items():
        mistakes[sentence] = tuple(through(mistake) for mistake in each(made))
    # In the first S_q = S_k: with q and k swapped it still gives numbers.
    sizes = ((5, 5, 3, 2), (3, 7, 5, 4), (5, 3, 2, 7))
    inputs = [
        (draw(s_q, d_k), draw(s_k, d_k), draw(s_k, d_v), uneven_mask(s_q, s_k))
        for s_q, s_k, d_k, d_v in sizes
    ]

    def right(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
        return attention(q, k, v, allowed).output

    def last(result: Any) -> Any:
        return result[-1] if isinstance(result, tuple) and result else result

    return Comparison(right, inputs, mistakes, read=last)


@exercise("4.5", "authors_recipe", section="section 1")
def article_row() -> Comparison:
    """Write ``fn(scores, allowed)``: what an author did who printed [0.62, 0.38, 0, 0].

    ``scores`` (S_k,) were [0.8, 0.5, -0.2, 0.9] and ``allowed`` (S_k,) True, True, False, False.
    """
    draw = normal_source()

    def right(scores: Tensor, allowed: Tensor) -> Tensor:
        return scores * allowed / (scores * allowed).sum()

    mistakes = {
        "That is a correct softmax, but it gives 0.57 and 0.43, not what was printed.": (
            lambda s, m: hide(s, m).softmax(0)
        ),
        "That masks after the softmax: the printed row sums to 1.": lambda s, m: s.softmax(0) * m,
        "Softmax with scores of 0 leaves the hidden ones a share: the printed row has none.": (
            lambda s, m: (s * m).softmax(0)
        ),
        "The hidden scores are still in your sum: the printed row sums to 1.": (
            lambda s, m: s * m / s.sum()
        ),
        "You divided by the number of visible scores, not by their sum.": lambda s, m: (
            s * m / m.sum()
        ),
        "The recipe is right: do not round the result.": (
            lambda s, m: right(s, m).round(decimals=2)
        ),
        "The hidden ones still have a share: the printed row has 0 there.": (
            lambda s, m: s / s.sum(),
            lambda s, m: s / (s * m).sum(),
            lambda s, m: s.softmax(0),
        ),
        "Those are the visible scores: the printed row sums to 1.": lambda s, m: s * m,
        "You divided by the largest: the printed row sums to 1.": lambda s, m: s * m / s[m].max(),
        "Those are the printed numbers: the recipe has to work for other scores too.": (
            lambda s, m: torch.tensor([0.62, 0.38, 0.0, 0.0])
        ),
    }
    article = torch.tensor([0.8, 0.5, -0.2, 0.9]), torch.tensor([True, True, False, False])
    inputs = [article] + [(draw(n).abs() + 0.2, uneven_mask(1, n)[0]) for n in (5, 7)]
    return Comparison(right, inputs, mistakes)


@exercise("4.1", "my_scores", section="section 1")
def share_above_one() -> Judge:
    """Give two visible scores (2,) for which the article's recipe prints a share above 1.

    The recipe divides each score by the sum of both.
    """

    def judge(scores: Tensor) -> Verdict | str:
        total = scores.sum().item()
        if not scores.any():
            return "Both are 0, and so is their sum: the recipe divides by 0."
        if total == 0:
            return "They cancel: the sum is 0, and the recipe divides by it."
        shares = ", ".join(f"{x + 0.0:.3g}" for x in (scores / total).tolist())
        if (scores / total > 1).any():
            return done(f"Right: the shares are {shares}. Softmax never does that.")
        if (scores < 0).all():
            return f"Both are below 0, the minus signs cancel, and the shares are {shares}."
        if not scores.all():
            return f"One of them is 0, so the other is the whole sum: the shares are {shares}."
        return f"Both are above 0, so each is a part of the sum: the shares are {shares}."

    return values(judge, scores=(2,))


@exercise("4.6", "my_temperature", section="section 1")
def sharp_temperature() -> Judge:
    """Give the temperature at which *river* gets 0.99 of *bank*'s attention.

    The scaled scores are 1.4142 and 0.7071; anything that rounds to 0.99 passes.
    """
    apart, needed = 0.5**0.5, math.log(99)  # between the two scores now, and as it must be

    def share(temperature: float) -> float:
        return 1 / (1 + math.exp(-apart / temperature))

    def judge(given: Tensor) -> Verdict | str:
        temperature = given.item()
        if temperature == 0:
            return "A temperature of 0 divides by 0: softmax never gives one word everything."
        if temperature < 0:
            return "A temperature is positive: a negative one lets the smaller score win."
        if round(share(temperature), 2) == 0.99:
            return done("Right: the other word keeps 0.01, never 0.")
        if round(share(1 / temperature), 2) == 0.99:
            return "You multiplied the scores: a temperature divides them."
        if abs(temperature - needed) < 0.1:
            return "That is the difference the scores need: the temperature has to produce it."
        side = "Too sharp" if temperature < 0.15 else "Too soft"
        return f"{side}: with that temperature river gets {share(temperature):.3f}."

    return values(judge, temperature=())


@exercise("4.7", "my_W_Q", "my_W_V", section="section 3")
def look_and_carry_nothing() -> Judge:
    """Choose ``W_Q`` and ``W_V`` (2, 2): *bank* looks at money, whose value carries nothing.

    The phrase is "river money bank", rows [2, 0], [0, 2], [1, 0], W_K is the identity, no mask;
    the weight of money must be above 0.9, and river must still carry something.
    """

    def judge(W_Q: Tensor, W_V: Tensor) -> Verdict | str:
        X = embedding_table().double()
        weight = attention(X @ W_Q, X, X @ W_V).weights[2, 1].item()
        river, money, _ = X @ W_V
        identity = torch.eye(2, dtype=torch.float64)
        if weight > 0.9 and river.any() and not money.any():
            return done(f"Right: bank gives money {weight:.2f}, and nothing of money arrives.")
        if weight <= 0.9 and torch.equal(W_Q, identity) and not torch.equal(W_V, identity):
            return "W_V does not say where bank looks: money still has the weight 0.14."
        if weight <= 0.9 and torch.equal(W_Q[0], identity[0]):
            return "That is not yet what bank asks: money still has the weight 0.14."
        if weight <= 0.9:
            return f"Bank gives money {weight:.2f}: make it more than 0.9."
        if river.any():
            value = ", ".join(f"{x:.3g}" for x in money.tolist())
            return f"Bank gives money {weight:.2f}, and money's value [{value}] comes along."
        if money.any():
            return "You zeroed the values of river and bank: zero that of money."
        return "Now all values are zero: river must keep its value."

    return values(judge, w_q=(2, 2), w_v=(2, 2))


@exercise("4.8", "my_sublayer", section="sections 2 and 3")
def attention_sublayer() -> Comparison:
    """Write ``fn(x, W_Q, W_K, W_V)``: causal attention, added to ``x`` (S, D).

    ``W_Q`` and ``W_K`` (D, d_k), ``W_V`` (D, D); the result is (S, D).
    """
    draw = normal_source()

    def moved(
        x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, *, scale: float | None = None, **mask: Any
    ) -> Tensor:
        allowed = mask.get("mask", causal_mask(len(x)))
        return attention(x @ W_Q, x @ W_K, x @ W_V, allowed, scale).output

    def weighted(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        def new(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
            scores = (x @ W_Q) @ (x @ W_K).T / W_Q.shape[1] ** 0.5
            return x + weights(scores, causal_mask(len(x))) @ (x @ W_V)

        return new

    def right(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
        return x + moved(x, W_Q, W_K, W_V)

    mistakes = {
        "The residual is missing: the output is added to x, it does not replace it.": moved,
        "The future is not hidden: the mask is missing.": lambda *a: a[0] + moved(*a, mask=None),
        "You hid the past: the mask is reversed.": (
            weighted(lambda s, m: hide(s, m.T).softmax(-1)),
            weighted(lambda s, m: hide(s, ~m).softmax(-1)),
            lambda *a: a[0] + moved(*a, mask=~causal_mask(len(a[0]))),
        ),
        "The scores are not scaled.": lambda *a: a[0] + moved(*a, scale=1.0),
        "You scaled by the width of the model: d_k is the width of a query.": (
            lambda *a: a[0] + moved(*a, scale=a[0].shape[1] ** -0.5)
        ),
        "You divided by d_k, not by its square root.": (
            lambda *a: a[0] + moved(*a, scale=1 / a[1].shape[1])
        ),
        "You scaled by a number of words, not by a width.": (
            lambda *a: a[0] + moved(*a, scale=len(a[0]) ** -0.5)
        ),
        "Queries are rows and keys are columns: yours are swapped.": (
            lambda x, Q, K, V: x + moved(x, K, Q, V)
        ),
        "W_V is not used: attention mixes values, not embeddings.": (
            lambda x, Q, K, V: x + moved(x, Q, K, torch.eye(x.shape[1]))
        ),
        "Each word only adds its own value: nothing comes from the others.": (
            lambda x, Q, K, V: x + x @ V
        ),
        "Your softmax runs over the queries: let it run over the keys.": (
            weighted(lambda s, m: hide(s, m).softmax(0))
        ),
        "The softmax is missing: scores are not weights.": weighted(lambda s, m: s * m),
        "You masked after the softmax: the rows no longer sum to 1.": (
            weighted(lambda s, m: s.softmax(-1) * m)
        ),
    }
    inputs = [
        (draw(S, D), draw(D, d), draw(D, d), draw(D, D))
        for S, D, d in ((5, 3, 2), (4, 7, 5), (3, 5, 7))
    ]
    return Comparison(right, inputs, mistakes)


@exercise("4.2", "my_cross_attention", section="section 5")
def cross_attention() -> Comparison:
    """Write ``fn(text, image, W_Q, W_K, W_V, is_patch)``: cross-attention of text and image.

    ``text`` (S_A, D), ``image`` (S_B, D), ``W_Q`` and ``W_K`` (D, d_k), ``W_V`` (D, d_v),
    ``is_patch`` (S_B,) bool; the result is (S_A, d_v).
    """
    draw = normal_source()

    def crossed(
        text: Tensor, image: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, is_patch: Any,
        *, scale: float | None = None,
    ) -> Tensor:  # fmt: skip
        return attention(text @ W_Q, image @ W_K, image @ W_V, is_patch, scale).output

    def weighted(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        def output(t: Tensor, i: Tensor, Q: Tensor, K: Tensor, V: Tensor, real: Tensor) -> Tensor:
            scores = (t @ Q) @ (i @ K).T / Q.shape[1] ** 0.5
            return weights(scores, real.expand_as(scores)) @ (i @ V)

        return output

    def causal(t: Tensor, i: Tensor, Q: Tensor, K: Tensor, V: Tensor, real: Tensor) -> Tensor:
        first_patches = torch.ones(len(t), len(i)).tril().bool()
        return crossed(t, i, Q, K, V, first_patches & real)

    mistakes = {
        "The padding is not hidden: is_patch is False there.": (
            lambda *a: crossed(a[0], a[1], a[2], a[3], a[4], None)
        ),
        "You hid the patches and kept the padding: is_patch is True where a word may look.": (
            lambda *a: crossed(a[0], a[1], a[2], a[3], a[4], ~a[5])
        ),
        "There is no causal mask here: no patch lies in the future of a word.": causal,
        "The text asks itself: keys and values come from the image.": (
            lambda t, i, Q, K, V, real: attention(t @ Q, t @ K, t @ V).output
        ),
        "The image asks: the queries come from the text.": (
            lambda t, i, Q, K, V, real: attention(i @ Q, i @ K, i @ V, real).output,
            lambda t, i, Q, K, V, real: attention(i @ Q, t @ K, t @ V).output,
        ),
        "W_Q belongs to the text and W_K to the image: yours are swapped.": (
            lambda t, i, Q, K, V, real: crossed(t, i, K, Q, V, real)
        ),
        "The scores are not scaled.": lambda *a: crossed(*a, scale=1.0),
        "You scaled by the width of the model: d_k is the width of a query.": (
            lambda *a: crossed(*a, scale=a[0].shape[1] ** -0.5)
        ),
        "You divided by d_k, not by its square root.": (
            lambda *a: crossed(*a, scale=1 / a[2].shape[1])
        ),
        "Your softmax runs over the queries: let it run over the keys.": (
            weighted(lambda s, m: hide(s, m).softmax(0).nan_to_num())
        ),
        "You masked after the softmax: the rows no longer sum to 1.": (
            weighted(lambda s, m: s.softmax(-1) * m)
        ),
        "The softmax is missing: scores are not weights.": weighted(lambda s, m: s * m),
        "Nothing is added here: the text's own rows are not part of the output.": (
            lambda *a: a[0] @ a[4] + crossed(*a)
        ),
    }
    inputs = [
        (draw(A, D), draw(B, D), draw(D, d), draw(D, d), draw(D, e), torch.arange(B) < B - padding)
        for A, B, D, d, e, padding in ((2, 5, 3, 7, 4, 2), (4, 3, 6, 2, 5, 1), (6, 7, 5, 3, 2, 3))
    ]
    return Comparison(crossed, inputs, mistakes)
