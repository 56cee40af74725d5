"""From key press to new pixels: the step computed in the page against a bare label's round trip."""

import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from report import line, show

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests")]
import lab_server  # noqa: E402

from attnlab.step import AttentionStep, html, script  # noqa: E402

KEYS, RATE = 40, 30  # in a burst, and how many of them a second: what a keyboard repeats
SHOW = ["W_Q", "W_K", "W_V", "X", "Q", "K", "V", "words", "raw", "scaled", "masked", "weights",
        "output", "sum"]  # fmt: skip
LABEL = """
import sys
sys.path.insert(0, "../src")
import ipywidgets as widgets
slider, label = widgets.IntSlider(max=10_000), widgets.Label()
slider.observe(lambda change: setattr(label, "value", str(change.new)), "value")
widgets.VBox([slider, label])"""
STEP = f"from attnlab.step import AttentionStep\nAttentionStep(show={SHOW})"
# New pixels are: the text changed, and then the page came to its next animation frame.
WATCH = """
() => {
    const watch = window.watch = {frames: [], keys: []};
    addEventListener("keydown", () => watch.keys.push(performance.now()), true);
    watch.at = node => {
        watch.observer?.disconnect();
        watch.observer = new MutationObserver(() => {
            if (watch.waiting) return;
            watch.waiting = true;
            requestAnimationFrame(() => {
                watch.waiting = false;
                watch.frames.push(performance.now());
                watch.arrived?.();
            });
        });
        watch.observer.observe(node, {childList: true, characterData: true, subtree: true});
    };
    watch.clear = () => { watch.frames.length = watch.keys.length = 0; };
    watch.first = () => new Promise((resolve, reject) => {
        watch.arrived = () => resolve(watch.frames[0] - watch.keys[0]);
        setTimeout(() => reject(new Error("no new pixels in 20 seconds")), 20000);
        if (watch.frames.length) watch.arrived();
    });
}
"""
SETTLE = """
await panel.sessionContext.session.kernel.requestExecute({code: ""}).done;
await new Promise(resolve => setTimeout(resolve, 300));
"""


class Subject:
    """A knob and the text that it changes."""

    def __init__(self, page, knob, text, in_lab: bool):
        self.page, self.knob, self.text, self.in_lab, self.presses = page, knob, text, in_lab, 0

    def settle(self) -> None:
        """Wait until all that was sent has been answered."""
        if self.in_lab:
            lab_server.ask(self.page, SETTLE)
        else:
            self.page.wait_for_timeout(300)
        self.page.evaluate("watch.clear()")

    def focus(self) -> None:
        self.knob.scroll_into_view_if_needed()
        self.knob.focus()
        self.text.evaluate("node => watch.at(node)")

    def press(self) -> float:
        """Seconds from key press to new pixels."""
        self.settle()
        self.presses += 1
        self.page.keyboard.press("ArrowRight" if self.presses % 2 else "ArrowLeft")
        return self.page.evaluate("watch.first()") / 1000

    def burst(self) -> int:
        """How many frames a held key gives."""
        self.page.keyboard.press("Home")
        self.settle()
        started = time.perf_counter()
        for n in range(KEYS):
            time.sleep(max(0, started + n / RATE - time.perf_counter()))
            self.page.keyboard.press("ArrowRight")
        self.page.wait_for_timeout(500)
        return self.page.evaluate("watch.frames.length")


def run(repeats: int = 40) -> None:
    """A label and the step in one page of Lab, and the step on a page without a kernel."""
    if not lab_server.CHROMIUM:
        print("  skipped: no Chromium here (on Debian or Ubuntu, apt install chromium)")
        return
    from playwright.sync_api import sync_playwright

    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy, home = place / "copy", place / "home"
        copy.mkdir()
        home.mkdir()
        lab_server.copy_repository(copy)
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in (LABEL, STEP)])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
        nbformat.write(made, copy / "course/bench.ipynb")
        file = place / "page.html"
        page_html = f'<!doctype html><meta charset="utf-8"><script>{script()}</script><body>'
        file.write_text(page_html + html(AttentionStep(show=SHOW)), encoding="utf-8")
        address = stack.enter_context(lab_server.running_lab(copy, home))
        browser = lab_server.open_browser(stack.enter_context(sync_playwright()))
        lab, page = (browser.new_page(viewport={"width": 1280, "height": 900}) for _ in "ab")
        page.goto(file.as_uri())
        lab_server.open_file(lab, address, "course/bench.ipynb")
        lab_server.run_all(lab)
        slider, sentence = "W_Q row 0 column 1, slider", ".attnlab-step .sentence"
        subjects = {
            "a bare label": Subject(
                lab, lab.locator(".noUi-handle"), lab.locator("div.widget-label").last, True
            ),
            "the step in Lab": Subject(lab, lab.get_by_label(slider), lab.locator(sentence), True),
            "the step on a page": Subject(
                page, page.get_by_label(slider), page.locator(sentence), False
            ),
        }
        for one in (lab, page):
            one.evaluate(WATCH)
        seconds, frames = {}, {}
        for name, subject in subjects.items():
            subject.page.bring_to_front()
            subject.focus()
            seconds[name] = [subject.press() for _ in range(repeats + 2)][2:]
            frames[name] = subject.burst()
        browser.close()

    for name, all_seconds in seconds.items():
        low, middle, high = (show(s) for s in statistics.quantiles(all_seconds, n=4))
        print(
            f"  {name}: {middle} from key press to new pixels (the middle half: {low} to {high}), "
            f"{frames[name]} frames of {KEYS} keys in a burst, {RATE} a second"
        )
    label, step = seconds["a bare label"], seconds["the step in Lab"]
    line("the step in Lab / a bare label", step, label, "at most 0.5", lambda ratio: ratio <= 0.5)
    print(f"  a page without a kernel: {len(page_html.encode()):,} bytes, script and style in it")
