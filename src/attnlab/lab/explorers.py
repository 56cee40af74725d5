"""Moving pictures: a figure, its controls, and one sentence that says what it shows.

An explorer redraws a retained figure into one PNG and hands it to an ``ipywidgets.Image``. No
pyplot, no ``Output`` widget, no thread: nothing flickers, piles up or leaks.
"""

import asyncio
import inspect
import io
import math
import re
import types
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import torch
import traitlets
from PIL import Image

from attnlab.lab.plots import Picture, stack

Cells = tuple[tuple[float, ...], ...]

_LARGE = re.compile(r"\*\*(.+?)\*\*")
# A dark theme changes the page around a widget, so a box that sets one colour sets both.
_LOOKS = {
    "calm": "color:#1a1a1a; background:#eaf3fa;",
    "good": "color:#0b3d1e; background:#e4f5e9;",
    "bad": "color:#5c1a00; background:#fdeee6;",
}


def box(content: str, look: str = "calm", role: str = "status") -> str:
    """HTML ``content`` in a box to be read in either theme; a look is calm, good or bad."""
    style = "font-size:1.05em; line-height:1.4; padding:.4em .7em; border-radius:4px;"
    return f'<div role="{role}" style="{style} {_LOOKS[look]}">{content}</div>'


class Explorer(widgets.VBox):
    """A picture with knobs: every change of a knob calls ``show`` and redraws.

    Args:
        picture: made by ``plots.panels``; what ``show`` updates.
        show: called with the value of every knob by name (a matrix as a float tensor). It
            updates the drawings and returns one sentence, in which ``**0.67**`` is shown large. If
            it is a generator, each sentence it yields is a frame: long work runs in slices on the
            kernel's event loop and is dropped as soon as a knob moves or Stop is pressed. Names of
            the notebook keep the value they have now: later cells may use them anew.
        goal: what to try to reach, in one sentence.
        more: names of the knobs that wait folded.
        stills: settings, such as ``[{"seed": 1}, {"seed": 2}]``, that make the point on their own:
            a place without a kernel shows them one below the other, each with its sentence; an
            empty setting, as there is if none is given, is how the knobs stand.
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
        stills: Sequence[dict[str, Any]] = (),
        **knobs: widgets.Widget,
    ):
        unknown = [name for name in [*more, *(n for s in stills for n in s)] if name not in knobs]
        if unknown:
            raise ValueError(f"no knob is called {unknown[0]!r}: {', '.join(knobs)}")
        self.stills = stills
        self.picture, self.goal, self.knobs = picture, goal, knobs
        self.sentence, self.error = "", ""
        self._show, self._task = _as_now(show), None
        self._words = widgets.HTML()
        still_size = widgets.Layout(max_width="100%", align_self="flex-start")  # not stretched
        # No tooltip, which would be its text alternative: with one, ipywidgets 8 shows no image.
        self._image = widgets.Image(format="png", layout=still_size)
        self._stop = widgets.Button(
            description="Stop", icon="stop", disabled=True, layout=widgets.Layout(width="6em")
        )
        self._stop.on_click(lambda _: self.stop())

        for name, knob in knobs.items():
            if not getattr(knob, "description", ""):
                matrix_like = isinstance(knob, Matrix)
                knob.description = name if matrix_like else name.replace("_", " ")
            knob.observe(self._on_change, names="value")
        first = [knob for name, knob in knobs.items() if name not in more]
        if inspect.isgeneratorfunction(show):
            first.append(self._stop)
        rows = [widgets.HTML(f"<b>Try:</b> {escape(goal)}"), _row(first), self._image, self._words]
        if more:
            # Not an Accordion: its title cannot be reached by keyboard.
            folded = _row([knobs[name] for name in more])
            folded.layout.display = "none"
            unfold = widgets.ToggleButton(value=False, description="More knobs", icon="sliders")
            unfold.observe(
                lambda change: setattr(
                    folded.layout, "display", "flex" if change["new"] else "none"
                ),
                names="value",
            )
            rows[2:2] = [unfold, folded]
        # The first picture is drawn at once and in full, so that what a notebook stores is the
        # end of the run and the author sees an error as an error.
        self._draw(self._show(**self.values()), wait=True)
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
            self._say(_last(result))
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

    def _say(self, sentence: str) -> None:
        if not isinstance(sentence, str):
            raise TypeError(f"show must give one sentence, not {type(sentence).__name__}")
        self._image.value = self.picture.frame()
        large = _LARGE.sub(r'<b style="font-size:1.7em">\1</b>', escape(sentence))
        self._words.value = box(large)
        self.sentence, self.error = _LARGE.sub(r"\1", sentence), ""

    def _fail(self, problem: Exception) -> None:
        self._stop.disabled = True
        self.error = f"{type(problem).__name__}: {problem}"
        words = f"This setting did not work. {escape(self.error)}"
        self._words.value = box(words, "bad", role="alert")

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # A front end without the kernel shows the pictures and the sentences instead.
        now = Image.open(io.BytesIO(self._image.value)), self.sentence
        stills = [self._at(setting) if setting else now for setting in self.stills or [{}]]
        if self.stills:
            self._run(self.values())  # the drawings are again what they were
        words = {"text/plain": self.sentence, "image/png": stack(stills)}
        spoken = " ".join([f"Try: {self.goal}", *(sentence for _, sentence in stills)])
        bundle = {**super()._repr_mimebundle_(**options), **words}
        return bundle, {"image/png": {"alt": spoken}}

    def _at(self, setting: dict[str, Any]) -> tuple[Image.Image, str]:
        values = self.values()
        for name, value in setting.items():
            is_matrix = isinstance(self.knobs[name], Matrix)
            values[name] = torch.as_tensor(value).float() if is_matrix else value
        sentence = self._run(values)
        return self.picture.pixels(), _LARGE.sub(r"\1", sentence)

    def _run(self, values: dict[str, Any]) -> str:
        """Update the drawings, to the end if it is long work, without a frame."""
        result = self._show(**values)
        return _last(result) if inspect.isgenerator(result) else result


def _last(sentences: Iterator[str]) -> str | None:
    """The last one: the work in between is done, and its frames are not drawn."""
    last = None
    for sentence in sentences:
        last = sentence
    return last


def _as_now(show: Callable) -> Callable:
    """The same function, but what later cells assign to the names it uses does not reach it."""
    if not isinstance(show, types.FunctionType):
        return show
    kept = types.FunctionType(
        show.__code__, {**show.__globals__}, show.__name__, show.__defaults__, show.__closure__
    )
    kept.__kwdefaults__ = show.__kwdefaults__
    return kept


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


def words(value: str, label: str = "") -> widgets.Widget:
    """A phrase to type; it counts when Enter is pressed or the field is left."""
    return widgets.Text(
        value=value, description=label, style=_WIDE, continuous_update=False,
        layout=widgets.Layout(width="340px"),
    )  # fmt: skip


class Matrix(anywidget.AnyWidget):
    """A small matrix to be edited: each entry can be dragged, typed, or moved with arrow keys.

    The browser's half is ``matrix.js``; it ships with the package and needs no network.

    Attributes:
        value: rows of numbers, as nested tuples; may be set to a list or a tensor, too. Entries
            are kept between ``low`` and ``high``.
        description: its name, such as ``W_Q``.
        low, high, step: of every entry.
        row_names: names of the rows, if they have any.
        presets: what it can be set to with one choice.
    """

    _esm = Path(__file__).parent / "matrix.js"
    _css = Path(__file__).parent / "matrix.css"
    value = traitlets.TraitType(()).tag(sync=True)  # Any would let None pass unchecked
    description = traitlets.Unicode().tag(sync=True)
    low = traitlets.Float().tag(sync=True)
    high = traitlets.Float().tag(sync=True)
    step = traitlets.Float().tag(sync=True)
    row_names = traitlets.List().tag(sync=True)
    presets = traitlets.List().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)  # the preset that the page asks for

    def __init__(self, start: Cells, **traits: Any):
        self._start = start
        super().__init__(value=start, **traits)

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
        self.value = self._start if name == "start" else PRESETS[name](by)

    @traitlets.observe("asked")
    def _from_page(self, change: dict[str, Any]) -> None:
        # As state and not as a message: one would overtake the values of a gesture still queued.
        asked = change["new"]
        self.preset(asked["preset"], asked.get("by") or 0.0)
        self.send({"set": asked["preset"]})  # the page notes what there was, for Undo


def _turn(degrees: float) -> Cells:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return ((c, s), (-s, c))  # x @ W turns the row x counter-clockwise


def _random(seed: float) -> Cells:
    generator = torch.Generator().manual_seed(int(seed))
    return tuple(map(tuple, torch.randn(2, 2, generator=generator).tolist()))


PRESETS: dict[str, Callable[[float], Cells]] = {
    "identity": lambda _: ((1.0, 0.0), (0.0, 1.0)),
    "zero": lambda _: ((0.0, 0.0), (0.0, 0.0)),
    "swap": lambda _: ((0.0, 1.0), (1.0, 0.0)),
    "rotation": _turn,
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
        start: nested list or tensor of that shape; where reset goes back to.
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
