"""Pictures of tensors, drawn once and then updated in place, that describe themselves in words.

What changes is marked *animated*, so that a ``Picture`` can keep everything else as a background
and redraw only that (blitting).
"""

import functools
import itertools
import textwrap
from collections.abc import Mapping, Sequence
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

# For what has no colour of its own. Readable on white, and told apart by every kind of colour
# vision (tested).
CYCLE = ("#4b2fb0", "#008080", "#d0106a", "#6d6d00", "#222222")
MARK, GREY = CYCLE[2], "#707070"

# label: its colour on light and on dark paper; other labels have those under ""
Colours = Mapping[str, Sequence[str]] | None

# kind: colour map, lower end of its scale in units of the upper, upper end, what it is called
KINDS = {
    "weights": ("Blues", 0, 1.0, "Attention weights"),
    "scores": ("PuOr_r", -1, 4.0, "Scores"),
    "values": ("PuOr_r", -1, 3.0, "Values"),
    "mask": ("Blues", 0, 2.0, "Mask"),
}

# Drawn in every frame, and without influence on where the axes stand.
_MOVING: dict[str, Any] = {"animated": True, "in_layout": False}
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
# Behind names that stand among lines and arrows.
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3}


def array(x: Any, *shape: int) -> np.ndarray:
    """Any tensor, array or nested list as a float64 array, detached from its gradients.

    Raises:
        ValueError: it does not have the given shape.
    """
    if isinstance(x, list | tuple):
        x = [array(item) for item in x]
    x = np.asarray(x.tolist() if isinstance(x, torch.Tensor) else x, dtype=float)
    if shape and x.shape != shape:
        raise ValueError(f"values have shape {x.shape}, not {shape}")
    return x


def printable(token: Any, longest: int = 14) -> str:
    """A token as it can be drawn: blanks made visible, long ones cut, unknown glyphs escaped."""
    text = str(token).replace("\n", "⏎").replace("\t", "⇥")
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    known = {c for c in text if c.isprintable() and font.get_char_index(ord(c))}
    text = "".join(c if c in known else f"U+{ord(c):X}" for c in text)
    text = text if text.strip() else "␣" * len(text) or "∅"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _number(value: float, digits: int = 2) -> str:
    """A number as it is drawn: never "-0.00", and short if it is very large."""
    text = f"{value:z.{digits}f}" if abs(value) < 1e5 else f"{value:.0e}"
    return text.replace("nan", "NaN")


def label_colours(labels: Sequence[Any], colours: Colours = None) -> list[str]:
    """A colour for each label: from a table, or else the palette's in order.

    Args:
        labels: names of what is drawn.
        colours: the table.
    """
    if colours:
        return [colours.get(str(label), colours[""])[0] for label in labels]
    return [CYCLE[i % len(CYCLE)] for i in range(len(labels))]


class Drawing:
    """Base class of what can be drawn on axes, updated, and described in words.

    Args:
        axes: the axes to draw on, made by ``panels``.
        title: the title above them.
    """

    @own_settings()
    def __init__(self, axes: Any, title: str):
        self.axes = axes
        self._levels: list[tuple[Any, Any]] = []  # lines and their names
        axes.set_title(title)
        axes.figure.drawings.append(self)

    @property
    @own_settings()
    def description(self) -> str:
        """What is shown, in words, read from the artists on the axes."""
        levels = (f"{name.get_text()} at {line.get_ydata()[0]:.2g}" for line, name in self._levels)
        title, body = self.axes.get_title(), "; ".join([*self._parts(), *levels]) + "."
        return f"{title}: {body}" if title else body

    def _parts(self) -> list[str]:
        return []

    def arrange(self) -> None:
        """Place and size what depends on the final size of the axes; called for every frame."""

    @own_settings()
    def level(self, y: float, name: str, below: bool = False) -> None:
        """Add a fixed horizontal line, such as a floor, its name above or ``below`` it."""
        line = self.axes.axhline(y, color="black", lw=1, ls=":", zorder=4, animated=True)
        place = {"transform": self.axes.get_yaxis_transform(), "va": "top" if below else "bottom"}
        look = {"ha": "right", "bbox": _PAPER, "zorder": 4, **_MOVING}
        self._levels.append((line, self.axes.text(0.99, y, name, **place, **look)))


def _rough(ends: tuple[float, float], log: bool, value: float) -> str:
    """A number in a summary: to 1/10 to 1/100 of an axis between these ends.

    So the last digits, which differ between processors, do not show. Halves are rounded up
    even if they are a little less: 1/8 is often 0.12499999.
    """
    if not np.isfinite(value):
        return _number(value)
    digits = 2 - int(np.ceil(np.log10(np.ptp(ends))))
    if log and value > 0:
        digits = 1 - int(np.floor(np.log10(value)))
    return f"{round(float(value) + 10.0 ** (-2 - digits), digits) + 0.0:.10g}"


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
    angle, side, mode = (45, "right", "anchor") if touch() else (0, "center", "default")
    axes.set_xticks(range(len(names)), names, rotation=angle, ha=side, rotation_mode=mode)


def _fit(texts: Sequence[Text], width: float, height: float = np.inf) -> None:
    """Set texts, each with a room of its own in pixels, as large as fits: at most 11 points."""
    longest = max([4, *(len(text.get_text()) for text in texts)])
    size = max(6.0, min(11.0, width / (0.9 * longest), height / 1.8))  # a digit is 0.9 px a point
    for text in texts:
        text.set_fontsize(round(2 * size) / 2)


@functools.lru_cache(maxsize=1000)
def _stamp(text: str, colour: str, size: float, dpi: float) -> np.ndarray:
    """A few letters as pixels, in the middle of a transparent rectangle just large enough."""
    width, height = (round(ems * size * dpi / 72) for ems in (0.8 * len(text) + 1, 2))
    artist = Text(width / 2, height / 2, text, color=colour, fontsize=size, **_CENTRED)
    artist.set_figure(Figure(dpi=dpi))
    stamp = RendererAgg(width, height, dpi)
    artist.draw(stamp)
    return np.array(stamp.buffer_rgba())[::-1]  # renderers take images from the bottom up


class _Number(Text):
    """The number in the middle of a cell, as a stamp: drawing text is most of a frame's time."""

    def draw(self, renderer: Any) -> None:
        if not isinstance(renderer, RendererAgg):  # saved as PDF or SVG
            super().draw(renderer)
        else:
            stamp = _stamp(self.get_text(), self.get_color(), self.get_fontsize(), renderer.dpi)
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
        digits: decimal places of the numbers; 1 where they were trained, because the second may
            differ on another processor.
    """

    def __init__(
        self, axes: Any, rows: Sequence[Any], columns: Sequence[Any], values: Any = None,
        kind: str = "weights", title: str | None = None, names: Sequence[str] = ("query", "key"),
        numbers: bool = True, limit: float | None = None, labels: Sequence[str] = ("no", "may"),
        digits: int = 2,
    ):  # fmt: skip
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)} but is {kind!r}")
        colours, sign, high, default = KINDS[kind]
        super().__init__(axes, default if title is None else title)
        self.kind, self.labels, self.numbers, self.digits = kind, labels, numbers, digits
        self.shape = (0, 0)
        self.cells: list[Text] = []  # row by row
        self._tokens: Any = None
        # A masked cell is transparent: the hatched grey below is seen.
        axes.patch.set(facecolor="#dddddd", edgecolor="#aaaaaa", hatch="////")
        end = high if limit is None else limit
        cmap = colormaps[colours].with_extremes(bad="white")  # NaN
        self.image = axes.imshow([[0.0]], cmap, aspect="auto", vmin=sign * end, vmax=end)
        self.image.set_animated(True)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_ylabel(names[0], color=GREY)
        axes.set_xlabel(names[1], color=GREY)
        look: dict[str, Any] = {"ec": MARK, "lw": 3, "zorder": 5, "clip_on": False}
        frame = Rectangle((0, 0), 1, 1, fill=False, animated=True, visible=False, **look)
        self.outline = axes.add_patch(frame)
        self.relabel(rows, columns)
        self.update(np.zeros(self.shape) if values is None else values)

    @own_settings()
    def relabel(self, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        """Set other tokens along the axes, and as many cells as they need."""
        tokens = [[printable(t) for t in side] for side in (rows, columns)]
        if tokens == self._tokens:
            return  # new labels would make everything be redrawn
        _label_columns(self.axes, tokens[1], beside=max(map(len, tokens[0]), default=0))
        self.axes.set_yticks(range(len(rows)), tokens[0])
        shape, before = (len(rows), len(columns)), self.shape
        self._tokens, self.shape = tokens, shape
        if shape == before:
            return
        for cell in self.cells:
            cell.remove()
        places = np.ndindex(shape if self.numbers else (0, 0))
        numbers = (_Number(j, i, **_CENTRED, **_MOVING) for i, j in places)
        self.cells = [self.axes.add_artist(number) for number in numbers]
        edges = (-0.5, len(columns) - 0.5, len(rows) - 0.5, -0.5)  # left, right, bottom, top
        self.image.set(data=np.zeros(shape), alpha=np.ones(shape), extent=edges)

    @own_settings()
    def update(self, values: Any, mask: Any = None) -> None:
        """Show other numbers ``(S_q, S_k)``; ``-inf`` is a masked cell.

        ``mask``, ``True`` for *may attend*, marks the cells whose weight is 0 because of it.
        """
        values = array(values, *self.shape)
        if mask is not None:
            values = np.where(np.broadcast_to(array(mask) > 0, self.shape), values, -np.inf)
        seen = np.where(np.isposinf(values), self.image.norm.vmax, values)
        self.image.set(data=seen, alpha=np.where(np.isneginf(values), 0.0, 1.0))
        inks = np.where(np.isneginf(values), "black", _inks(self.image.to_rgba(seen)[..., :3]))
        for cell, value, ink in zip(self.cells, values.flat, inks.flat):  # noqa: B905
            cell.set_text(self._word(value).replace("masked", "–"))
            cell.set_color(ink)

    def mark(self, row: int | None = None, column: int | None = None) -> None:
        """Outline a row, or one cell of it; without a row, nothing."""
        left, width = (-0.5, self.shape[1]) if column is None else (column - 0.5, 1)
        bounds = (left, (row or 0) - 0.5, width, 1)
        self.outline.set(visible=row is not None, bounds=bounds)

    def arrange(self) -> None:
        """Set the numbers as large as fits into their cells."""
        box = self.axes.bbox
        _fit(self.cells, 0.95 * box.width / self.shape[1], box.height / self.shape[0])

    @property
    def values(self) -> np.ndarray:
        """The numbers that colour the cells: ``-inf`` if masked, NaN if there is none."""
        return np.ma.getdata(self.image.get_array())

    def _word(self, value: float) -> str:
        if self.kind == "mask" and np.isfinite(value):
            return self.labels[int(value)]
        hidden = np.isneginf(value) and self.kind != "scores"
        return "masked" if hidden else _number(value, self.digits)

    def _parts(self) -> list[str]:
        down, across = self.axes.get_ylabel(), self.axes.get_xlabel()
        head = [f"{down} down, {across} across"] if down and across else []
        if self.outline.get_visible():
            (x0, y0), (x1, y1) = self.outline.get_bbox().get_points() + 0.5
            head += [f"outlined rows {y0 + 1:g} to {y1:g}, columns {x0 + 1:g} to {x1:g}"]
        rows, columns = (self._names(axis) for axis in (0, 1))
        if not self.cells and self.values.size > 30:
            return head + self._summary(rows, columns)
        words = [self._word(value) for value in self.values.flat]
        for i, (cell, word) in enumerate(zip(self.cells, words)):  # noqa: B905
            if (shown := cell.get_text().replace("–", "masked")) != word:
                words[i] = f"{shown} coloured as {word}"
        grid = np.reshape(words, self.shape)
        return head + [f"{row}: {', '.join(cells)}" for row, cells in zip(rows, grid, strict=True)]

    def _names(self, axis: int) -> list[str]:
        """What is written along an axis; numbers if not every row or column has its name."""
        labels = self.axes.get_xticklabels() if axis else self.axes.get_yticklabels()
        names, n = [label.get_text() for label in labels], self.shape[axis]
        return names if len(names) == n and {*names} != {"∅"} else [str(i + 1) for i in range(n)]

    def _summary(self, rows: list[str], columns: list[str]) -> list[str]:
        """Of many cells: their range and mean, and the highest one in up to eight of the rows."""
        ends, known = self.image.get_clim(), np.ma.masked_invalid(self.values)
        rough = functools.partial(_rough, ends, False)
        parts = [f"{len(rows)} x {len(columns)} cells, {known.count()} with a number"]
        if known.count():
            parts += [f"{rough(known.min())} to {rough(known.max())}, mean {rough(known.mean())}"]
        for i in sorted({round(i) for i in np.linspace(0, len(rows) - 1, 8)}):
            row = known[i].filled(-np.inf)
            # The first of those about as high: which of equal ones is higher is up to rounding.
            first = int((row >= row.max() - 0.01 * np.ptp(ends)).argmax())
            parts.append(f"{rows[i]}: highest at {columns[first]}, {rough(row.max())}")
        return parts


def _inks(colours: np.ndarray) -> np.ndarray:
    """Black or white on each colour ``(..., 3)``: more contrast (WCAG relative luminance)."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return np.where((luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05), "black", "white")


class Vectors(Drawing):
    """Vectors of the plane as arrows from the origin.

    Args:
        axes: the axes to draw on.
        labels: one name per vector.
        values: ``(n, 2)``; zeros if omitted.
        title: the title above.
        limits: left, right, bottom and top of the axes.
        colours: see ``label_colours``.
    """

    def __init__(
        self, axes: Any, labels: Sequence[Any], values: Any = None, title: str = "",
        limits: Sequence[float] = (-0.5, 3, -0.5, 3), colours: Colours = None,
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
        shaft = {"angles": "xy", "scale_units": "xy", "scale": 1, "zorder": 3, **_MOVING}
        name = {"fontweight": "bold", "bbox": _PAPER, "zorder": 4, **_CENTRED, **_MOVING}
        sizes = {"headwidth": 0.036, "headlength": 0.06, "headaxislength": 0.054}
        self.arrows, self.names = [], []
        parts = self.labels, widths, label_colours(labels, colours)
        for label, width, colour in zip(*parts, strict=True):
            head = {part: size / width for part, size in sizes.items()}  # alike in all arrows
            self.arrows.append(axes.quiver(0, 0, 0, 0, color=colour, width=width, **shaft, **head))
            self.names.append(axes.text(0, 0, label, color=colour, **name))
        self.update(np.zeros((len(labels), 2)) if values is None else values)

    @own_settings()
    def update(self, values: Any) -> None:
        """Show other vectors ``(n, 2)``."""
        values = array(values, len(self.labels), 2)
        parts = self.arrows, self.names, self.labels
        for arrow, text, name, vector in zip(*parts, values, strict=True):
            arrow.set_UVC(*vector[:, None])
            arrow.set_zorder(3 + 0.5 / (1 + np.nan_to_num(np.hypot(*vector))))
            numbers = "" if np.isfinite(vector).all() else " [{}, {}]".format(*map(_number, vector))
            text.set_text(name + numbers)

    @property
    def values(self) -> np.ndarray:
        """The components of the arrows ``(n, 2)``: NaN if none is drawn."""
        return np.array([np.where(a.Umask, np.nan, [a.U, a.V])[:, 0] for a in self.arrows])

    def _parts(self) -> list[str]:
        pairs = (f"[{_number(x)}, {_number(y)}]" for x, y in self.values)
        drawn = (pair.replace("[NaN, NaN]", "without an arrow") for pair in pairs)
        names = zip(self.names, drawn, strict=True)
        return ["arrows " + ", ".join(f"{name.get_text()} {pair}" for name, pair in names)]

    def arrange(self) -> None:
        """Place the names near the tips, inside the axes, not on top of one another."""
        low, high = np.array([self.axes.get_xlim(), self.axes.get_ylim()]).T
        unit = 0.9 * min(self.axes.bbox.size / (high - low))  # pixels; both axes have the same
        taken: list[tuple[np.ndarray, np.ndarray]] = []  # centres and half sizes
        for name, tip in zip(self.names, self.values, strict=True):
            half = np.array([4.8 * len(name.get_text()), 9.0]) / unit  # half a line of bold text
            tip = np.clip(tip if np.isfinite(tip).all() else 0.0, low + half, high - half)
            up = half * (0, 1.5 if tip[1] >= 0 else -1.5)
            for steps in (1, -1, 2.5, -2.5, 4):
                place = np.clip(tip + up * steps, low + half, high - half)
                if all((abs(place - p) >= half + h).any() for p, h in taken):
                    break
            name.set_position(place)
            taken.append((place, half))


class Bars(Drawing):
    """One bar per label, with its number above it.

    Args:
        axes: the axes to draw on.
        labels: one name per bar.
        values: ``(n,)``; zeros if omitted.
        title: the title above.
        limits: the ends of the vertical axis.
        digits: decimal places of the numbers, 0 for counts.
    """

    def __init__(
        self, axes: Any, labels: Sequence[Any], values: Any = None, title: str = "",
        limits: tuple[float, float] = (0.0, 1.1), digits: int = 2,
    ):  # fmt: skip
        super().__init__(axes, title)
        self.labels, self.digits = [printable(t) for t in labels], digits
        xs = range(len(labels))
        self.bars = axes.bar(xs, 0.0, color=CYCLE[0], width=0.6, zorder=3, animated=True)
        _label_columns(axes, self.labels)
        axes.set_ylim(*limits)
        axes.axhline(0, color="#bbbbbb", lw=1)
        self.numbers = [axes.text(x, 0, "", ha="center", va="bottom", **_MOVING) for x in xs]
        self.update(np.zeros(len(labels)) if values is None else values)

    def update(self, values: Any) -> None:
        """Show other numbers ``(n,)``."""
        values = array(values, len(self.labels))
        low, high = self.axes.get_ylim()
        heights = np.nan_to_num(values, posinf=high, neginf=low)
        for bar, text, value, height in zip(self.bars, self.numbers, values, heights, strict=True):
            bar.set_height(height)
            text.set_text(_number(value, self.digits))
            text.set_y(np.clip(height, 0, high * 0.92))

    def _parts(self) -> list[str]:
        parts = []
        for tick, text, bar in zip(self.axes.get_xticklabels(), self.numbers, self.bars):  # noqa: B905
            shown, drawn = text.get_text(), _number(bar.get_height(), self.digits)
            number = shown if shown == drawn else f"{shown} with a bar to {drawn}"
            parts.append(f"{tick.get_text()}: {number}".replace("\n", " "))
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

    def __init__(
        self, axes: Any, names: Sequence[str], title: str = "", x: str = "step", y: str = "loss",
        legend: bool = True, **limits: Any,
    ):  # fmt: skip
        super().__init__(axes, title)
        axes.grid(color="#eeeeee")
        look = {"zorder": 3, "animated": True}
        # Each thinner than the ones below it: lines that coincide can all be seen.
        widths = np.linspace(2 + 0.9 * (len(names) - 1), 2, len(names))
        parts = zip(names, label_colours(names), widths, strict=True)
        self.lines = {n: axes.plot([], [], color=c, lw=lw, **look)[0] for n, c, lw in parts}
        self.cursor = axes.axvline(0, color=GREY, lw=1, ls="--", visible=False, **look)
        # Limits before scales: 0 has no logarithm.
        axes.set(xlabel=x, ylabel=y, **dict(sorted(limits.items())))
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "linear":
                axis.set_major_formatter("{x:g}")  # 1000 is read faster than a power
                axis.set_minor_formatter("")
        if legend and len(names) > 1:
            shown = [printable(name, longest=40) for name in names]
            axes.legend(self.lines.values(), shown, loc=2, bbox_to_anchor=(1, 1), frameon=False)

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
            self.cursor.set(xdata=[mark, mark], visible=True)

    def _parts(self) -> list[str]:
        rough = functools.partial(_rough, self.axes.get_ylim(), self.axes.get_yscale() == "log")
        parts = [f"{self.axes.get_ylabel()} over {self.axes.get_xlabel()}"]
        for name, line in self.lines.items():
            x, y = line.get_xydata().T
            # More of the start, where a loss falls.
            shown = sorted({round((y.size - 1) / part) for part in (1e9, 16, 8, 4, 2, 1)})
            points = [f"{rough(y[i])} at {x[i]:g}" for i in shown if y.size] or ["no points yet"]
            if np.isfinite(y).any():
                points += [f"lowest {rough(np.nanmin(y))}", f"highest {rough(np.nanmax(y))}"]
            parts.append(f"{name}: {', '.join(points)}")
        for band in self.axes.collections:
            (x0, y0), (x1, y1) = band.get_paths()[0].get_extents().get_points()
            parts.append(f"band from {rough(y0)} to {rough(y1)}, x from {x0:g} to {x1:g}")
        if self.cursor.get_visible():
            parts.append(f"cursor at {self.cursor.get_xdata()[0]:g}")
        return parts

    @own_settings()
    def band(self, x: Any, low: Any, high: Any) -> None:
        """Add a fixed band, such as the range over seeds."""
        self.axes.fill_between(array(x), array(low), array(high), color=CYCLE[0], alpha=0.2, lw=0)


class Flow(Drawing):
    """Boxes joined by arrows: the path of shapes, the wiring of a block.

    Args:
        axes: the axes to draw on; their frame is hidden.
        boxes: ``(x, y, text)`` of each centre.
        arrows: pairs of indices into ``boxes``, from and to.
        title: the title above.
        size: width and height of every box.
    """

    def __init__(
        self, axes: Any, boxes: Sequence[tuple[float, float, str]],
        arrows: Sequence[tuple[int, int]], title: str = "", size: tuple[float, float] = (0.8, 0.5),
    ):  # fmt: skip
        super().__init__(axes, title)
        axes.axis("off")
        (width, height), (xs, ys, _) = size, zip(*boxes, strict=True)
        axes.set(xlim=(min(xs) - width, max(xs) + width), ylim=(min(ys) - height, max(ys) + height))
        frame: dict[str, Any] = {"facecolor": "#eaf3fa", "edgecolor": CYCLE[0], "lw": 1.2}
        frame["boxstyle"] = "round,pad=0,rounding_size=.06"
        self.boxes: dict[Any, Text] = {}
        for x, y, text in boxes:
            box = FancyBboxPatch((x - width / 2, y - height / 2), width, height, **frame)
            self.boxes[axes.add_patch(box)] = axes.text(x, y, text, **_CENTRED)
        patches, self.arrows = list(self.boxes), []
        look: dict[str, Any] = {"color": GREY, "arrowstyle": "-|>", "mutation_scale": 12}
        for a, b in arrows:
            ends = {"patchA": patches[a], "patchB": patches[b], "shrinkA": 1, "shrinkB": 1}
            arrow = FancyArrowPatch(boxes[a][:2], boxes[b][:2], **ends, **look)
            self.arrows.append(axes.add_patch(arrow))

    def _parts(self) -> list[str]:
        ends = ((self.boxes[a.patchA], self.boxes[a.patchB]) for a in self.arrows)
        return [f"{a.get_text()} -> {b.get_text()}".replace("\n", " ") for a, b in ends]


# As a notebook calls them, whatever style its reader has chosen.
heatmap, vectors, bars = own_settings()(Heatmap), own_settings()(Vectors), own_settings()(Bars)
curves, flow = own_settings()(Curves), own_settings()(Flow)
