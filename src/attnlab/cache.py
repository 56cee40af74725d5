"""The KV cache: keys and values of the positions seen so far, preallocated."""

import torch
from torch import Tensor

from attnlab import validation


class KVCache:
    """Keys and values of the positions seen so far, preallocated for all layers.

    Keys are stored as they are used, after RoPE. The cache is for inference: it stores values
    without gradients, and a backward pass through a cached forward is not supported.

    Args:
        n_layers: layers of the model.
        batch: sequences, ``B``.
        n_kv_heads: key/value heads of each layer, ``H_kv``.
        capacity: positions there is room for.
        head_dim: width of a head, ``d``.
        dtype: float16, bfloat16, float32 or float64.
        device: device of the buffers; PyTorch's default device if omitted.

    Attributes:
        keys, values: ``(n_layers, B, H_kv, capacity, d)``.
        length: cached positions. It changes once per forward, when the last layer has written.

    Raises:
        TypeError, ValueError: sizes that are not ints of at least 1; another dtype.
    """

    def __init__(
        self,
        n_layers: int,
        batch: int,
        n_kv_heads: int,
        capacity: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ):
        sizes = {"n_layers": n_layers, "batch": batch, "n_kv_heads": n_kv_heads}
        sizes |= {"capacity": capacity, "head_dim": head_dim}
        shape = [validation.check_int(name, size, 1) for name, size in sizes.items()]
        if dtype not in validation.FLOAT_DTYPES:
            raise TypeError(f"dtype must be a floating point torch.dtype, not {dtype}")
        with torch.inference_mode(False):  # or nothing could be written outside inference mode
            self.keys = torch.zeros(shape, dtype=dtype, device=device)
            self.values = torch.zeros_like(self.keys)
        self.length = 0

    @property
    def capacity(self) -> int:
        """Positions there is room for."""
        return self.keys.shape[3]

    @property
    def nbytes(self) -> int:
        """Bytes allocated: 2 x layers x batch x H_kv x capacity x d x bytes per number."""
        return self.keys.nbytes + self.values.nbytes

    def reset(self) -> None:
        """Forget every position; the buffers stay allocated."""
        self.length = 0

    def layer(self, index: int) -> "LayerCache":
        """View of one layer."""
        return LayerCache(self, validation.check_int("layer", index, 0, self.keys.shape[0] - 1))

    def check_room(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> None:
        """Refuse new keys or values ``(B, H_kv, S, d)`` that do not fit."""
        _, batch, heads, capacity, width = self.keys.shape
        if len(shape) != 4 or (shape[0], shape[1], shape[3]) != (batch, heads, width):
            room = f"batch {batch}, {heads} key/value heads of width {width}"
            raise ValueError(f"{name} of shape {tuple(shape)} do not fit a cache for {room}")
        if dtype != self.keys.dtype or device != self.keys.device:
            held = f"{self.keys.dtype} on {self.keys.device}"
            raise TypeError(f"{name} are {dtype} on {device} but the cache holds {held}")
        if self.length + shape[2] > capacity:
            held = f"{self.length} of {capacity} positions"
            raise ValueError(f"the cache holds {held} and {shape[2]} more do not fit")

    def __repr__(self) -> str:
        layers, batch, heads, capacity, width = self.keys.shape
        return (
            f"KVCache({self.length} of {capacity} positions; {layers} layers, batch {batch}, "
            f"{heads} key/value heads of width {width})"
        )


class LayerCache:
    """One layer's view of a ``KVCache``."""

    def __init__(self, cache: KVCache, index: int):
        self.cache, self.index = cache, index

    @property
    def length(self) -> int:
        """Cached positions before this forward."""
        return self.cache.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values of new positions and return those of all positions so far.

        Args:
            k, v: ``(B, H_kv, S, d)``, with the dtype and device of the cache.

        Returns:
            Keys and values, ``(B, H_kv, length + S, d)``, views of the cache.

        Raises:
            TypeError, ValueError: k or v that do not fit, before anything is written.
        """
        for name, x in (("keys", k), ("values", v)):
            validation.check_tensor(name, x)
            self.cache.check_room(name, x.shape, x.dtype, x.device)
        if v.shape[2] != k.shape[2]:
            raise ValueError(f"values have {v.shape[2]} positions but keys have {k.shape[2]}")
        return self.write(k, v)

    def write(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """``append`` without validation, for callers that have validated k and v."""
        start, stop = self.cache.length, self.cache.length + k.shape[2]
        keys, values = self.cache.keys[self.index], self.cache.values[self.index]
        keys[:, :, start:stop] = k.detach()
        values[:, :, start:stop] = v.detach()
        if self.index == self.cache.keys.shape[0] - 1:  # every layer has written
            self.cache.length = stop
        return keys[:, :, :stop], values[:, :, :stop]
