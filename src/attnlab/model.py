"""The functions of ``core`` with parameters to learn: heads and two small models.

``nn.Linear`` stores its weight transposed, ``(out, in)``, and computes ``x @ weight.T``; in the
course's notation ``W_Q`` is ``w_q.weight.T``. No module here has dropout.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab import validation as require
from attnlab.cache import KVCache, LayerCache
from attnlab.core import AttentionSteps, attend, causal_mask, merge_heads, rope_from, to_heads

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
        self.width = require.whole("width", width, 1)
        self.n_heads = require.whole("n_heads", n_heads, 1)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        self.n_kv_heads = require.whole("n_kv_heads", n_kv_heads, 1)
        self.head_dim = require.divisible("width", width, "n_heads", n_heads)
        require.divisible("n_heads", n_heads, "n_kv_heads", self.n_kv_heads)
        if rope is not None:
            require.layout(rope)
            require.even("the head width for RoPE", self.head_dim)
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
        require.attending(self, x, context, cache, LayerCache)
        source = x if context is None else context
        past = 0 if cache is None else cache.length
        if mask is not None:
            require.head_mask(mask, x, past + source.shape[1])
            mask = mask[:, None] if mask.ndim == 3 else mask  # (B, 1, 1 or S_q, S_k)

        q = to_heads(self.w_q(x), self.n_heads)  # (B, H, S_q, d)
        k = to_heads(self.w_k(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        v = to_heads(self.w_v(source), self.n_kv_heads)  # (B, H_kv, S_k, d)
        if self.rope is not None:
            turned = rope_from(past, torch.cat((q, k), dim=1), self.rope)  # (B, H + H_kv, S, d)
            q, k = turned[:, : self.n_heads], turned[:, self.n_heads :]
        if cache is not None:
            k, v = cache.append(k, v)  # (B, H_kv, past + S, d)
        way = attend if self.n_kv_heads == self.n_heads else attend_in_groups
        *steps, output = way(q, k, v, mask, q.shape[-1] ** -0.5)  # output (B, H, S_q, d)
        return AttentionSteps(*steps, self.w_o(merge_heads(output)))  # output (B, S_q, D)


def attend_in_groups(q: Tensor, k: Tensor, v: Tensor, mask: Any, scale: float) -> AttentionSteps:
    """``attend`` for more query than key/value heads: ``H / H_kv`` of them read the same keys.

    q is ``(B, H, S_q, d)``; k and v are ``(B, H_kv, S_k, d)`` and are read where they lie, without
    a copy for each query head: the queries of a group stand below one another instead.
    """
    group = q.shape[1] // k.shape[1]
    queries = q.unflatten(1, (-1, group)).flatten(2, 3)  # (B, H_kv, group * S_q, d)
    if mask is not None and mask.shape[-2] > 1:
        mask = torch.cat([mask] * group, dim=-2)  # (..., group * S_q, S_k)
    steps = attend(queries, k, v, mask, scale)
    return AttentionSteps(*(x.unflatten(2, (group, -1)).flatten(1, 2) for x in steps))


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
        self.vocab_size = require.whole("vocab_size", vocab_size, 1)
        dim = require.whole("dim", dim, 1)
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
        x = self.emb(require.ids("ids", ids, self.vocab_size))  # (B, S, D)
        mask = causal_mask(ids.shape[1], device=ids.device)
        return x, attend(self.q(x), self.k(x), self.v(x), mask, x.shape[-1] ** -0.5)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Divide each row by its root mean square, scale each column (Zhang & Sennrich 2019)."""
    return torch.rms_norm(x, weight.shape, weight, eps=1e-6)


def swiglu(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """``W_down(silu(W_gate x) * W_up x)``, with ``W_gate`` on top of ``W_up`` (Shazeer 2020)."""
    gate, up = F.linear(x, gate_up).chunk(2, dim=-1)  # (B, S, hidden)
    return F.linear(F.silu(gate) * up, down)  # (B, S, D)


class Block(nn.Module):
    """One pre-norm block: ``x + attention(norm(x))``, then ``x + swiglu(norm(x))``.

    Its own parameters are plain matrices and not modules: for one token through so small a model,
    calling a module takes longer than what it computes.
    """

    def __init__(self, width: int, n_heads: int, n_kv_heads: int | None):
        super().__init__()
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.attention = MultiHeadAttention(width, n_heads, n_kv_heads, rope="half")
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate_up = nn.Linear(width, 2 * 4 * width, bias=False).weight  # (2 hidden, D)
        self.down = nn.Linear(4 * width, width, bias=False).weight  # (D, hidden)

    def forward(
        self, x: Tensor, mask: Tensor | None, cache: LayerCache | None = None
    ) -> tuple[Tensor, AttentionSteps]:
        """(B, S, D) -> the new (B, S, D), and the attention steps on the way."""
        steps = self.attention(rms_norm(x, self.attention_norm), mask=mask, cache=cache)
        x = x + steps.output
        return x + swiglu(rms_norm(x, self.mlp_norm), self.gate_up, self.down), steps


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
        self.vocab_size = require.whole("vocab_size", vocab_size, 1)
        self.max_length = require.whole("max_length", max_length, 1)
        width = require.whole("width", width, 1)
        n_layers = require.whole("n_layers", n_layers, 1)
        self.emb = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width, n_heads, n_kv_heads) for _ in range(n_layers))
        self.norm = nn.Parameter(torch.ones(width))
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
        shape = (len(self.blocks), batch, attend.n_kv_heads, capacity, attend.head_dim)
        return KVCache(*shape, weight.dtype, weight.device)

    def _run(
        self, ids: Tensor, mask: Tensor | None, cache: KVCache | None
    ) -> tuple[Tensor, list[AttentionSteps]]:
        require.ids("ids", ids, self.vocab_size)
        batch, n_new = ids.shape
        past = require.positions_left(self, n_new, cache, KVCache)
        allowed = require.head_mask(mask, ids, past + n_new)
        if n_new > 1:  # a single new token is the last one: nothing is hidden from it
            causal = causal_mask(n_new, past + n_new, device=ids.device)  # (S, S_k)
            allowed = causal if mask is None else causal & mask
        x = self.emb(ids)  # (B, S, D)
        trace = []
        for i, block in enumerate(self.blocks):
            x, steps = block(x, allowed, None if cache is None else LayerCache(cache, i))
            trace.append(steps)
        return self.lm_head(rms_norm(x, self.norm)), trace  # (B, S, vocab)
