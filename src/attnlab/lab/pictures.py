"""A figure that shows itself in a notebook, as fast frames and as small stills.

No pyplot and no open figures, and the user's matplotlib settings are neither used nor changed.
"""

import base64
import contextlib
import copy
import html
import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np
from IPython.display import display
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import TightLayoutEngine
from PIL import Image, ImageDraw, ImageFont

from attnlab.lab import cells

# Every setting of matplotlib that a picture depends on. A copy, because lists such as
# rcParams["font.sans-serif"] are shared with the defaults and are often changed in place.
_SETTINGS = copy.deepcopy({**matplotlib.rcParamsDefault})
_SETTINGS |= {"font.family": ["DejaVu Sans"], "font.size": 11, "axes.titlesize": 11}
_SETTINGS |= {"legend.fontsize": 11, "text.parse_math": False}  # a token "$$" is no formula
_SETTINGS |= {"axes.spines.top": False, "axes.spines.right": False}
del _SETTINGS["backend"]


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Create and draw with the course's settings, whatever style the user has chosen.

    Matplotlib reads some settings when an artist is created and others when it is drawn; and
    numpy would warn, or raise if told so, of overflow where a colour or place is computed.
    """
    users = {name: dict.__getitem__(matplotlib.rcParams, name) for name in _SETTINGS}
    dict.update(matplotlib.rcParams, _SETTINGS)  # without validating 300 values again
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        dict.update(matplotlib.rcParams, users)


class _Layout(TightLayoutEngine):
    """A tight layout that depends on what there is now, and not on the layout before."""

    def execute(self, fig: Any) -> None:
        fig.subplots_adjust(left=0.1, right=0.9, bottom=0.1, top=0.9, wspace=0.2, hspace=0.2)
        super().execute(fig)


class Picture(Figure):
    """A figure that shows itself in a notebook and describes in words what it shows.

    Attributes:
        drawings: what was drawn on it, in order; see ``attnlab.lab.plots.Drawing``.
    """

    canvas: Any  # it is an Agg canvas
    _background: Any = None
    _moving: list[Any]

    def __init__(self, **options: Any):
        # Not "constrained" and no rectangle: either would measure every text twice.
        tight = _Layout(pad=0.3, w_pad=0.2, rect=None)  # type: ignore[arg-type]
        super().__init__(facecolor="white", layout=tight, dpi=100, **options)
        FigureCanvasAgg(self)
        self.drawings: list[Any] = []
        cells.register(self)

    def retire(self) -> None:
        """Let go of what was drawn: the cell has run again, and IPython keeps its results."""
        self.clear()
        self.drawings, self._moving, self._background = [], [], None
        FigureCanvasAgg(self)

    @property
    def description(self) -> str:
        """What the visible panels show: the descriptions of their drawings, panel by panel."""
        visible = (axes for axes in self.axes if axes.get_visible())
        return "\n".join(d.description for axes in visible for d in self.drawings if d.axes is axes)

    @own_settings()
    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Save to a file, as matplotlib does, what a frame shows."""
        self.pixels()  # places what depends on the layout
        super().savefig(*arguments, **options)

    @own_settings()
    def pixels(self) -> Image.Image:
        """The picture in its present state; only what is animated is redrawn."""
        # A change to an animated artist does not make its figure stale; any other change does.
        if self.stale or self._background is None:
            self.canvas.draw()
            self._background = self.canvas.copy_from_bbox(self.bbox)
            shown = (axes for axes in self.axes if axes.get_visible())
            self._moving = [a for axes in shown for a in axes.get_children() if a.get_animated()]
        self.canvas.restore_region(self._background)
        for drawing in self.drawings:
            drawing.arrange()
        for artist in sorted(self._moving, key=lambda artist: artist.get_zorder()):
            artist.axes.draw_artist(artist)
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")

    def frame(self) -> bytes:
        """The picture in its present state as PNG, encoded for speed."""
        png = io.BytesIO()
        self.pixels().save(png, "PNG", compress_level=1)
        return png.getvalue()

    def fine(self) -> bytes:
        """The picture in its present state as PNG, twice as fine in both directions."""
        drawn, stale, dpi, layout = self._background, self.stale, self.dpi, self.get_layout_engine()
        try:
            self._background = None
            self.set_layout_engine("none")  # the axes stay where they are
            self.set_dpi(2 * dpi)
            return self.frame()
        finally:  # the next frame goes on from what was drawn before
            self.set_layout_engine(layout)
            self.set_dpi(dpi)
            self._background, self.stale = drawn, stale

    def still(self) -> str:
        """The picture as base64 PNG, small enough to be stored in a notebook."""
        return _small(self.pixels())

    def _ipython_display_(self) -> None:
        """Show the picture and, for screen readers, its description as an output of its own.

        JupyterLab and nbconvert ignore the ``alt`` in the metadata of an image, and would show
        a ``text/html`` beside the image *instead* of it.
        """
        words = self.description
        shown = {"image/png": self.still(), "text/plain": words}
        display(shown, metadata={"image/png": {"alt": words}}, raw=True)
        # A transparent pixel: nothing is seen even where styles are removed, as on code hosts.
        pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
        size = 'width="1" height="1" style="display: block"'
        image = f'<img src="{pixel}" {size} alt="{html.escape(words)}">'
        display({"text/html": image}, raw=True)


def _small(image: Image.Image) -> str:
    png = io.BytesIO()
    # Pillow's default method turns grey letters purple beside a heat map of many colours.
    colours = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours.save(png, "PNG", compress_level=6)
    return base64.b64encode(png.getvalue()).decode()


def stack(stills: Sequence[tuple[Image.Image, str]]) -> str:
    """Several pictures one below the other, each under its sentence, as base64 PNG."""
    width = max(picture.width for picture, _ in stills)
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 14)
    letters, strips = int(width / font.getlength("n")), []  # letters: that fit on a line
    for picture, sentence in stills:
        lines = textwrap.wrap(sentence, letters)
        height = 20 * len(lines) + 12
        strip = Image.new("RGB", (width, height + picture.height), "white")
        pen = ImageDraw.Draw(strip)
        pen.rectangle((0, 0, width, height - 6), fill="#eaf3fa")
        for i, line in enumerate(lines):
            pen.text((8, 4 + 20 * i), line, fill="black", font=font)
        strip.paste(picture, (0, height))
        strips.append(np.asarray(strip))
    return _small(Image.fromarray(np.concatenate(strips)))


@own_settings()
def panels(
    n: int = 1, width: float | None = None, height: float = 3.2, ratios: Sequence[float] = (),
    rows: int = 1,
) -> tuple[Picture, Any]:  # fmt: skip
    """An empty picture with ``n`` panels side by side: ``(picture, axes)``.

    Args:
        n: how many panels; with a single one, ``axes`` is that panel and not a list.
        width, height: of the picture, in inches (100 pixels each).
        ratios: relative widths of the panels.
        rows: rows of ``n`` panels each, from top to bottom.
    """
    picture = Picture(figsize=(width or min(3.6 * n, 9.5), height))
    axes = picture.subplots(rows, n, squeeze=False, width_ratios=ratios or None).flatten()
    return picture, axes[0] if len(axes) == 1 else list(axes)
