"""Pictures of tensors, drawn once and then updated in place, that describe themselves in words.

What changes is marked *animated*, so that a ``Picture`` can keep everything else as a background
and redraw only that (blitting).
"""

import functools
import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps, font_manager
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.text import Text

from attnlab.lab.pictures import Picture, own_settings, panels, stack

__all__ = ["Picture", "panels", "stack", "heatmap", "vectors", "bars", "curves", "flow", "Drawing"]
__all__ += ["array", "printable"]

# Okabe and Ito's palette: told apart by every kind of colour vision.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, GOLD, GREY = "#56B4E9", "#E69F00", "#707070"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, GOLD)

# kind: colour map, lower and upper end of its scale, what the numbers are called
KINDS = {
    "weights": ("Blues", 0.0, 1.0, "Attention weights"),
    "scores": ("PuOr_r", -4.0, 4.0, "Scores"),
    "values": ("PuOr_r", -3.0, 3.0, "Values"),
    "mask": ("Blues", 0.0, 2.0, "Mask"),
}

# Drawn in every frame, and without influence on where the axes stand.
_MOVING: dict[str, Any] = {"animated": True, "in_layout": False}
# Behind names that stand among lines and arrows.
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3}


def array(x: Any, *shape: int) -> np.ndarray:
    """Any tensor, array or nested list as a float64 array, detached from its gradients.

    Raises:
        ValueError: it does not have the given shape.
    """
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu().double().numpy()
    elif isinstance(x, list | tuple):
        x = [array(item) if isinstance(item, torch.Tensor) else item for item in x]
    x = np.asarray(x, dtype=float)
    if shape and x.shape != shape:
        raise ValueError(f"values have shape {x.shape}, not {shape}")
    return x


def printable(token: Any, longest: int = 14) -> str:
    """A token as it can be drawn: blanks made visible, long ones cut, unknown glyphs escaped."""
    text = str(token).replace("\n", "⏎").replace("\t", "⇥")
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    known = (c.isprintable() and font.get_char_index(ord(c)) for c in text)
    text = "".join(c if ok else f"U+{ord(c):X}" for c, ok in zip(text, known, strict=True))
    if not text.strip():
        text = "␣" * len(text) or "∅"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _number(value: float, digits: int = 2) -> str:
    """A number as it is drawn: never "-0.00", and short if it is very large."""
    if np.isnan(value):
        return "NaN"
    return f"{value:z.{digits}f}" if abs(value) < 1e5 else f"{value:.0e}"


class Drawing:
    """Base class of what can be drawn on axes, updated, and described in words.

    Args:
        axes: the axes to draw on, made by ``panels``.
        title: the title above them.

    Attributes:
        digits_in_words: decimal places of the numbers in ``description``, if not those of the
            picture: few for trained numbers, whose last digits differ between processors.
    """

    digits_in_words: int | None = None

    @own_settings()
    def __init__(self, axes: Any, title: str):
        self.axes = axes
        self._levels: list[tuple[Any, Any]] = []  # lines and their names
        axes.set_title(title, parse_math=False)
        axes.figure.drawings.append(self)

    @property
    def values(self) -> np.ndarray:
        """The numbers shown, read from the artists on the axes."""
        return np.empty(0)

    @property
    @own_settings()
    def description(self) -> str:
        """What is shown, in words, read from the artists on the axes."""
        levels = (f"{name.get_text()} at {line.get_ydata()[0]:.2g}" for line, name in self._levels)
        title, body = self.axes.get_title(), "; ".join([*self._parts(), *levels]) + "."
        return f"{title}: {body}" if title else body

    def _parts(self) -> list[str]:
        return []

    def _rough(self, value: float, low: float, high: float, log: bool = False) -> str:
        """A number in a summary: to 1/10 to 1/100 of an axis from ``low`` to ``high``.

        So the last digits, which differ between processors, do not show. Halves are rounded up
        even if they are a little less: 1/8 is often 0.12499999.
        """
        if not np.isfinite(value):
            return _number(value)
        if self.digits_in_words is not None:
            digits = self.digits_in_words
        elif log and value > 0:
            digits = 1 - math.floor(math.log10(value))
        else:
            digits = 2 - math.ceil(math.log10(high - low))
        return f"{round(float(value) + 10.0 ** (-2 - digits), digits) + 0.0:.10g}"

    def arrange(self) -> None:
        """Place and size what depends on the final size of the axes; called for every frame."""

    @own_settings()
    def level(self, y: float, name: str, x: float = 0.99, below: bool = False) -> None:
        """Add a fixed horizontal line, such as a floor, its name above or ``below`` it."""
        line = self.axes.axhline(y, color="black", lw=1, ls=":", zorder=4, animated=True)
        look: dict[str, Any] = {
            "ha": "right",
            "va": "top" if below else "bottom",
            "parse_math": False,
        }
        look |= {"transform": self.axes.get_yaxis_transform(), "bbox": _PAPER, "zorder": 4}
        text = self.axes.text(x, y, name, **look, **_MOVING)
        self._levels.append((line, text))


def _label_columns(axes: Any, names: Sequence[str], beside: int = 0) -> None:
    """Name the ticks along the bottom: in several lines, then aslant, if names would touch.

    ``beside`` is the number of letters to the left of the axes.
    """
    spec, ratios = axes.get_subplotspec(), axes.get_gridspec().get_width_ratios()
    width = axes.figure.get_figwidth() * ratios[spec.colspan.start] / sum(ratios)  # inches
    room = (72 * width - 7 * beside - 40) / 6.5 / max(len(names), 1)  # letters of 11 points

    def touch() -> bool:
        sizes = [max(map(len, name.split("\n"))) for name in names]
        return any(a + b > 2 * room - 2 for a, b in itertools.pairwise(sizes))

    if touch():
        names = [textwrap.fill(name, max(int(room), 1), break_long_words=False) for name in names]
    aslant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    look = aslant if touch() else {"rotation": 0, "ha": "center", "rotation_mode": "default"}
    axes.set_xticks(range(len(names)), names, parse_math=False, **look)


def _fit(texts: Sequence[Text], width: float, height: float = math.inf) -> None:
    """Set texts, each with a room of its own in pixels, as large as fits: at most 11 points."""
    longest = max([4, *(len(text.get_text()) for text in texts)])
    size = max(6.0, min(11.0, width / (0.9 * longest), height / 1.8))  # a digit is 0.9 px a point
    for text in texts:
        text.set_fontsize(round(2 * size) / 2)


@functools.lru_cache(maxsize=1000)
def _stamp(text: str, colour: str, size: float, dpi: float) -> np.ndarray:
    """A few letters as pixels, in the middle of a transparent rectangle just large enough."""
    width, height = (round(ems * size * dpi / 72) for ems in (0.8 * len(text) + 1, 2))
    look: dict[str, Any] = {"color": colour, "fontsize": size, "ha": "center", "va": "center"}
    artist = Text(width / 2, height / 2, text, **look)
    artist.set_figure(Figure(dpi=dpi))
    stamp = RendererAgg(width, height, dpi)
    artist.draw(stamp)
    return np.array(stamp.buffer_rgba())[::-1]  # renderers take images from the bottom up


class _Number(Text):
    """The number in the middle of a cell, as a stamp: drawing text is most of a frame's time."""

    def draw(self, renderer: Any) -> None:
        if not isinstance(renderer, RendererAgg):  # saved as PDF or SVG
            super().draw(renderer)
        elif self.get_text():
            figure: Any = self.get_figure()
            stamp = _stamp(self.get_text(), self.get_color(), self.get_fontsize(), figure.dpi)
            x, y = self.get_transform().transform(self.get_position())
            x, y = round(x - stamp.shape[1] / 2), round(y - stamp.shape[0] / 2)
            renderer.draw_image(renderer.new_gc(), x, y, stamp)


class Heatmap(Drawing):
    """A matrix as coloured cells with their numbers: rows are queries, columns are keys.

    Args:
        axes: the axes to draw on.
        rows, columns: tokens down (queries) and across (keys).
        values: ``(len(rows), len(columns))``; ``-inf`` is drawn as masked. Zeros if omitted.
        kind: "weights" (scale 0 to 1), "scores" or "values" (centred at 0), "mask".
        title: the title above; if omitted, what the kind is called.
        names: what runs down and across.
        numbers: whether each cell shows its number.
        limit: end of the colour scale, if not the kind's own.
        labels: of ``False`` and ``True``, or of 0, 1 and 2, in a "mask".
    """

    @own_settings()
    def __init__(
        self, axes: Any, rows: Sequence[Any], columns: Sequence[Any], values: Any = None,
        kind: str = "weights", title: str | None = None, names: Sequence[str] = ("query", "key"),
        numbers: bool = True, limit: float | None = None, labels: Sequence[str] = ("no", "may"),
    ):  # fmt: skip
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)} but is {kind!r}")
        colours, low, high, default = KINDS[kind]
        super().__init__(axes, default if title is None else title)
        if limit is not None:
            low, high = -limit if low < 0 else low, limit
        self.kind, self.labels, self.numbers, self.shape = kind, labels, numbers, (0, 0)
        self.cells: list[Text] = []  # row by row
        self._tokens: tuple[list[str], list[str]] = [], []
        # Hatched grey lies below; a masked cell is a hole in the image above it.
        axes.set_facecolor("#dddddd")
        axes.patch.set(hatch="////", edgecolor="#aaaaaa")
        options: dict[str, Any] = {"aspect": "auto", "animated": True, "vmin": low, "vmax": high}
        self.image = axes.imshow([[0.0]], cmap=colormaps[colours], **options)
        # White where the value is NaN; all other cells are holes in this one.
        self.blank = axes.imshow([[0.0]], cmap="gray_r", **options)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_ylabel(names[0], color=GREY)
        axes.set_xlabel(names[1], color=GREY)
        frame = Rectangle((0, 0), 1, 1, fill=False, ec=GREEN, lw=3, zorder=5, clip_on=False)
        self.outline = axes.add_patch(frame)
        self.outline.set(animated=True, visible=False)
        self.relabel(rows, columns)
        self.update(np.zeros(self.shape) if values is None else values)

    @own_settings()
    def relabel(self, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        """Set other tokens along the axes, and as many cells as they need."""
        if (len(rows), len(columns)) != self.shape:
            self._divide(len(rows), len(columns))
        tokens = [printable(t) for t in rows], [printable(t) for t in columns]
        if tokens != self._tokens:  # new labels make everything be redrawn
            self._tokens = tokens
            _label_columns(self.axes, tokens[1], beside=max(map(len, tokens[0]), default=0))
            self.axes.set_yticks(range(len(rows)), tokens[0], parse_math=False)

    def _divide(self, n_rows: int, n_columns: int) -> None:
        """Divide the axes into this many cells."""
        self.shape = (n_rows, n_columns)
        for cell in self.cells:
            cell.remove()
        places = np.ndindex(self.shape if self.numbers else (0, 0))
        options: dict[str, Any] = {"ha": "center", "va": "center", **_MOVING}
        self.cells = [self.axes.add_artist(_Number(j, i, **options)) for i, j in places]
        edges = (-0.5, n_columns - 0.5, n_rows - 0.5, -0.5)  # left, right, bottom, top
        for image in (self.image, self.blank):
            image.set(data=np.zeros(self.shape), extent=edges)
        self.axes.set(xlim=edges[:2], ylim=edges[2:])

    @own_settings()
    def update(self, values: Any, mask: Any = None) -> None:
        """Show other numbers ``(S_q, S_k)``; ``-inf`` is a masked cell.

        ``mask``, ``True`` for *may attend*, marks the cells whose weight is 0 because of it.
        """
        values = array(values, *self.shape)
        if mask is not None:
            values = np.where(np.broadcast_to(array(mask) > 0, self.shape), values, -np.inf)
        low, high = self.image.get_clim()
        seen = np.where(np.isposinf(values), high, values)
        self.image.set_data(seen)
        self.blank.set_data(np.where(np.isnan(values), low, np.nan))
        self.blank.set_visible(np.isnan(values).any())
        colours = self.image.to_rgba(np.where(np.isfinite(seen), seen, 0.0))[..., :3]
        for cell, value, colour in zip(self.cells, values.flat, colours.reshape(-1, 3)):  # noqa: B905
            cell.set_text(self._word(value).replace("masked", "–"))
            cell.set_color(_ink(colour) if value > -np.inf else "black")

    def mark(self, row: int | None = None, column: int | None = None) -> None:
        """Outline one cell, a whole row, or a whole column; with neither, nothing."""
        rows, columns = self.shape
        self.outline.set_visible(row is not None or column is not None)
        y, height = (-0.5, rows) if row is None else (row - 0.5, 1)
        x, width = (-0.5, columns) if column is None else (column - 0.5, 1)
        self.outline.set_bounds(x, y, width, height)

    def arrange(self) -> None:
        """Set the numbers as large as fits into their cells."""
        box = self.axes.bbox
        _fit(self.cells, 0.95 * box.width / self.shape[1], box.height / self.shape[0])

    @property
    def values(self) -> np.ndarray:
        """The numbers that colour the cells: ``-inf`` if masked, NaN if there is none."""
        return np.ma.getdata(self.image.get_array())

    def _word(self, value: float, digits: int | None = None) -> str:
        if np.isneginf(value):
            return "-inf" if self.kind == "scores" else "masked"
        if self.kind == "mask" and np.isfinite(value):
            return self.labels[int(value)]
        return _number(value, 2 if digits is None else digits)

    def _parts(self) -> list[str]:
        down, across = self.axes.get_ylabel(), self.axes.get_xlabel()
        head = [f"{down} down, {across} across"] if down and across else []
        if self.outline.get_visible():
            (x0, y0), (x1, y1) = self.outline.get_bbox().get_points() + 0.5
            head += [f"outlined rows {y0 + 1:g} to {y1:g}, columns {x0 + 1:g} to {x1:g}"]
        rows, columns = (self._names(axis) for axis in (0, 1))
        if not self.cells and self.values.size > 30:
            return head + self._summary(rows, columns)
        words = [self._word(value, self.digits_in_words) for value in self.values.flat]
        for i, (cell, value) in enumerate(zip(self.cells, self.values.flat)):  # noqa: B905
            if (shown := cell.get_text().replace("–", "masked")) != self._word(value):
                words[i] = f"{shown} coloured as {self._word(value)}"
        n = len(columns)
        lines = [f"{r}: {', '.join(words[i * n : i * n + n])}" for i, r in enumerate(rows)]
        return head + lines

    def _names(self, axis: int) -> list[str]:
        """What is written along an axis; numbers if not every row or column has its name."""
        labels = self.axes.get_xticklabels() if axis else self.axes.get_yticklabels()
        names, n = [label.get_text() for label in labels], self.shape[axis]
        return names if len(names) == n and {*names} != {"∅"} else [str(i + 1) for i in range(n)]

    def _summary(self, rows: list[str], columns: list[str]) -> list[str]:
        """Of many cells: their range and mean, and the highest one in up to eight of the rows."""
        low, high = self.image.get_clim()
        rough = functools.partial(self._rough, low=low, high=high)
        known = np.ma.masked_invalid(self.values)
        parts = [f"{len(rows)} x {len(columns)} cells, {known.count()} with a number"]
        if known.count():
            parts += [f"{rough(known.min())} to {rough(known.max())}, mean {rough(known.mean())}"]
        for i in sorted({round(i) for i in np.linspace(0, len(rows) - 1, 8)}):
            row = known[i].filled(-np.inf)
            # The first of those about as high: which of equal ones is higher is up to rounding.
            first = int((row >= row.max() - 0.01 * (high - low)).argmax())
            parts.append(f"{rows[i]}: highest at {columns[first]}, {rough(row.max())}")
        return parts


def _ink(colour: np.ndarray) -> str:
    """Black or white, whichever has more contrast (WCAG relative luminance)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"


class Vectors(Drawing):
    """Vectors of the plane as arrows from the origin.

    Args:
        axes: the axes to draw on.
        labels: one name per vector.
        values: ``(n, 2)``; no arrows until the first update if omitted.
        title: the title above.
        limits: left, right, bottom and top of the axes.
    """

    @own_settings()
    def __init__(
        self, axes: Any, labels: Sequence[Any], values: Any = None, title: str = "",
        limits: Sequence[float] = (-0.5, 3, -0.5, 3),
    ):  # fmt: skip
        super().__init__(axes, title)
        self.labels = [printable(t) for t in labels]
        axes.set(xlim=limits[:2], ylim=limits[2:], aspect="equal")
        axes.grid(color="#eeeeee")
        axes.axhline(0, color="#bbbbbb", lw=1)
        axes.axvline(0, color="#bbbbbb", lw=1)
        # Each thinner than the ones before it, and longer ones below: so arrows on the same line
        # can all be seen, even if they are equal.
        widths = np.linspace(0.018, 0.009, len(labels)) if len(labels) > 1 else [0.012]
        shaft = {"angles": "xy", "scale_units": "xy", "scale": 1, "zorder": 3}
        name = {"ha": "center", "va": "center", "parse_math": False, "fontweight": "bold"}
        self.arrows, self.names = [], []
        for i, (label, width) in enumerate(zip(self.labels, widths, strict=True)):
            look = {"color": CYCLE[i % len(CYCLE)], **_MOVING}
            sizes = {"headwidth": 0.036, "headlength": 0.06, "headaxislength": 0.054}
            head = {part: size / width for part, size in sizes.items()}  # alike in all arrows
            self.arrows.append(axes.quiver(*np.zeros((4, 1)), width=width, **shaft, **head, **look))
            self.names.append(axes.text(0, 0, label, bbox=_PAPER, zorder=4, **name, **look))
        if values is not None:
            self.update(values)

    @own_settings()
    def update(self, values: Any) -> None:
        """Show other vectors ``(n, 2)``."""
        values = array(values, len(self.labels), 2)
        drawn = zip(self.arrows, self.names, self.labels, values, strict=True)
        for arrow, text, name, vector in drawn:
            arrow.set_UVC(*vector[:, None])
            arrow.set_zorder(3 + 0.5 / (1 + np.nan_to_num(np.hypot(*vector))))
            numbers = "" if np.isfinite(vector).all() else " [{}, {}]".format(*map(_number, vector))
            text.set_text(name + numbers)

    @property
    def values(self) -> np.ndarray:
        """The components of the arrows ``(n, 2)``: NaN if none is drawn."""
        drawn = (np.where(a.Umask, np.nan, [a.U, a.V]).ravel() for a in self.arrows)
        return np.reshape([*drawn], (-1, 2))

    def _parts(self) -> list[str]:
        parts = []
        for text, (x, y) in zip(self.names, self.values, strict=True):
            numbers = "without an arrow" if np.isnan(x) else f"[{_number(x)}, {_number(y)}]"
            parts.append(f"{text.get_text()} {numbers}")
        return ["arrows " + ", ".join(parts)]

    def arrange(self) -> None:
        """Place the names by the arrows."""
        for text, place in zip(self.names, self._places(), strict=True):
            text.set_position(place)

    def _places(self) -> list[np.ndarray]:
        """Positions of the names: near the tips, inside the axes, not on top of one another."""
        low, high = np.array([self.axes.get_xlim(), self.axes.get_ylim()]).T
        unit = 0.9 * min(self.axes.bbox.size / (high - low))  # pixels; both axes have the same
        taken: list[tuple[np.ndarray, np.ndarray]] = []  # centres and half sizes
        for name, tip in zip(self.names, self.values, strict=True):
            half = np.array([4.8 * len(name.get_text()), 9.0]) / unit  # half a line of bold text
            tip = np.clip(tip if np.isfinite(tip).all() else 0.0, low + half, high - half)
            up = half * (0, 1.5 if tip[1] >= 0 else -1.5)
            for place in (tip + up * steps for steps in (1, -1, 2.5, -2.5, 4)):
                place = np.clip(place, low + half, high - half)
                if all((abs(place - p) >= half + h).any() for p, h in taken):
                    break
            taken.append((place, half))
        return [place for place, _ in taken]


class Bars(Drawing):
    """One bar per label, with its number above it.

    Args:
        axes: the axes to draw on.
        labels: one name per bar.
        values: ``(n,)``; no bars until the first update if omitted.
        title: the title above.
        limits: the ends of the vertical axis.
        digits: decimal places of the numbers, 0 for counts.
    """

    @own_settings()
    def __init__(
        self, axes: Any, labels: Sequence[Any], values: Any = None, title: str = "",
        limits: tuple[float, float] = (0.0, 1.1), digits: int = 2,
    ):  # fmt: skip
        super().__init__(axes, title)
        self.labels, self.digits = [printable(t) for t in labels], digits
        xs = range(len(labels))
        self.bars = axes.bar(xs, [0.0 for _ in xs], color=BLUE, width=0.6, zorder=3)
        for bar in self.bars:
            bar.set_animated(True)
        _label_columns(axes, self.labels)
        axes.set_ylim(*limits)
        axes.axhline(0, color="#bbbbbb", lw=1)
        self.numbers = [axes.text(x, 0, "", ha="center", va="bottom", **_MOVING) for x in xs]
        if values is not None:
            self.update(values)

    def update(self, values: Any) -> None:
        """Show other numbers ``(n,)``."""
        values = array(values, len(self.labels))
        low, high = self.axes.get_ylim()
        heights = np.nan_to_num(values, posinf=high, neginf=low)
        for bar, text, value, height in zip(self.bars, self.numbers, values, heights, strict=True):
            bar.set_height(height)
            text.set_text(_number(value, self.digits))
            text.set_position((text.get_position()[0], np.clip(height, 0, high * 0.92)))

    @property
    def values(self) -> np.ndarray:
        """The heights of the bars ``(n,)``."""
        return np.array([bar.get_height() for bar in self.bars])

    def _parts(self) -> list[str]:
        parts, digits = [], self.digits if self.digits_in_words is None else self.digits_in_words
        names = (name.get_text().replace("\n", " ") for name in self.axes.get_xticklabels())
        for name, text, height in zip(names, self.numbers, self.values, strict=True):
            shown, drawn = text.get_text(), _number(height, self.digits)
            differs = f"{shown} with a bar to {drawn}"
            parts.append(f"{name}: {_number(height, digits) if shown == drawn else differs}")
        return [", ".join(parts)]

    def arrange(self) -> None:
        """Set the numbers as large as fits beside one another."""
        _fit(self.numbers, 0.9 * self.axes.bbox.width / max(len(self.labels), 1))


class Curves(Drawing):
    """Lines over a common horizontal axis, and a cursor that can move along it.

    Args:
        axes: the axes to draw on.
        names: one name per line; the lines are empty until the first update.
        title: the title above.
        x, y: what the axes are called.
        legend: whether several lines are named beside the axes.
        limits: of the axes: ``xlim``, ``ylim``, ``xscale``, ``yscale``.
    """

    @own_settings()
    def __init__(
        self, axes: Any, names: Sequence[str], title: str = "", x: str = "step", y: str = "loss",
        legend: bool = True, **limits: Any,
    ):  # fmt: skip
        super().__init__(axes, title)
        axes.set(xlabel=x, ylabel=y)
        axes.grid(color="#eeeeee")
        colours, look = itertools.cycle(CYCLE), {"zorder": 3, "animated": True}
        self.lines = {n: axes.plot([], [], color=next(colours), lw=2, **look)[0] for n in names}
        self.cursor = axes.axvline(0, color=GREY, lw=1, ls="--", visible=False, **look)
        self._bands: list[Any] = []
        axes.set(**dict(sorted(limits.items())))  # limits before scales: 0 has no logarithm
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "linear":
                axis.set_major_formatter("{x:g}")  # 1000 is read faster than a power
                axis.set_minor_formatter("")
        if legend and len(names) > 1:
            shown = [printable(name, longest=40) for name in names]
            place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
            for text in axes.legend(self.lines.values(), shown, **place).get_texts():
                text.set_parse_math(False)

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
        if mark is not None:
            self.cursor.set_xdata([mark, mark])
            self.cursor.set_visible(True)

    @property
    def values(self) -> np.ndarray:
        """The points of all lines and the position of the cursor, flat."""
        points = [np.ravel(line.get_xydata()) for line in self.lines.values()]
        mark = self.cursor.get_xdata()[0] if self.cursor.get_visible() else np.nan
        return np.concatenate([*points, [mark]])

    def _parts(self) -> list[str]:
        low, high = self.axes.get_ylim()
        log = self.axes.get_yscale() == "log"
        rough = functools.partial(self._rough, low=low, high=high, log=log)
        parts = [f"{self.axes.get_ylabel()} over {self.axes.get_xlabel()}"]
        for name, line in self.lines.items():
            x, y = line.get_xydata().T
            # More of the start, where a loss falls.
            shown = sorted({round((y.size - 1) / part) for part in (1e9, 16, 8, 4, 2, 1)})
            points = [f"{rough(y[i])} at {x[i]:g}" for i in shown if y.size] or ["no points yet"]
            if np.isfinite(y).any():
                points += [f"lowest {rough(np.nanmin(y))}", f"highest {rough(np.nanmax(y))}"]
            parts.append(f"{name}: {', '.join(points)}")
        for band in self._bands:
            (x0, y0), (x1, y1) = band.get_paths()[0].get_extents().get_points()
            parts.append(f"band from {rough(y0)} to {rough(y1)}, x from {x0:g} to {x1:g}")
        if self.cursor.get_visible():
            parts.append(f"cursor at {self.cursor.get_xdata()[0]:g}")
        return parts

    @own_settings()
    def band(self, x: Any, low: Any, high: Any, colour: str = BLUE) -> None:
        """Add a fixed band, such as the range over seeds."""
        edges = array(x), array(low), array(high)
        self._bands.append(self.axes.fill_between(*edges, color=colour, alpha=0.2, lw=0))


class Flow(Drawing):
    """Boxes joined by arrows: the path of shapes, the wiring of a block.

    Args:
        axes: the axes to draw on; their frame is hidden.
        boxes: ``(x, y, text)`` of each centre.
        arrows: pairs of indices into ``boxes``, from and to.
        title: the title above.
        size: width and height of every box.
    """

    @own_settings()
    def __init__(
        self, axes: Any, boxes: Sequence[tuple[float, float, str]],
        arrows: Sequence[tuple[int, int]], title: str = "", size: tuple[float, float] = (0.8, 0.5),
    ):  # fmt: skip
        super().__init__(axes, title)
        axes.axis("off")
        width, height = size
        xs, ys = [box[0] for box in boxes], [box[1] for box in boxes]
        axes.set(xlim=(min(xs) - width, max(xs) + width), ylim=(min(ys) - height, max(ys) + height))
        box: dict[str, Any] = {"facecolor": "#eaf3fa", "edgecolor": BLUE, "lw": 1.2}
        box["boxstyle"] = "round,pad=0,rounding_size=.06"
        self.boxes: dict[Any, Text] = {}
        for x, y, text in boxes:
            corner = (x - width / 2, y - height / 2)
            patch = axes.add_patch(FancyBboxPatch(corner, width, height, **box))
            self.boxes[patch] = axes.text(x, y, text, ha="center", va="center", parse_math=False)
        patches = list(self.boxes)
        look: dict[str, Any] = {"color": GREY, "arrowstyle": "-|>", "mutation_scale": 12}
        look |= {"shrinkA": 1, "shrinkB": 1, "connectionstyle": "arc3"}
        self.arrows = []
        for a, b in arrows:
            ends: dict[str, Any] = {"patchA": patches[a], "patchB": patches[b]}
            arrow = FancyArrowPatch(boxes[a][:2], boxes[b][:2], **ends, **look)
            self.arrows.append(axes.add_patch(arrow))

    def _parts(self) -> list[str]:
        ends = ([self.boxes[a.patchA], self.boxes[a.patchB]] for a in self.arrows)
        steps = (" -> ".join(text.get_text() for text in pair) for pair in ends)
        return [step.replace("\n", " ") for step in steps]


# As a notebook calls them: a drawing is made by a function's name.
heatmap, vectors, bars, curves, flow = Heatmap, Vectors, Bars, Curves, Flow
