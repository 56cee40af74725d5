"""Refusing bad input: one sentence that names the argument and shows both sides.

Each function returns what it was given if that is good. ``core``, ``model`` and ``training`` call
them first, so that nothing has been written when they refuse.
"""

import math
import operator
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

LAYOUTS = ("interleaved", "half")


def tensor(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Return ``x`` if it is a tensor with at least ``min_rank`` axes and no empty one."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}: torch.tensor(...)")
    if x.ndim < min_rank:
        raise ValueError(
            f"{name} needs at least {min_rank} dimensions but has shape {tuple(x.shape)}"
        )
    if x.numel() == 0:
        raise ValueError(f"{name} is empty: its shape is {tuple(x.shape)}")
    return x


def floats(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Like ``tensor``, and ``x`` must hold floats."""
    tensor(name, x, min_rank)
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floats but holds {x.dtype}: call {name}.float()")
    return x


def whole(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = value if type(value) is int else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum} but is {number}")
    return number


def number(name: str, value: Any) -> float:
    """Return ``value`` if it is an int or a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return value


def above_zero(name: str, value: Any) -> float:
    """Return ``value`` if it is a number above 0."""
    if number(name, value) <= 0:
        raise ValueError(f"{name} must be above 0 but is {value}")
    return value


def float_dtype(dtype: Any) -> torch.dtype:
    """Return ``dtype`` if it is one of floats."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating point torch.dtype, not {dtype}")
    return dtype


def even(name: str, width: int) -> int:
    """Return ``width`` if pairs can be made of it."""
    if width % 2:
        raise ValueError(f"{name} must be even, to form pairs, but is {width}")
    return width


def divisible(name: str, width: int, by: str, parts: int) -> int:
    """Return ``width // parts`` if that is exact."""
    if width % parts:
        raise ValueError(f"{name} {width} is not divisible by {by} {parts}")
    return width // parts


def boolean(name: str, mask: Any, device: torch.device) -> Tensor:
    """Return ``mask`` if it is a boolean tensor on that device."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} must be a boolean torch.Tensor, not {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean (True = may attend) but holds {mask.dtype}: call {name}.bool()"
        )
    if mask.device != device:
        raise ValueError(
            f"{name} is on {mask.device} but what it masks is on {device}: {name}.to('{device}')"
        )
    return mask


def lengths(lengths: Any, size: int) -> Tensor:
    """Return ``lengths`` as an integer tensor ``(B,)`` with every entry from 1 to ``size``."""
    if isinstance(lengths, list | tuple):
        lengths = torch.tensor([whole("lengths", n, 1) for n in lengths])
    tensor("lengths", lengths, 1)
    if lengths.ndim != 1 or lengths.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"lengths must be integers of shape (B,) but are {lengths.dtype} of shape "
            f"{tuple(lengths.shape)}"
        )
    if lengths.min() < 1 or lengths.max() > size:
        raise ValueError(f"lengths must be from 1 to {size} but are {lengths.tolist()}")
    return lengths


def layout(layout: Any) -> str:
    """Return ``layout`` if it is one of the two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'interleaved' or 'half' but is {layout!r}")
    return layout


def positions(positions: Any, x: Tensor) -> Tensor:
    """Return ``positions`` if they are numbers ``(S,)``, or of x's rank without the last axis."""
    tensor("positions", positions, 1)
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions must be numbers but hold {positions.dtype}")
    pairs = zip(positions.shape[::-1], x.shape[-2::-1], strict=False)
    if (
        positions.ndim not in (1, x.ndim - 1)
        or positions.shape[-1] != x.shape[-2]
        or any(n not in (1, size) for n, size in pairs)
    ):
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not fit x of shape {tuple(x.shape)}"
        )
    return positions


def qkv(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """Check that the three fit together; return the leading axes of the scores."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        floats(name, x, min_rank=2)
        if x.dtype != q.dtype:
            raise TypeError(f"{name} is {x.dtype} but q is {q.dtype}")
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device} but q is on {q.device}")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"k has width {k.shape[-1]} but q has width {q.shape[-1]}")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v has {v.shape[-2]} positions but k has {k.shape[-2]}")
    batch = broadcast(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if batch is None:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in (("q", q), ("k", k), ("v", v)))
        raise ValueError(f"the leading axes do not broadcast: {shapes}")
    return batch


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that all broadcast to, or ``None``.

    ``torch.broadcast_shapes`` does the same, but imports a third of a second of symbolic algebra.
    """
    if len(set(shapes)) == 1:
        return tuple(shapes[0])
    common = []
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        large = {size for size in sizes if size != 1}
        if len(large) > 1:
            return None
        common.append(large.pop() if large else 1)
    return tuple(common[::-1])


def mask(mask: Any, scores_shape: tuple[int, ...], device: torch.device) -> None:
    """Check a mask for scores of that shape: boolean, broadcastable, no batch taken for heads."""
    boolean("mask", mask, device)
    if broadcast(mask.shape, scores_shape) != scores_shape or mask.ndim == 0:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the scores {scores_shape}"
        )
    if 2 < mask.ndim < len(scores_shape) and mask.shape[0] != 1:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} for scores {scores_shape} would take its first "
            "axis for heads: put in the head axis with mask.unsqueeze(1)"
        )


def ids(name: str, ids: Any, vocab_size: int) -> Tensor:
    """Return ``ids`` if they are whole numbers ``(B, S)`` inside the vocabulary."""
    tensor(name, ids, min_rank=2)
    if ids.ndim != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{name} must be integers of shape (B, S) but are {ids.dtype} of shape "
            f"{tuple(ids.shape)}"
        )
    # For one token, Python's own min and max take a tenth of the time; for many, ten times as long.
    few = ids.numel() < 100
    numbers = ids.flatten().tolist() if few else [extreme.item() for extreme in ids.aminmax()]
    low, high = min(numbers), max(numbers)
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds {wrong} but the vocabulary goes from 0 to {vocab_size - 1}")
    return ids


def sampling(
    temperature: Any, generator: Any, top_k: Any, top_p: Any, stop: Any, vocab_size: int
) -> None:
    """Check the options of ``generate``."""
    if not 0 <= number("temperature", temperature) < float("inf"):
        raise ValueError(f"temperature must be 0 or more, and finite, but is {temperature}")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    if top_k is not None:
        whole("top_k", top_k, 1)
    if top_p is not None and not 0 < number("top_p", top_p) <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1 but is {top_p}")
    if stop is not None and whole("stop", stop, 0) >= vocab_size:
        raise ValueError(f"stop is {stop} but the vocabulary goes from 0 to {vocab_size - 1}")


def sequence(name: str, x: Any, width: int, dtype: torch.dtype) -> Tensor:
    """Return ``x`` if it is ``(B, S, width)`` of the dtype of the parameters it is to meet."""
    tensor(name, x, min_rank=3)
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, not (B, S, {width})")
    if x.dtype != dtype:
        floats(name, x)
        raise TypeError(f"{name} is {x.dtype} but the parameters are {dtype}")
    return x


def attending(heads: Any, x: Any, context: Any, cache: Any, cache_kind: type) -> None:
    """Check what ``MultiHeadAttention`` is to attend from and to."""
    sequence("x", x, heads.width, heads.w_q.weight.dtype)
    if context is not None:
        if heads.rope is not None or cache is not None:
            raise ValueError("context cannot be combined with RoPE or a cache")
        sequence("context", context, heads.width, x.dtype)
        if context.shape[0] != x.shape[0]:
            raise ValueError(f"context has batch {context.shape[0]} but x has {x.shape[0]}")
    if cache is not None and not isinstance(cache, cache_kind):
        raise TypeError(f"cache must be KVCache.layer(i), not {type(cache).__name__}")


def head_mask(mask: Any, queries: Tensor, n_keys: int) -> Tensor | None:
    """Return a mask without a head axis, ``(S_q, S_k)`` or ``(B, 1 or S_q, S_k)``, or ``None``.

    The queries are ``(B, S_q, ...)``.
    """
    if mask is None:
        return None
    boolean("mask", mask, queries.device)
    batch, n_queries = queries.shape[:2]
    good = [(n_queries, n_keys), (batch, 1, n_keys), (batch, n_queries, n_keys)]
    if tuple(mask.shape) not in (*good, (1, n_queries, n_keys)):
        shapes = f"{good[0]}, {good[1]} and {good[2]}"
        raise ValueError(f"mask of shape {tuple(mask.shape)} is none of {shapes}")
    return mask


def layer(index: Any, n_layers: int) -> int:
    """Return ``index`` if there is such a layer."""
    if whole("layer", index, 0) >= n_layers:
        raise ValueError(f"layer {index} of a cache with {n_layers} layers")
    return index


def room_for(cache: Any, shape: tuple[int, ...], like: Tensor) -> None:
    """Check that keys ``(B, H_kv, S, d)``, with dtype and device of ``like``, fit a ``KVCache``."""
    keys, (batch, heads, n_new, width) = cache.keys, shape
    _, batch_there, heads_there, capacity, width_there = keys.shape
    if (batch, heads, width) != (batch_there, heads_there, width_there):
        raise ValueError(
            f"keys of shape {tuple(shape)} do not fit a cache for batch {batch_there}, "
            f"{heads_there} key/value heads of width {width_there}"
        )
    if like.dtype != keys.dtype or like.device != keys.device:
        raise TypeError(
            f"keys are {like.dtype} on {like.device} but the cache holds "
            f"{keys.dtype} on {keys.device}"
        )
    if cache.length + n_new > capacity:
        raise ValueError(
            f"the cache holds {cache.length} of {capacity} positions and {n_new} more do not fit"
        )


def positions_left(model: Any, n_new: int, cache: Any, cache_kind: type) -> int:
    """Return how many positions a ``TinyTransformer`` has seen if ``n_new`` more are allowed."""
    if cache is not None:
        instance("cache", cache, cache_kind)
        if cache.keys.shape[0] != len(model.blocks):
            raise ValueError(
                f"the cache has {cache.keys.shape[0]} layers but the model has {len(model.blocks)}"
            )
    past = 0 if cache is None else cache.length
    if past + n_new > model.max_length:
        raise ValueError(
            f"{past + n_new} positions are more than the model's max_length {model.max_length}"
        )
    return past


def prompts(model: Any, prompt: Any, n_new: int, use_cache: bool, real: Any) -> None:
    """Check what ``generate`` is to continue, and with which model."""
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "vocab_size"):
        raise TypeError(f"model must be a module with a vocab_size, not {type(model).__name__}")
    batch, n_prompt = ids("ids", prompt, model.vocab_size).shape
    limit = getattr(model, "max_length", None)
    if limit is not None and n_prompt + n_new > limit:
        raise ValueError(
            f"{n_prompt} tokens and {n_new} new ones are more than the model's max_length {limit}"
        )
    if use_cache and not hasattr(model, "new_cache"):
        raise TypeError(f"{type(model).__name__} has no cache: pass use_cache=False")
    if real is not None:
        if not hasattr(model, "new_cache"):
            raise TypeError(f"{type(model).__name__} takes no mask: lengths cannot be used")
        if lengths(real, n_prompt).shape[0] != batch:
            raise ValueError(f"lengths has {len(real)} entries but ids has batch {batch}")


def instance(name: str, value: Any, kind: type) -> Any:
    """Return ``value`` if it is a ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    return value


def trainer(model: Any, inputs: Any, targets: Any, lr: Any, clip: Any) -> list:
    """Return the parameters that may learn, if ``train`` can do what it is asked."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    for name, value in (("lr", lr), ("clip", 1.0 if clip is None else clip)):
        if not 0 < number(name, value) < float("inf"):
            raise ValueError(f"{name} must be above 0, and finite, but is {value}")
    if callable(inputs) == (targets is not None):
        raise TypeError("targets go with a tensor of inputs; a callable returns its own targets")
    learns = [p for p in model.parameters() if p.requires_grad]
    if not learns:
        raise ValueError("the model has no parameter that may learn: all are frozen")
    if any(p.is_meta for p in model.parameters()):
        raise ValueError("the model is on meta, where there are no numbers to learn")
    return learns


def batch(pair: Any, parameter: Tensor) -> tuple[Any, Any]:
    """Return ``(inputs, targets)`` if it is two, and they lie where the model does."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"inputs must return (inputs, targets), not {type(pair).__name__}")
    for name, x in zip(("inputs", "targets"), pair, strict=True):
        if isinstance(x, Tensor) and x.device != parameter.device:
            home = parameter.device
            raise ValueError(f"{name} are on {x.device} but the model is on {home}: .to('{home}')")
    return pair


def targets(targets: Any, logits: Tensor, ignore: int) -> None:
    """Check targets ``(B,)`` or ``(B, S)`` for logits ``(B, S, vocab)``."""
    tensor("targets", targets, 1)
    if floats("logits", logits).ndim != 3:
        raise ValueError(f"logits have shape {tuple(logits.shape)}, not (B, S, vocab)")
    batch, length, vocab_size = logits.shape
    if targets.shape not in ((batch,), (batch, length)):
        raise ValueError(
            f"targets of shape {tuple(targets.shape)} fit neither ({batch},) nor "
            f"({batch}, {length})"
        )
    counted = targets != ignore
    if not counted.any():
        raise ValueError(f"targets holds nothing but {ignore}, which is not counted")
    ids("targets", targets.where(counted, 0).reshape(batch, -1), vocab_size)


def finite(name: str, value: Tensor, step: int, model: torch.nn.Module, lr: float) -> None:
    """Check a number that training goes by; if it is none, say which step and why, probably."""
    if math.isfinite(value.item()):
        return
    broken = [name for name, p in model.named_parameters() if not p.isfinite().all()]
    if broken and step:
        cause = (
            f"{broken[0]} is not finite any more, so the step before was too long: lower lr {lr}"
        )
    elif broken:
        cause = f"{broken[0]} was not finite to begin with"
    else:
        cause = "every parameter is finite, so look at what the model computes from them"
    raise FloatingPointError(f"the {name} is {value.item()} at step {step}: {cause}")
