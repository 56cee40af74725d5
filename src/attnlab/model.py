"""The functions of ``core`` with parameters to learn: heads, two small models, and the cache.

``nn.Linear`` stores its weight transposed, ``(out, in)``, and computes ``x @ weight.T``; in the
course's notation ``W_Q`` is ``w_q.weight.T``. No module here has dropout.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.core import (
    AttentionSteps,
    attention,
    causal_mask,
    merge_heads,
    require_bool,
    require_divisible,
    require_even,
    require_float,
    require_int,
    require_layout,
    require_lengths,
    require_number,
    require_tensor,
    rope,
    split_heads,
)


def require_ids(name: str, ids: Any, vocab_size: int) -> Tensor:
    """Return ``ids`` if they are whole numbers ``(B, S)`` inside the vocabulary."""
    require_tensor(name, ids, min_rank=2)
    if ids.ndim != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{name} must be integers of shape (B, S) but are {ids.dtype} of shape "
            f"{tuple(ids.shape)}"
        )
    low, high = ids.min().item(), ids.max().item()
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds {wrong} but the vocabulary goes from 0 to {vocab_size - 1}")
    return ids


# --- The cache ------------------------------------------------------------------------------


class KVCache:
    """Keys and values of the positions seen so far, preallocated for all layers.

    Keys are stored as they are used, after RoPE. The cache holds numbers, not gradients:
    nothing flows back through a cached position.

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
        shape = (
            require_int("n_layers", n_layers, 1),
            require_int("batch", batch, 1),
            require_int("n_kv_heads", n_kv_heads, 1),
            require_int("capacity", capacity, 1),
            require_int("head_dim", head_dim, 1),
        )
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise TypeError(f"dtype must be a floating point torch.dtype, not {dtype}")
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
        """Forget every position; the memory is kept."""
        self.length = 0

    def layer(self, index: int) -> "LayerCache":
        """View of one layer."""
        index = require_int("layer", index, 0)
        if index >= self.keys.shape[0]:
            raise ValueError(f"layer {index} of a cache with {self.keys.shape[0]} layers")
        return LayerCache(self, index)

    def require_room(self, n_new: int) -> None:
        """Raise ValueError if ``n_new`` more positions do not fit."""
        if self.length + n_new > self.capacity:
            raise ValueError(
                f"the cache holds {self.length} of {self.capacity} positions and "
                f"{n_new} more do not fit"
            )

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

    def check(self, k: Tensor) -> None:
        """Raise if new keys ``(B, H_kv, S, d)`` do not fit; nothing is written."""
        _, batch, heads, _, width = self.cache.keys.shape
        if k.shape[:2] + k.shape[3:] != (batch, heads, width):
            raise ValueError(
                f"keys of shape {tuple(k.shape)} do not fit a cache for batch {batch}, "
                f"{heads} key/value heads of width {width}"
            )
        if k.dtype != self.cache.keys.dtype or k.device != self.cache.keys.device:
            raise TypeError(
                f"keys are {k.dtype} on {k.device} but the cache holds "
                f"{self.cache.keys.dtype} on {self.cache.keys.device}"
            )
        self.cache.require_room(k.shape[2])

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write new columns ``(B, H_kv, S, d)``; return all keys and values so far."""
        self.check(k)
        start, stop = self.cache.length, self.cache.length + k.shape[2]
        keys, values = self.cache.keys[self.index], self.cache.values[self.index]
        keys[:, :, start:stop] = k.detach()
        values[:, :, start:stop] = v.detach()
        if self.index == self.cache.keys.shape[0] - 1:  # every layer has written
            self.cache.length = stop
        return keys[:, :, :stop], values[:, :, :stop]


# --- Multi-head attention -------------------------------------------------------------------


class MultiHeadAttention(nn.Module):
    """Attention in ``H`` heads, each with its own projections, mixed by ``W_O``.

    Args:
        width: model width ``D``.
        n_heads: query heads ``H``; they must divide ``width``.
        n_kv_heads: key/value heads; ``H`` if omitted. Fewer is grouped-query attention (GQA,
            Ainslie et al. 2023), one is multi-query attention (MQA, Shazeer 2019).
        rope: ``None`` or a layout of ``rope``: queries and keys are rotated by position.
        bias: give the four projections a bias.

    Attributes:
        w_q, w_k, w_v, w_o: ``nn.Linear``, no bias unless asked.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        rope: str | None = None,
        bias: bool = False,
    ):
        super().__init__()
        self.width = require_int("width", width, 1)
        self.n_heads = require_int("n_heads", n_heads, 1)
        self.n_kv_heads = self.n_heads
        if n_kv_heads is not None:
            self.n_kv_heads = require_int("n_kv_heads", n_kv_heads, 1)
        self.head_dim = require_divisible("width", width, "n_heads", n_heads)
        require_divisible("n_heads", n_heads, "n_kv_heads", self.n_kv_heads)
        if rope is not None:
            require_layout(rope)
            require_even("the head width for RoPE", self.head_dim)
        self.rope = rope
        kv_width = self.n_kv_heads * self.head_dim
        self.w_q = nn.Linear(width, width, bias=bias)
        self.w_k = nn.Linear(width, kv_width, bias=bias)
        self.w_v = nn.Linear(width, kv_width, bias=bias)
        self.w_o = nn.Linear(width, width, bias=bias)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> AttentionSteps:
        """Attend from ``x`` to ``context``, or to ``x`` itself.

        Args:
            x: ``(B, S, D)``.
            context: another sequence to take keys and values from, ``(B, S_k, D)``
                (cross-attention); not together with RoPE or a cache.
            mask: boolean ``(S_q, S_k)``, ``(B, 1, S_k)`` or ``(B, S_q, S_k)``; the head axis
                is put in here. No causal mask is added.
            cache: one layer's view; keys and values of ``x`` are appended to it, and the
                mask's keys cover cached and new positions.

        Returns:
            ``AttentionSteps`` per head, ``(B, H, S_q, S_k)``; its ``output`` has been merged
            and has passed ``W_O``: ``(B, S, D)``.

        Raises:
            TypeError, ValueError: shapes, dtypes or combinations that do not fit.
        """
        self._check_input("x", x)
        if context is not None:
            if self.rope is not None or cache is not None:
                raise ValueError("context cannot be combined with RoPE or a cache")
            self._check_input("context", context)
            if context.shape[0] != x.shape[0]:
                raise ValueError(f"context has batch {context.shape[0]} but x has {x.shape[0]}")
        source = x if context is None else context
        if cache is not None and not isinstance(cache, LayerCache):
            raise TypeError(f"cache must be KVCache.layer(i), not {type(cache).__name__}")
        past = 0 if cache is None else cache.length
        if mask is not None:
            mask = self._with_head_axis(mask, x.shape[0], x.shape[1], past + source.shape[1])

        q = split_heads(self.w_q(x), self.n_heads)  # (B, H, S_q, d)
        k = split_heads(self.w_k(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        v = split_heads(self.w_v(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        if self.rope is not None:
            positions = torch.arange(past, past + x.shape[1], device=x.device)
            q = rope(q, positions, layout=self.rope)
            k = rope(k, positions, layout=self.rope)
        if cache is not None:
            k, v = cache.append(k, v)  # (B, H_kv, past + S, d)
        if self.n_kv_heads < self.n_heads:  # query head i reads key/value head i // group
            group = self.n_heads // self.n_kv_heads
            k = k.repeat_interleave(group, dim=1)  # (B, H, S_k, d)
            v = v.repeat_interleave(group, dim=1)  # (B, H, S_k, d)
        steps = attention(q, k, v, mask)
        return steps._replace(output=self.w_o(merge_heads(steps.output)))  # (B, S_q, D)

    def _check_input(self, name: str, x: Tensor) -> None:
        require_float(name, x, min_rank=3)
        if x.ndim != 3 or x.shape[-1] != self.width:
            raise ValueError(f"{name} has shape {tuple(x.shape)}, not (B, S, {self.width})")
        dtype = self.w_q.weight.dtype
        if x.dtype != dtype:
            raise TypeError(f"{name} is {x.dtype} but the parameters are {dtype}")

    @staticmethod
    def _with_head_axis(mask: Tensor, batch: int, n_queries: int, n_keys: int) -> Tensor:
        require_bool("mask", mask)
        shape = tuple(mask.shape)
        if shape == (n_queries, n_keys):
            return mask
        if shape in ((batch, 1, n_keys), (batch, n_queries, n_keys), (1, n_queries, n_keys)):
            return mask[:, None]  # (B, 1, 1 or S_q, S_k)
        raise ValueError(
            f"mask of shape {shape} is none of ({n_queries}, {n_keys}), ({batch}, 1, {n_keys}) "
            f"and ({batch}, {n_queries}, {n_keys})"
        )


# --- Two models -----------------------------------------------------------------------------


class TinyCausalAttention(nn.Module):
    """One causal attention head and a linear layer: the smallest model that uses context.

    ``LayerNorm(x + W_O(weights @ V))``, then a linear head. Scores are divided by
    ``sqrt(dim)``; there are no positions. Parameters are made in the order of the attributes,
    so a seed fixes the start.

    Args:
        vocab_size: number of ids.
        dim: width of everything, ``D``.

    Attributes:
        emb, q, k, v, o, norm, lm_head: in that order; ``q, k, v, o`` without bias.
    """

    def __init__(self, vocab_size: int = 5, dim: int = 12):
        super().__init__()
        self.vocab_size = require_int("vocab_size", vocab_size, 1)
        dim = require_int("dim", dim, 1)
        self.emb = nn.Embedding(vocab_size, dim)
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids ``(B, S)`` -> logits of the next token at every position, ``(B, S, vocab)``."""
        x, steps = self._attend(ids)
        return self.lm_head(self.norm(x + self.o(steps.output)))  # (B, S, vocab)

    def steps(self, ids: Tensor) -> AttentionSteps:
        """Ids ``(B, S)`` -> ``AttentionSteps``; output ``(B, S, D)`` before ``W_O``."""
        return self._attend(ids)[1]

    def _attend(self, ids: Tensor) -> tuple[Tensor, AttentionSteps]:
        x = self.emb(require_ids("ids", ids, self.vocab_size))  # (B, S, D)
        mask = causal_mask(ids.shape[1], device=ids.device)
        return x, attention(self.q(x), self.k(x), self.v(x), mask)


class SwiGLU(nn.Module):
    """The feed-forward half of a block: ``W_down(silu(W_gate x) * W_up x)`` (Shazeer 2020)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """One pre-norm block: ``x + attention(norm(x))``, then ``x + mlp(norm(x))``."""

    def __init__(self, width: int, n_heads: int, n_kv_heads: int | None):
        super().__init__()
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.attention = MultiHeadAttention(width, n_heads, n_kv_heads, rope="half")
        self.mlp_norm = nn.RMSNorm(width, eps=1e-6)
        self.mlp = SwiGLU(width, 4 * width)

    def forward(
        self, x: Tensor, mask: Tensor, cache: LayerCache | None = None
    ) -> tuple[Tensor, AttentionSteps]:
        """(B, S, D) -> the new (B, S, D), and the attention steps on the way."""
        steps = self.attention(self.attention_norm(x), mask=mask, cache=cache)
        x = x + steps.output
        return x + self.mlp(self.mlp_norm(x)), steps


class TinyTransformer(nn.Module):
    """A small Llama: causal pre-norm blocks with RMSNorm, RoPE ("half" layout) and SwiGLU.

    Args:
        vocab_size: number of ids.
        width: model width ``D``.
        n_heads: query heads per block.
        n_layers: blocks.
        max_length: the most positions it accepts, cached ones included.
        n_kv_heads: key/value heads per block; ``n_heads`` if omitted.

    Source: Touvron et al. 2023 (Llama). No biases; the head is not tied to the embedding.
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        n_heads: int,
        n_layers: int,
        max_length: int,
        n_kv_heads: int | None = None,
    ):
        super().__init__()
        self.vocab_size = require_int("vocab_size", vocab_size, 1)
        self.max_length = require_int("max_length", max_length, 1)
        width = require_int("width", width, 1)
        n_layers = require_int("n_layers", n_layers, 1)
        self.emb = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width, n_heads, n_kv_heads) for _ in range(n_layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.lm_head = nn.Linear(width, vocab_size, bias=False)

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """Ids ``(B, S)`` -> logits of the next token at every position, ``(B, S, vocab)``.

        Args:
            ids: the new tokens; those already in ``cache`` come before them.
            mask: boolean ``(S, S_k)``, ``(B, 1, S_k)`` or ``(B, S, S_k)`` with ``S_k`` cached
                and new positions; combined with the causal mask that is always there.
            cache: filled up by this call.

        Raises:
            TypeError, ValueError: bad ids or mask, more than ``max_length`` positions, a cache
                that does not fit or is full; before anything is written.
        """
        return self._run(ids, mask, cache)[0]

    def steps(self, ids: Tensor) -> list[AttentionSteps]:
        """The attention of each block for ids ``(B, S)``, first block first."""
        return self._run(ids, None, None)[1]

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for this model, with room for ``max_length`` positions if not told."""
        attend, weight = self.blocks[0].attention, self.lm_head.weight
        capacity = self.max_length if capacity is None else capacity
        return KVCache(
            len(self.blocks), batch, attend.n_kv_heads, capacity, attend.head_dim,
            weight.dtype, weight.device,
        )  # fmt: skip

    def _run(
        self, ids: Tensor, mask: Tensor | None, cache: KVCache | None
    ) -> tuple[Tensor, list[AttentionSteps]]:
        require_ids("ids", ids, self.vocab_size)
        batch, n_new = ids.shape
        if cache is not None and not isinstance(cache, KVCache):
            raise TypeError(f"cache must be a KVCache, not {type(cache).__name__}")
        past = 0 if cache is None else cache.length
        if past + n_new > self.max_length:
            raise ValueError(
                f"{past + n_new} positions are more than the model's max_length {self.max_length}"
            )
        if cache is not None:
            self._check_cache(cache, batch, n_new)
        allowed = causal_mask(n_new, past + n_new, device=ids.device)  # (S, S_k)
        if mask is not None:
            # (B, 1, S_k) and (S, S_k) alike become (.., S, S_k) here
            MultiHeadAttention._with_head_axis(mask, batch, n_new, past + n_new)
            allowed = allowed & mask
        x = self.emb(ids)  # (B, S, D)
        trace = []
        for i, block in enumerate(self.blocks):
            x, steps = block(x, allowed, None if cache is None else cache.layer(i))
            trace.append(steps)
        return self.lm_head(self.norm(x)), trace  # (B, S, vocab)

    def _check_cache(self, cache: KVCache, batch: int, n_new: int) -> None:
        if cache.keys.shape[0] != len(self.blocks):
            raise ValueError(
                f"the cache has {cache.keys.shape[0]} layers but the model has {len(self.blocks)}"
            )
        attend, weight = self.blocks[0].attention, self.lm_head.weight
        shape = (batch, attend.n_kv_heads, n_new, attend.head_dim)
        cache.layer(0).check(weight.new_empty(1).expand(shape))


# --- Generation -----------------------------------------------------------------------------


@torch.no_grad()
def generate(
    model: nn.Module,
    ids: Tensor,
    max_new_tokens: int,
    use_cache: bool = True,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
    *,
    lengths: Tensor | list[int] | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: int | None = None,
) -> Tensor:
    """Continue prompts one token at a time.

    Args:
        model: a ``TinyTransformer``; without a cache any module from ids to logits that has a
            ``vocab_size``.
        ids: prompts, ``(B, S)``.
        max_new_tokens: how many to add.
        use_cache: keep keys and values instead of recomputing them; the same logits to rounding.
        temperature: 0 takes the most likely token; otherwise logits are divided by it.
        generator: source of random numbers when sampling; PyTorch's global one if omitted.
        lengths: real tokens of each prompt, ``(B,)``, if shorter ones are right-padded. Every
            row continues from its own last real token, as it would alone.
        top_k: sample among the ``k`` most likely tokens only.
        top_p: sample among the fewest most likely tokens whose probabilities reach ``p``.
        stop: an id that ends a row; it is repeated until all rows have ended.

    Returns:
        ``(B, S + new)``: the prompts as given, then the new tokens, the same columns for all
        rows. ``new`` is ``max_new_tokens``, or less if every row met ``stop``.

    Raises:
        TypeError, ValueError: bad arguments, or more than ``max_length`` positions in all,
            before anything is computed. The model's modes and gradients stay as they were.
    """
    n_new = require_int("max_new_tokens", max_new_tokens, 0)
    if not isinstance(model, nn.Module) or not hasattr(model, "vocab_size"):
        raise TypeError(f"model must be a module with a vocab_size, not {type(model).__name__}")
    vocab_size = model.vocab_size
    require_ids("ids", ids, vocab_size)
    batch, n_prompt = ids.shape
    total, limit = n_prompt + n_new, getattr(model, "max_length", None)
    if limit is not None and total > limit:
        raise ValueError(
            f"{n_prompt} tokens and {n_new} new ones are more than the model's max_length {limit}"
        )
    if use_cache and not hasattr(model, "new_cache"):
        raise TypeError(f"{type(model).__name__} has no cache: pass use_cache=False")
    _check_sampling(temperature, generator, top_k, top_p, stop, vocab_size)
    shift = real = None
    if lengths is not None:
        lengths = require_lengths(lengths, n_prompt).to(ids.device)
        if lengths.shape[0] != batch:
            raise ValueError(f"lengths has {lengths.shape[0]} entries but ids has batch {batch}")
        # Moved to the right edge, all prompts end in the same column. RoPE depends on distances
        # only, so the filler at the left changes nothing as long as nobody attends to it.
        shift = n_prompt - lengths  # (B,)
        columns = torch.arange(total, device=ids.device)
        real = (columns >= shift[:, None])[:, None, :]  # (B, 1, S + new)
        ids_in = ids.gather(1, (columns[:n_prompt] - shift[:, None]) % n_prompt)
    else:
        ids_in = ids

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        cache = model.new_cache(batch, total) if use_cache else None
        tokens, fresh = ids_in, ids_in
        ended = torch.zeros(batch, dtype=torch.bool, device=ids.device)
        for _ in range(n_new):
            n_seen = tokens.shape[1]
            options = {} if real is None else {"mask": real[:, :, :n_seen]}
            if cache is None:
                logits = model(tokens, **options)
            else:
                logits = model(fresh, cache=cache, **options)
            fresh = _pick(logits[:, -1], temperature, generator, top_k, top_p)  # (B,)
            if stop is not None:
                fresh = fresh.masked_fill(ended, stop)
                ended |= fresh == stop
            fresh = fresh[:, None].to(ids.dtype)  # (B, 1)
            tokens = torch.cat((tokens, fresh), dim=1)
            if stop is not None and ended.all():
                break
        return torch.cat((ids, tokens[:, n_prompt:]), dim=1)  # (B, S + new)
    finally:
        for module, training in modes:
            module.training = training


def _check_sampling(
    temperature: Any, generator: Any, top_k: Any, top_p: Any, stop: Any, vocab_size: int
) -> None:
    if not 0 <= require_number("temperature", temperature) < float("inf"):
        raise ValueError(f"temperature must be 0 or more, and finite, but is {temperature}")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    if top_k is not None:
        require_int("top_k", top_k, 1)
    if top_p is not None and not 0 < require_number("top_p", top_p) <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1 but is {top_p}")
    if stop is not None and require_int("stop", stop, 0) >= vocab_size:
        raise ValueError(f"stop is {stop} but the vocabulary goes from 0 to {vocab_size - 1}")


def _pick(
    logits: Tensor,
    temperature: float,
    generator: torch.Generator | None,
    top_k: int | None,
    top_p: float | None,
) -> Tensor:
    """Logits (B, vocab) -> one id per row, (B,)."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    ordered, order = (logits.float() / temperature).sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)  # (B, vocab), largest first
    if top_k is not None:
        probabilities[:, top_k:] = 0
    if top_p is not None:  # keep a token while those before it have not reached p
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities[before >= top_p * probabilities.sum(-1, keepdim=True)] = 0
    choice = torch.multinomial(probabilities, 1, generator=generator)  # (B, 1)
    return order.gather(1, choice)[:, 0]
