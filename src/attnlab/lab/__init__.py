"""The page that moves: pictures, explorers and their knobs, predictions, progress.

Nothing in this folder knows about attention; it could serve another course.
"""

from attnlab.lab import plots
from attnlab.lab.explorers import Explorer, choice, matrix, slider, toggle, words
from attnlab.lab.predictions import predict, progress

__all__ = [
    "Explorer",
    "choice",
    "matrix",
    "plots",
    "predict",
    "progress",
    "slider",
    "toggle",
    "words",
]
