"""Generation with the cache, against Hugging Face's Llama and without it, on one thread."""

import statistics
import time
from collections.abc import Callable

import torch
from report import alternate, line, show

from attnlab import KVCache, TinyTransformer, generate
from attnlab.training import seeded

NEW, VOCAB = 512, 82
PROMPT = torch.arange(8)[None]  # (B, S)


def make() -> TinyTransformer:
    """Two layers of four heads, width 64."""
    return TinyTransformer(VOCAB, width=64, n_heads=4, n_layers=2, max_length=8 + NEW)


def llama(model: TinyTransformer) -> Callable[[], torch.Tensor] | None:
    """The same greedy generation by transformers, with its cache, if it is installed."""
    try:
        from llama import llama_of
    except ModuleNotFoundError:
        return None
    other = llama_of(model, attention="sdpa")  # its default, and the faster one
    options = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW}
    mask = torch.ones_like(PROMPT)
    return lambda: other.generate(PROMPT, attention_mask=mask, **options)


def at(position: int, model: TinyTransformer, cached: bool) -> Callable[[], torch.Tensor]:
    """One more token after ``position`` others, repeatedly."""
    ids = torch.randint(VOCAB, (1, position + 1), generator=torch.Generator().manual_seed(0))
    cache: KVCache = model.new_cache(1)

    @torch.inference_mode()
    def once():
        if not cached:
            return model(ids)
        cache.length = position  # forget the token of the last call
        return model(ids[:, -1:], cache=cache)

    with torch.inference_mode():
        model(ids[:, :-1], cache=cache)
    return once


def many(job: Callable, times: int) -> Callable:
    """The job repeated, so that it can be timed."""
    return lambda: [job() for _ in range(times)]


def run(repeats: int = 20) -> None:
    """Compare the libraries in alternation; then one token at several positions."""
    torch.set_num_threads(1)
    model = seeded(make, 0).requires_grad_(False)
    theirs = llama(model)
    if theirs is None:
        print("  transformers is not installed, so there is nothing to compare with")
    else:
        assert torch.equal(theirs(), generate(model, PROMPT, NEW)), "another text"
        seconds = alternate(repeats, ours=lambda: generate(model, PROMPT, NEW), theirs=theirs)
        line(f"{NEW} tokens by transformers / by generate", seconds["theirs"], seconds["ours"],
             "at least 2", lambda ratio: ratio >= 2)  # fmt: skip
        rates = (NEW / statistics.median(seconds[name]) for name in ("theirs", "ours"))
        print("  tokens a second: {:,.0f} and {:,.0f}".format(*rates))
    jobs = {f"at_{n}": many(at(n, model, True), 20) for n in (10, 500)}
    seconds = alternate(5 * repeats, **jobs)
    line("20 cached tokens at position 500 / at position 10", seconds["at_500"], seconds["at_10"],
         "at most 1.3", lambda ratio: ratio <= 1.3)  # fmt: skip
    places = (10, 100, 200, 300, 400, 500)
    print("  one token at position " + ", ".join(map(str, places)))
    for name, cached in (("with the cache", True), ("without", False)):
        jobs = {f"at_{n}": at(n, model, cached) for n in places}
        started = time.perf_counter()
        seconds = alternate(10, **jobs)
        times = [show(statistics.median(seconds[f"at_{n}"])) for n in places]
        print(f"    {name}: {', '.join(times)}   ({show(time.perf_counter() - started)} in all)")
