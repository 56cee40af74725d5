"""The data of the course. Nothing is downloaded.

The worked example stands in `example`, the generated language in `language`; `recordings` reads
the slices of real models in the folder ``recorded``, and `minilm` runs one of these models.
"""

from attnlab.data.example import *  # noqa: F403
from attnlab.data.language import *  # noqa: F403
from attnlab.data.recordings import *  # noqa: F403
