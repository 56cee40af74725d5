"""Attention as plain functions on tensors, in the order in which the course meets them.

Axis letters: ``B`` batch, ``S`` sequence (``S_q`` queries, ``S_k`` keys), ``D`` model width,
``H`` heads, ``d_k`` and ``d_v`` widths per head. ``...`` stands for any leading axes. In every
score or weight matrix rows are queries and columns are keys; in every mask ``True`` means
*may attend*. No learnable parameters, no plotting.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab import validation

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
    r"""Scaled dot-product attention with all intermediate results.

    .. math:: \mathrm{softmax}(q k^\top / \sqrt{d_k} + M)\, v

    A query that may attend to nothing gets zero weights and a zero output, as PyTorch's
    ``scaled_dot_product_attention`` gives. Finite q, k, v with finite scores give no NaN, forward
    or backward. Masked keys and values must be finite as well: the weight 0 times NaN is NaN.

    float16 and bfloat16 are computed in float32 and cast back, except within ``torch.autocast``,
    which chooses the dtypes itself.

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
        ValueError: ranks, widths, lengths, devices or a mask that do not fit; a scale that is
            not finite.

    Source: Vaswani et al. 2017, equation 1.

    >>> x = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    >>> attention(x, x, x, causal_mask(2)).weights
    tensor([[1.0000, 0.0000],
            [0.6698, 0.3302]])
    """
    scores_shape = _check_qkv(q, k, v)
    if mask is not None:
        _check_mask(mask, scores_shape, q)
    scale = q.shape[-1] ** -0.5 if scale is None else validation.check_number("scale", scale)
    return attend(q, k, v, mask, scale)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> AttentionSteps:
    """``attention`` without validation, for callers that have validated q, k, v and mask."""
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
        fully_masked = ~mask.any(dim=-1, keepdim=True)
        weights = masked.masked_fill(fully_masked, 0.0).softmax(dim=-1)
        weights = weights.masked_fill(fully_masked, 0.0)
    output = weights @ v  # (..., S_q, d_v)
    steps = AttentionSteps(raw, scaled, masked, weights, output)
    return steps if output.dtype == dtype else AttentionSteps(*(x.to(dtype) for x in steps))


def _check_qkv(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """Refuse q, k, v that do not fit together; return the shape of the scores."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        validation.check_floats(name, x, min_rank=2)
        validation.check_device(name, x, q.device, "q")
        if x.dtype != q.dtype and validation.autocast_dtype(x.device) is None:
            raise TypeError(f"{name} is {x.dtype} but q is {q.dtype}")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"k has width {k.shape[-1]} but q has width {q.shape[-1]}")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v has {v.shape[-2]} positions but k has {k.shape[-2]}")
    try:  # torch.broadcast_shapes would import a third of a second of symbolic algebra
        batch = torch.broadcast_tensors(*(x[..., 0, 0] for x in (q, k, v)))[0].shape
    except RuntimeError:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in (("q", q), ("k", k), ("v", v)))
        raise ValueError(f"the leading axes do not broadcast: {shapes}") from None
    return (*batch, q.shape[-2], k.shape[-2])


def _check_mask(mask: Tensor, scores_shape: tuple[int, ...], q: Tensor) -> None:
    """Refuse a mask that does not fit the scores, or whose batch would be taken for heads."""
    validation.check_boolean(mask, q, "q")
    try:
        fits = mask.ndim > 0 and mask.expand(scores_shape) is not None
    except RuntimeError:
        fits = False
    shape = tuple(mask.shape)
    if not fits:
        raise ValueError(f"mask of shape {shape} does not broadcast to the scores {scores_shape}")
    if 2 < mask.ndim < len(scores_shape) and shape[0] != 1:
        advice = "put in the head axis with mask.unsqueeze(1)"
        found = f"mask of shape {shape} for scores {scores_shape}"
        raise ValueError(f"{found} would take its first axis for heads: {advice}")


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
        device: device of the mask; PyTorch's default device if omitted.

    Returns:
        Boolean ``(S_q, S_k)``; ``True`` means *may attend*.

    Raises:
        TypeError, ValueError: sizes that are not ints of at least 1; more queries than keys.

    >>> causal_mask(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    n_queries = validation.check_int("n_queries", n_queries, 1)
    n_keys = n_queries if n_keys is None else validation.check_int("n_keys", n_keys, 1)
    if n_queries > n_keys:
        raise ValueError(f"n_queries {n_queries} is more than n_keys {n_keys}")
    return build_causal_mask(n_queries, n_keys, device)


def build_causal_mask(n_queries: int, n_keys: int, device: torch.device | str | None) -> Tensor:
    """``causal_mask`` without validation, for a model that has validated its ids."""
    everything = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_keys - n_queries)


def padding_mask(lengths: Tensor | Sequence[int], size: int) -> Tensor:
    """Mask that hides padding: ``True`` for the valid tokens of a right-padded batch.

    Args:
        lengths: valid tokens in each sequence, ``(B,)``, each from 1 to ``size``.
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
    size = validation.check_int("size", size, 1)
    lengths = check_lengths(lengths, size)
    columns = torch.arange(size, device=lengths.device)
    return (columns < lengths[:, None])[:, None, :]  # (B, 1, S_k)


def check_lengths(
    lengths: Tensor | Sequence[int], size: int, device: torch.device | None = None
) -> Tensor:
    """Return ``lengths`` as an integer tensor ``(B,)`` with every entry from 1 to ``size``."""
    if isinstance(lengths, list | tuple):
        lengths = torch.tensor(
            [validation.check_int("lengths", n, 1) for n in lengths], device=device
        )
    lengths = validation.check_tensor("lengths", lengths, 1)
    if lengths.ndim != 1 or lengths.dtype not in (torch.int64, torch.int32):
        kind = f"{lengths.dtype} of shape {tuple(lengths.shape)}"
        raise TypeError(f"lengths must be integers of shape (B,) but are {kind}")
    low, high = validation.value_range(lengths) or (1, 1)
    if low < 1 or high > size:
        wrong = low if low < 1 else high
        raise ValueError(f"lengths must be from 1 to {size} but one of them is {wrong}")
    return lengths


# --- Heads ----------------------------------------------------------------------------------


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(..., S, H*d) -> (..., H, S, d); undone by ``merge_heads``.

    Raises:
        TypeError: not a tensor.
        ValueError: a width that ``n_heads`` does not divide.
    """
    validation.check_tensor("x", x, min_rank=2)
    n_heads = validation.check_int("n_heads", n_heads, 1)
    validation.check_divisible("the width of x", x.shape[-1], "n_heads", n_heads)
    return to_heads(x, n_heads)


def to_heads(x: Tensor, n_heads: int) -> Tensor:
    """``split_heads`` without validation, for a module whose width ``n_heads`` divides."""
    return torch.unflatten(x, -1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(..., H, S, d) -> (..., S, H*d); undone by ``split_heads``."""
    validation.check_tensor("x", x, min_rank=3)
    return x.transpose(-3, -2).flatten(-2)


# --- Positions ------------------------------------------------------------------------------


def inverse_frequencies(
    width: int, base: float = 10000.0, device: torch.device | str | None = None
) -> Tensor:
    """Angular frequency of each pair, in radians per position, ``(width/2,)`` float64."""
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

    Raises:
        TypeError, ValueError: sizes that are not ints of at least 1; an odd width.

    Source: Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    n, width = validation.check_int("n", n, 1), validation.check_int("width", width, 1)
    validation.check_even("width", width)
    angles = torch.arange(n, dtype=torch.float64)[:, None] * inverse_frequencies(width)  # (n, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).float()


def rope(
    x: Tensor, positions: Tensor, base: float = 10000.0, layout: str = "interleaved"
) -> Tensor:
    """Rotary position embedding: rotate each pair of coordinates by an angle per position.

    Norms do not change, and the dot product of a rotated query with a rotated key depends on
    their contents and on the distance between their positions only. Angles are computed in
    float64 (16-bit floats cannot tell position 257 from 256); the result has the dtype of ``x``.

    Args:
        x: queries or keys, ``(..., S, d)``, ``d`` even.
        positions: ``(S,)``, or of x's rank without the last axis, such as ``(B, 1, S)``.
        base: the slowest pair rotates by about ``1/base`` radians per position.
        layout: which coordinates form pair ``i``: "interleaved" ``(2i, 2i+1)``, as in the paper
            and in Meta's own Llama code, or "half" ``(i, i + d/2)``, as in GPT-NeoX and in the
            Hugging Face port of Llama, whose conversion permutes W_Q and W_K to match. The two
            are equal up to a fixed permutation of the coordinates.

    Returns:
        ``(..., S, d)``.

    Raises:
        TypeError: positions that are not a tensor of numbers.
        ValueError: an odd width, an unknown layout, a base that is not finite and above 0,
            positions that do not fit.

    Source: Su et al. 2021 (RoFormer), section 3.2.

    >>> rope(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([1]))
    tensor([[-1.1426,  1.9221,  2.9599,  4.0298]])
    """
    validation.check_floats("x", x, min_rank=2)
    validation.check_even("the width of x", x.shape[-1])
    check_layout(layout)
    base = validation.check_number("base", base, above=0)
    _check_positions(positions, x)
    return apply_rope(x, *rope_cos_sin(positions, x.shape[-1], base, layout, x.dtype), layout)


def check_layout(layout: str) -> None:
    """Refuse what is not one of the two layouts of ``rope``."""
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be 'interleaved' or 'half' but is {layout!r}")


def _check_positions(positions: Tensor, x: Tensor) -> None:
    """Refuse positions that are not numbers ``(S,)``, or of x's rank without the last axis."""
    validation.check_tensor("positions", positions, 1)
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions must be numbers but hold {positions.dtype}")
    validation.check_device("positions", positions, x.device, "x")
    pairs = zip(positions.shape[::-1], x.shape[-2::-1], strict=False)
    fits = positions.ndim in (1, x.ndim - 1) and positions.shape[-1] == x.shape[-2]
    if not fits or any(n not in (1, size) for n, size in pairs):
        shapes = tuple(positions.shape), tuple(x.shape)
        raise ValueError("positions of shape {} do not fit x of shape {}".format(*shapes))


def rope_cos_sin(
    positions: Tensor, width: int, base: float, layout: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each coordinate's angle, ``(..., S, width)``, at least float32.

    The sine is negated for the first coordinate of a pair ``(a, b)``, which becomes
    ``a cos - b sin``; the second becomes ``b cos + a sin``.
    """
    device = positions.device
    computed_on = "cpu" if device.type == "mps" else device  # Apple's GPUs have no float64
    frequencies = inverse_frequencies(width, base, computed_on)
    angles = positions.to(computed_on).double()[..., None] * frequencies
    angles = torch.stack((-angles, angles), dim=-2 if layout == "half" else -1).flatten(-2)
    dtype = torch.promote_types(dtype, torch.float32)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate the pairs of ``x`` (..., S, d) by angles given as ``rope_cos_sin`` returns them."""
    if layout == "half":
        partners = x.roll(x.shape[-1] // 2, dims=-1)
    else:
        partners = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    return torch.addcmul(x * cos, partners, sin).to(x.dtype)  # x cos + partners sin


def rope_at(start: int, x: Tensor, layout: str, base: float = 10000.0) -> Tensor:
    """``rope`` at positions ``start``, ``start + 1`` and so on, using cached angles."""
    stop, width = start + x.shape[-2], x.shape[-1]
    if torch.compiler.is_compiling() or type(x) is not Tensor:  # nothing of a trace is cached
        positions = torch.arange(start, stop, device=x.device)
        return apply_rope(x, *rope_cos_sin(positions, width, base, layout, x.dtype), layout)
    # The size is rounded up to a power of two, so that a long text seldom needs a new table.
    cos, sin = rope_cache(1 << stop.bit_length(), width, base, layout, x.dtype, x.device)
    return apply_rope(x, cos[start:stop], sin[start:stop], layout)


@lru_cache(maxsize=8)
@torch.inference_mode(False)  # tensors made in inference mode could not be used in training
def rope_cache(
    n: int, width: int, base: float, layout: str, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """``rope_cos_sin`` at positions 0 to n - 1, each ``(n, width)``."""
    return rope_cos_sin(torch.arange(n, device=device), width, base, layout, dtype)
