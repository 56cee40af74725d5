"""Writing with a model, one token at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnlab import validation as require


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within, every module is in eval mode and nothing has a gradient; then all is as before."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


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
    n_new = require.whole("max_new_tokens", max_new_tokens, 0)
    require.prompts(model, ids, n_new, use_cache, lengths)
    require.sampling(temperature, generator, top_k, top_p, stop, model.vocab_size)
    batch, n_prompt = ids.shape
    unread, real, new = ids, None, []
    if lengths is not None:
        # Moved to the right edge, all prompts end in the same column. RoPE depends on distances
        # only, so the filler at the left changes nothing as long as nobody attends to it.
        shift = n_prompt - require.lengths(lengths, n_prompt).to(ids.device)[:, None]  # (B, 1)
        columns = torch.arange(n_prompt + n_new, device=ids.device)
        real = (columns >= shift)[:, None, :]  # (B, 1, S + new)
        unread = ids.gather(1, (columns[:n_prompt] - shift) % n_prompt)  # (B, S)

    options = {"cache": model.new_cache(batch, n_prompt + n_new)} if use_cache else {}
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=ids.device)
    with torch.inference_mode(use_cache), evaluating(model):  # a learner's model may keep things
        for n in range(n_prompt, n_prompt + n_new):
            if real is not None:
                options["mask"] = real[:, :, :n]
            logits = model(unread, **options)
            fresh = _pick(logits[:, -1], temperature, generator, top_k, top_p).to(ids.dtype)
            if stop is not None:
                fresh = fresh.masked_fill(ended, stop)
                ended |= fresh == stop
            new.append(fresh)  # (B, 1)
            if stop is not None and ended.all():
                break
            unread = fresh if use_cache else torch.cat((unread, fresh), dim=1)
    return torch.cat((ids, *new), dim=1)  # (B, S + new)


def _pick(logits: Tensor, temperature: float, generator: Any, top_k: Any, top_p: Any) -> Tensor:
    """Logits (B, vocab) -> one id per row, (B, 1)."""
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits = logits.float() - logits.amax(dim=-1, keepdim=True)  # a tiny temperature overflows
    ordered, order = (logits / max(temperature, 1e-30)).sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)  # (B, vocab), largest first
    if top_k is not None:
        probabilities[:, top_k:] = 0
    if top_p is not None:  # keep a token while those before it have not reached p
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities[before >= top_p * probabilities.sum(-1, keepdim=True)] = 0
    choice = torch.multinomial(probabilities, 1, generator=generator)  # (B, 1)
    return order.gather(1, choice)
