"""Knobs: a slider, a choice, a toggle, a phrase, a matrix; and the one way to read a number."""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import anywidget
import ipywidgets as widgets
import torch
import traitlets

from attnlab.lab import cells
from attnlab.lab.page import STYLES, script

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


class _Knob(anywidget.AnyWidget):
    """What a slider and a matrix share: their range, and how the page asks for something.

    The page sets ``asked``, a state and not a message: a message would overtake the values of a
    gesture that are still queued.
    """

    _css = STYLES
    value = traitlets.TraitType(()).tag(sync=True)  # Any would let None pass unchecked
    description = traitlets.Unicode().tag(sync=True)
    low = traitlets.Float().tag(sync=True)
    high = traitlets.Float().tag(sync=True)
    step = traitlets.Float().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    kernel_gone = traitlets.Bool(False).tag(sync=True)  # only the page sets it

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
    """A number to drag, to type, or to move with arrow keys."""

    _esm = script("slider")
    whole = traitlets.Bool().tag(sync=True)

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> float:
        value = proposal["value"]
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            name = self.description or "slider"
            raise traitlets.TraitError(f"{name} must be a finite number, not {value!r}")
        value = min(max(float(value), self.low), self.high)
        if not self.whole:
            return value
        last = math.floor((self.high - self.low) / self.step)
        return int(self.low + self.step * min(round((value - self.low) / self.step), last))

    def _do(self, what: str, text: str | None, at: Any) -> None:
        self.value = number(text or "")


def slider(
    low: float, high: float, value: float, step: float | None = None, label: str = ""
) -> Slider:
    """A number from ``low`` to ``high``; whole numbers if all are ints."""
    whole = all(isinstance(x, int) for x in (low, high, value, 1 if step is None else step))
    return Slider(
        value=value, low=low, high=high, step=step or (1 if whole else 0.1), whole=whole,
        description=label,
    )  # fmt: skip


def _marked(knob: widgets.Widget) -> widgets.Widget:
    knob.made_in = cells.running()
    return knob


def choice(options: Sequence[Any], value: Any = None, label: str = "") -> widgets.Widget:
    """One of a few options, all visible; pairs are ``(text, value)``."""
    first = options[0][1] if isinstance(options[0], tuple) else options[0]
    return _marked(widgets.ToggleButtons(
        options=list(options), value=first if value is None else value, description=label,
        style={**_WIDE, "button_width": "initial"},
    ))  # fmt: skip


def toggle(value: bool, label: str = "") -> widgets.Widget:
    """On or off."""
    return _marked(widgets.Checkbox(
        value=value, description=label, indent=False, layout=widgets.Layout(width="auto")
    ))  # fmt: skip


def phrase(value: str, label: str = "") -> widgets.Widget:
    """A phrase to type; it counts when Enter is pressed or the field is left."""
    return _marked(widgets.Text(
        value=value, description=label, style=_WIDE, continuous_update=False,
        layout=widgets.Layout(width="340px"),
    ))  # fmt: skip


class Matrix(_Knob):
    """A small matrix to be edited: each entry can be dragged, typed, or moved with arrow keys.

    The browser's half is ``matrix.js``; it ships with the package and needs no network.

    Attributes:
        value: rows of numbers, as nested tuples; may be set to a list or a tensor, too. Entries
            are kept between ``low`` and ``high``.
        description: its name, such as ``W_Q``.
        low, high, step: of every entry.
        row_names: names of the rows, if they have any.
        presets: what it can be set to with one choice.
        can_undo: whether there is a step to undo; the steps are the same for all its views.
    """

    _esm = script("matrix")
    row_names = traitlets.List().tag(sync=True)
    presets = traitlets.List().tag(sync=True)
    can_undo = traitlets.Bool(False).tag(sync=True)

    def __init__(self, start: Cells, **traits: Any):
        self._start = self._settled = start
        self._past: list[Cells] = []
        super().__init__(value=start, **traits)
        self._settled = self.value  # within its range

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> Cells:
        rows, name = proposal["value"], self.description or "matrix"
        try:
            value = tuple(
                tuple(float(entry) for entry in row)
                for row in (rows.tolist() if hasattr(rows, "tolist") else rows)
            )
        except (TypeError, ValueError):
            raise traitlets.TraitError(f"{name} is rows of numbers, not {rows!r}") from None
        shape = [len(self._start[0])] * len(self._start)
        if [len(row) for row in value] != shape:
            raise traitlets.TraitError(
                f"{name} is {len(self._start)} x {len(self._start[0])}: {value} does not fit"
            )
        if not all(math.isfinite(entry) for row in value for entry in row):
            raise traitlets.TraitError(f"{name} holds a number that is not finite")
        return tuple(tuple(min(max(entry, self.low), self.high) for entry in row) for row in value)

    def preset(self, name: str, by: float = 0.0) -> None:
        """Set to a preset: ``by`` is the angle in degrees, the factor or the seed it needs."""
        self._settle()
        self.value = self._start if name == "start" else PRESETS[name](by)
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
        if what == "settle":
            self._settle()
        elif what == "undo":
            self.undo()
        elif what == "type":
            self._settle()
            rows = [list(row) for row in self.value]
            rows[at[0]][at[1]] = number(text or "")
            self.value = rows
            self._settle()
        else:
            self.preset(what, number(text) if text is not None else 0.0)


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


def matrix(
    rows: int = 2,
    columns: int = 2,
    start: Any = None,
    *,
    low: float = -3.0,
    high: float = 3.0,
    step: float = 0.1,
    label: str = "",
    row_names: Sequence[str] = (),
) -> Matrix:
    """A knob for a whole matrix; ``start`` is the identity if omitted.

    Args:
        rows, columns: its shape. A 2 x 2 offers presets.
        start: nested list or tensor of that shape; where Reset goes back to.
        low, high, step: of every entry.
        label: its name, such as ``W_Q``.
        row_names: names of the rows, where they are tokens.
    """
    start = torch.eye(rows, columns) if start is None else start
    start = torch.as_tensor(start, dtype=torch.float64)
    if start.shape != (rows, columns):
        raise ValueError(f"start has shape {tuple(start.shape)}, not {rows, columns}")
    return Matrix(
        tuple(map(tuple, start.tolist())),
        low=low,
        high=high,
        step=step,
        description=label,
        row_names=list(row_names),
        presets=list(PRESETS) if (rows, columns) == (2, 2) else [],
    )
