"""Explorers: a figure, its knobs, and one sentence that says what it shows.

An explorer redraws a retained figure into one PNG. No pyplot, no ``Output`` widget, no thread.
"""

import asyncio
import collections
import contextlib
import inspect
import io
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets
import torch
import traitlets
from PIL import Image

from attnlab.lab import cells
from attnlab.lab.knobs import Matrix
from attnlab.lab.page import Screen, callout
from attnlab.lab.plots import Picture, stack
from attnlab.lab.snapshot import as_now

AT_REST = 0.4  # seconds without a change, after which a picture is drawn again, finer
_LARGE = re.compile(r"\*\*(.+?)\*\*")


class Explorer(widgets.VBox):
    """A picture with knobs: every change of a knob calls ``show`` and redraws.

    Running a cell again closes the explorers that its previous run made.

    Args:
        picture: made by ``plots.panels``; what ``show`` updates.
        show: called with the value of every knob by name (a matrix as a float tensor). It
            updates the drawings and returns one sentence, in which ``**0.67**`` is shown large, or
            ``(sentence, reached)`` with whether the goal is reached. If it is a generator, each one
            that it yields is a frame: long work runs in slices on the kernel's event loop and is
            dropped as soon as a knob moves. When Stop is pressed, its ``yield`` returns True: if
            the next one is its last, that frame is shown; otherwise the picture goes back to the
            last complete result. Names of the notebook that it uses, in its helper functions too,
            keep the value they have now.
        goal: what to try to reach, in one sentence.
        buttons: label -> a function that takes the value of every knob, as ``show`` does, and
            returns new values for some of them by name; pressing the button sets these, and in a
            matrix that is one step to undo.
        more: names of the knobs hidden under More knobs. An error that names one of them shows
            them.
        knobs: ``matrix``, ``slider``, ``choice``, ``toggle``, ``typed``, or any widget with a
            ``value``.

    Attributes:
        sentence: what the picture shows now.
        reached: whether the goal is reached now.
        error: what went wrong at the last change, in words; empty if nothing did.
    """

    def __init__(
        self, picture: Picture, show: Callable[..., Any], *, goal: str, more: Sequence[str] = (),
        buttons: dict[str, Callable[..., dict[str, Any]]] | None = None, **knobs: widgets.Widget,
    ):  # fmt: skip
        self.picture, self.goal, self.knobs = picture, goal, knobs
        self._check_names(more)
        self.sentence = self.error = self.text = ""
        self.reached = False
        self._show = as_now(show)
        self._task: asyncio.Task | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._work: Any = None  # the generator of what is under way in slices
        self._waiting = False  # for the main thread to redraw
        super().__init__()
        self.add_class("attnlab")
        self._made_in = cells.register(self)

        self.screen = Screen()
        stop = {"icon": "stop", "tooltip": "Stop the work that is under way"}
        self._stop = widgets.Button(description="Stop", disabled=True, **stop)
        self._stop.layout.width = "6em"
        self._stop.on_click(lambda _: cells.in_main_thread(self.stop))
        for name, knob in knobs.items():
            if not getattr(knob, "description", ""):
                knob.description = name if isinstance(knob, Matrix) else name.replace("_", " ")
            knob.observe(self._on_change, names="value")
        first = [knob for name, knob in knobs.items() if name not in more]
        if inspect.isgeneratorfunction(show):
            first.append(self._stop)
        first += [self._button(label, press) for label, press in (buttons or {}).items()]
        task = widgets.HTML(f"<b>Try:</b> {escape(goal)}", tooltip="")
        rows = [task, _row(first), self.screen]
        self._more: dict[str, Any] = {name: knobs[name] for name in more}
        if more:
            # Not an Accordion: its title cannot be reached by keyboard.
            show_all = {"icon": "sliders", "tooltip": "Show or hide them"}
            self._unfold = widgets.ToggleButton(description="More knobs", **show_all)
            hidden = _row(list(self._more.values()))
            look = {True: "flex", False: "none"}
            traitlets.dlink((self._unfold, "value"), (hidden.layout, "display"), look.get)
            rows[2:2] = [self._unfold, hidden]
        self.children = rows
        # The first picture is drawn at once and in full, so that what a notebook stores is the
        # end of the run and the author sees an error as an error.
        self._say(self._run(self.values()))

    def _button(self, label: str, press: Callable[..., dict[str, Any]]) -> widgets.Button:
        button, now = widgets.Button(description=label, layout={"width": "auto"}), as_now(press)

        def pressed() -> None:
            self._waiting = True  # until all of them are set
            try:
                for name, value in now(**self.values()).items():
                    knob = self.knobs[name]
                    knob.move(value) if isinstance(knob, Matrix) else setattr(knob, "value", value)
                self._redraw()
            except Exception as problem:
                self._waiting = False
                self._fail(problem)

        button.on_click(lambda _: cells.in_main_thread(pressed))
        return button

    def values(self) -> dict[str, Any]:
        """The value of every knob, as ``show`` gets it."""
        return {
            name: torch.tensor(knob.value) if isinstance(knob, Matrix) else knob.value
            for name, knob in self.knobs.items()
        }

    def stop(self) -> None:
        """End work that is under way in slices; the picture shows a complete result."""
        work, at = self._drop(), self.sentence
        if work is None:
            return
        try:
            begun = inspect.getgeneratorstate(work) == inspect.GEN_SUSPENDED
            last = [work.send(True), *itertools.islice(work, 1)] if begun else []
            work.close()
            if len(last) == 1:
                return self._say(last[0])
        except StopIteration:  # it had nothing more to say
            pass
        except Exception as problem:
            return self._fail(problem)
        frame, sentence, alt, _ = self._complete
        self._put(frame, f"Stopped at: {at} The last complete result: {sentence}", alt)

    def retire(self) -> None:
        """Close the widgets and let go of the picture and ``show``: the cell has run again."""
        self._drop()
        if self._rest is not None:
            self._rest.cancel()
        for knob in self.knobs.values():
            knob.unobserve(self._on_change, names="value")
        # A knob that another cell made may be in use elsewhere.
        foreign = [k for k in self.knobs.values() if getattr(k, "made_in", None) != self._made_in]
        cells.close(self, self._stop, keep=foreign)
        # What is left is small: IPython keeps each result of a cell in Out.
        self.children, self.knobs, self._more = [], {}, {}
        for name in ("picture", "screen", "_stop", "_unfold", "_show", "_complete"):
            self.__dict__.pop(name, None)  # it may have failed half-way

    def _drop(self) -> Any:
        """End the task that is under way, if any, and return its generator."""
        task, work = self._task, self._work
        self._task = self._work = None
        if task is not None:
            task.cancel()
            self._stop.disabled = True
        return work

    def _on_change(self, _: Any) -> None:
        if not self._waiting:
            self._waiting = True
            cells.in_main_thread(self._redraw)

    def _redraw(self) -> None:
        self._waiting = False  # what changes from here on is drawn next
        if self.comm is None:
            return  # it has been closed meanwhile
        try:
            if work := self._drop():
                work.close()
            result: Any = self._show(**self.values())
            if not inspect.isgenerator(result):
                return self._say(result)
            try:
                play = asyncio.get_running_loop().create_task
            except RuntimeError:  # no event loop: a script or a test
                return self._say(_last(result))
            self._work, self._task = result, play(self._play(result))
            self._stop.disabled = False
        except Exception as problem:
            self._fail(problem)

    async def _play(self, frames: Iterable[Any]) -> None:
        sentence = None
        try:
            for sentence in frames:
                self._say(sentence, complete=False)
                await asyncio.sleep(0.005)  # the page's messages are answered here
            self._drop()
            self._say(sentence)
        except KeyboardInterrupt:  # from here it would end the kernel
            self.stop()
        except Exception as problem:
            self._fail(problem)

    def _say(self, said: Any, complete: bool = True) -> None:
        sentence, reached = _split(said)
        shown = self.picture.frame(), sentence, self.picture.description, reached
        self.picture.stale = False  # reading tick labels for the description changes nothing
        self._put(*shown)
        self.error = ""
        if complete:
            self._complete = shown

    def _put(
        self, frame: bytes, sentence: str, alt: str, reached: bool = False, alert: str = ""
    ) -> None:
        large = _LARGE.sub(r'<b style="font-size:1.7em">\1</b>', escape(sentence))
        if reached:
            large = f"<b>✓ Goal reached.</b> {large}"
        with self.screen.hold_sync():  # one message
            self.screen.frame, self.screen.fine, self.screen.alt = frame, b"", alt
            look = "good" if reached else "calm"
            self.screen.status, self.screen.alert = callout(large, look), alert
        self.reached = reached
        if self._rest is not None:
            self._rest.cancel()
        with contextlib.suppress(RuntimeError):  # no event loop: a script or a test
            self._rest = asyncio.get_running_loop().call_later(AT_REST, self._refine, frame)
        self.sentence = _LARGE.sub(r"\1", sentence)
        self.text = f"{self.sentence}\n{alt}".strip()

    def _refine(self, frame: bytes) -> None:
        """Nothing has moved for a moment: send the same picture twice as fine."""
        screen = getattr(self, "screen", None)  # the explorer may be closed by now
        if screen is not None and self._task is None and screen.frame == frame == self._complete[0]:
            screen.fine = self.picture.fine()

    def _fail(self, problem: Exception) -> None:
        self._drop()
        self.error = f"{type(problem).__name__}: {problem}"
        alert = f"This setting did not work, so the picture is an earlier one. {escape(self.error)}"
        self._put(*self._complete, alert=callout(alert, "bad"))
        names = [name for k, knob in self._more.items() for name in (k, knob.description)]
        if names and re.search(rf"\b({'|'.join(map(re.escape, names))})\b", self.error):
            self._unfold.value = True

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # A front end without the kernel shows the picture and the sentence instead.
        shown = Stills([(Image.open(io.BytesIO(self.screen.frame)), self.sentence, self.text)])
        still, metadata = shown._repr_mimebundle_()
        metadata["image/png"]["alt"] = f"Try: {self.goal} {self.sentence}"
        return {**super()._repr_mimebundle_(**options), **still}, metadata

    def stills(self, *settings: dict[str, Any]) -> "Stills":
        """The picture and its sentence at other settings, one below the other.

        Args:
            settings: values of knobs by name, such as ``{"seed": 1}``; the other knobs stand as
                they do now.
        """
        now, shown = self.values(), []
        for setting in settings:
            self._check_names(setting)
            values = dict(now)
            for name, value in setting.items():
                is_matrix = isinstance(self.knobs[name], Matrix)
                values[name] = torch.as_tensor(value).float() if is_matrix else value
            sentence, reached = _split(self._run(values))
            sentence = _LARGE.sub(r"\1", sentence)
            text = f"{sentence}\n{self.picture.description}".strip()
            shown.append((self.picture.pixels(), sentence, text, reached))
        self._run(now)  # the drawings are again what they were
        return Stills([still[:3] for still in shown], any(still[3] for still in shown))

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.knobs:
                raise ValueError(f"no knob is called {name!r}: {', '.join(self.knobs)}")

    def _run(self, values: dict[str, Any]) -> Any:
        """Update the drawings, to the end if it is long work, without a frame."""
        result = self._show(**values)
        return _last(result) if inspect.isgenerator(result) else result


class Stills:
    """What an explorer shows at some settings, for a place without a kernel.

    Args:
        shown: for each setting the picture, its sentence, and both in words.
        reached: whether the goal is reached at one of them.
    """

    def __init__(self, shown: Sequence[tuple[Image.Image, str, str]], reached: bool = False):
        self.shown, self.reached = shown, reached

    def __repr__(self) -> str:
        return "\n".join(text for *_, text in self.shown)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        still = stack([(picture, sentence) for picture, sentence, _ in self.shown])
        spoken = " ".join(sentence for _, sentence, _ in self.shown)
        return {"text/plain": repr(self), "image/png": still}, {"image/png": {"alt": spoken}}


def _split(said: Any) -> tuple[str, bool]:
    """What ``show`` gave: a sentence, or a sentence and whether the goal is reached."""
    sentence, reached = said if isinstance(said, tuple) and len(said) == 2 else (said, False)
    if not isinstance(sentence, str):
        raise TypeError(f"show must give one sentence, not {type(sentence).__name__}")
    return sentence, bool(reached)


def _last(sentences: Iterable[Any]) -> Any:
    return next(iter(collections.deque(sentences, maxlen=1)), None)


def _row(children: Sequence[widgets.Widget]) -> widgets.Box:
    layout = widgets.Layout(display="flex", flex_flow="row wrap", grid_gap="4px 18px")
    return widgets.Box(children=list(children), layout=layout)
