"""The exercises of notebook 5. The first five are the parts of the learner's own model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.checks import sandbox
from attnlab.checks.exercise import Exercise, Judge, exercise
from attnlab.checks.judging import (
    Comparison,
    Verdict,
    Wrong,
    describe,
    done,
    each,
    normal_source,
    not_yet,
    numbers,
    undone,
    values,
)
from attnlab.core import (
    attention,
    causal_mask,
    merge_heads,
    rope,
    sinusoidal_positions,
    split_heads,
)
from attnlab.model import Block, MultiHeadAttention, TinyTransformer
from attnlab.model import rms_norm as norm
from attnlab.model import swiglu as mlp

# --- Parts of the learner's model -----------------------------------------------------------


class Part(Comparison):
    """A function that is a part of the model; ours may stand in for it, which is not an answer."""

    def __call__(self, answer: Any) -> Verdict | str:
        """Judge the learner's own answer."""
        if getattr(answer, "stands_in", False):
            return not_yet("for now, ours stands in for yours.")
        return super().__call__(answer)


@dataclass(frozen=True)
class Module(Part):
    """A class, built in several sizes and given the parameters of ours.

    The ``inputs`` are the sizes that the class is built with, then the arguments of ``forward``.

    Attributes:
        name: of the learner's class.
        build: makes our module from the sizes.
    """

    name: str = ""
    build: Callable[..., nn.Module] = nn.Module

    def __call__(self, answer: Any) -> Verdict | str:
        """Look at the names of the parameters, at the results, then at the gradients."""
        if getattr(answer, "stands_in", False):
            return super().__call__(answer)
        if not isinstance(answer, type) or not issubclass(answer, nn.Module):
            raise Wrong(f"Expected a class that is an nn.Module, got {type(answer).__name__}.")
        for args in self.inputs:
            if (found := self._examine(answer, *self.split(args))) != "":  # "not yet" is falsy
                return found
        found = super().__call__(self.calling(answer))
        if isinstance(found, Verdict) and found:
            self._compare_gradients(answer)
        return found

    def split(self, args: Sequence[Any]) -> tuple[list, list]:
        """The sizes among the arguments, and what is left."""
        sizes = [x for x in args if isinstance(x, int)]
        return sizes, [*args[len(sizes) :]]

    def calling(self, answer: type) -> Callable[..., Any]:
        """The class as a function of the inputs, with our parameters."""

        def call(*args: Any) -> Any:
            sizes, inputs = self.split(args)
            module = answer(*sizes)
            module.load_state_dict(filled(self.build(*sizes)).state_dict())
            return module(*inputs)

        return call

    def _examine(self, answer: type, sizes: list, inputs: list) -> Verdict | str:
        """A sentence about parameters that have other names, kinds or shapes than ours."""
        made = f"{self.name}({', '.join(map(str, sizes))})"
        module = attempt(lambda: answer(*sizes))
        first = module if isinstance(module, BaseException) else attempt(lambda: module(*inputs))
        if undone(first):
            return not_yet("a part is still missing.")
        if isinstance(module, BaseException):
            forgot = "before Module.__init__()" in describe(module)
            hint = " Begin __init__ with super().__init__()." if forgot else ""
            raise Wrong(f"{made} raised {describe(module)}.{hint}")
        ours, theirs = self.build(*sizes).state_dict(), module.state_dict()
        if any(name.endswith(".bias") for name in theirs.keys() - ours.keys()):
            return "Your linear layers have a bias: build them with bias=False."
        for name, tensor in ours.items():
            if name not in theirs:
                other = next((f": it has {x}" for x in theirs if x not in ours), "")
                raise Wrong(f"{made} has no parameter {name}{other}.")
            if tensor.shape != theirs[name].shape:
                shapes = tuple(theirs[name].shape), tuple(tensor.shape)
                raise Wrong("In {}, {} has shape {}, expected {}.".format(made, name, *shapes))
            if name not in dict(module.named_parameters()):
                raise Wrong(f"In {made}, {name} is not learned: make it an nn.Parameter.")
        for name in theirs:
            if name not in ours:
                raise Wrong(f"{made} also has {name}, which the task does not name.")
        return ""

    def _compare_gradients(self, answer: type) -> None:
        """Refuse a module with the right numbers that could not be trained."""
        sizes, inputs = self.split(self.inputs[0])
        gradients: list[dict[str, Any]] = []
        with torch.enable_grad():
            for module in (filled(self.build(*sizes)), answer(*sizes)):
                module.load_state_dict(filled(self.build(*sizes)).state_dict())
                result = module(*inputs) if gradients else self.run(module, *inputs)
                if result.requires_grad:
                    result.square().sum().backward()
                gradients.append({name: p.grad for name, p in module.named_parameters()})
        for name, ours in gradients[0].items():
            theirs = gradients[1][name]
            if theirs is None or (theirs - ours).norm() > 0.01 * ours.norm():
                text = f"its gradient of {name} is not: leave out detach, no_grad and .data"
                raise Wrong(f"The output is right, but {text}.")

    @staticmethod
    def run(module: nn.Module, *inputs: Any) -> Tensor:
        """What our module gives, without what the learner's does not return."""
        if isinstance(module, MultiHeadAttention):
            return module(inputs[0], mask=inputs[1]).output
        result = module(*inputs)
        return result[0] if isinstance(result, tuple) else result


class Heads(Module):
    """Multi-head attention, which refuses some widths as well."""

    def __call__(self, answer: Any) -> Verdict | str:
        """Judge the module; then build one that cannot be."""
        found = super().__call__(answer)
        if isinstance(found, str) or not found:
            return found
        error = attempt(lambda: answer(14, 4))
        if not isinstance(error, BaseException):
            return "A width that the heads do not divide passes: raise a ValueError in __init__."
        if not isinstance(error, ValueError):
            raise Wrong(f"{self.name}(14, 4) raised {describe(error)}: it must be a ValueError.")
        return found


class Stack(Module):
    """A whole model, which also says how many words and positions it knows."""

    def __call__(self, answer: Any) -> Verdict | str:
        """Judge the module; then its two attributes."""
        found = super().__call__(answer)
        if isinstance(found, str) or not found:
            return found
        for name, size in ("vocab_size", 7), ("max_length", 9):
            if getattr(answer(7, 12, 3, 2, 9), name, None) != size:
                raise Wrong(f"The logits are right, but the model has no {name}: self.{name} = ...")
        return found


def stand_in(own: Any, exercise: Exercise) -> Any:
    """The learner's own part if it passes its exercise; else ours, marked with ``stands_in``.

    So each part of the model can be written alone.
    """
    return own if exercise(own) else OURS[exercise.name]


def attempt(work: Callable[[], Any]) -> Any:
    """What it gives, or the exception that it raised."""
    try:
        return work()
    except (KeyboardInterrupt, sandbox.Stop):
        raise
    except BaseException as error:
        return error


def filled(module: nn.Module) -> nn.Module:
    """The module with random parameters, the same every time; those of norms are near 1."""
    draw = normal_source()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(draw(*p.shape) / p.shape[-1] ** 0.5 if p.ndim > 1 else 1 + draw(*p.shape) / 2)
    return module


def with_ours(build: Callable[..., nn.Module], n: int, mistakes: dict[str, Any]) -> dict[str, Any]:
    """Mistakes that are functions of our module and the arguments of forward, after n sizes."""

    def made(mistake: Callable) -> Callable:
        return lambda *args: mistake(filled(build(*args[:n])), *args[n:])

    return {text: tuple(map(made, each(some))) for text, some in mistakes.items()}


def rotating_heads(width: int, n_heads: int) -> MultiHeadAttention:
    """Multi-head attention as the model has it."""
    return MultiHeadAttention(width, n_heads, rope="half")


def attended(
    m: Any, x: Tensor, mask: Tensor | None, *, scale: float | None = None, layout: str = "half",
    rotated: tuple[int, int, int] = (1, 1, 0), n: int = 0, split: Callable = split_heads,
    merge: Callable = merge_heads, inputs: Sequence[Callable] = (), mix: bool = True,
) -> Tensor:  # fmt: skip
    """Multi-head attention step by step, each step replaceable by a mistake."""
    projections = inputs or (m.w_q, m.w_k, m.w_v)
    q, k, v = (split(w(x), n or m.n_heads) for w in projections)
    at = torch.arange(x.shape[1])
    q, k, v = (
        rope(y, at, layout=layout) if r else y for y, r in zip((q, k, v), rotated, strict=True)
    )
    merged = merge(attention(q, k, v, mask, scale).output)
    return m.w_o(merged) if mix else merged


class OurHeads(MultiHeadAttention):
    """The package's multi-head attention, called as the learner's is."""

    stands_in = True
    __call__ = nn.Module.__call__

    def __init__(self, width: int, n_heads: int):
        super().__init__(width, n_heads, rope="half")

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """(B, S, D) -> (B, S, D)."""
        return super().forward(x, mask=mask).output


class OurBlock(Block):
    """The package's block, called as the learner's is."""

    stands_in = True

    def __init__(self, width: int, n_heads: int):
        super().__init__(width, n_heads, None)
        self.attention = OurHeads(width, n_heads)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """(B, S, D) -> (B, S, D)."""
        heads: Any = self.attention  # which give the output alone
        x = x + heads(norm(x, self.attention_norm), mask)
        return x + mlp(norm(x, self.mlp_norm), self.gate_up, self.down)


class OurTransformer(TinyTransformer):
    """The package's model, made of blocks that are called as the learner's are."""

    stands_in = True

    def __init__(
        self, vocab_size: int, width: int, n_heads: int, n_layers: int, max_length: int
    ):  # fmt: skip
        super().__init__(vocab_size, width, n_heads, n_layers, max_length)
        self.blocks = nn.ModuleList(OurBlock(width, n_heads) for _ in range(n_layers))

    def forward(self, ids: Tensor) -> Tensor:  # type: ignore[override]
        """Ids (B, S) -> logits (B, S, vocab)."""
        x = self.emb(ids)  # (B, S, D)
        for part in self.blocks:
            x = part(x, causal_mask(ids.shape[1]))
        return self.lm_head(norm(x, self.norm))


def our_rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """The package's norm, marked."""
    return norm(x, weight)


def our_swiglu(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """The package's MLP, marked."""
    return mlp(x, gate_up, down)


our_rms_norm.stands_in = our_swiglu.stands_in = True  # type: ignore[attr-defined]
OURS: dict[str, Any] = {"multi_head": OurHeads, "block": OurBlock, "transformer": OurTransformer}
OURS |= {"rms_norm": our_rms_norm, "swiglu": our_swiglu}


@exercise("5.1", "MyMultiHeadAttention", section="section 4")
def multi_head() -> Module:
    """Write the class ``MyMultiHeadAttention(width, n_heads)`` with ``forward(x, mask=None)``.

    Parameters ``w_q``, ``w_k``, ``w_v``, ``w_o`` (``nn.Linear`` without bias); ``x`` (B, S, D);
    queries and keys are rotated with layout "half"; a width that n_heads does not divide raises
    ``ValueError``.
    """
    draw = normal_source()

    def right(width: int, n_heads: int, x: Tensor, mask: Tensor | None) -> Tensor:
        return attended(filled(rotating_heads(width, n_heads)), x, mask)

    def given(**change: Any) -> Callable:
        return lambda m, x, mask: attended(m, x, mask, **change)

    def rotated_whole(m: Any, x: Tensor, mask: Any) -> Tensor:
        q, k = (rope(w(x), torch.arange(x.shape[1]), layout="half") for w in (m.w_q, m.w_k))
        ready = (lambda _: q, lambda _: k, m.w_v)
        return attended(m, x, mask, inputs=ready, rotated=(0, 0, 0))

    def masked_late(m: Any, x: Tensor, mask: Any) -> Tensor:
        q, k, v = (split_heads(w(x), m.n_heads) for w in (m.w_q, m.w_k, m.w_v))
        q, k = (rope(y, torch.arange(x.shape[1]), layout="half") for y in (q, k))
        weights = attention(q, k, v).weights
        return m.w_o(merge_heads((weights if mask is None else weights * mask) @ v))

    mistakes = {
        "The scores are not scaled: divide them by the square root of d_k.": given(scale=1.0),
        "You scaled by the square root of the whole width: a head is d_k wide.": (
            lambda m, x, mask: attended(m, x, mask, scale=m.width**-0.5)
        ),
        "You divided by d_k, not by its square root.": (
            lambda m, x, mask: attended(m, x, mask, scale=1 / m.head_dim)
        ),
        "Right shape, but tokens are mixed: split the width first, then swap the axes.": (
            given(split=lambda y, n: y.reshape(len(y), n, y.shape[1], -1))
        ),
        "The heads are laid side by side wrongly: swap the axes before you reshape.": (
            given(merge=lambda y: y.reshape(len(y), y.shape[2], -1))
        ),
        "That is one head of the whole width: split it into n_heads.": (
            given(n=1),
            lambda m, x, mask: attended(m, x, mask, n=1, scale=m.head_dim**-0.5),
        ),
        "Nothing is rotated: queries and keys need RoPE.": given(rotated=(0, 0, 0)),
        "Only one side is rotated: the score needs the angle between both.": (
            given(rotated=(1, 0, 0)),
            given(rotated=(0, 1, 0)),
        ),
        "You rotated the values too: rotate only queries and keys.": given(rotated=(1, 1, 1)),
        "You rotated before you split: each head rotates its own pairs.": rotated_whole,
        'Pairs come from the two halves of a head here: layout="half".': (
            given(layout="interleaved")
        ),
        "The mask is not used.": lambda m, x, mask: attended(m, x, None),
        "True means may attend: your mask hides what it should show.": (
            lambda m, x, mask: attended(m, x, None if mask is None else ~mask)
        ),
        "You masked after the softmax: a row no longer sums to 1.": masked_late,
        "You added a causal mask of your own: use the one that is given.": (
            lambda m, x, mask: attended(
                m, x, causal_mask(x.shape[1]) if mask is None else causal_mask(x.shape[1]) & mask
            )
        ),
        "W_O is missing: the heads, side by side again, go through w_o.": given(mix=False),
        "The values have a projection of their own, w_v.": (
            lambda m, x, mask: attended(m, x, mask, inputs=(m.w_q, m.w_k, m.w_k)),
            lambda m, x, mask: attended(m, x, mask, inputs=(m.w_q, m.w_k, lambda y: y)),
        ),
        "Queries are rows and keys are columns: yours are swapped.": (
            lambda m, x, mask: attended(m, x, mask, inputs=(m.w_k, m.w_q, m.w_v))
        ),
    }
    inputs = [  # the second mask is not causal
        (12, 3, draw(2, 5, 12), causal_mask(5)),
        (20, 2, draw(3, 4, 20), torch.tensor([[1, 0, 1, 1]] * 3 + [[0, 1, 1, 0]]).bool()),
        (28, 7, draw(1, 6, 28), None),
    ]
    mistakes = with_ours(rotating_heads, 2, mistakes)
    return Heads(right, inputs, mistakes, name="MyMultiHeadAttention", build=rotating_heads)


@exercise("5.2", "my_rms_norm", section="section 4")
def rms_norm() -> Part:
    """Write ``fn(x, weight)``: each row of ``x`` (..., D) divided by its root mean square.

    The mean of the squares gets 1e-6 added before the root; then each column is multiplied by its
    number in ``weight`` (D,).
    """
    draw = normal_source()

    def size(x: Tensor, eps: float = 1e-6) -> Tensor:
        return (x.square().mean(-1, keepdim=True) + eps).sqrt()

    mistakes = {
        "You subtract the mean, as LayerNorm does: RMSNorm does not.": (
            lambda x, w: norm(x - x.mean(-1, keepdim=True), w),
            lambda x, w: F.layer_norm(x, w.shape, w, eps=1e-6),
            lambda x, w: F.layer_norm(x, w.shape, w),
        ),
        "You divide by the standard deviation: the mean is not subtracted, here neither.": (
            lambda x, w: x / x.std(-1, keepdim=True) * w,
            lambda x, w: x / (x.var(-1, keepdim=True, correction=0) + 1e-6).sqrt() * w,
        ),
        "Without the 1e-6 a row of tiny numbers becomes large: add it under the root.": (
            lambda x, w: x / size(x, 0.0) * w
        ),
        "The 1e-6 is added to the mean of the squares, before the root.": (
            lambda x, w: x / (size(x, 0.0) + 1e-6) * w
        ),
        "You divide by the length: the root of the mean of the squares, not of their sum.": (
            lambda x, w: x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() * w,
            lambda x, w: x / x.norm(dim=-1, keepdim=True) * w,
        ),
        "You divide by the mean square: take its root.": lambda x, w: x / size(x) ** 2 * w,
        "The columns are not multiplied by weight.": lambda x, w: x / size(x),
        "You added weight: multiply by it.": lambda x, w: x / size(x) + w,
        "One mean for all rows: each token has its own, over dim=-1 with keepdim=True.": (
            lambda x, w: x / (x.square().mean() + 1e-6).sqrt() * w
        ),
        "You took the mean over the tokens: take it over the width, dim=-1.": (
            lambda x, w: x / (x.square().mean(-2, keepdim=True) + 1e-6).sqrt() * w
        ),
    }
    small = draw(3, 4, 6) * torch.tensor([1e-3, 1.0, 30.0, 3e-4])[:, None] + 1e-4
    inputs = [(draw(2, 3, 5) * 2e-3 + 5e-4, 1 + draw(5) / 2), (small, 1 + draw(6) / 2)]
    return Part(lambda x, weight: norm(x, weight), inputs, mistakes)


@exercise("5.3", "my_swiglu", section="section 4")
def swiglu() -> Part:
    """Write ``fn(x, gate_up, down)``: the MLP W_down(silu(W_gate x) * W_up x) for each token.

    ``gate_up`` (2 * hidden, D) is W_gate on top of W_up, and ``down`` is (D, hidden): both are
    stored transposed, as ``nn.Linear`` does.
    """
    draw = normal_source()

    def halves(inner: Callable[[Tensor, Tensor], Tensor]) -> Callable:
        return lambda x, gate_up, down: inner(*(x @ gate_up.T).chunk(2, -1)) @ down.T

    mistakes = {
        "Gate and up are swapped: W_gate is the upper half, and silu is taken of it.": (
            halves(lambda gate, up: F.silu(up) * gate)
        ),
        "You took sigmoid: silu(a) is a * sigmoid(a).": halves(lambda g, up: g.sigmoid() * up),
        "You took relu: here it is silu.": halves(lambda gate, up: gate.relu() * up),
        "You took gelu: here it is silu.": halves(lambda gate, up: F.gelu(gate) * up),
        "silu is missing: without it, no function but products is in the MLP.": (
            halves(lambda gate, up: gate * up)
        ),
        "You took silu of the product: take it of the gate alone.": (
            halves(lambda gate, up: F.silu(gate * up))
        ),
        "You took silu of both halves: take it of the gate alone.": (
            halves(lambda gate, up: F.silu(gate) * F.silu(up))
        ),
        "You added gate and up: multiply them.": halves(lambda gate, up: F.silu(gate) + up),
        "The gate is missing: multiply up by silu(gate).": (
            halves(lambda gate, up: up),
            halves(lambda gate, up: F.silu(up)),
        ),
        "up is missing: multiply silu(gate) by it.": halves(lambda gate, up: F.silu(gate)),
        "W_gate is the upper half of gate_up: yours are dealt out one by one.": (
            lambda x, gate_up, down: mlp(x, torch.cat((gate_up[::2], gate_up[1::2])), down)
        ),
        "W_down is missing: bring the result back to width D.": (
            lambda x, gate_up, down: mlp(x, gate_up, torch.eye(down.shape[1]))
        ),
    }
    inputs = [(draw(2, 3, 5), draw(14, 5), draw(5, 7)), (draw(4, 2, 6), draw(18, 6), draw(6, 9))]
    return Part(lambda x, gate_up, down: mlp(x, gate_up, down), inputs, mistakes)


@exercise("5.4", "MyBlock", section="section 4")
def block() -> Module:
    """Write ``forward(x, mask=None)`` of ``MyBlock(width, n_heads)``, a pre-norm block.

    Parameters ``attention_norm``, ``attention``, ``mlp_norm``, ``gate_up``, ``down``; ``x``
    (B, S, D): ``x + attention(norm(x))``, then ``x + swiglu(norm(x))``.
    """
    draw = normal_source()

    def ours(width: int, n_heads: int) -> Block:
        return Block(width, n_heads, None)

    def right(width: int, n_heads: int, x: Tensor, mask: Tensor | None) -> Tensor:
        return filled(ours(width, n_heads))(x, mask)[0]

    def heads(m: Any, x: Tensor, mask: Any) -> Tensor:
        return m.attention(x, mask=mask).output

    def inner(m: Any, x: Tensor) -> Tensor:
        return mlp(x, m.gate_up, m.down)

    def first(m: Any, x: Tensor, mask: Any) -> Tensor:
        return x + heads(m, norm(x, m.attention_norm), mask)

    def last(m: Any, x: Tensor) -> Tensor:
        return x + inner(m, norm(x, m.mlp_norm))

    def post(m: Any, x: Tensor, mask: Any) -> Tensor:
        x = norm(x + heads(m, x, mask), m.attention_norm)
        return norm(x + inner(m, x), m.mlp_norm)

    def normed_output(m: Any, x: Tensor, mask: Any) -> Tensor:
        x = x + norm(heads(m, x, mask), m.attention_norm)
        return x + norm(inner(m, x), m.mlp_norm)

    def normed_path(m: Any, x: Tensor, mask: Any) -> Tensor:
        x = norm(x, m.attention_norm)
        x = norm(x + heads(m, x, mask), m.mlp_norm)
        return x + inner(m, x)

    mistakes = {
        "You normalise after the sum, as in 2017: here it is before attention and MLP.": post,
        "You normalise what attention and MLP give: normalise what goes into them.": (
            normed_output
        ),
        "You normalise the residual path itself: add to x as it was.": normed_path,
        "The residual path around attention is missing: x + attention(...).": (
            lambda m, x, mask: last(m, heads(m, norm(x, m.attention_norm), mask))
        ),
        "The residual path around the MLP is missing: x + swiglu(...).": (
            lambda m, x, mask: inner(m, norm(first(m, x, mask), m.mlp_norm))
        ),
        "Both residual paths are missing: add each result to x.": lambda m, x, mask: inner(
            m, norm(heads(m, norm(x, m.attention_norm), mask), m.mlp_norm)
        ),
        "What goes into attention is not normalised.": (
            lambda m, x, mask: last(m, x + heads(m, x, mask))
        ),
        "What goes into the MLP is not normalised.": (
            lambda m, x, mask: (y := first(m, x, mask)) + inner(m, y)
        ),
        "Nothing is normalised: attention and MLP each get a normalised x.": (
            lambda m, x, mask: (y := x + heads(m, x, mask)) + inner(m, y)
        ),
        "The two norms are swapped: attention_norm comes first.": lambda m, x, mask: (
            (y := x + heads(m, norm(x, m.mlp_norm), mask)) + inner(m, norm(y, m.attention_norm))
        ),
        "One norm is used twice: attention and MLP have their own.": (
            lambda m, x, mask: (y := first(m, x, mask)) + inner(m, norm(y, m.attention_norm)),
            lambda m, x, mask: last(m, x + heads(m, norm(x, m.mlp_norm), mask)),
        ),
        "The MLP gets the first x: it comes after attention and gets x + attention(...).": (
            lambda m, x, mask: first(m, x, mask) + last(m, x) - x
        ),
        "The MLP comes first: here attention does.": lambda m, x, mask: first(m, last(m, x), mask),
        "The mask is not handed to attention.": lambda m, x, mask: last(m, first(m, x, None)),
        "The MLP is missing.": first,
        "Attention is missing.": lambda m, x, mask: last(m, x),
    }
    inputs = [
        (12, 3, draw(2, 5, 12), causal_mask(5)),
        (20, 2, draw(3, 4, 20), torch.tensor([[1, 0, 1, 1]] * 3 + [[0, 1, 1, 0]]).bool()),
        (8, 4, draw(1, 6, 8), None),
    ]
    return Module(right, inputs, with_ours(ours, 2, mistakes), name="MyBlock", build=ours)


@exercise("5.5", "MyTransformer", section="section 4")
def transformer() -> Module:
    """Write ``forward(ids)`` of ``MyTransformer``: blocks, causal, with a head that predicts.

    It is built with vocab_size, width, n_heads, n_layers and max_length. Parameters ``emb``,
    ``blocks``, ``norm``, ``lm_head``; ids (B, S) -> logits (B, S, vocab_size).
    """
    draw = normal_source()

    def right(
        vocab_size: int, width: int, n_heads: int, n_layers: int, max_length: int, ids: Tensor
    ) -> Tensor:
        return filled(TinyTransformer(vocab_size, width, n_heads, n_layers, max_length))(ids)

    def causal(ids: Tensor) -> Tensor:
        return causal_mask(ids.shape[1])

    def stacked(m: Any, x: Tensor, mask: Any, blocks: Any = None) -> Tensor:
        for part in m.blocks if blocks is None else blocks:
            x = part(x, mask)[0]
        return x

    def head(m: Any, x: Tensor) -> Tensor:
        return m.lm_head(norm(x, m.norm))

    def changed(blocks: Callable) -> Callable:
        return lambda m, ids: head(m, stacked(m, m.emb(ids), causal(ids), blocks(m)))

    def normed_between(m: Any, ids: Tensor) -> Tensor:
        x = m.emb(ids)
        for part in m.blocks:
            x = norm(part(x, causal(ids))[0], m.norm)
        return m.lm_head(x)

    mistakes = {
        "The causal mask is missing: each position may see itself and those before it.": (
            lambda m, ids: head(m, stacked(m, m.emb(ids), None))
        ),
        "Your mask hides the past: True means may attend, and the past may be seen.": (
            lambda m, ids: head(m, stacked(m, m.emb(ids), causal(ids).T)),
            lambda m, ids: head(m, stacked(m, m.emb(ids), ~causal(ids))),
        ),
        "The head comes before the norm: normalise what the last block gives, then the head.": (
            lambda m, ids: m.lm_head(stacked(m, m.emb(ids), causal(ids)))
        ),
        "The norm belongs after the last block: yours is before the first.": (
            lambda m, ids: m.lm_head(stacked(m, norm(m.emb(ids), m.norm), causal(ids)))
        ),
        "The norm belongs after the last block alone: blocks have norms of their own.": (
            normed_between
        ),
        "Only one block is used: x goes through all of them.": (
            changed(lambda m: m.blocks[:1]),
            changed(lambda m: m.blocks[-1:]),
        ),
        "The same block is used again and again: each has its own parameters.": (
            changed(lambda m: [m.blocks[0]] * len(m.blocks)),
            changed(lambda m: [m.blocks[-1]] * len(m.blocks)),
        ),
        "The blocks come in the wrong order: the first one first.": (
            changed(lambda m: [*m.blocks][::-1])
        ),
        "The blocks are missing: you predict from the embeddings.": changed(lambda m: []),
        "Those are probabilities: return the logits, without a softmax.": (
            lambda m, ids: m(ids).softmax(-1),
            lambda m, ids: m(ids).log_softmax(-1),
        ),
        "Only the last position: return logits for every position.": (
            lambda m, ids: m(ids)[:, -1],
            lambda m, ids: m(ids)[:, -1:],
        ),
        "You add positions: the blocks rotate queries and keys already.": lambda m, ids: head(
            m, stacked(m, m.emb(ids) + sinusoidal_positions(ids.shape[1], len(m.norm)), causal(ids))
        ),
        "The head has parameters of its own, lm_head: yours is the embedding table.": (
            lambda m, ids: norm(stacked(m, m.emb(ids), causal(ids)), m.norm) @ m.emb.weight.T
        ),
        "lm_head is missing: from width D to a logit for each word.": (
            lambda m, ids: norm(stacked(m, m.emb(ids), causal(ids)), m.norm)
        ),
    }
    inputs = [
        (7, 12, 3, 2, 9, (draw(2, 5) * 100).long() % 7),
        (11, 8, 2, 3, 6, (draw(3, 4) * 100).long() % 11),
    ]
    mistakes = with_ours(TinyTransformer, 5, mistakes)
    return Stack(right, inputs, mistakes, name="MyTransformer", build=TinyTransformer)


# --- Other exercises ------------------------------------------------------------------------


@exercise("5.6", "my_split", section="section 1")
def split() -> Comparison:
    """Write ``fn(x, n_heads)``: ``x`` (B, S, D) as (B, H, S, d), each head a slice of the width."""
    draw = normal_source()
    mistakes = {
        "Right shape, but tokens are mixed: the order of reshape and transpose matters.": (
            lambda x, n: x.reshape(len(x), n, x.shape[1], -1)
        ),
        "A head takes neighbouring columns: yours are dealt out one by one.": (
            lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
            lambda x, n: x.unflatten(-1, (-1, n)),
        ),
        "The axis of heads comes before the sequence: yours comes after it.": lambda x, n: (
            x.unflatten(-1, (n, -1))
        ),
        "Within a head tokens are rows: yours are columns.": lambda x, n: split_heads(x, n).mT,
        "Heads split the width, not the sentence: each sees every token.": (
            lambda x, n: x.unflatten(1, (n, -1))
        ),
    }
    inputs = [(draw(2, 6, 15), 3), (draw(3, 4, 14), 2)]  # H divides S: the last mistake runs
    return Comparison(split_heads, inputs, mistakes)


@exercise("5.7", "my_rotation", section="section 3")
def rotate_pair() -> Comparison:
    """Write ``fn(x, positions)``: row i of ``x`` (S, 2) rotated by ``positions[i]`` radians.

    Counter-clockwise, as RoPE rotates its first pair; ``positions`` (S,) are integers.
    """
    draw = normal_source()

    def right(x: Tensor, positions: Tensor) -> Tensor:
        (a, b), cos, sin = x.unbind(-1), positions.cos(), positions.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def overwritten(x: Tensor, positions: Tensor) -> Tensor:
        first, b = right(x, positions)[:, 0], x[:, 1]
        return torch.stack((first, first * positions.sin() + b * positions.cos()), dim=-1)

    mistakes = {
        "You rotate clockwise.": lambda x, p: right(x, -p),
        "The angles are radians, not degrees.": lambda x, p: right(x, p.deg2rad()),
        "Every row is rotated by the same angle: each position has its own.": (
            lambda x, p: right(x, p[:1]),
            lambda x, p: right(x, torch.ones(1)),
        ),
        "You counted 0, 1, 2, ...: the positions are given.": (
            lambda x, p: right(x, torch.arange(len(x)))
        ),
        "That shrinks the vector: a rotation mixes its coordinates.": (
            lambda x, p: x * p.cos()[:, None]
        ),
        "You added the angle: rotate the vector by it.": lambda x, p: x + p[:, None],
        "A sign is wrong: a rotation keeps the length.": (
            lambda x, p: x * p.cos()[:, None] + x.flip(-1) * p.sin()[:, None],
            lambda x, p: right(x, p) - 2 * torch.stack((0 * p, x[:, 1] * p.cos()), dim=-1),
        ),
        "You computed the second coordinate from the new first one: use the old one.": overwritten,
    }
    inputs = [(draw(5, 2), torch.tensor([2, 0, 7, 1, 3])), (draw(3, 2), torch.tensor([4, 11, 2]))]
    return Comparison(right, inputs, mistakes)


@exercise("5.8", "my_merge", section="section 1")
def merge() -> Comparison:
    """Write ``fn(x)``: heads ``x`` (B, H, S, d) side by side again, as (B, S, H * d)."""
    draw = normal_source()
    mistakes = {
        "Right shape, but words are mixed: swap the axes before you reshape.": (
            lambda x: x.reshape(len(x), x.shape[2], -1)
        ),
        "An average loses what distinguishes the heads: put them side by side.": (
            lambda x: x.mean(1),
            lambda x: x.mean(1).repeat(1, 1, x.shape[1]),
        ),
        "A sum loses what distinguishes the heads: put them side by side.": lambda x: x.sum(1),
        "The columns of a head stay together: yours are dealt out one by one.": (
            lambda x: x.permute(0, 2, 3, 1).flatten(2)
        ),
        "You put the heads one after the other, as if they were more words.": (
            lambda x: x.flatten(1, 2)
        ),
        "The axes are swapped; the last two still have to become one.": (
            lambda x: x.transpose(1, 2)
        ),
        "Head 0 comes first: your order is reversed.": lambda x: merge_heads(x.flip(1)),
        "That is only one head: return all of them.": lambda x: x[:, 0],
    }
    return Comparison(merge_heads, [(draw(2, 3, 5, 4),), (draw(3, 2, 4, 7),)], mistakes)


@exercise("5.9", "with_12_heads", "with_24_heads", section="section 1")
def parameters_of_heads() -> Judge:
    """Give the count of parameters in W_Q, W_K, W_V and W_O at width 768, with 12 and 24 heads."""
    square, right = 768**2, 4 * 768**2
    first = {
        "That is one matrix: there are W_Q, W_K, W_V and W_O.": square,
        "One of the four is missing: W_Q, W_K, W_V and W_O.": 3 * square,
        "Each head has only its own 64 columns: 12 heads do not cost 12 times as much.": (
            12 * right,
            12 * 3 * square,
            12 * 3 * square + square,
        ),
        "Too few: there are twelve heads, and each reads all 768 columns.": (
            3 * 768 * 64,
            4 * 768 * 64,
        ),
        "A matrix from 768 to 768 has 768 rows of 768 numbers.": (768, 4 * 768, 3 * 768),
        "You counted biases: these four matrices have none.": right + 4 * 768,
    }
    second = {
        "Twice the heads are half as wide each: nothing is added.": 2 * right,
        "Half as wide each, but twice as many: nothing is lost.": right // 2,
    }
    return numbers(
        ("the count for 12 heads", right, first),
        ("the count for 24 heads", right, second),
        message="Right: heads divide the width; the number of parameters stays the same.",
    )


@exercise("5.10", "my_positions", section="section 2")
def add_positions() -> Comparison:
    """Write ``fn(e, p)``: a position added to each word of ``e`` (B, S, D), row i to word i.

    The table of positions ``p`` (M, D) has more rows than a sentence has words.
    """
    draw = normal_source()
    mistakes = {
        "Your positions run along the batch: all words of a sentence got the same one.": (
            lambda e, p: e + p[: len(e), None],
            lambda e, p: e + p[: len(e)],
        ),
        "Every word got the same position: row i belongs to word i.": (
            lambda e, p: e + p[0],
            lambda e, p: e + p[e.shape[1]],
            lambda e, p: e + p[: e.shape[1]].sum(0),
            lambda e, p: e + p[: e.shape[1]].mean(0),
        ),
        "p has more rows than the sentence has words: take the rows you need.": (
            lambda e, p: e + p,
            lambda e, p: e + p[None],
        ),
        "Off by one: the first word is at position 0.": (lambda e, p: e + p[1 : e.shape[1] + 1]),
        "You started at the wrong end: the first word takes the first row.": (
            lambda e, p: e + p[-e.shape[1] :],
            lambda e, p: e + p[: e.shape[1]].flip(0),
        ),
        "You concatenated the position: add it.": (
            lambda e, p: torch.cat((e, p[: e.shape[1]].expand_as(e)), dim=-1)
        ),
        "You multiplied by the position: add it.": lambda e, p: e * p[: e.shape[1]],
        "You added the index of the position: its vector is a row of p.": (
            lambda e, p: e + torch.arange(e.shape[1])[:, None]
        ),
        "Those are the positions alone: the embeddings are gone.": (
            lambda e, p: p[: e.shape[1]],
            lambda e, p: p[: e.shape[1]].expand_as(e),
        ),
    }
    inputs = [(draw(2, 3, 4), draw(7, 4)), (draw(5, 2, 6), draw(11, 6))]
    return Comparison(lambda e, p: e + p[: e.shape[1]], inputs, mistakes)


@exercise("5.11", "my_key", section="section 3")
def far_key() -> Judge:
    """Choose ``key`` (2,), whose score with the query [1, 0.5] is higher five positions away.

    Both are rotated by one radian per position; the key comes before the query, and the score
    five positions away must be at least 0.5 above the score at the same position.
    """

    def judge(key: Tensor) -> Verdict | str:
        q = torch.tensor([[1.0, 0.5]], dtype=torch.float64)
        near, far, after = ((rope(q, torch.tensor([t])) @ key).item() for t in (0, 5, -5))
        if far - near >= 0.5 - 1e-6:
            return done(f"Right: {near:.2f} here, {far:.2f} five positions away.")
        if not key.any():
            text = "A key of zeros scores 0 at every distance"
        elif after - near >= 0.5:
            text = "That key scores higher after the query, not before it"
        elif far > near:
            text = "The far key leads by less than 0.5"
        else:
            text = "Distance is not all, the near key leads"
        return f"{text}: here {near:.2f}, five positions away {far:.2f}."

    return values(judge, key=(2,))


@exercise("5.12", "my_rope_attention", section="section 3")
def rope_attention() -> Comparison:
    """Write ``fn(q, k, v, positions)``: attention with RoPE, no mask, the output (S, d_v).

    ``q`` and ``k`` (S, d), ``v`` (S, d_v), ``positions`` (S,); pairs are neighbours.
    """
    draw = normal_source()

    def rotated(in_q: int, in_k: int, in_v: int = 0, layout: str = "interleaved") -> Callable:
        def answer(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
            q, k, v = (
                rope(x, times * positions, layout=layout)
                for x, times in ((q, in_q), (k, in_k), (v, in_v))
            )
            return attention(q, k, v).output

        return answer

    def right(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
        return rotated(1, 1)(q, k, v, positions)

    mistakes = {
        "You rotated the values too: rotate only queries and keys.": rotated(1, 1, 1),
        "You rotated the output: rotate only queries and keys.": (
            lambda q, k, v, p: rope(right(q, k, v, p), p)
        ),
        "Only one side is rotated: the score needs the angle between both.": (
            rotated(1, 0),
            rotated(0, 1),
        ),
        "Nothing is rotated: this attention ignores the order.": rotated(0, 0),
        "You rotated the values instead of queries and keys.": rotated(0, 0, 1),
        "Query and key rotate in opposite directions: rotate both the same way.": (
            rotated(1, -1),
            rotated(-1, 1),
        ),
        "You rotate clockwise.": rotated(-1, -1),
        "You counted 0, 1, 2, ...: the positions are given, and they have gaps.": (
            lambda q, k, v, p: right(q, k, v, torch.arange(len(p)))
        ),
        "You added the positions: RoPE rotates.": (
            lambda q, k, v, p: attention(q + p[:, None], k + p[:, None], v).output
        ),
        "Here neighbouring columns form a pair: yours come from the two halves.": rotated(
            1, 1, 0, "half"
        ),
        "The scores are not scaled.": (
            lambda q, k, v, p: attention(rope(q, p), rope(k, p), v, scale=1.0).output
        ),
        "You divided by d_k, not by its square root.": (
            lambda q, k, v, p: attention(rope(q, p), rope(k, p), v, scale=1 / q.shape[1]).output
        ),
        "Queries are rows and keys are columns: yours are swapped.": (
            lambda q, k, v, p: right(k, q, v, p)
        ),
    }
    inputs = [
        (draw(5, 4), draw(5, 4), draw(5, 2), torch.tensor([2, 0, 7, 1, 3])),
        (draw(3, 6), draw(3, 6), draw(3, 4), torch.tensor([4, 11, 2])),
    ]
    return Comparison(right, inputs, mistakes)
