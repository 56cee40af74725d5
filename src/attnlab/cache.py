"""The KV cache: keys and values of the positions seen so far, preallocated."""

import torch
from torch import Tensor

from attnlab import validation as require


class KVCache:
    """Keys and values of the positions seen so far, preallocated for all layers.

    Keys are stored as they are used, after RoPE. The cache is for inference: it holds numbers,
    not gradients, and a backward pass through a cached forward is not supported.

    Args:
        n_layers: layers of the model.
        batch: sequences, ``B``.
        n_kv_heads: key/value heads of each layer, ``H_kv``.
        capacity: positions there is room for.
        head_dim: width of a head, ``d``.
        dtype: of the stored numbers.
        device: where they live.

    Attributes:
        keys, values: ``(n_layers, B, H_kv, capacity, d)``.
        length: columns held. It moves once per forward, when the last layer has written.
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
        shape = [require.whole(name, size, 1) for name, size in sizes.items()]
        self.keys = torch.zeros(shape, dtype=require.float_dtype(dtype), device=device)
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
        """Forget every position; the memory is kept."""
        self.length = 0

    def layer(self, index: int) -> "LayerCache":
        """View of one layer."""
        return LayerCache(self, require.layer(index, self.keys.shape[0]))

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
        """Positions held before this forward."""
        return self.cache.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write new columns ``(B, H_kv, S, d)``; return all keys and values so far."""
        require.room_for(self.cache, k.shape, k)
        start, stop = self.cache.length, self.cache.length + k.shape[2]
        keys, values = self.cache.keys[self.index], self.cache.values[self.index]
        keys[:, :, start:stop] = k.detach()
        values[:, :, start:stop] = v.detach()
        if self.index == self.cache.keys.shape[0] - 1:  # every layer has written
            self.cache.length = stop
        return keys[:, :, :stop], values[:, :, :stop]
