"""Moving pictures: a figure, its controls, and one sentence that says what it shows.

An explorer redraws a retained figure into one PNG and hands it to an ``ipywidgets.Image``. No
pyplot, no ``Output`` widget, no thread: nothing flickers, piles up or leaks.
"""

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets
import torch
import traitlets

from attnlab.plots import Picture

Cells = tuple[tuple[float, ...], ...]

# A dark theme changes the page around a widget, so a box that sets one colour sets both.
_SENTENCE = "font-size:1.05em; line-height:1.4; padding:.4em .7em; border-radius:4px;"
_CALM = _SENTENCE + "color:#1a1a1a; background:#eaf3fa;"
_ALARM = _SENTENCE + "color:#5c1a00; background:#fdeee6;"


class Explorer(widgets.VBox):
    """A picture with knobs: every change of a knob calls ``show`` and redraws.

    Args:
        picture: made by ``plots.panels``; what ``show`` updates.
        show: called with the value of every knob by name (a matrix as a float tensor). It
            updates the drawings and returns one sentence. If it is a generator, each sentence
            it yields is a frame: long work runs in slices on the kernel's event loop and is
            dropped as soon as a knob moves or Stop is pressed.
        goal: what to try to reach, in one sentence.
        more: names of the knobs that wait folded.
        knobs: ``matrix``, ``slider``, ``choice``, ``toggle``, or any widget with a ``value``.

    Attributes:
        sentence: what the picture shows now; also its ``text/plain``.
        error: what went wrong at the last change, in words; empty if nothing did.
    """

    def __init__(
        self,
        picture: Picture,
        show: Callable[..., str | Iterator[str]],
        *,
        goal: str,
        more: Sequence[str] = (),
        **knobs: widgets.Widget,
    ):
        unknown = [name for name in more if name not in knobs]
        if unknown:
            raise ValueError(f"more names {unknown[0]!r} but the knobs are {', '.join(knobs)}")
        self.picture, self.goal, self.knobs = picture, goal, knobs
        self.sentence, self.error = "", ""
        self._show, self._task = show, None
        self._words = widgets.HTML()
        self._image = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self._stop = widgets.Button(
            description="Stop", icon="stop", disabled=True, layout=widgets.Layout(width="6em")
        )
        self._stop.on_click(lambda _: self.stop())

        for name, knob in knobs.items():
            if not getattr(knob, "description", ""):
                knob.description = name.replace("_", " ")
            knob.observe(self._on_change, names="value")
        first = [knob for name, knob in knobs.items() if name not in more]
        if inspect.isgeneratorfunction(show):
            first.append(self._stop)
        rows = [
            widgets.HTML(f"<b>Try:</b> {escape(goal)}"),
            _row(first),
            self._image,
            self._words,
        ]
        if more:
            folded = widgets.Accordion(
                children=[_row([knobs[name] for name in more])], selected_index=None
            )
            folded.set_title(0, "More knobs")
            rows.insert(2, folded)
        # The first picture is drawn at once and in full, so that what a notebook stores is the
        # end of the run and the author sees an error as an error.
        self._draw(show(**self.values()), wait=True)
        super().__init__(children=rows)

    def values(self) -> dict[str, Any]:
        """The value of every knob, as ``show`` gets it."""
        return {
            name: torch.tensor(knob.value) if isinstance(knob, Matrix) else knob.value
            for name, knob in self.knobs.items()
        }

    def stop(self) -> None:
        """End work that is still running in slices; the picture stays as it is."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._stop.disabled = True

    def _on_change(self, _: Any) -> None:
        self.stop()
        try:
            self._draw(self._show(**self.values()))
        except Exception as problem:
            self._fail(problem)

    def _draw(self, result: str | Iterator[str], wait: bool = False) -> None:
        if not inspect.isgenerator(result):
            self._say(result)
            return
        try:
            loop = None if wait else asyncio.get_running_loop()
        except RuntimeError:  # no event loop: a script or a test
            loop = None
        if loop is None:
            for sentence in result:
                self._say(sentence, frame=False)
            self._say(self.sentence)
        else:
            self._stop.disabled = False
            self._task = loop.create_task(self._play(result))

    async def _play(self, frames: Iterator[str]) -> None:
        try:
            for sentence in frames:
                self._say(sentence)
                await asyncio.sleep(0.005)  # the page's messages are answered here
            self._stop.disabled = True
        except Exception as problem:
            self._fail(problem)

    def _say(self, sentence: str, frame: bool = True) -> None:
        if not isinstance(sentence, str):
            raise TypeError(f"show must give one sentence, not {type(sentence).__name__}")
        self.sentence, self.error = sentence, ""
        if frame:
            self._words.value = f'<div role="status" style="{_CALM}">{escape(sentence)}</div>'
            self._image.value = self.picture.frame()

    def _fail(self, problem: Exception) -> None:
        self._stop.disabled = True
        self.error = f"{type(problem).__name__}: {problem}"
        self._words.value = (
            f'<div role="alert" style="{_ALARM}">This setting did not work. '
            f"{escape(self.error)}</div>"
        )

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        # A front end without the kernel shows the picture and the sentence instead.
        return {
            **super()._repr_mimebundle_(**options),
            "text/plain": self.sentence,
            "image/png": self.picture.still(),
        }


def _row(children: Sequence[widgets.Widget]) -> widgets.Box:
    layout = widgets.Layout(display="flex", flex_flow="row wrap", grid_gap="4px 18px")
    return widgets.Box(children=list(children), layout=layout)


# --- Knobs ----------------------------------------------------------------------------------

_WIDE = {"description_width": "initial"}


def slider(
    low: float, high: float, value: float, step: float | None = None, label: str = ""
) -> widgets.Widget:
    """A number from ``low`` to ``high``; whole numbers if all are ints."""
    whole = all(isinstance(x, int) for x in (low, high, value, 1 if step is None else step))
    kind = widgets.IntSlider if whole else widgets.FloatSlider
    return kind(
        value=value, min=low, max=high, step=step or (1 if whole else 0.1), description=label,
        continuous_update=True, style=_WIDE, layout=widgets.Layout(width="300px"),
    )  # fmt: skip


def choice(options: Sequence[Any], value: Any = None, label: str = "") -> widgets.Widget:
    """One of a few options, all visible; pairs are ``(words, value)``."""
    first = options[0][1] if isinstance(options[0], tuple) else options[0]
    return widgets.ToggleButtons(
        options=list(options), value=first if value is None else value, description=label,
        style={**_WIDE, "button_width": "initial"},
    )  # fmt: skip


def toggle(value: bool, label: str = "") -> widgets.Widget:
    """On or off."""
    return widgets.Checkbox(
        value=value, description=label, indent=False, layout=widgets.Layout(width="auto")
    )


class Matrix(widgets.VBox):
    """A small matrix whose every entry has a slider, with presets and reset.

    Attributes:
        value: rows of numbers, as nested tuples; setting it moves the sliders.
        description: its name, such as ``W_Q``.
    """

    value = traitlets.Tuple()
    description = traitlets.Unicode()

    def __init__(
        self,
        start: Cells,
        low: float,
        high: float,
        step: float,
        label: str,
        rows: Sequence[str],
        presets: bool,
    ):
        self._start = start
        self._cells = [
            [
                widgets.FloatSlider(
                    value=entry, min=low, max=high, step=step, readout_format=".1f",
                    description=f"{rows[i]}, {j}" if rows else f"{i}, {j}",
                    style=_WIDE, layout=widgets.Layout(width="190px" if rows else "160px"),
                )
                for j, entry in enumerate(row)
            ]
            for i, row in enumerate(start)
        ]  # fmt: skip
        self._moving = False
        for row in self._cells:
            for cell in row:
                cell.observe(self._from_cells, names="value")
        grid = widgets.GridBox(
            children=[cell for row in self._cells for cell in row],
            layout=widgets.Layout(
                grid_template_columns=f"repeat({len(start[0])}, max-content)", grid_gap="0 6px"
            ),
        )
        self._title = widgets.HTML()
        reset = widgets.Button(
            icon="undo", tooltip="Back to the start", layout=widgets.Layout(width="3em")
        )
        reset.on_click(lambda _: setattr(self, "value", self._start))
        head = [self._title, reset]
        if presets and len(start) == len(start[0]) == 2:
            self._preset = widgets.Dropdown(
                options=["preset ...", *PRESETS], layout=widgets.Layout(width="9em")
            )
            self._preset.observe(self._from_preset, names="value")
            head.insert(1, self._preset)
        super().__init__(children=[widgets.HBox(head), grid])
        self.value = start
        self.description = label

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> Cells:
        rows = proposal["value"]
        if isinstance(rows, torch.Tensor):
            rows = rows.tolist()
        value = tuple(tuple(float(entry) for entry in row) for row in rows)
        shape = [len(self._start[0])] * len(self._start)
        if [len(row) for row in value] != shape:
            raise traitlets.TraitError(
                f"{self.description} is {len(self._start)} x {len(self._start[0])}: "
                f"{value} does not fit"
            )
        if not all(math.isfinite(entry) for row in value for entry in row):
            raise traitlets.TraitError(f"{self.description} holds a number that is not finite")
        cells = self._cells
        low, high = cells[0][0].min, cells[0][0].max
        return tuple(tuple(min(max(entry, low), high) for entry in row) for row in value)

    @traitlets.observe("value")
    def _to_cells(self, _: Any) -> None:
        self._moving = True
        try:
            for cells, row in zip(self._cells, self.value, strict=True):
                for cell, entry in zip(cells, row, strict=True):
                    cell.value = entry
        finally:
            self._moving = False

    @traitlets.observe("description")
    def _to_title(self, _: Any) -> None:
        self._title.value = f"<b>{escape(self.description)}</b>"

    def _from_cells(self, _: Any) -> None:
        if not self._moving:
            self.value = tuple(tuple(cell.value for cell in row) for row in self._cells)

    def _from_preset(self, change: Any) -> None:
        if change["new"] in PRESETS:
            self.value = PRESETS[change["new"]]
            self._preset.value = self._preset.options[0]


PRESETS: dict[str, Cells] = {
    "identity": ((1.0, 0.0), (0.0, 1.0)),
    "zero": ((0.0, 0.0), (0.0, 0.0)),
    "swap": ((0.0, 1.0), (1.0, 0.0)),
    "quarter turn": ((0.0, 1.0), (-1.0, 0.0)),
    "twice": ((2.0, 0.0), (0.0, 2.0)),
    "minus": ((-1.0, 0.0), (0.0, -1.0)),
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
    presets: bool = True,
) -> Matrix:
    """A knob for a whole matrix; ``start`` is the identity if omitted.

    Args:
        rows, columns: its shape.
        start: nested list or tensor of that shape; where reset goes back to.
        low, high, step: of every entry.
        label: its name, such as ``W_Q``.
        row_names: names of the rows, where they are tokens.
        presets: offer identity, zero, swap ... for a 2 x 2.
    """
    if start is None:
        start = torch.eye(rows, columns)
    cells = tuple(tuple(float(entry) for entry in row) for row in torch.as_tensor(start).tolist())
    if len(cells) != rows or any(len(row) != columns for row in cells):
        raise ValueError(
            f"start has shape {tuple(torch.as_tensor(start).shape)}, not {rows, columns}"
        )
    return Matrix(cells, low, high, step, label, row_names, presets)
