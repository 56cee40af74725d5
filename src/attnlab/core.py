"""Attention as plain functions on tensors, in the order in which the course meets them.

Axis letters: ``B`` batch, ``S`` sequence (``S_q`` queries, ``S_k`` keys), ``D`` model width,
``H`` heads, ``d_k`` and ``d_v`` widths per head. ``...`` stands for any leading axes. In every
score or weight matrix rows are queries and columns are keys; in every mask ``True`` means
*may attend*. Nothing here has parameters and nothing here draws.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

LAYOUTS = ("interleaved", "half")


# --- Refusing bad input in one sentence -----------------------------------------------------


def require_tensor(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Return ``x`` if it is a tensor with at least ``min_rank`` axes and no empty one."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}: torch.tensor(...)")
    if x.ndim < min_rank:
        raise ValueError(
            f"{name} needs at least {min_rank} dimensions but has shape {tuple(x.shape)}"
        )
    if 0 in x.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(x.shape)}")
    return x


def require_float(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Like ``require_tensor``, and ``x`` must hold floats."""
    require_tensor(name, x, min_rank)
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floats but holds {x.dtype}: call {name}.float()")
    return x


def require_int(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum} but is {number}")
    return number


def require_number(name: str, value: Any) -> float:
    """Return ``value`` if it is an int or a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return value


def require_even(name: str, width: int) -> int:
    """Return ``width`` if pairs can be made of it."""
    if width % 2:
        raise ValueError(f"{name} must be even, to form pairs, but is {width}")
    return width


def require_divisible(name: str, width: int, by: str, parts: int) -> int:
    """Return ``width // parts`` if that is exact."""
    if width % parts:
        raise ValueError(f"{name} {width} is not divisible by {by} {parts}")
    return width // parts


# --- Scaled dot-product attention -----------------------------------------------------------


class AttentionSteps(NamedTuple):
    """Every stage of one attention computation, in the order in which they happen.

    Attributes:
        raw: dot product of each query with each key, ``(..., S_q, S_k)``.
        scaled: ``raw`` times the scale, ``(..., S_q, S_k)``.
        masked: ``scaled`` with ``-inf`` where attending is forbidden, ``(..., S_q, S_k)``.
        weights: softmax of ``masked`` along the keys, ``(..., S_q, S_k)``.
        output: the weighted sum of the values, ``(..., S_q, d_v)``.
    """

    raw: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    output: Tensor


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None
) -> AttentionSteps:
    r"""Scaled dot-product attention, every step kept.

    .. math:: \mathrm{softmax}(q k^\top / \sqrt{d_k} + M)\, v

    A query that may attend to nothing gets zero weights and a zero output, as PyTorch's
    ``scaled_dot_product_attention`` gives; no NaN appears, forward or backward. float16 and
    bfloat16 are computed in float32 and cast back.

    Args:
        q: queries, ``(..., S_q, d_k)``.
        k: keys, ``(..., S_k, d_k)``.
        v: values, ``(..., S_k, d_v)``.
        mask: boolean, broadcastable to ``(..., S_q, S_k)``; ``True`` means *may attend*.
        scale: multiplies the raw scores; ``1/sqrt(d_k)`` if omitted.

    Returns:
        ``AttentionSteps`` (raw, scaled, masked, weights, output). Without a mask, ``masked``
        is ``scaled``.

    Raises:
        TypeError: not tensors, not floats, mixed dtypes, or a mask that is not boolean.
        ValueError: ranks, widths, lengths or a mask that do not fit.

    Source: Vaswani et al. 2017, equation 1.

    >>> x = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    >>> attention(x, x, x, causal_mask(2)).weights
    tensor([[1.0000, 0.0000],
            [0.6698, 0.3302]])
    """
    batch = _check_qkv(q, k, v)
    scores_shape = (*batch, q.shape[-2], k.shape[-2])
    if mask is not None:
        _check_mask(mask, scores_shape)
    scale = q.shape[-1] ** -0.5 if scale is None else require_number("scale", scale)

    dtype = q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    raw = q @ k.transpose(-2, -1)  # (..., S_q, S_k)
    scaled = raw * scale
    if mask is None:
        masked = scaled
        weights = scaled.softmax(dim=-1)
    else:
        masked = scaled.masked_fill(~mask, float("-inf"))
        # A row of nothing but -inf has no softmax. Such rows get any finite score before it
        # and zero after it; masked_fill also stops the gradient, so no NaN can come back.
        dead = ~mask.any(dim=-1, keepdim=True)
        weights = masked.masked_fill(dead, 0.0).softmax(dim=-1).masked_fill(dead, 0.0)
    output = weights @ v  # (..., S_q, d_v)
    return AttentionSteps(*(x.to(dtype) for x in (raw, scaled, masked, weights, output)))


def _check_qkv(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """Check that the three fit together; return the leading axes of the scores."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        require_float(name, x, min_rank=2)
        if x.dtype != q.dtype:
            raise TypeError(f"{name} is {x.dtype} but q is {q.dtype}")
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device} but q is on {q.device}")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"k has width {k.shape[-1]} but q has width {q.shape[-1]}")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v has {v.shape[-2]} positions but k has {k.shape[-2]}")
    try:
        return tuple(torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2]))
    except RuntimeError:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in (("q", q), ("k", k), ("v", v)))
        raise ValueError(f"the leading axes do not broadcast: {shapes}") from None


def require_bool(name: str, mask: Any) -> Tensor:
    """Return ``mask`` if it is a boolean tensor."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} must be a boolean torch.Tensor, not {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean (True = may attend) but holds {mask.dtype}: call {name}.bool()"
        )
    return mask


def _check_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    require_bool("mask", mask)
    try:
        fits = torch.broadcast_shapes(mask.shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits or mask.ndim == 0:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the scores {scores_shape}"
        )
    if 2 < mask.ndim < len(scores_shape) and mask.shape[0] != 1:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} for scores {scores_shape} would take its first "
            "axis for heads: put in the head axis with mask.unsqueeze(1)"
        )


# --- Masks ----------------------------------------------------------------------------------


def causal_mask(
    n_queries: int, n_keys: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Mask that hides the future: each query may attend to its own position and those before.

    It is aligned at the bottom right: the last query sees every key, which is what decoding
    with a cache needs (``scaled_dot_product_attention(is_causal=True)`` aligns at the top left).

    Args:
        n_queries: number of query positions, ``S_q``.
        n_keys: number of key positions, ``S_k``; ``S_q`` if omitted.
        device: where the mask lives.

    Returns:
        Boolean ``(S_q, S_k)``; ``True`` means *may attend*.

    Raises:
        ValueError: more queries than keys, or none.

    >>> causal_mask(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    n_queries = require_int("n_queries", n_queries, 1)
    n_keys = n_queries if n_keys is None else require_int("n_keys", n_keys, 1)
    if n_queries > n_keys:
        raise ValueError(f"n_queries {n_queries} is more than n_keys {n_keys}")
    everything = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_keys - n_queries)


def padding_mask(lengths: Tensor | Sequence[int], size: int) -> Tensor:
    """Mask that hides filler: ``True`` for the real tokens of a right-padded batch.

    Args:
        lengths: real tokens in each sequence, ``(B,)``, each from 1 to ``size``.
        size: the length all sequences are padded to, ``S_k``.

    Returns:
        Boolean ``(B, 1, S_k)``, the same keys for every query; on the device of ``lengths``.

    Raises:
        TypeError: lengths that are not integers.
        ValueError: a length outside 1 to ``size``.

    >>> padding_mask([1, 3], 3).int()
    tensor([[[1, 0, 0]],
    <BLANKLINE>
            [[1, 1, 1]]], dtype=torch.int32)
    """
    size = require_int("size", size, 1)
    lengths = require_lengths(lengths, size)
    columns = torch.arange(size, device=lengths.device)
    return (columns < lengths[:, None])[:, None, :]  # (B, 1, S_k)


def require_lengths(lengths: Any, size: int) -> Tensor:
    """Return ``lengths`` as an integer tensor ``(B,)`` with every entry from 1 to ``size``."""
    if isinstance(lengths, list | tuple):
        lengths = torch.tensor([require_int("lengths", n, 1) for n in lengths])
    require_tensor("lengths", lengths, 1)
    if lengths.ndim != 1 or lengths.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"lengths must be integers of shape (B,) but are {lengths.dtype} of shape "
            f"{tuple(lengths.shape)}"
        )
    if lengths.min() < 1 or lengths.max() > size:
        raise ValueError(f"lengths must be from 1 to {size} but are {lengths.tolist()}")
    return lengths


# --- Heads ----------------------------------------------------------------------------------


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(..., S, H*d) -> (..., H, S, d); undone by ``merge_heads``.

    Raises:
        ValueError: a width that ``n_heads`` does not divide.
    """
    require_tensor("x", x, min_rank=2)
    n_heads = require_int("n_heads", n_heads, 1)
    head_dim = require_divisible("the width of x", x.shape[-1], "n_heads", n_heads)
    return x.unflatten(-1, (n_heads, head_dim)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(..., H, S, d) -> (..., S, H*d); undone by ``split_heads``."""
    require_tensor("x", x, min_rank=3)
    return x.transpose(-3, -2).flatten(-2)


# --- Positions ------------------------------------------------------------------------------


def frequencies(width: int, base: float = 10000.0, device: Any = None) -> Tensor:
    """Turning speed of each pair of coordinates, ``(width/2,)`` float64, radians a position."""
    even = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    return base ** (-even / width)


def sinusoidal_positions(n: int, width: int) -> Tensor:
    """One fixed vector per position, to be added to the embeddings.

    Even columns hold sines, odd columns cosines, each pair at its own frequency.

    Args:
        n: number of positions.
        width: model width ``D``, even.

    Returns:
        float32 ``(n, D)``.

    Source: Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    n = require_int("n", n, 1)
    width = require_even("width", require_int("width", width, 1))
    angles = torch.arange(n, dtype=torch.float64)[:, None] * frequencies(width)  # (n, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).float()


def rope(
    x: Tensor, positions: Tensor, base: float = 10000.0, layout: str = "interleaved"
) -> Tensor:
    """Rotary position embedding: turn each pair of coordinates by an angle per position.

    Lengths are kept, and the dot product of a rotated query with a rotated key depends on
    their contents and on the distance between their positions only. Angles are computed in
    float64 (16-bit floats cannot tell position 257 from 256); the result has the dtype of ``x``.

    Args:
        x: queries or keys, ``(..., S, d)``, ``d`` even.
        positions: ``(S,)``, or of x's rank without the last axis, such as ``(B, 1, S)``.
        base: the slowest pair turns at about ``1/base`` radians a position.
        layout: which coordinates form pair ``i``: "interleaved" ``(2i, 2i+1)`` as in the paper,
            or "half" ``(i, i + d/2)`` as in Llama. Equal up to a fixed permutation.

    Returns:
        ``(..., S, d)``.

    Raises:
        TypeError: positions that are not a tensor of numbers.
        ValueError: an odd width, an unknown layout, positions that do not fit.

    Source: Su et al. 2021 (RoFormer), section 3.2.

    >>> rope(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([1]))
    tensor([[-1.1426,  1.9221,  2.9599,  4.0298]])
    """
    require_float("x", x, min_rank=2)
    require_even("the width of x", x.shape[-1])
    require_layout(layout)
    if require_number("base", base) <= 0:
        raise ValueError(f"base must be above 0 but is {base}")
    require_tensor("positions", positions, 1)
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions must be numbers but hold {positions.dtype}")
    if positions.ndim not in (1, x.ndim - 1) or positions.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not fit x of shape {tuple(x.shape)}"
        )
    if any(p not in (1, s) for p, s in zip(positions.shape[::-1], x.shape[-2::-1], strict=False)):
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not fit x of shape {tuple(x.shape)}"
        )
    speeds = frequencies(x.shape[-1], base, x.device)
    angles = positions.to(x.device, torch.float64)[..., None] * speeds  # (..., S, d/2)
    return rotate(x, angles.cos(), angles.sin(), layout)


def require_layout(layout: Any) -> str:
    """Return ``layout`` if it is one of the two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'interleaved' or 'half' but is {layout!r}")
    return layout


def rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate the pairs of ``x`` (..., S, d) by angles given as cos and sin (..., S, d/2)."""
    dtype = x.dtype
    if dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    else:
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    return turned.to(dtype)
