"""Knobs: a slider, a choice, a toggle, a phrase, a matrix; and the one way to read a number."""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import ipywidgets as widgets
import torch
import traitlets

from attnlab.lab import cells
from attnlab.lab.page import OnPage, script

Cells = tuple[tuple[float, ...], ...]

_WIDE = {"description_width": "initial"}


def number(text: str) -> float:
    """Read a number as people write it: "0.5", "0,5", "1/2", "1e9", "−3".

    Raises:
        ValueError: in words for the learner, if it is not a finite number.

    >>> number("-1,5"), number("1/2")
    (-1.5, 0.5)
    """
    above, slash, below = text.replace(",", ".").replace("−", "-").partition("/")
    try:
        value = float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"“{text}” is not a number: write it as 0.5, 1/2 or -3.")
    return value


class _Knob(OnPage):
    """What a slider and a matrix share: their range, and how the page asks for something.

    The page sets ``asked``, a state and not a message: a message would overtake the values of a
    gesture that are still queued.
    """

    value: Any = traitlets.TraitType(()).tag(sync=True)  # Any would let None pass unchecked
    description = traitlets.Unicode().tag(sync=True)
    low = traitlets.Float().tag(sync=True)
    high = traitlets.Float().tag(sync=True)
    step = traitlets.Float().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any):
        self.made_in = cells.running()
        super().__init__(**traits)

    def _do(self, what: str, text: str | None, at: Any) -> None:
        """Do what the page asks for, with the text that was typed and the entry it is for."""
        raise NotImplementedError

    @traitlets.observe("asked")
    def _answer(self, change: dict[str, Any]) -> None:
        said, asked = "", change["new"]
        try:
            self._do(asked["do"], asked.get("text"), asked.get("at"))
        except ValueError as problem:
            said = str(problem)
        self.send({"said": said})  # the page then shows the value that counts


class Slider(_Knob):
    """A number from ``low`` to ``high`` to drag, to type, or to move with arrow keys.

    Its steps are whole numbers if all arguments are ints.
    """

    _esm = script("slider")

    def __init__(
        self, low: float, high: float, value: float, step: float | None = None, label: str = ""
    ):
        self._whole = all(isinstance(x, int) for x in (low, high, value, step or 1))
        step = step or (1 if self._whole else 0.1)
        super().__init__(value=value, low=low, high=high, step=step, description=label)

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> float:
        value, name = proposal["value"], self.description or "slider"
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise traitlets.TraitError(f"{name} must be a finite number, not {value!r}")
        value = min(max(float(value), self.low), self.high)
        if not self._whole:
            return value
        last = (self.high - self.low) // self.step
        return int(self.low + self.step * min(round((value - self.low) / self.step), last))

    def _do(self, what: str, text: str | None, at: Any) -> None:
        self.value = number(text or "")


def _plain(kind: Callable[..., Any], label: str, **options: Any) -> widgets.Widget:
    knob = kind(description=label, tooltip="", **options)  # without one, the page shows "null"
    knob.made_in = cells.running()
    return knob


def choice(options: Sequence[Any], value: Any = None, label: str = "") -> widgets.Widget:
    """One of a few options, all visible; pairs are ``(text, value)``."""
    first = options[0][1] if isinstance(options[0], tuple) else options[0]
    value, style = first if value is None else value, {**_WIDE, "button_width": "initial"}
    return _plain(widgets.ToggleButtons, label, options=list(options), value=value, style=style)


def toggle(value: bool, label: str = "") -> widgets.Widget:
    """On or off."""
    layout = widgets.Layout(width="auto")
    return _plain(widgets.Checkbox, label, value=value, indent=False, layout=layout)


def typed(value: str, label: str = "") -> widgets.Widget:
    """A phrase to type; it counts when Enter is pressed or the field is left."""
    options = {"style": _WIDE, "layout": widgets.Layout(width="340px")}
    return _plain(widgets.Text, label, value=value, continuous_update=False, **options)


class Matrix(_Knob):
    """A small matrix to be edited: each entry can be dragged, typed, or moved with arrow keys.

    Args:
        rows, columns: its shape. A 2 x 2 offers presets.
        start: nested list or tensor of that shape; where Reset goes back to; the identity if
            omitted.
        low, high, step: of every entry.
        label: its name, such as ``W_Q``.
        row_names: names of the rows, where they are tokens.

    Attributes:
        value: rows of numbers, as nested tuples; may be set to a list or a tensor, too. Entries
            are kept between ``low`` and ``high``.
        can_undo: whether there is a step to undo; the steps are the same for all its views.
    """

    _esm = script("matrix")
    row_names: Any = traitlets.List().tag(sync=True)
    presets: Any = traitlets.List().tag(sync=True)
    can_undo = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, rows: int = 2, columns: int = 2, start: Any = None, *, low: float = -3.0,
        high: float = 3.0, step: float = 0.1, label: str = "", row_names: Sequence[str] = (),
    ):  # fmt: skip
        start = torch.eye(rows, columns) if start is None else start
        start = torch.as_tensor(start, dtype=torch.float64)
        if start.shape != (rows, columns):
            raise ValueError(f"start has shape {tuple(start.shape)}, not {rows, columns}")
        self._start = tuple(map(tuple, start.tolist()))
        self._past: list[Cells] = []
        super().__init__(
            value=self._start, low=low, high=high, step=step, description=label,
            row_names=list(row_names), presets=list(PRESETS) if start.shape == (2, 2) else [],
        )  # fmt: skip
        self._settled = self.value

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> Cells:
        rows, name = proposal["value"], self.description or "matrix"
        try:
            rows = rows.tolist() if hasattr(rows, "tolist") else rows
            value = tuple(tuple(map(float, row)) for row in rows)
        except (TypeError, ValueError):
            raise traitlets.TraitError(f"{name} is rows of numbers, not {rows!r}") from None
        height, width = len(self._start), len(self._start[0])
        if [len(row) for row in value] != [width] * height:
            raise traitlets.TraitError(f"{name} is {height} x {width}: {value} does not fit")
        if not all(math.isfinite(entry) for row in value for entry in row):
            raise traitlets.TraitError(f"{name} holds a number that is not finite")
        return tuple(tuple(min(max(entry, self.low), self.high) for entry in row) for row in value)

    def preset(self, name: str, by: float = 0.0) -> None:
        """Set to a preset: ``by`` is the angle in degrees, the factor or the seed it needs."""
        self.move(self._start if name == "start" else PRESETS[name](by))

    def move(self, value: Any) -> None:
        """Set another value, as one step to undo."""
        self._settle()
        self.value = value
        self._settle()

    def undo(self) -> None:
        """Go back one step: a gesture, a typed entry or a preset."""
        self._settle()
        if self._past:
            self.value = self._settled = self._past.pop()
        self.can_undo = bool(self._past)

    def _settle(self) -> None:
        """End a gesture: from here it is one step to undo."""
        if self.value != self._settled:
            self._past.append(self._settled)
            self._settled = self.value
            self.can_undo = True

    def _do(self, what: str, text: str | None, at: Any) -> None:
        by = 0.0 if text is None else number(text)
        self._settle()
        if what == "undo":
            self.undo()
        elif what == "type":
            rows = [list(row) for row in self.value]
            rows[at[0]][at[1]] = by
            self.value = rows
            self._settle()
        elif what != "settle":
            self.preset(what, by)


def _rotation(degrees: float) -> Cells:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return ((c, s), (-s, c))  # x @ W rotates the row x counter-clockwise


def _random(seed: float) -> Cells:
    generator = torch.Generator().manual_seed(int(seed) % 2**63)
    return tuple(map(tuple, torch.randn(2, 2, generator=generator).tolist()))


PRESETS: dict[str, Callable[[float], Cells]] = {
    "identity": lambda _: ((1.0, 0.0), (0.0, 1.0)),
    "zero": lambda _: ((0.0, 0.0), (0.0, 0.0)),
    "swap": lambda _: ((0.0, 1.0), (1.0, 0.0)),
    "rotation": _rotation,
    "scale": lambda factor: ((factor, 0.0), (0.0, factor)),
    "random": _random,
}

# Made in a notebook as the other knobs are, by a function's name.
slider, matrix = Slider, Matrix
