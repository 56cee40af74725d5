"""The package as a whole: its names, its modules, its size, and how all of it refuses bad input."""
# ruff: noqa: E501 (in the tables of bad input a row is a line)

import ast
import inspect
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import attnlab
from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    attention,
    causal_mask,
    generate,
    merge_heads,
    padding_mask,
    rope,
    sinusoidal_positions,
    split_heads,
    train,
)

SOURCE = Path(attnlab.__file__).parent

# --- Names ----------------------------------------------------------------------------------

SIGNATURES = {
    attention: "(q, k, v, mask=None, scale=None)",
    causal_mask: "(n_queries, n_keys=None, *, device=None)",
    padding_mask: "(lengths, size)",
    split_heads: "(x, n_heads)",
    merge_heads: "(x)",
    sinusoidal_positions: "(n, width)",
    rope: "(x, positions, base=10000.0, layout='interleaved')",
    MultiHeadAttention: "(width, n_heads, n_kv_heads=None, rope=None, bias=False)",
    MultiHeadAttention.forward: "(self, x, context=None, mask=None, cache=None)",
    TinyCausalAttention: "(vocab_size=5, dim=12)",
    TinyCausalAttention.forward: "(self, ids)",
    TinyCausalAttention.steps: "(self, ids)",
    TinyTransformer: "(vocab_size, width, n_heads, n_layers, max_length, n_kv_heads=None)",
    TinyTransformer.forward: "(self, ids, mask=None, cache=None)",
    TinyTransformer.steps: "(self, ids)",
    KVCache: "(n_layers, batch, n_kv_heads, capacity, head_dim, dtype=torch.float32, device=None)",
    KVCache.layer: "(self, index)",
    KVCache.reset: "(self)",
    generate: "(model, ids, max_new_tokens, use_cache=True, temperature=0.0, generator=None, *, "
    "lengths=None, top_k=None, top_p=None, stop=None)",
    train: "(model, inputs, targets=None, *, steps, lr, seed=0, on_step=None, schedule=None, "
    "clip=None, checkpoint=None, every=100, resume=None)",
}


@pytest.mark.parametrize("promised", SIGNATURES, ids=lambda x: x.__qualname__)
def test_names_and_order_of_arguments_are_as_promised(promised):
    signature = inspect.signature(promised)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[promised]
    assert inspect.getdoc(promised)


def test_everything_promised_is_at_the_top_level():
    promised = {x.__name__ for x in SIGNATURES if "." not in x.__qualname__}
    assert promised | {"AttentionSteps", "History"} == set(attnlab.__all__)
    assert all(hasattr(attnlab, name) for name in attnlab.__all__)


# --- Modules --------------------------------------------------------------------------------

MAY_IMPORT = {  # of this package, only what stands before it
    "require": set(),
    "core": {"require"},
    "model": {"require", "core"},
    "saving": set(),
    "training": {"require", "saving", "model"},
    "data": {"recorded"},  # the scripts beside the recorded data
    "checks": {"checks", "core", "model"},
    "predictions": {"checks", "explorers"},
    "plots": set(),
    "explorers": {"plots", "core", "model", "training", "data"},
    "__init__": {"core", "model", "training"},
}
OUTSIDE = {"torch"}, {"require", "core", "model", "saving", "training", "checks"}


MODULES = sorted([*SOURCE.glob("*.py"), *SOURCE.glob("checks/*.py")])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_import_only_backwards(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            names = [f"attnlab.{alias.name}" for alias in node.names]
            imported |= set(names) if node.module == "attnlab" else {node.module}
    ours = {name.split(".")[1] for name in imported if name.startswith("attnlab.")}
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert ours <= MAY_IMPORT[room]
    others = {name.split(".")[0] for name in imported} - {"attnlab", *sys.stdlib_module_names}
    packages, modules = OUTSIDE
    assert others <= packages or room not in modules


def test_importing_the_package_loads_no_pictures_and_no_widgets():
    code = "import sys, attnlab; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    command = [sys.executable, "-W", "error", "-c", code]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert {"attnlab", "torch"} <= set(loaded)
    assert not {"matplotlib", "PIL", "ipywidgets", "anywidget", "traitlets", "IPython"} & set(
        loaded
    )


def code_lines(path):
    """Lines that hold code: docstrings, comments and blank lines aside."""
    text = path.read_text(encoding="utf-8")
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_the_maths_is_thin():
    counts = {name: code_lines(SOURCE / f"{name}.py") for name in ("core", "model", "training")}
    assert sum(counts.values()) < 500, counts


# --- Bad tensors ----------------------------------------------------------------------------

Q, K, V = torch.randn(2, 3, 7), torch.randn(2, 5, 7), torch.randn(2, 5, 12)
X, AT = torch.randn(2, 3, 12), torch.arange(3)
HEADS, TURNED = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, rope="half")
TINY, LLAMA = TinyCausalAttention(7), TinyTransformer(7, 12, 3, 2, 8)
IDS = torch.arange(10).reshape(2, 5) % 7  # (B, S), every id from 0 to 6

# where a tensor goes in: the call, its name, a good one, its least rank
FLOATS = {
    "attention q": (lambda x: attention(x, K, V), "q", Q, 2),
    "attention k": (lambda x: attention(Q, x, V), "k", K, 2),
    "attention v": (lambda x: attention(Q, K, x), "v", V, 2),
    "rope x": (lambda x: rope(x, AT), "x", X, 2),
    "MultiHeadAttention x": (HEADS, "x", X, 3),
    "MultiHeadAttention context": (lambda x: HEADS(X, x), "context", X, 3),
}
INTEGERS = {
    "TinyCausalAttention": (TINY, "ids", IDS, 2),
    "TinyCausalAttention.steps": (TINY.steps, "ids", IDS, 2),
    "TinyTransformer": (LLAMA, "ids", IDS, 2),
    "TinyTransformer.steps": (LLAMA.steps, "ids", IDS, 2),
    "generate": (lambda x: generate(LLAMA, x, 2), "ids", IDS, 2),
    "train inputs": (lambda x: train(TINY, x, IDS, steps=1, lr=0.1), "ids", IDS, 2),
}
TENSORS = FLOATS | INTEGERS | {
    "train targets": (lambda x: train(TINY, IDS, x, steps=1, lr=0.1), "targets", IDS, 1),
    "split_heads x": (lambda x: split_heads(x, 2), "x", X, 2),
    "merge_heads x": (merge_heads, "x", X, 3),
    "rope positions": (lambda x: rope(X, x), "positions", AT, 1),
}  # fmt: skip


def each(table):
    return pytest.mark.parametrize("call, name, good, rank", table.values(), ids=table)


@each(TENSORS)
def test_what_is_not_a_tensor_is_refused(refuses, call, name, good, rank):
    call(good)
    for bad in (good.detach().numpy(), good.tolist(), (1,), 3, 2.5, "text", object()):
        kind = type(bad).__name__
        refuses(
            TypeError, f"{name} must be a torch.Tensor, not {kind}: torch.tensor(...)", call, bad
        )


@each(TENSORS)
def test_wrong_ranks_and_empty_tensors_are_refused(refuses, call, name, good, rank):
    for n_axes in range(rank):
        flat = good[(0,) * (good.ndim - n_axes)]
        sentence = f"{name} needs at least {rank} dimensions but has shape {tuple(flat.shape)}"
        refuses(ValueError, sentence, call, flat)
    for axis in range(good.ndim):
        empty = good.narrow(axis, 0, 0)
        refuses(ValueError, f"{name} is empty: its shape is {tuple(empty.shape)}", call, empty)


@each(FLOATS)
def test_integers_are_refused_with_the_remedy(refuses, call, name, good, rank):
    for bad in (good.long(), good > 0):
        sentence = f"{name} must hold floats but holds {bad.dtype}: call {name}.float()"
        refuses(TypeError, sentence, call, bad)


@each(INTEGERS)
def test_ids_are_integers_inside_the_vocabulary(refuses, call, name, good, rank):
    call(good.int())
    for bad in (good.float(), good > 0, good[None]):
        sentence = (
            f"ids must be integers of shape (B, S) but are {bad.dtype} of shape {tuple(bad.shape)}"
        )
        refuses(TypeError, sentence, call, bad)
    for wrong in (7, -1):
        bad = good.clone()
        bad[1, 4] = wrong
        refuses(ValueError, f"ids holds {wrong} but the vocabulary goes from 0 to 6", call, bad)


ATTENDING = {
    "attention": (lambda mask: attention(Q, Q, Q, mask), torch.ones(3, 3).bool(), "mask of shape (2, 5) does not broadcast to the scores (2, 3, 3)"),
    "MultiHeadAttention": (lambda mask: HEADS(X, mask=mask), torch.ones(2, 1, 3).bool(), "mask of shape (2, 5) is none of (3, 3), (2, 1, 3) and (2, 3, 3)"),
    "TinyTransformer": (lambda mask: LLAMA(IDS[:, :3], mask), torch.ones(2, 3, 3).bool(), "mask of shape (2, 5) is none of (3, 3), (2, 1, 3) and (2, 3, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("call, good, misfit", ATTENDING.values(), ids=ATTENDING)
def test_masks_are_boolean_tensors_that_fit(refuses, call, good, misfit):
    call(good)
    for bad in (good.numpy(), good.tolist(), 1, True):
        kind = type(bad).__name__
        refuses(TypeError, f"mask must be a boolean torch.Tensor, not {kind}", call, bad)
    for bad in (good.float(), good.int()):
        sentence = (
            f"mask must be boolean (True = may attend) but holds {bad.dtype}: call mask.bool()"
        )
        refuses(TypeError, sentence, call, bad)
    refuses(ValueError, misfit, call, torch.ones(2, 5).bool())
    for shape in [(), (0, 3), (7, 3, 3), (1, 2, 3, 3)]:
        with pytest.raises(
            ValueError, match=r"mask of shape \(.*\) (does not broadcast|is none of)"
        ):
            call(torch.ones(shape).bool())


# --- Bad numbers ----------------------------------------------------------------------------


def trained(**options):
    return train(TINY, IDS, IDS, **{"steps": 1, "lr": 0.1} | options)


def generated(model=LLAMA, ids=IDS, max_new_tokens=1, **options):
    return generate(model, ids, max_new_tokens, **options)


# where a whole number goes in: its name, the least it may be
NUMBERS = [
    (lambda n: causal_mask(n, 5), "n_queries", 1),
    (lambda n: causal_mask(1, n), "n_keys", 1),
    (lambda n: padding_mask([1], n), "size", 1),
    (lambda n: padding_mask([3, n], 5), "lengths", 1),
    (lambda n: split_heads(X, n), "n_heads", 1),
    (lambda n: sinusoidal_positions(n, 2), "n", 1),
    (lambda n: sinusoidal_positions(2, n), "width", 1),
    (lambda n: MultiHeadAttention(n, 1), "width", 1),
    (lambda n: MultiHeadAttention(12, n), "n_heads", 1),
    (lambda n: MultiHeadAttention(12, 3, n), "n_kv_heads", 1),
    (lambda n: TinyCausalAttention(n), "vocab_size", 1),
    (lambda n: TinyCausalAttention(5, n), "dim", 1),
    (lambda n: TinyTransformer(n, 12, 3, 2, 8), "vocab_size", 1),
    (lambda n: TinyTransformer(7, n, 3, 2, 8), "width", 1),
    (lambda n: TinyTransformer(7, 12, n, 2, 8), "n_heads", 1),
    (lambda n: TinyTransformer(7, 12, 3, n, 8), "n_layers", 1),
    (lambda n: TinyTransformer(7, 12, 3, 2, n), "max_length", 1),
    (lambda n: KVCache(n, 1, 1, 1, 1), "n_layers", 1),
    (lambda n: KVCache(1, n, 1, 1, 1), "batch", 1),
    (lambda n: KVCache(1, 1, n, 1, 1), "n_kv_heads", 1),
    (lambda n: KVCache(1, 1, 1, n, 1), "capacity", 1),
    (lambda n: KVCache(1, 1, 1, 1, n), "head_dim", 1),
    (lambda n: KVCache(3, 1, 1, 1, 1).layer(n), "layer", 0),
    (lambda n: generated(max_new_tokens=n), "max_new_tokens", 0),
    (lambda n: generated(top_k=n), "top_k", 1),
    (lambda n: generated(stop=n), "stop", 0),
    (lambda n: trained(steps=n), "steps", 1),
    (lambda n: trained(seed=n), "seed", 0),
    (lambda n: trained(every=n), "every", 1),
]


@pytest.mark.parametrize("call, name, least", NUMBERS, ids=[row[1] for row in NUMBERS])
def test_whole_numbers_are_whole_and_large_enough(refuses, call, name, least):
    for bad in (1.0, "3", True, [1], np.float32(1)):
        refuses(TypeError, f"{name} must be an int, not {type(bad).__name__}", call, bad)
    refuses(ValueError, f"{name} must be at least {least} but is {least - 1}", call, least - 1)
    if name not in ("width", "n_heads"):  # 1 is odd, or leaves an odd head for RoPE
        call(np.int64(max(least, 1)))


REALS = {
    "scale": lambda x: attention(Q, K, V, scale=x),
    "base": lambda x: rope(X, AT, base=x),
    "temperature": lambda x: generated(temperature=x),
    "top_p": lambda x: generated(temperature=1, top_p=x),
    "lr": lambda x: trained(lr=x),
    "clip": lambda x: trained(clip=x),
}


@pytest.mark.parametrize("name, call", REALS.items(), ids=REALS)
def test_real_numbers_are_numbers(refuses, name, call):
    for bad in ("big", True, [0.5], torch.tensor(0.5)):
        refuses(TypeError, f"{name} must be a number, not {type(bad).__name__}", call, bad)
    call(1)
    call(np.float64(0.5))


# --- What does not fit together -------------------------------------------------------------


def cached(*shape, **options):
    return KVCache(*shape, **options).layer(0)


FROZEN = TinyCausalAttention(7).requires_grad_(False)
SIZES = [
    (lambda: attention(Q, K[..., :2], V), "k has width 2 but q has width 7"),
    (lambda: attention(Q, K, V[:, :3]), "v has 3 positions but k has 5"),
    (lambda: attention(Q, K, V.to("meta")), "v is on meta but q is on cpu"),
    (lambda: attention(torch.zeros(5, 3, 7), K, V), "the leading axes do not broadcast: q (5, 3, 7), k (2, 5, 7), v (2, 5, 12)"),
    (lambda: attention(Q, K, torch.zeros(3, 5, 2)), "the leading axes do not broadcast: q (2, 3, 7), k (2, 5, 7), v (3, 5, 2)"),
    (lambda: attention(*[torch.zeros(3, 3, 5, 2)] * 3, torch.ones(3, 5, 5).bool()), "mask of shape (3, 5, 5) for scores (3, 3, 5, 5) would take its first axis for heads: put in the head axis with mask.unsqueeze(1)"),
    (lambda: causal_mask(5, 3), "n_queries 5 is more than n_keys 3"),
    (lambda: padding_mask([3, 9], 7), "lengths must be from 1 to 7 but are [3, 9]"),
    (lambda: padding_mask(torch.tensor([0, 2]), 7), "lengths must be from 1 to 7 but are [0, 2]"),
    (lambda: padding_mask([], 7), "lengths is empty: its shape is (0,)"),
    (lambda: split_heads(X, 5), "the width of x 12 is not divisible by n_heads 5"),
    (lambda: sinusoidal_positions(3, 5), "width must be even, to form pairs, but is 5"),
    (lambda: rope(Q, AT), "the width of x must be even, to form pairs, but is 7"),
    (lambda: rope(X, AT, layout="pairs"), "layout must be 'interleaved' or 'half' but is 'pairs'"),
    (lambda: rope(X, AT, base=0), "base must be above 0 but is 0"),
    (lambda: rope(X, torch.arange(2)), "positions of shape (2,) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X, torch.arange(1)), "positions of shape (1,) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X, torch.zeros(7, 3)), "positions of shape (7, 3) do not fit x of shape (2, 3, 12)"),
    (lambda: rope(X[None], torch.zeros(2, 3)), "positions of shape (2, 3) do not fit x of shape (1, 2, 3, 12)"),
    (lambda: MultiHeadAttention(12, 5), "width 12 is not divisible by n_heads 5"),
    (lambda: MultiHeadAttention(12, 4, 3), "n_heads 4 is not divisible by n_kv_heads 3"),
    (lambda: MultiHeadAttention(12, 4, rope="half"), "the head width for RoPE must be even, to form pairs, but is 3"),
    (lambda: MultiHeadAttention(12, 3, rope=True), "layout must be 'interleaved' or 'half' but is True"),
    (lambda: HEADS(Q), "x has shape (2, 3, 7), not (B, S, 12)"),
    (lambda: HEADS(X[None]), "x has shape (1, 2, 3, 12), not (B, S, 12)"),
    (lambda: HEADS(X, Q), "context has shape (2, 3, 7), not (B, S, 12)"),
    (lambda: HEADS(X, X[:1]), "context has batch 1 but x has 2"),
    (lambda: TURNED(X, X), "context cannot be combined with RoPE or a cache"),
    (lambda: HEADS(X, X, cache=cached(1, 2, 3, 5, 4)), "context cannot be combined with RoPE or a cache"),
    (lambda: HEADS(X, mask=causal_mask(3), cache=full()), "mask of shape (3, 3) is none of (3, 5), (2, 1, 5) and (2, 3, 5)"),
    (lambda: HEADS(X, cache=cached(1, 2, 1, 5, 4)), "keys of shape (2, 3, 3, 4) do not fit a cache for batch 2, 1 key/value heads of width 4"),
    (lambda: HEADS(X, cache=cached(1, 2, 3, 5, 7)), "keys of shape (2, 3, 3, 4) do not fit a cache for batch 2, 3 key/value heads of width 7"),
    (lambda: HEADS(X, cache=full()), "the cache holds 2 of 4 positions and 3 more do not fit"),
    (lambda: KVCache(3, 1, 1, 1, 1).layer(3), "layer 3 of a cache with 3 layers"),
    (lambda: LLAMA(IDS, cache=KVCache(3, 2, 3, 8, 4)), "the cache has 3 layers but the model has 2"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 1, 3, 8, 4)), "keys of shape (2, 3, 5, 4) do not fit a cache for batch 1, 3 key/value heads of width 4"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 2, 3, 4, 4)), "the cache holds 0 of 4 positions and 5 more do not fit"),
    (lambda: LLAMA(torch.zeros(2, 9).long()), "9 positions are more than the model's max_length 8"),
    (lambda: TinyTransformer(7, 12, 4, 2, 8), "the head width for RoPE must be even, to form pairs, but is 3"),
    (lambda: generated(max_new_tokens=4), "5 tokens and 4 new ones are more than the model's max_length 8"),
    (lambda: generated(lengths=[5]), "lengths has 1 entries but ids has batch 2"),
    (lambda: generated(lengths=[6, 2]), "lengths must be from 1 to 5 but are [6, 2]"),
    (lambda: generated(temperature=-0.5), "temperature must be 0 or more, and finite, but is -0.5"),
    (lambda: generated(temperature=float("nan")), "temperature must be 0 or more, and finite, but is nan"),
    (lambda: generated(top_p=0), "top_p must be above 0 and at most 1 but is 0"),
    (lambda: generated(top_p=1.5), "top_p must be above 0 and at most 1 but is 1.5"),
    (lambda: generated(stop=7), "stop is 7 but the vocabulary goes from 0 to 6"),
    (lambda: trained(lr=0), "lr must be above 0, and finite, but is 0"),
    (lambda: trained(lr=float("inf")), "lr must be above 0, and finite, but is inf"),
    (lambda: train(TINY, IDS, IDS[:1, 0], steps=1, lr=1), "targets of shape (1,) fit neither (2,) nor (2, 5)"),
    (lambda: train(TINY, IDS, IDS[:, :4], steps=1, lr=1), "targets of shape (2, 4) fit neither (2,) nor (2, 5)"),
    (lambda: train(TINY, IDS, IDS + 3, steps=1, lr=1), f"targets holds {IDS.max() + 3} but the vocabulary goes from 0 to 6"),
    (lambda: trained(clip=0), "clip must be above 0, and finite, but is 0"),
    (lambda: trained(clip=float("nan")), "clip must be above 0, and finite, but is nan"),
    (lambda: train(TINY, IDS, torch.full((2, 5), -100), steps=1, lr=1), "targets holds nothing but -100, which is not counted"),
    (lambda: train(TINY, IDS, IDS - 1, steps=1, lr=1), "targets holds -1 but the vocabulary goes from 0 to 6"),
    (lambda: train(FROZEN, IDS, IDS, steps=1, lr=1), "the model has no parameter that may learn: all are frozen"),
]  # fmt: skip
KINDS = [
    (lambda: attention(Q, K.double(), V), "k is torch.float64 but q is torch.float32"),
    (lambda: attention(Q, K, V.half()), "v is torch.float16 but q is torch.float32"),
    (lambda: padding_mask(3, 5), "lengths must be a torch.Tensor, not int: torch.tensor(...)"),
    (lambda: padding_mask(np.array([1]), 5), "lengths must be a torch.Tensor, not ndarray: torch.tensor(...)"),
    (lambda: padding_mask(torch.ones(2), 5), "lengths must be integers of shape (B,) but are torch.float32 of shape (2,)"),
    (lambda: padding_mask(IDS, 5), "lengths must be integers of shape (B,) but are torch.int64 of shape (2, 5)"),
    (lambda: rope(X, AT > 0), "positions must be numbers but hold torch.bool"),
    (lambda: HEADS(X.double()), "x is torch.float64 but the parameters are torch.float32"),
    (lambda: HEADS(X, X.half()), "context is torch.float16 but the parameters are torch.float32"),
    (lambda: HEADS(X, cache=KVCache(1, 2, 3, 5, 4)), "cache must be KVCache.layer(i), not KVCache"),
    (lambda: HEADS(X, cache=cached(1, 2, 3, 5, 4, dtype=torch.half)), "keys are torch.float32 on cpu but the cache holds torch.float16 on cpu"),
    (lambda: KVCache(1, 1, 1, 1, 1, torch.int64), "dtype must be a floating point torch.dtype, not torch.int64"),
    (lambda: KVCache(1, 1, 1, 1, 1, "half"), "dtype must be a floating point torch.dtype, not half"),
    (lambda: LLAMA(IDS, cache=cached(2, 2, 3, 8, 4)), "cache must be a KVCache, not LayerCache"),
    (lambda: LLAMA(IDS, cache=KVCache(2, 2, 3, 8, 4, device="meta")), "keys are torch.float32 on cpu but the cache holds torch.float32 on meta"),
    (lambda: generate(None, IDS, 1), "model must be a module with a vocab_size, not NoneType"),
    (lambda: generate(nn.Linear(2, 3), IDS, 1), "model must be a module with a vocab_size, not Linear"),
    (lambda: generate(TINY, IDS, 1), "TinyCausalAttention has no cache: pass use_cache=False"),
    (lambda: generated(temperature=1, generator=3), "generator must be a torch.Generator, not int"),
    (lambda: generated(lengths=np.array([1, 2])), "lengths must be a torch.Tensor, not ndarray: torch.tensor(...)"),
    (lambda: train(print, IDS, IDS, steps=1, lr=1), "model must be a torch.nn.Module, not builtin_function_or_method"),
    (lambda: train(TINY, lambda i, g: IDS, steps=1, lr=1), "inputs must return (inputs, targets), not Tensor"),
    (lambda: train(TINY, IDS, steps=1, lr=1), "targets go with a tensor of inputs; a callable returns its own targets"),
    (lambda: train(TINY, lambda i, g: (IDS, IDS), IDS, steps=1, lr=1), "targets go with a tensor of inputs; a callable returns its own targets"),
    (lambda: train(TINY, IDS, IDS.float(), steps=1, lr=1), "targets must be integers of shape (B, S) but are torch.float32 of shape (2, 5)"),
]  # fmt: skip


def full():
    """A cache of four columns, two of them written."""
    cache = KVCache(1, 2, 3, 4, 4)
    HEADS(X[:, :2], cache=cache.layer(0))
    return cache.layer(0)


@pytest.mark.parametrize("call, sentence", SIZES, ids=[sentence for _, sentence in SIZES])
def test_what_does_not_fit_is_refused_with_both_numbers(refuses, call, sentence):
    refuses(ValueError, sentence, call)


@pytest.mark.parametrize("call, sentence", KINDS, ids=[sentence for _, sentence in KINDS])
def test_the_wrong_kind_of_thing_is_refused_with_the_right_one(refuses, call, sentence):
    refuses(TypeError, sentence, call)


def test_bad_input_leaves_the_model_as_it_was():
    before = {name: p.clone() for name, p in TINY.named_parameters()}
    with pytest.raises(ValueError):
        train(TINY, IDS, IDS[:1, 0], steps=3, lr=1.0)
    assert all(torch.equal(p, before[name]) for name, p in TINY.named_parameters())
    cache = LLAMA.new_cache(2)
    with pytest.raises(TypeError):
        LLAMA(IDS, torch.ones(5, 5), cache)
    assert cache.length == 0 and not cache.keys.any()
