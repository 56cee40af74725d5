"""attnlab: the functions and models behind a course on self-attention, which its notebooks derive.

Imports go one way only:

    core -> cache -> model -> generation -> training    torch only; their names are re-exported
    validation, checkpoint                               argument checks and files, for these
    data                                                 worked example, language, recorded data
    lab                                                  pictures, explorers, votes, progress
    checks                                               one object per exercise
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.cache import KVCache as KVCache
    from attnlab.core import AttentionSteps as AttentionSteps
    from attnlab.core import attention as attention
    from attnlab.core import causal_mask as causal_mask
    from attnlab.core import merge_heads as merge_heads
    from attnlab.core import padding_mask as padding_mask
    from attnlab.core import rope as rope
    from attnlab.core import sinusoidal_positions as sinusoidal_positions
    from attnlab.core import split_heads as split_heads
    from attnlab.generation import generate as generate
    from attnlab.model import MultiHeadAttention as MultiHeadAttention
    from attnlab.model import TinyCausalAttention as TinyCausalAttention
    from attnlab.model import TinyTransformer as TinyTransformer
    from attnlab.training import History as History
    from attnlab.training import train as train

_NAMES = {
    "cache": "KVCache",
    "core": "AttentionSteps attention causal_mask merge_heads padding_mask rope "
    "sinusoidal_positions split_heads",
    "generation": "generate",
    "model": "MultiHeadAttention TinyCausalAttention TinyTransformer",
    "training": "History train",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULE_OF)

for _name in ("torch", "numpy", "matplotlib", "ipywidgets", "anywidget"):
    if (_spec := find_spec(_name)) and _spec.origin and Path(_spec.origin).parent == Path.cwd():
        raise ImportError(f"{_spec.origin} hides the package {_name}: rename it and restart Python")


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use: the command ``attnlab`` needs no torch."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"attnlab.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
