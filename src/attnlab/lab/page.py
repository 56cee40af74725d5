"""What an explorer, a vote and the progress show on the page: a picture, a status, an alert."""

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from attnlab.lab import cells

_FOLDER = Path(__file__).parent
# A dark theme changes the page around a widget, so a callout that sets one colour sets both.
_LOOKS = {
    "calm": "color:#1a1a1a; background:#eaf3fa;",
    "good": "color:#0b3d1e; background:#e4f5e9;",
    "bad": "color:#5c1a00; background:#fdeee6;",
}


def script(name: str) -> str:
    """The JavaScript of one widget, after the functions that all of them share."""
    files = (_FOLDER / "page.js", _FOLDER / f"{name}.js")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def callout(content: str, look: str = "calm") -> str:
    """HTML ``content`` on a coloured ground, readable in either theme: calm, good or bad."""
    style = "font-size:1.05em; line-height:1.4; padding:.4em .7em; border-radius:4px;"
    return f'<div style="{style} {_LOOKS[look]}">{content}</div>'


class OnPage(anywidget.AnyWidget):
    """Base of the course's own widgets; their other half is JavaScript."""

    _css = (_FOLDER / "lab.css").read_text(encoding="utf-8")
    kernel_gone = traitlets.Bool(False).tag(sync=True)  # only the page sets it


class Screen(OnPage):
    """A picture with its text alternative, and above it two live regions of HTML.

    Attributes:
        frame: a PNG; no picture if empty.
        fine: the same, twice as fine, for dense screens and zoomed pages; empty if there is none.
        alt: the picture in words.
        status: what is shown, announced politely when it changes.
        alert: what went wrong, announced at once; empty if nothing did.
    """

    _esm = script("screen")
    frame = traitlets.Bytes().tag(sync=True)
    fine = traitlets.Bytes().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    alert = traitlets.Unicode().tag(sync=True)


class Shown:
    """Base of what is a widget where there is a page for it, and its ``repr`` elsewhere."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self._page: widgets.Box | None = None
        cells.register(self)

    def _build(self, screen: Screen) -> list[widgets.Widget]:
        """The widgets of the page, from top to bottom, ``screen`` among them."""
        raise NotImplementedError

    def retire(self) -> None:
        """Close the page; showing this again would make a new one."""
        cells.close(self._page)
        self._page = self.screen = None

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        if self._page is None:
            self.screen = Screen()
            self._page = widgets.VBox(self._build(self.screen))
            self._page.add_class("attnlab")
        return {**self._page._repr_mimebundle_(**options), "text/plain": repr(self)}
