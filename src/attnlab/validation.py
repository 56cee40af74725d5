"""Argument checks that several modules share.

Each raises ``TypeError`` or ``ValueError`` with one sentence that names the argument. A check that
one function needs stands beside that function.
"""

import math
import operator
from typing import Any

import torch
from torch import Tensor

FLOAT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGEST_SIZE = 2**31 - 1

# --- Numbers --------------------------------------------------------------------------------


def check_int(name: str, value: Any, minimum: int, maximum: int = LARGEST_SIZE) -> int:
    """Return ``value`` as an int from ``minimum`` to ``maximum``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        if not isinstance(value, torch.SymInt):  # a size in a graph that is being exported
            value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum} but is {shown(value)}")
    if value > maximum:
        raise ValueError(f"{name} must be at most {maximum} but is {shown(value)}")
    return value


def check_number(name: str, value: Any, above: float | None = None) -> float:
    """Return ``value`` as a finite float, larger than ``above``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite float but is {shown(value)}")
    if above is not None and number <= above:
        raise ValueError(f"{name} must be above {above} but is {value}")
    return number


def check_divisible(name: str, size: int, by: str, parts: int) -> int:
    """Return ``size // parts`` if that is exact."""
    if size % parts:
        raise ValueError(f"{name} {size} is not divisible by {by} {parts}")
    return size // parts


def check_even(name: str, width: int) -> None:
    """Refuse a width whose coordinates cannot form pairs."""
    if width % 2:
        raise ValueError(f"{name} must be even, to form pairs, but is {width}")


def shown(value: Any) -> str:
    """``value`` as short text; Python itself prints no integer of more than 4,300 digits."""
    huge = isinstance(value, int) and value.bit_length() > 64
    return f"an integer of {value.bit_length()} bits" if huge else str(value)


# --- Tensors --------------------------------------------------------------------------------


def check_tensor(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Return ``x`` if it is a tensor with at least ``min_rank`` axes, none of them empty."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}: torch.tensor(...)")
    if x.ndim < min_rank:
        raise ValueError(f"{name} needs at least {min_rank} axes but has shape {tuple(x.shape)}")
    if x.numel() == 0:
        raise ValueError(f"{name} is empty: its shape is {tuple(x.shape)}")
    return x


def check_floats(name: str, x: Any, min_rank: int = 0) -> Tensor:
    """Like ``check_tensor``, and ``x`` must hold floats of 16, 32 or 64 bits."""
    check_tensor(name, x, min_rank)
    if x.dtype not in FLOAT_DTYPES:
        raise TypeError(f"{name} must hold floats but holds {x.dtype}: call {name}.float()")
    return x


def check_ids(name: str, ids: Any, vocab_size: int) -> Tensor:
    """Return ``ids`` if they are integers ``(B, S)`` inside the vocabulary."""
    check_tensor(name, ids, min_rank=2)
    if ids.ndim != 2 or ids.dtype not in (torch.int64, torch.int32):
        kind = f"{ids.dtype} of shape {tuple(ids.shape)}"
        raise TypeError(f"{name} must be integers of shape (B, S) but are {kind}")
    low, high = value_range(ids) or (0, 0)
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds {wrong} but the vocabulary goes from 0 to {vocab_size - 1}")
    return ids


def check_boolean(mask: Any, queries: Tensor, name: str) -> Tensor:
    """Return ``mask`` if it is a boolean tensor on the device of the queries called ``name``."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a boolean torch.Tensor, not {type(mask).__name__}")
    if mask.dtype != torch.bool:
        meaning = "boolean (True = may attend)"
        raise TypeError(f"mask must be {meaning} but holds {mask.dtype}: call mask.bool()")
    check_device("mask", mask, queries.device, name)
    return mask


def check_device(name: str, x: Tensor, device: torch.device, other: str) -> None:
    """Refuse ``x`` on another device than that of what is called ``other``."""
    if x.device != device:
        remedy = f"{name}.to('{device}')"
        raise ValueError(f"{name} must be on {device} like {other}, not on {x.device}: {remedy}")


def value_range(x: Tensor) -> tuple[int, int] | None:
    """Smallest and largest entry, or ``None`` where values cannot be read.

    They cannot on the meta device, while a graph is compiled or exported, in a ``FakeTensor`` and
    inside ``torch.func.vmap``; PyTorch reports each of these by a ``RuntimeError``.
    """
    if torch.compiler.is_compiling():
        return None
    try:
        # For one token, Python's min and max take a tenth of the time; for many, ten times as long.
        if x.numel() < 100:
            values = x.flatten().tolist()
            return min(values), max(values)
        low, high = x.aminmax()
        return int(low), int(high)
    except RuntimeError:
        return None


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """Dtype in which ``torch.autocast`` multiplies matrices here; ``None`` outside of it."""
    kind = device.type
    enabled = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if enabled else None
