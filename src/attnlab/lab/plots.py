"""Still pictures: one tensor on the axes given, drawn once, then updated in place.

Every drawing has ``update(...)`` and ``text``, what it shows in words. What changes is marked
*animated*, so a ``Picture`` can keep the rest as a background and redraw only that (blitting).
There is no pyplot here: no global state, no open figures.
"""

import base64
import functools
import io
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps, font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import TightLayoutEngine
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.text import Text
from PIL import Image, ImageDraw, ImageFont

# Okabe and Ito's palette: told apart by every kind of colour vision.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, GOLD, GREY = "#56B4E9", "#E69F00", "#777777"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, GOLD)

# kind: colour map, lower and upper end of its scale, what the numbers are called
KINDS = {
    "weights": ("Blues", 0.0, 1.0, "Attention weights"),
    "scores": ("PuOr_r", -4.0, 4.0, "Scores"),
    "values": ("PuOr_r", -3.0, 3.0, "Values"),
    "mask": ("Blues", 0.0, 2.0, "Mask"),
}


def array(x: Any) -> np.ndarray:
    """Any tensor, array or nested list as a float64 array; gradients are left behind."""
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu().double().numpy()
    elif isinstance(x, list | tuple):
        x = [array(item) if isinstance(item, torch.Tensor) else item for item in x]
    return np.asarray(x, dtype=float)


def label(token: Any, longest: int = 14) -> str:
    """A token as it can be drawn: blanks made visible, long ones cut, unknown glyphs escaped."""
    text = str(token).replace("\n", "⏎").replace("\t", "⇥")
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    seen = (c.isprintable() and font.get_char_index(ord(c)) for c in text)
    text = "".join(c if ok else f"U+{ord(c):X}" for c, ok in zip(text, seen, strict=True))
    if not text.strip():
        text = "␣" * len(text) or "∅"
    return text if len(text) <= longest else text[: longest - 1] + "…"


class Picture(Figure):
    """A figure that shows itself in a notebook and says in words what it shows.

    Attributes:
        drawings: what was drawn on it, in order.
    """

    def __init__(self, **options: Any):
        # Not "constrained" and no rectangle: either would measure every text twice.
        tight = TightLayoutEngine(pad=0.3, w_pad=0.2, rect=None)
        super().__init__(facecolor="white", layout=tight, dpi=100, **options)
        FigureCanvasAgg(self)
        self.drawings: list[Any] = []
        self._background: Any = None

    @property
    def text(self) -> str:
        """What the picture shows: the sentences of its drawings."""
        return "\n".join(drawing.text for drawing in self.drawings)

    def pixels(self) -> Image.Image:
        """The picture as it is now; only what is animated is drawn again."""
        # An animated artist does not make its figure stale: whatever else changed does.
        if self.stale or self._background is None:
            self.canvas.draw()
            self._background = self.canvas.copy_from_bbox(self.bbox)
            shown = (axes for axes in self.axes if axes.get_visible())
            moving = (a for axes in shown for a in axes.get_children() if a.get_animated())
            self._moving = sorted(moving, key=lambda artist: artist.get_zorder())
        else:
            self.canvas.restore_region(self._background)
        for drawing in self.drawings:
            drawing.arrange()
        for artist in self._moving:
            artist.axes.draw_artist(artist)
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")

    def frame(self) -> bytes:
        """The picture as it is now, as PNG, made as fast as can be."""
        png = io.BytesIO()
        self.pixels().save(png, "PNG", compress_level=1)
        return png.getvalue()

    def still(self) -> str:
        """The picture as base64 PNG, small enough to be stored in a notebook."""
        return _small(self.pixels())

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        bundle = {"image/png": self.still(), "text/plain": self.text}
        return bundle, {"image/png": {"alt": self.text}}


def _small(image: Image.Image) -> str:
    png = io.BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(png, "PNG", compress_level=6)
    return base64.b64encode(png.getvalue()).decode()


def stack(stills: Sequence[tuple[Image.Image, str]]) -> str:
    """Several pictures one below the other, each under its sentence, as base64 PNG."""
    pictures = [picture for picture, _ in stills]
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 14)
    width = max(picture.width for picture in pictures)
    letters = int(width / font.getlength("n"))  # that fit on a line
    words = [textwrap.wrap(sentence, letters) for _, sentence in stills]
    heights = [20 * len(lines) + 12 for lines in words]
    paper = Image.new("RGB", (width, sum(heights) + sum(p.height for p in pictures)), "white")
    pen, top = ImageDraw.Draw(paper), 0
    for picture, lines, height in zip(pictures, words, heights, strict=True):
        pen.rectangle((0, top, width, top + height - 6), fill="#eaf3fa")
        for i, line in enumerate(lines):
            pen.text((8, top + 4 + 20 * i), line, fill="black", font=font)
        paper.paste(picture, (0, top + height))
        top += height + picture.height
    return _small(paper)


def panels(
    n: int = 1,
    width: float | None = None,
    height: float = 3.2,
    ratios: Sequence[float] = (),
    rows: int = 1,
) -> tuple[Picture, Any]:
    """An empty picture with ``n`` panels side by side: ``(picture, axes)``.

    Args:
        n: how many panels; with one, ``axes`` is that one and not a list.
        width, height: of the whole, in inches (100 pixels each).
        ratios: relative widths of the panels.
        rows: rows of ``n`` panels each, from top to bottom.
    """
    picture = Picture(figsize=(width or min(3.6 * n, 9.5), height))
    axes = picture.subplots(rows, n, squeeze=False, width_ratios=ratios or None).flatten()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return picture, axes[0] if len(axes) == 1 else list(axes)


class Drawing:
    """Base of what can be drawn and updated.

    Attributes:
        text: what it shows, in words.
        data: the numbers that it shows.
    """

    def __init__(self, axes: Axes, title: str):
        self.axes, self.title = axes, title
        self.text, self.data = title, np.empty(0)
        axes.set_title(title, fontsize=11, parse_math=False)
        axes.figure.drawings.append(self)

    def arrange(self) -> None:
        """Place what depends on how large the axes came out; called before every frame."""

    def _say(self, words: str, sides: str = "") -> None:
        head = (self.title + sides).strip()
        self.text = f"{head}: {words}" if head else words


@functools.lru_cache(maxsize=1000)
def _stamp(words: str, colour: str, size: float, dpi: float) -> np.ndarray:
    """A few words as pixels, in the middle of a transparent rectangle just large enough."""
    width, height = (round(ems * size * dpi / 72) for ems in (0.8 * len(words) + 1, 2))
    text = Text(width / 2, height / 2, words, color=colour, fontsize=size, ha="center", va="center")
    text.set_figure(Figure(dpi=dpi))
    stamp = RendererAgg(width, height, dpi)
    text.draw(stamp)
    return np.array(stamp.buffer_rgba())[::-1]  # renderers take images from the bottom up


class _Number(Text):
    """The number in the middle of a cell: set by a stamp, as drawing text is most of a frame."""

    def draw(self, renderer: Any) -> None:
        if not isinstance(renderer, RendererAgg):  # saved as PDF or SVG
            super().draw(renderer)
        elif self.get_text():
            stamp = _stamp(
                self.get_text(), self.get_color(), self.get_fontsize(), self.get_figure().dpi
            )
            x, y = self.get_transform().transform(self.get_position())
            x, y = round(x - stamp.shape[1] / 2), round(y - stamp.shape[0] / 2)
            renderer.draw_image(renderer.new_gc(), x, y, stamp)


class Heatmap(Drawing):
    """Numbers as coloured cells: rows are queries, columns are keys."""

    def __init__(
        self,
        axes: Axes,
        rows: Sequence[str],
        columns: Sequence[str],
        kind: str,
        title: str | None,
        names: tuple[str, str],
        numbers: bool,
        limit: float | None,
        words: tuple[str, ...],
    ):
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)} but is {kind!r}")
        colours, low, high, default = KINDS[kind]
        super().__init__(axes, default if title is None else title)
        if limit is not None:
            low, high = -limit if low < 0 else low, limit
        self.kind, self.names, self.words = kind, names, words
        self.numbers, self.shape = numbers, (0, 0)
        self.cells: list[list[Text]] = []
        self.rows: list[str] = []
        self.columns: list[str] = []
        # Hatched grey lies below; a masked cell is a hole in the image above it.
        axes.set_facecolor("#dddddd")
        axes.patch.set_hatch("////")
        axes.patch.set_edgecolor("#aaaaaa")
        self.image = axes.imshow(
            [[0.0]], cmap=colormaps[colours], vmin=low, vmax=high, aspect="auto", animated=True
        )
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_ylabel(names[0], color=GREY)
        axes.set_xlabel(names[1], color=GREY)
        self.outline = axes.add_patch(
            Rectangle((0, 0), 1, 1, fill=False, ec=GREEN, lw=3, zorder=5, clip_on=False)
        )
        self.outline.set(animated=True, visible=False)
        self.relabel(rows, columns)

    def relabel(self, rows: Sequence[str], columns: Sequence[str]) -> None:
        """Other tokens along the axes, and as many cells as they ask for."""
        if (len(rows), len(columns)) != self.shape:
            self._divide(len(rows), len(columns))
        named = [label(t) for t in rows], [label(t) for t in columns]
        if named == (self.rows, self.columns):
            return  # other ones make everything be drawn again
        self.rows, self.columns = named
        many = sum(map(len, self.columns)) > 40
        self.axes.set_xticklabels(
            self.columns, parse_math=False, rotation=60 if many else 0, ha="right" if many else
            "center", rotation_mode="anchor" if many else None,
        )  # fmt: skip
        self.axes.set_yticklabels(self.rows, parse_math=False)

    def _divide(self, n_rows: int, n_columns: int) -> None:
        """Cut the axes into so many cells."""
        self.shape = (n_rows, n_columns)
        for number in (number for row in self.cells for number in row):
            number.remove()
        options = {"ha": "center", "va": "center", "animated": True}
        options["fontsize"] = 10 if n_columns <= 6 else 8
        self.cells = [
            [self.axes.add_artist(_Number(j, i, **options)) for j in range(n_columns)]
            for i in range(n_rows if self.numbers else 0)
        ]
        edges = (-0.5, n_columns - 0.5, n_rows - 0.5, -0.5)  # left, right, bottom, top
        self.image.set(data=np.zeros(self.shape), extent=edges)
        self.axes.set(xlim=edges[:2], ylim=edges[2:])
        self.axes.set(xticks=range(n_columns), yticks=range(n_rows))

    def update(self, values: Any, mask: Any = None) -> None:
        """Show other numbers ``(S_q, S_k)``; ``-inf`` is a masked cell, ``NaN`` an empty one.

        ``mask``, ``True`` for *may attend*, marks the cells of weights that are 0 for its sake.
        """
        values = array(values)
        if mask is not None:
            values = np.where(array(mask) > 0, values, -np.inf)
        if values.shape != self.shape:
            raise ValueError(f"values have shape {values.shape} but the heat map is {self.shape}")
        self.values = self.data = values
        finite = np.isfinite(values)
        self.image.set_data(np.ma.masked_where(~finite, values))
        colours = self.image.cmap(self.image.norm(np.where(finite, values, 0.0)))[..., :3]
        for texts, row, ok, cell_colours in zip(self.cells, values, finite, colours, strict=False):
            for text, value, shown, colour in zip(texts, row, ok, cell_colours, strict=True):
                word = self._cell(value)
                text.set_text({"masked": "–", "empty": ""}.get(word, word))
                text.set_color(_ink(colour) if shown else "black")
        sides = " ({} down, {} across)".format(*self.names) if all(self.names) else ""
        self._say(self._words(), sides)

    def mark(self, row: int | None = None, column: int | None = None) -> None:
        """Outline one cell, a whole row, or a whole column; with neither, nothing."""
        rows, columns = self.shape
        self.outline.set_visible(row is not None or column is not None)
        y, height = (-0.5, rows) if row is None else (row - 0.5, 1)
        x, width = (-0.5, columns) if column is None else (column - 0.5, 1)
        self.outline.set_bounds(x, y, width, height)

    def _cell(self, value: float) -> str:
        if np.isneginf(value):
            return "-inf" if self.kind == "scores" else "masked"
        if np.isnan(value):
            return "empty"
        if self.kind == "mask":
            return self.words[int(value)]
        return f"{value:z.2f}" if abs(value) < 1e5 else f"{value:.0e}"

    def _words(self) -> str:
        if not self.cells or self.values.size > 30:
            return f"{len(self.rows)} x {len(self.columns)}."
        lines = (
            f"{row}: " + ", ".join(self._cell(v) for v in values)
            for row, values in zip(self.rows, self.values, strict=True)
        )
        return "; ".join(lines) + "."


def _ink(colour: np.ndarray) -> str:
    """Black or white, whichever has more contrast (WCAG relative luminance)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"


def heatmap(
    axes: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Any = None,
    kind: str = "weights",
    title: str | None = None,
    names: tuple[str, str] = ("query", "key"),
    numbers: bool = True,
    limit: float | None = None,
    words: tuple[str, ...] = ("no", "may"),
) -> Heatmap:
    """Draw a matrix as coloured cells with their numbers.

    Args:
        axes: where.
        rows, columns: tokens down (queries) and across (keys).
        values: ``(len(rows), len(columns))``; ``-inf`` is drawn as masked.
        kind: "weights" (scale 0 to 1), "scores" or "values" (centred at 0), "mask".
        title: above the cells.
        names: what runs down and across.
        numbers: write the value into each cell.
        limit: end of the colour scale, where the kind's own does not suit.
        words: for ``False`` and ``True``, or 0, 1 and 2, in a "mask".
    """
    drawing = Heatmap(axes, rows, columns, kind, title, names, numbers, limit, words)
    drawing.update(np.zeros(drawing.shape) if values is None else values)
    return drawing


class Vectors(Drawing):
    """Vectors of the plane as arrows from the origin."""

    def __init__(self, axes: Axes, labels: Sequence[str], title: str, limits: Sequence[float]):
        super().__init__(axes, title)
        self.labels = [label(t) for t in labels]
        axes.set_xlim(limits[0], limits[1])
        axes.set_ylim(limits[2], limits[3])
        axes.set_aspect("equal")
        axes.grid(color="#eeeeee")
        axes.axhline(0, color="#bbbbbb", lw=1)
        axes.axvline(0, color="#bbbbbb", lw=1)
        n = len(labels)
        colours = [CYCLE[i % len(CYCLE)] for i in range(n)]
        zeros = np.zeros(n)
        self.arrows = axes.quiver(
            zeros, zeros, zeros, zeros, color=colours, angles="xy", scale_units="xy", scale=1,
            width=0.012, zorder=3, animated=True,
        )  # fmt: skip
        self.vectors = np.zeros((n, 2))
        self.names = [
            axes.text(0, 0, name, color=c, ha="center", va="center", fontsize=10, zorder=4,
                      animated=True, parse_math=False, fontweight="bold")
            for name, c in zip(self.labels, colours, strict=True)
        ]  # fmt: skip

    def update(self, vectors: Any) -> None:
        """Show other vectors ``(n, 2)``."""
        vectors = array(vectors)
        if vectors.shape != (len(self.labels), 2):
            raise ValueError(f"vectors have shape {vectors.shape}, not {(len(self.labels), 2)}")
        self.arrows.set_UVC(vectors[:, 0], vectors[:, 1])
        self.vectors = self.data = vectors
        shown = (
            f"{n} [{x:z.2f}, {y:z.2f}]" for n, (x, y) in zip(self.labels, vectors, strict=True)
        )
        self._say("arrows " + ", ".join(shown) + ".")

    def arrange(self) -> None:
        """Place the names by the arrows."""
        for text, place in zip(self.names, self._places(self.vectors), strict=True):
            text.set_position(place)

    def _places(self, vectors: np.ndarray) -> list[np.ndarray]:
        """Where the names go: near the tips, inside the axes, and not on top of one another."""
        low, high = np.array([self.axes.get_xlim(), self.axes.get_ylim()]).T
        unit = 0.9 * min(self.axes.bbox.size / (high - low))  # pixels; both axes have the same
        places: list[np.ndarray] = []
        halves: list[np.ndarray] = []
        for name, tip in zip(self.labels, vectors, strict=True):
            half = np.array([4.4 * len(name), 8.0]) / unit  # a bold letter is about 9 x 16 pixels
            tip = np.clip(tip, low + half, high - half)
            up = half * (0, 1.5 if tip[1] >= 0 else -1.5)
            for place in (tip + up * turn for turn in (1, -1, 2.5, -2.5, 4)):
                place = np.clip(place, low + half, high - half)
                others = zip(places, halves, strict=True)
                if all((abs(place - p) >= half + h).any() for p, h in others):
                    break
            places.append(place)
            halves.append(half)
        return places


def vectors(
    axes: Axes,
    labels: Sequence[str],
    values: Any = None,
    title: str = "",
    limits: Sequence[float] = (-0.5, 3, -0.5, 3),
) -> Vectors:
    """Draw vectors of the plane as arrows: ``labels`` and ``values`` ``(n, 2)``.

    ``limits`` are left, right, bottom, top.
    """
    drawing = Vectors(axes, labels, title, limits)
    if values is not None:
        drawing.update(values)
    return drawing


class Bars(Drawing):
    """One bar per label, its number above it."""

    def __init__(
        self,
        axes: Axes,
        labels: Sequence[str],
        title: str,
        limits: tuple[float, float],
        digits: int,
    ):
        super().__init__(axes, title)
        self.labels, self.digits = [label(t) for t in labels], digits
        self.bars = axes.bar(range(len(labels)), np.zeros(len(labels)), color=BLUE, width=0.6)
        for bar in self.bars:
            bar.set_animated(True)
        axes.set_xticks(range(len(labels)))
        axes.set_xticklabels(self.labels, parse_math=False)
        axes.set_ylim(*limits)
        axes.axhline(0, color="#bbbbbb", lw=1)
        self.numbers = [
            axes.text(i, 0, "", ha="center", va="bottom", fontsize=10, animated=True)
            for i in range(len(labels))
        ]

    def update(self, values: Any) -> None:
        """Show other numbers ``(n,)``."""
        values = array(values)
        if values.shape != (len(self.labels),):
            raise ValueError(f"values have shape {values.shape}, not {(len(self.labels),)}")
        self.data = values
        low, high = self.axes.get_ylim()
        heights = np.nan_to_num(values, posinf=high, neginf=low)
        for bar, text, value, height in zip(self.bars, self.numbers, values, heights, strict=True):
            bar.set_height(height)
            text.set_text(f"{value:z.{self.digits}f}")
            text.set_position((text.get_position()[0], np.clip(height, 0, high * 0.92)))
        shown = (f"{n} {v:z.{self.digits}f}" for n, v in zip(self.labels, values, strict=True))
        self._say(", ".join(shown) + ".")


def bars(
    axes: Axes,
    labels: Sequence[str],
    values: Any = None,
    title: str = "",
    limits: tuple[float, float] = (0.0, 1.1),
    digits: int = 2,
) -> Bars:
    """Draw one bar per label.

    ``limits`` are the ends of the vertical axis; ``digits`` stand behind the decimal point, 0 for
    counts.
    """
    drawing = Bars(axes, labels, title, limits, digits)
    if values is not None:
        drawing.update(values)
    return drawing


class Curves(Drawing):
    """Lines over a common horizontal axis, and a mark that can move along it."""

    def __init__(self, axes: Axes, names: Sequence[str], title: str, x: str, y: str):
        super().__init__(axes, title)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(color="#eeeeee")
        self.lines = {
            name: axes.plot([], [], color=CYCLE[i % len(CYCLE)], lw=2, animated=True)[0]
            for i, name in enumerate(names)
        }
        self.cursor = axes.axvline(0, color=GREY, lw=1, ls="--", animated=True, visible=False)

    def update(self, x: Any = None, mark: float | None = None, **lines: Any) -> None:
        """Show other lines by name; ``x`` is 0, 1, 2, ... if omitted; ``mark`` moves the cursor."""
        for name, y in lines.items():
            if name not in self.lines:
                raise ValueError(f"no line is called {name!r}: {', '.join(self.lines)}")
            y = array(y)
            over = np.arange(len(y)) if x is None else array(x)
            if y.ndim != 1 or over.shape != y.shape:
                raise ValueError(f"{name} has shape {y.shape} but x has shape {over.shape}")
            self.lines[name].set_data(over, y)
        drawn = [np.ravel(line.get_xydata()) for line in self.lines.values()]
        self.data = np.concatenate([*drawn, [np.nan if mark is None else mark]])
        if mark is not None:
            self.cursor.set_xdata([mark, mark])
            self.cursor.set_visible(True)
        drawn = ", ".join(name for name, line in self.lines.items() if len(line.get_xdata()))
        self._say(f"{drawn}, {self.axes.get_ylabel()} over {self.axes.get_xlabel()}.")

    def level(self, y: float, name: str, x: float = 0.99, below: bool = False) -> None:
        """A horizontal line that stays, such as a floor, its name above or ``below`` it."""
        self.axes.axhline(y, color="black", lw=1, ls=":")
        self.axes.text(x, y, name, transform=self.axes.get_yaxis_transform(), ha="right",
                       va="top" if below else "bottom", fontsize=9)  # fmt: skip

    def band(self, x: Any, low: Any, high: Any, colour: str = BLUE) -> None:
        """A band that stays, such as the spread over seeds."""
        self.axes.fill_between(array(x), array(low), array(high), color=colour, alpha=0.2, lw=0)


def curves(
    axes: Axes, names: Sequence[str], title: str = "", x: str = "step", y: str = "loss",
    legend: bool = True, **limits: Any,
) -> Curves:  # fmt: skip
    """Empty lines by name, to be filled by ``update``.

    ``limits`` go to the axes: ``xlim``, ``ylim``, ``xscale``, ``yscale``. The legend stands
    still, so the names are known from the start.
    """
    drawing = Curves(axes, names, title, x, y)
    axes.set(**dict(sorted(limits.items())))  # limits before scales: 0 has no logarithm
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "linear":
            axis.set_major_formatter("{x:g}")  # 1000 is read faster than a power
            axis.set_minor_formatter("")
    if legend and len(names) > 1:
        lines = drawing.lines
        names = [label(name, longest=40) for name in lines]
        beside = axes.legend(
            lines.values(), names, frameon=False, fontsize=9, loc="upper left",
            bbox_to_anchor=(1, 1),
        )  # fmt: skip
        for text in beside.get_texts():
            text.set_parse_math(False)
    return drawing


def flow(
    axes: Axes, boxes: Sequence[tuple[float, float, str]], arrows: Sequence[tuple[int, int]],
    title: str = "", size: tuple[float, float] = (0.8, 0.5),
) -> Drawing:  # fmt: skip
    """Boxes joined by arrows: the path of shapes, the wiring of a block.

    Args:
        axes: where; its frame is hidden.
        boxes: ``(x, y, words)`` of each centre.
        arrows: pairs of indices into ``boxes``, from and to.
        title: above.
        size: width and height of every box.
    """
    drawing = Drawing(axes, title)
    axes.axis("off")
    width, height = size
    xs, ys = [b[0] for b in boxes], [b[1] for b in boxes]
    axes.set_xlim(min(xs) - width, max(xs) + width)
    axes.set_ylim(min(ys) - height, max(ys) + height)
    patches = []
    for x, y, words in boxes:
        patch = FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, facecolor="#eaf3fa", edgecolor=BLUE,
            lw=1.2, boxstyle="round,pad=0,rounding_size=.06",
        )  # fmt: skip
        axes.add_patch(patch)
        patches.append(patch)
        axes.text(x, y, words, ha="center", va="center", fontsize=9, parse_math=False)
    for start, end in arrows:
        axes.add_patch(
            FancyArrowPatch(
                (boxes[start][0], boxes[start][1]), (boxes[end][0], boxes[end][1]),
                patchA=patches[start], patchB=patches[end], arrowstyle="-|>", mutation_scale=12,
                color=GREY, shrinkA=1, shrinkB=1, connectionstyle="arc3",
            )
        )  # fmt: skip
    steps = (f"{boxes[a][2]} -> {boxes[b][2]}".replace("\n", " ") for a, b in arrows)
    drawing._say("; ".join(steps) + ".")
    return drawing
