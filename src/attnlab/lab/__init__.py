"""The page that moves: pictures, explorers and their knobs, predictions, progress.

Nothing in this folder knows about attention; it could serve another course.
"""

from attnlab.lab import plots
from attnlab.lab.explorers import Explorer
from attnlab.lab.knobs import choice, matrix, slider, toggle, typed
from attnlab.lab.predictions import predict
from attnlab.lab.progress import progress

__all__ = [
    "Explorer",
    "choice",
    "matrix",
    "typed",
    "plots",
    "predict",
    "progress",
    "slider",
    "toggle",
]
