"""Text generation, one token at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnlab import validation
from attnlab.core import check_lengths


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within it, every module is in eval mode and there are no gradients; then all is restored."""
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
        use_cache: cache keys and values instead of recomputing them; the logits are equal up to
            rounding.
        temperature: 0 takes the most likely token; otherwise logits are divided by it.
        generator: source of random numbers when sampling; PyTorch's global one if omitted.
        lengths: valid tokens of each prompt, ``(B,)``, if shorter ones are right-padded. Every
            row continues from its own last valid token, as it would alone.
        top_k: sample among the ``k`` most likely tokens only.
        top_p: sample among the fewest most likely tokens whose probabilities reach ``p``.
        stop: an id that ends a row; it is repeated until all rows have ended.

    Returns:
        ``(B, S + new)``: the prompts as given, then the new tokens, the same columns for all
        rows. ``new`` is ``max_new_tokens``, or less if every row met ``stop``.

    Raises:
        TypeError, ValueError: bad arguments, or more than ``max_length`` positions in all,
            before anything is computed. The model's modes and gradients are left unchanged.
    """
    n_new = validation.check_int("max_new_tokens", max_new_tokens, 0)
    lengths = _check_prompts(model, ids, n_new, use_cache, lengths)
    _check_sampling(model, temperature, generator, top_k, top_p, stop)
    batch, n_prompt = ids.shape
    next_input, valid, new = ids, None, []
    if lengths is not None:
        # Shifted to the right edge, all prompts end in the same column. RoPE depends on distances
        # only, so the padding at the left changes nothing as long as no token attends to it.
        shift = n_prompt - lengths[:, None]  # (B, 1)
        columns = torch.arange(n_prompt + n_new, device=ids.device)
        valid = (columns >= shift)[:, None, :]  # (B, 1, S + new)
        next_input = ids.gather(1, (columns[:n_prompt] - shift) % n_prompt)  # (B, S)

    new_cache: Any = getattr(model, "new_cache", None)
    options = {"cache": new_cache(batch, n_prompt + n_new)} if use_cache else {}
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=ids.device)
    # Without a cache the model may be a user's, which may cache tensors and train on them later.
    with torch.inference_mode(use_cache), evaluating(model):
        for n in range(n_prompt, n_prompt + n_new):
            if valid is not None:
                options["mask"] = valid[:, :, :n]
            logits = model(next_input, **options)
            next_ids = _pick(logits[:, -1], temperature, generator, top_k, top_p).to(ids.dtype)
            if stop is not None:
                next_ids = next_ids.masked_fill(ended, stop)
                ended |= next_ids == stop
            new.append(next_ids)  # (B, 1)
            if stop is not None and ended.all():
                break
            next_input = next_ids if use_cache else torch.cat((next_input, next_ids), dim=1)
    return torch.cat((ids, *new), dim=1)  # (B, S + new)


def _pick(logits: Tensor, temperature: float, generator: Any, top_k: Any, top_p: Any) -> Tensor:
    """Logits (B, vocab) -> one id per row, (B, 1)."""
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits = logits.float() - logits.amax(dim=-1, keepdim=True)  # a tiny temperature overflows
    temperature = min(max(temperature, 1e-30), 1e30)  # what float32 can hold
    ordered, order = (logits / temperature).sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)  # (B, vocab), largest first
    if top_k is not None:
        probabilities[:, top_k:] = 0
    if top_p is not None:  # keep a token while those before it have not reached p
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities[before >= top_p * probabilities.sum(-1, keepdim=True)] = 0
    choice = torch.multinomial(probabilities, 1, generator=generator)  # (B, 1)
    return order.gather(1, choice)


def _check_prompts(
    model: Any, ids: Tensor, n_new: int, use_cache: Any, lengths: Any
) -> Tensor | None:
    """Refuse prompts that the model cannot continue; return ``lengths`` as a tensor."""
    vocab_size: Any = getattr(model, "vocab_size", None)
    if not isinstance(model, nn.Module) or vocab_size is None:
        raise TypeError(f"model must be a module with a vocab_size, not {type(model).__name__}")
    if not isinstance(use_cache, bool):
        raise TypeError(f"use_cache must be True or False, not {type(use_cache).__name__}")
    batch, n_prompt = validation.check_ids("ids", ids, vocab_size).shape
    limit = getattr(model, "max_length", None)
    if limit is not None and n_prompt + n_new > limit:
        total = f"{n_prompt} tokens and {n_new} new ones"
        raise ValueError(f"{total} are more than the model's max_length {limit}")
    if use_cache and not hasattr(model, "new_cache"):
        raise TypeError(f"{type(model).__name__} has no cache: pass use_cache=False")
    if lengths is None:
        return None
    if not hasattr(model, "new_cache"):
        raise TypeError(f"{type(model).__name__} takes no mask: lengths cannot be used")
    lengths = check_lengths(lengths, n_prompt, ids.device)
    validation.check_device("lengths", lengths, ids.device, "ids")
    if lengths.shape[0] != batch:
        raise ValueError(f"lengths has {lengths.shape[0]} entries but ids has batch {batch}")
    return lengths


def _check_sampling(
    model: Any, temperature: Any, generator: Any, top_k: Any, top_p: Any, stop: Any
) -> None:
    """Refuse options that no token can be picked with."""
    if validation.check_number("temperature", temperature) < 0:
        raise ValueError(f"temperature must be at least 0 but is {temperature}")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    if top_k is not None:
        validation.check_int("top_k", top_k, 1)
    if top_p is not None and not 0 < validation.check_number("top_p", top_p) <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1 but is {validation.shown(top_p)}")
    if stop is not None:
        validation.check_int("stop", stop, 0, model.vocab_size - 1)
