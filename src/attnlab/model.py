"""The functions of ``core`` with learnable parameters: multi-head attention, two small models.

``nn.Linear`` stores its weight transposed, ``(out, in)``, and computes ``x @ weight.T``; in the
course's notation ``W_Q`` is ``w_q.weight.T``. No module here has dropout.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab import validation
from attnlab.cache import KVCache, LayerCache
from attnlab.core import AttentionSteps, attend, build_causal_mask, check_layout, rope_at, to_heads

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
        base: of RoPE, as in ``rope``.
    """

    base = 10000.0

    def __init__(
        self,
        width: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        rope: str | None = None,
        bias: bool = False,
    ):
        super().__init__()
        self.width = validation.check_int("width", width, 1)
        self.n_heads = validation.check_int("n_heads", n_heads, 1)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        self.n_kv_heads = validation.check_int("n_kv_heads", n_kv_heads, 1)
        self.head_dim = validation.check_divisible("width", width, "n_heads", n_heads)
        validation.check_divisible("n_heads", n_heads, "n_kv_heads", n_kv_heads)
        if rope is not None:
            check_layout(rope)
            validation.check_even("the head width for RoPE", self.head_dim)
        self.rope = rope
        kv_width = self.n_kv_heads * self.head_dim
        self.w_q = nn.Linear(width, width, bias=bias)
        self.w_k = nn.Linear(width, kv_width, bias=bias)
        self.w_v = nn.Linear(width, kv_width, bias=bias)
        self.w_o = nn.Linear(width, width, bias=bias)

    def __call__(self, *args: Any, **kwargs: Any) -> AttentionSteps:
        """``forward`` after a check of its arguments."""
        self._check(*args, **kwargs)
        return super().__call__(*args, **kwargs)

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
            TypeError, ValueError: shapes, dtypes, devices or combinations that do not fit; before
                anything is written to the cache.
        """
        source = x if context is None else context
        past = 0 if cache is None else cache.length
        q = to_heads(self.w_q(x), self.n_heads)  # (B, H, S_q, d)
        k = to_heads(self.w_k(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        v = to_heads(self.w_v(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        if self.rope is not None:
            rotated = rope_at(past, torch.cat((q, k), dim=1), self.rope, self.base)
            q, k = rotated[:, : self.n_heads], rotated[:, self.n_heads :]  # shapes as before
        if cache is not None:
            k, v = cache.write(k, v)  # (B, H_kv, past + S, d)
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]  # (B, 1, 1 or S_q, S_k)
        attend_fn = attend if self.n_kv_heads == self.n_heads else attend_in_groups
        steps = attend_fn(q, k, v, mask, q.shape[-1] ** -0.5)  # output (B, H, S_q, d)
        merged = steps.output.transpose(1, 2).flatten(2)  # (B, S_q, D)
        return AttentionSteps(*steps[:4], self.w_o(merged))

    def _check(self, x: Tensor, context: Any = None, mask: Any = None, cache: Any = None) -> None:
        """Refuse arguments of ``forward`` that do not fit."""
        _check_sequence("x", x, self.width, self.w_q.weight)
        batch, n_queries, n_keys = *x.shape[:2], x.shape[1]
        if context is not None:
            if self.rope is not None or cache is not None:
                raise ValueError("context cannot be combined with RoPE or a cache")
            _check_sequence("context", context, self.width, self.w_q.weight)
            if context.shape[0] != batch:
                raise ValueError(f"context has batch {context.shape[0]} but x has {batch}")
            n_keys = context.shape[1]
        if cache is not None:
            if not isinstance(cache, LayerCache):
                raise TypeError(f"cache must be KVCache.layer(i), not {type(cache).__name__}")
            shape = (batch, self.n_kv_heads, n_keys, self.head_dim)
            cache.cache.check_room("keys", shape, _projected_dtype(self.w_k.weight), x.device)
            n_keys += cache.length
        if mask is not None:
            _check_mask(mask, x, n_queries, n_keys)


def attend_in_groups(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> AttentionSteps:
    """``attend`` for more query than key/value heads: ``H / H_kv`` of them share the same keys.

    q is ``(B, H, S_q, d)``; k and v are ``(B, H_kv, S_k, d)`` and are used in place, without a copy
    for each query head: the queries of a group are stacked along the query axis instead.
    """
    group = q.shape[1] // k.shape[1]
    queries = q.unflatten(1, (-1, group)).flatten(2, 3)  # (B, H_kv, group * S_q, d)
    if mask is not None and mask.shape[-2] > 1:
        mask = torch.cat([mask] * group, dim=-2)  # (..., group * S_q, S_k)
    steps = attend(queries, k, v, mask, scale)
    return AttentionSteps(*(x.unflatten(2, (group, -1)).flatten(1, 2) for x in steps))


def _check_sequence(name: str, x: Tensor, width: int, weight: Tensor) -> None:
    """Refuse what is not ``(B, S, width)`` with the dtype and device of the parameters."""
    validation.check_floats(name, x, min_rank=3)
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, not (B, S, {width})")
    if x.dtype != weight.dtype and validation.autocast_dtype(x.device) is None:
        raise TypeError(f"{name} is {x.dtype} but the parameters are {weight.dtype}")
    validation.check_device(name, x, weight.device, "the parameters")


def _check_mask(mask: Tensor, x: Tensor, n_queries: int, n_keys: int) -> None:
    """Refuse what is not ``(S_q, S_k)`` or ``(B or 1, 1 or S_q, S_k)`` for ``x`` (B, S_q, ...)."""
    validation.check_boolean(mask, x, "the queries")
    batch = x.shape[0]
    fitting = [(n_queries, n_keys), (batch, 1, n_keys), (batch, n_queries, n_keys)]
    if tuple(mask.shape) not in (*fitting, (1, n_queries, n_keys)):
        shapes = f"{fitting[0]}, {fitting[1]} and {fitting[2]}"
        raise ValueError(f"mask of shape {tuple(mask.shape)} is none of {shapes}")


def _projected_dtype(weight: Tensor) -> torch.dtype:
    """Dtype that a linear layer computes: that of its weight, or autocast's (float64 is exempt)."""
    lowered = None if weight.dtype == torch.float64 else validation.autocast_dtype(weight.device)
    return lowered or weight.dtype


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
        self.vocab_size = validation.check_int("vocab_size", vocab_size, 1)
        dim = validation.check_int("dim", dim, 1)
        self.emb = nn.Embedding(vocab_size, dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
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
        validation.check_ids("ids", ids, self.vocab_size)
        validation.check_device("ids", ids, self.emb.weight.device, "the parameters")
        x = self.emb(ids)  # (B, S, D)
        mask = build_causal_mask(ids.shape[1], ids.shape[1], ids.device)
        return x, attend(self.q(x), self.k(x), self.v(x), mask, x.shape[-1] ** -0.5)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide each row by its root mean square, scale each column (Zhang & Sennrich 2019)."""
    return torch.rms_norm(x, weight.shape, weight, eps)


def swiglu(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """``W_down(silu(W_gate x) * W_up x)``, with ``W_gate`` on top of ``W_up`` (Shazeer 2020)."""
    gate, up = F.linear(x, gate_up).chunk(2, dim=-1)  # (B, S, hidden)
    return F.linear(F.silu(gate) * up, down)  # (B, S, D)


class Block(nn.Module):
    """One pre-norm block: ``x + attention(norm(x))``, then ``x + swiglu(norm(x))``.

    The norms and the MLP are plain parameters and not modules: for one token through so small a
    model, calling a module takes longer than its computation. ``eps`` is that of the norms.
    """

    eps = 1e-6

    def __init__(self, width: int, n_heads: int, n_kv_heads: int | None, hidden: int | None = None):
        super().__init__()
        hidden = validation.check_int("hidden", 4 * width if hidden is None else hidden, 1)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.attention = MultiHeadAttention(width, n_heads, n_kv_heads, rope="half")
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False).weight  # (2 hidden, D)
        self.down = nn.Linear(hidden, width, bias=False).weight  # (D, hidden)

    def forward(
        self, x: Tensor, mask: Tensor | None, cache: LayerCache | None = None
    ) -> tuple[Tensor, AttentionSteps]:
        """(B, S, D) -> the new (B, S, D), and the block's attention steps.

        Nothing is validated: that is done where the model is called.
        """
        normed = rms_norm(x, self.attention_norm, self.eps)
        # As a plain module, with its hooks but without the check in its own __call__.
        steps = nn.Module.__call__(self.attention, normed, mask=mask, cache=cache)
        x = x + steps.output
        return x + swiglu(rms_norm(x, self.mlp_norm, self.eps), self.gate_up, self.down), steps


class TinyTransformer(nn.Module):
    """A small Llama: causal pre-norm blocks with RMSNorm, RoPE ("half" layout) and SwiGLU.

    Args:
        vocab_size: number of ids.
        width: model width ``D``.
        n_heads: query heads per block.
        n_layers: blocks.
        max_length: the most positions it accepts, cached ones included.
        n_kv_heads: key/value heads per block; ``n_heads`` if omitted.
        hidden: width of the MLP between its two projections; ``4 * width`` if omitted.
        base: of RoPE, as in ``rope``.
        eps: added to the mean square in each norm.
        tied: whether the head is the embedding table itself; otherwise it has its own.

    Source: Touvron et al. 2023 (Llama). No biases.
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        n_heads: int,
        n_layers: int,
        max_length: int,
        n_kv_heads: int | None = None,
        *,
        hidden: int | None = None,
        base: float = 10000.0,
        eps: float = 1e-6,
        tied: bool = False,
    ):
        super().__init__()
        self.vocab_size = validation.check_int("vocab_size", vocab_size, 1)
        self.max_length = validation.check_int("max_length", max_length, 1)
        width = validation.check_int("width", width, 1)
        n_layers = validation.check_int("n_layers", n_layers, 1)
        base = validation.check_number("base", base, above=0)
        self.eps = validation.check_number("eps", eps, above=0)
        self.emb = nn.Embedding(vocab_size, width)
        blocks = [Block(width, n_heads, n_kv_heads, hidden) for _ in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        for block in blocks:
            block.eps, block.attention.base = self.eps, base
        self.norm = nn.Parameter(torch.ones(width))
        self.lm_head = nn.Linear(width, vocab_size, bias=False)
        if tied:
            self.lm_head.weight = self.emb.weight

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """Ids ``(B, S)`` -> logits of the next token at every position, ``(B, S, vocab)``.

        Args:
            ids: the new tokens; those already in ``cache`` come before them.
            mask: boolean ``(S, S_k)``, ``(B, 1, S_k)`` or ``(B, S, S_k)`` with ``S_k`` cached
                and new positions; combined with the causal mask that is always there.
            cache: the new keys and values are appended to it.

        Raises:
            TypeError, ValueError: bad ids or mask, more than ``max_length`` positions, a cache
                that does not fit or is full; before anything is written.
        """
        return self._run(ids, mask, cache)[0]

    def steps(self, ids: Tensor) -> list[AttentionSteps]:
        """The attention of each block for ids ``(B, S)``, first block first."""
        return self._run(ids, None, None)[1]

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for this model, with room for ``max_length`` positions by default.

        It has the dtype in which keys are computed: within ``torch.autocast``, autocast's.
        """
        attention, weight = self._attention, self.lm_head.weight
        capacity = self.max_length if capacity is None else capacity
        shape = (len(self.blocks), batch, attention.n_kv_heads, capacity, attention.head_dim)
        return KVCache(*shape, _projected_dtype(weight), weight.device)

    @property
    def _attention(self) -> Any:
        return self.blocks[0].attention

    def _run(
        self, ids: Tensor, mask: Tensor | None, cache: KVCache | None
    ) -> tuple[Tensor, list[AttentionSteps]]:
        past = self._check(ids, mask, cache)
        n_new = ids.shape[1]
        if n_new > 1:  # a single new token is the last one: nothing is hidden from it
            causal = build_causal_mask(n_new, past + n_new, ids.device)  # (S, S_k)
            mask = causal if mask is None else causal & mask
        x = self.emb(ids)  # (B, S, D)
        trace = []
        for i, block in enumerate(self.blocks):
            x, steps = block(x, mask, None if cache is None else LayerCache(cache, i))
            trace.append(steps)
        return self.lm_head(rms_norm(x, self.norm, self.eps)), trace  # (B, S, vocab)

    def _check(self, ids: Tensor, mask: Tensor | None, cache: KVCache | None) -> int:
        """Refuse arguments of ``forward`` that do not fit; return how many positions are cached."""
        weight = self.emb.weight
        validation.check_ids("ids", ids, self.vocab_size)
        validation.check_device("ids", ids, weight.device, "the parameters")
        batch, n_new = ids.shape
        past = 0
        if cache is not None:
            if not isinstance(cache, KVCache):
                raise TypeError(f"cache must be a KVCache, not {type(cache).__name__}")
            layers, attention, past = cache.keys.shape[0], self._attention, cache.length
            if layers != len(self.blocks):
                raise ValueError(f"cache has {layers} layers but the model has {len(self.blocks)}")
            shape = (batch, attention.n_kv_heads, n_new, attention.head_dim)
            cache.check_room("keys", shape, _projected_dtype(weight), weight.device)
        n, limit = past + n_new, self.max_length
        if n > limit:
            raise ValueError(f"{n} positions are more than the model's max_length {limit}")
        if mask is not None:
            _check_mask(mask, ids, n_new, n)
        return past
