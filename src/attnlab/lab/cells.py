"""Running a cell again closes what its previous run made, so that nothing piles up."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ipywidgets as widgets
from IPython import get_ipython


class Closable(Protocol):
    """What a cell makes and a later run of it replaces."""

    def retire(self) -> None:
        """Close the widgets and let go of all that needs memory; called once."""


_made: dict[str, tuple[Any, list[Closable]]] = {}  # cell -> its latest run and what that made


def running() -> tuple[str, str] | None:
    """The cell being executed and its execution, or None outside the cells of a Jupyter kernel.

    A cell is known by the id that JupyterLab and VS Code send with it; where none is sent, by its
    text.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    message = kernel.get_parent() if kernel else {}
    if message.get("header", {}).get("msg_type") != "execute_request":
        return None  # a callback, say
    cell = message["metadata"].get("cellId") or message["content"]["code"]
    return cell, message["header"]["msg_id"]


def register(thing: Closable) -> tuple[str, str] | None:
    """Note what the running cell makes; what an earlier run of it made is closed.

    All that one run makes stays, in a loop or by a function that it calls. What is made outside a
    cell, as in a script or a callback, is never closed.
    """
    run = running()
    if run is not None:
        latest, things = _made.get(run[0], (None, []))
        if latest != run:
            _made[run[0]] = run, [thing]
            for old in things:
                old.retire()
        else:
            things.append(thing)
    return run


def in_main_thread(action: Callable[[], None]) -> None:
    """Do it in the thread that runs cells, at once or as soon as no cell is being executed.

    JupyterLab sends what widgets say to a thread of its own (a subshell). An explorer's function
    and a learner's answer must not run beside a cell: torch's random numbers, matplotlib's settings
    and a generator under way are common to all threads.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or threading.current_thread() is threading.main_thread():
        action()
    else:
        kernel.io_loop.asyncio_loop.call_soon_threadsafe(action)


def close(*parts: Any, keep: Sequence[widgets.Widget] = ()) -> None:
    """Close widgets with their children, layouts and styles, except those to ``keep``."""
    for part in parts:
        if isinstance(part, widgets.Widget) and part not in keep:
            close(*getattr(part, "children", ()), keep=keep)
            part.close()
            close(getattr(part, "layout", None), getattr(part, "style", None))
