"""Attention as plain functions on tensors, in the order in which the course meets them.

Axis letters: ``B`` batch, ``S`` sequence (``S_q`` queries, ``S_k`` keys), ``D`` model width,
``H`` heads, ``d_k`` and ``d_v`` widths per head. ``...`` stands for any leading axes. In every
score or weight matrix rows are queries and columns are keys; in every mask ``True`` means
*may attend*. Nothing here has parameters and nothing here draws.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab import validation as require

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
    bfloat16 are computed in float32 and cast back (but within ``torch.autocast`` as that decides).

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
    batch = require.qkv(q, k, v)
    if mask is not None:
        require.mask(mask, (*batch, q.shape[-2], k.shape[-2]), q.device)
    scale = q.shape[-1] ** -0.5 if scale is None else require.number("scale", scale)
    return attend(q, k, v, mask, scale)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> AttentionSteps:
    """``attention`` for a module that has checked what it makes q, k and v of."""
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
    steps = AttentionSteps(raw, scaled, masked, weights, output)
    return steps if output.dtype == dtype else AttentionSteps(*(x.to(dtype) for x in steps))


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
    n_queries = require.whole("n_queries", n_queries, 1)
    n_keys = n_queries if n_keys is None else require.whole("n_keys", n_keys, 1)
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
    size = require.whole("size", size, 1)
    lengths = require.lengths(lengths, size)
    columns = torch.arange(size, device=lengths.device)
    return (columns < lengths[:, None])[:, None, :]  # (B, 1, S_k)


# --- Heads ----------------------------------------------------------------------------------


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(..., S, H*d) -> (..., H, S, d); undone by ``merge_heads``.

    Raises:
        ValueError: a width that ``n_heads`` does not divide.
    """
    require.tensor("x", x, min_rank=2)
    n_heads = require.whole("n_heads", n_heads, 1)
    require.divisible("the width of x", x.shape[-1], "n_heads", n_heads)
    return to_heads(x, n_heads)


def to_heads(x: Tensor, n_heads: int) -> Tensor:
    """``split_heads`` for a module that knows that ``n_heads`` divides the width."""
    return torch.unflatten(x, -1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(..., H, S, d) -> (..., S, H*d); undone by ``split_heads``."""
    require.tensor("x", x, min_rank=3)
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
    n = require.whole("n", n, 1)
    width = require.even("width", require.whole("width", width, 1))
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
    require.floats("x", x, min_rank=2)
    require.even("the width of x", x.shape[-1])
    require.layout(layout)
    require.above_zero("base", base)
    require.positions(positions, x)
    cos, sin = turns(positions, x.shape[-1], base, layout, x.dtype, x.device)
    return rotate(x, cos, sin, layout)


def turns(
    positions: Tensor, width: int, base: float, layout: str, dtype: torch.dtype, device: Any
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each coordinate's angle, ``(..., S, d)``, at least float32.

    The first of a pair has its sine negated: it is to become ``a cos - b sin``, and the second
    ``b cos + a sin``.
    """
    home = "cpu" if device.type == "mps" else device  # Apple's GPUs have no float64
    angles = positions.to(home).double()[..., None] * frequencies(width, base, home)
    angles = torch.stack((-angles, angles), dim=-2 if layout == "half" else -1).flatten(-2)
    dtype = torch.promote_types(dtype, torch.float32)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Turn the pairs of ``x`` (..., S, d) by angles given as ``turns`` makes them."""
    if layout == "half":
        partners = x.roll(x.shape[-1] // 2, dims=-1)
    else:
        partners = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    return torch.addcmul(x * cos, partners, sin).to(x.dtype)  # x cos + partners sin


def rope_from(start: int, x: Tensor, layout: str) -> Tensor:
    """``rope`` at positions ``start``, ``start + 1`` and so on, with angles that are kept."""
    stop = start + x.shape[-2]
    # A table for the next power of two, so that in a long text it is seldom made anew.
    kept = table.__wrapped__ if torch.compiler.is_compiling() else table  # a graph keeps its own
    cos, sin = kept(1 << stop.bit_length(), x.shape[-1], layout, x.dtype, x.device)
    return rotate(x, cos[start:stop], sin[start:stop], layout)


@lru_cache(maxsize=8)
@torch.inference_mode(False)  # what is kept has to serve training as well
def table(
    n: int, width: int, layout: str, dtype: torch.dtype, device: Any
) -> tuple[Tensor, Tensor]:
    """``turns`` at positions 0 to n - 1, each ``(n, width)``."""
    return turns(torch.arange(n, device=device), width, 10000.0, layout, dtype, device)
