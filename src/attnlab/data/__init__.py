"""The data of the course. Nothing is downloaded.

The worked example stands in `example`, the generated language in `language`; `recordings` reads
the folder ``recorded``, slices of real models and tables of small trained ones, and `minilm` runs
one of the real models.
"""

from attnlab.data.example import *  # noqa: F403
from attnlab.data.language import *  # noqa: F403
from attnlab.data.recordings import *  # noqa: F403
