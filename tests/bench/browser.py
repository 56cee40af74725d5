"""From key press to new pixels in one page of JupyterLab: ours against what else one could use."""

import contextlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from report import line, show

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/browser")]
import lab_server  # noqa: E402

LESSON = ROOT / "course/04_softmax_and_values.ipynb"
KEYS = 40  # in a burst
RATE = 30  # a second: what a keyboard repeats when a key is held
BLOCK = 8  # presses of one subject before the turn of the next

# Each is a cell that shows one slider and what it moves; all but the label show the same content.
SUBJECTS = {
    "label": """
        slider, label = widgets.IntSlider(max=10_000), widgets.Label()
        slider.observe(lambda change: setattr(label, "value", str(change.new)), "value")
        widgets.VBox([slider, label])""",
    "ours": """
        picture, heat, curve = redraw.drawings(0)

        def show(n):
            weights, losses = redraw.data(n)
            heat.update(weights)
            curve.update(loss=losses)
            return f"The largest weight is {weights.max():.2f}."

        Explorer(picture, show, goal="Move it.", n=slider_of(0, 10_000, 0))""",
    "interact": """
        @widgets.interact(n=(0, 10_000))
        def fresh(n=0):
            figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
            draw(*axes, *redraw.data(n))
            plt.show()""",
    "ipympl": """
        from ipympl.backend_nbagg import Canvas, FigureManager
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 3.2))
        canvas = Canvas(figure)
        FigureManager(canvas, 0)
        image, texts, curve_line = draw(*figure.subplots(1, 2), *redraw.data(0))
        n = widgets.IntSlider(max=10_000)

        def move(change):
            weights, losses = redraw.data(change.new)
            image.set_data(weights)
            for text, weight in zip(texts, weights.flatten().tolist()):
                text.set(text=f"{weight:.2f}", color="white" if weight > 0.55 else "black")
            curve_line.set_ydata(losses)
            canvas.draw_idle()

        n.observe(move, "value")
        widgets.VBox([n, canvas])""",
}
SETUP = """
    import sys
    sys.path.insert(0, "../tests/bench")
    import ipywidgets as widgets
    import matplotlib.pyplot as plt
    import redraw
    import torch
    from attnlab.lab import Explorer, slider as slider_of

    torch.set_num_threads(1)

    def draw(left, right, weights, losses):
        image = left.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        texts = [
            left.text(j, i, f"{weight:.2f}", ha="center", va="center",
                      color="white" if weight > 0.55 else "black")
            for i, row in enumerate(weights.tolist()) for j, weight in enumerate(row)
        ]
        left.set_xticks(range(6), redraw.WORDS)
        left.set_yticks(range(6), redraw.WORDS)
        left.set(title="Attention weights", xlabel="key", ylabel="query")
        left.spines[:].set_visible(False)
        [curve] = right.plot(losses, lw=2)
        right.set(title="Training", xlabel="step", ylabel="loss", xlim=(0, 200), ylim=(0, 1.1))
        right.grid(color="#eeeeee")
        right.spines[["top", "right"]].set_visible(False)
        return image, texts, curve"""
NAMES = {
    "label": "a bare label",
    "ours": "our explorer, two panels",
    "interact": "the same afresh under interact",
    "ipympl": "the same under ipympl",
    "linked": "the linked explorer of notebook 4",
}

# New pixels are: the text changed, an image was loaded and decoded, or a canvas was painted on with
# something else than before; and then the page came to its next animation frame.
WATCH = """
() => {
    const sizes = new Map();  // bytes behind each blob's address
    const make = URL.createObjectURL;
    let latest = 0;
    URL.createObjectURL = blob => {
        const url = make.call(URL, blob);
        sizes.set(url, blob.size);
        latest = blob.size;
        return url;
    };
    const watch = window.watch = {box: null, frames: [], keys: []};
    const changed = bytes => requestAnimationFrame(() => {
        watch.frames.push({at: performance.now(), bytes});
        watch.arrived?.();
    });
    addEventListener("keydown", () => watch.keys.push(performance.now()), true);
    document.addEventListener("load", event => {
        const image = event.target;
        if (image.tagName !== "IMG" || !watch.box?.contains(image)) return;
        if (image.src === watch.src) return;  // interact shows each picture twice
        watch.src = image.src;
        const inline = image.src.startsWith("data:");
        changed(inline ? image.src.split(",")[1].length * 3 / 4 : sizes.get(image.src));
    }, true);
    const drawImage = CanvasRenderingContext2D.prototype.drawImage;
    CanvasRenderingContext2D.prototype.drawImage = function (...values) {
        drawImage.apply(this, values);
        const canvas = this.canvas;
        if (!watch.box?.contains(canvas)) return;
        const at = performance.now(), bytes = latest;
        const pixels = new Uint32Array(
            this.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        const sum = pixels.reduce((sum, pixel, n) => (sum + pixel * (n + 1)) % 2 ** 40, 0);
        const same = sum === watch.sum, cost = performance.now() - at;
        watch.sum = sum;
        // To look at the pixels takes time that is not ipympl's.
        if (!same) requestAnimationFrame(() => {
            watch.frames.push({at: Math.max(at, performance.now() - cost), bytes});
            watch.arrived?.();
        });
    };
    watch.at = (box, label) => {
        watch.box = box;
        watch.observer?.disconnect();
        if (!label) return;
        watch.observer = new MutationObserver(() => changed(0));
        watch.observer.observe(label, {childList: true, characterData: true, subtree: true});
    };
    watch.clear = () => { watch.frames.length = watch.keys.length = 0; };
    watch.first = () => new Promise((resolve, reject) => {
        const ready = () => resolve([watch.frames[0].at - watch.keys[0], watch.frames[0].bytes]);
        watch.arrived = ready;
        setTimeout(() => reject(new Error("no new pixels in 20 seconds")), 20000);
        if (watch.frames.length) ready();
    });
}
"""
# All that was sent has been answered, and Lab has tidied up after it: a key pressed at once waits
# up to 30 ms for that, even where it only moves a label.
SETTLE = """
await panel.sessionContext.session.kernel.requestExecute({code: ""}).done;
await new Promise(resolve => setTimeout(resolve, 300));
"""


def notebook(subjects: list[str]) -> tuple[nbformat.NotebookNode, dict[str, int]]:
    """A notebook with all subjects, and the cell of each; the lesson's cells come last."""
    cells, where = [SETUP], {}
    for name in subjects:
        where[name] = len(cells)
        cells.append(SUBJECTS[name])
    lesson = [
        cell for cell in json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]  # fmt: skip
    [last] = [
        n for n, cell in enumerate(lesson)
        if "explorer" in cell["metadata"].get("tags", []) and "linked" in cell["metadata"]["title"]
    ]  # fmt: skip
    cells += ["".join(cell["source"]) for cell in lesson[: last + 1]]
    where["linked"] = len(cells) - 1
    code = [nbformat.v4.new_code_cell(dedented(cell)) for cell in cells]
    made = nbformat.v4.new_notebook(cells=code)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    return made, where


def dedented(cell: str) -> str:
    """A cell without the indentation that it has in this file."""
    lines = cell.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(text[margin:] for text in lines)


class Subject:
    """One of what is compared, on its page; ``focus`` it, then ``press``."""

    def __init__(self, page, name: str, cell: int):
        self.page, self.name, self.presses = page, name, 0
        # Lab renders the cells in view only, so a cell is known by its number in the notebook.
        lab_server.ask(page, "await panel.content.scrollToItem(argument, 'start');", cell)
        at = f".jp-Notebook .jp-Cell[data-windowed-list-index='{cell}']"
        self.cell, self.box = cell, page.locator(at).locator(".jp-OutputArea").first
        if name == "linked":
            self.knob = self.box.get_by_label("W_Q row 0 column 1, slider", exact=True)
        else:
            self.knob = self.box.locator(".noUi-handle, .attnlab-slider [type=range]")

    def focus(self) -> None:
        lab_server.ask(self.page, "await panel.content.scrollToItem(argument, 'start');", self.cell)
        self.knob.focus()
        inside = "box => watch.at(box, box.querySelector('div.widget-label'))"
        self.box.evaluate(inside if self.name == "label" else "box => watch.at(box)")
        for _ in range(2):  # what the first times cost more is not counted
            self.press()

    def press(self) -> tuple[float, float]:
        """Seconds from key press to new pixels, and their bytes."""
        lab_server.ask(self.page, SETTLE)
        self.page.evaluate("watch.clear()")
        self.presses += 1
        self.page.keyboard.press("ArrowRight" if self.presses % 2 else "ArrowLeft")
        milliseconds, size = self.page.evaluate("watch.first()")
        return milliseconds / 1000, size

    def burst(self) -> int:
        """How many frames a held key gives, once in focus."""
        self.page.keyboard.press("Home")
        lab_server.ask(self.page, SETTLE)
        self.page.evaluate("watch.clear()")
        started = time.perf_counter()
        for n in range(KEYS):
            time.sleep(max(0, started + n / RATE - time.perf_counter()))
            self.page.keyboard.press("ArrowRight")
        lab_server.ask(self.page, SETTLE)
        return self.page.evaluate("watch.frames.length")


def measure(page, cells: dict[str, int], repeats: int):
    """Seconds and bytes of every press, and the frames of a burst, for each subject."""
    page.evaluate(WATCH)
    subjects = [Subject(page, name, cell) for name, cell in cells.items()]
    seconds, sizes = ({name: [] for name in cells} for _ in range(2))
    for start in range(0, repeats, BLOCK):
        for subject in subjects:
            subject.focus()
            for _ in range(min(BLOCK, repeats - start)):
                took, size = subject.press()
                seconds[subject.name].append(took)
                sizes[subject.name].append(size)
    frames = {}
    for subject in subjects:
        subject.focus()
        frames[subject.name] = subject.burst()
    return seconds, sizes, frames


def run(repeats: int = 40) -> None:
    """All of them in one page, a few presses each in turn."""
    if not lab_server.CHROMIUM:
        print("  skipped: no Chromium here (on Debian or Ubuntu, apt install chromium)")
        return
    from playwright.sync_api import sync_playwright

    subjects = list(SUBJECTS)
    if importlib.util.find_spec("ipympl") is None:
        print("  ipympl: not installed, pip install ipympl to compare")
        subjects.remove("ipympl")
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy, home = place / "copy", place / "home"
        copy.mkdir()
        home.mkdir()
        lab_server.copy_repository(copy)
        made, cells = notebook(subjects)
        nbformat.write(made, copy / "course/bench.ipynb")
        address = stack.enter_context(lab_server.running_lab(copy, home))
        browser = lab_server.open_browser(stack.enter_context(sync_playwright()))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        lab_server.open_file(page, address, "course/bench.ipynb")
        ran = lab_server.run_all(page)
        errors = [
            out["evalue"] for cell in ran["cells"] for out in cell["outputs"]
            if out["output_type"] == "error"
        ]  # fmt: skip
        assert not errors, errors
        seconds, sizes, frames = measure(page, cells, repeats)
        browser.close()

    for name, all_seconds in seconds.items():
        low, middle, high = (show(s) for s in statistics.quantiles(all_seconds, n=4))
        size = f"{statistics.median(sizes[name]):,.0f} bytes a frame, " if sizes[name][0] else ""
        print(
            f"  {NAMES[name]}: {middle} from key press to new pixels (the middle half: {low} to "
            f"{high}), {size}{frames[name]} frames of {KEYS} keys in a burst, {RATE} a second"
        )
    targets = [
        ("ours", "label", "at most 1.7", lambda ratio: ratio <= 1.7),
        ("interact", "ours", "at least 3", lambda ratio: ratio >= 3),
        ("ipympl", "ours", "at least 2", lambda ratio: ratio >= 2),
        ("linked", "label", "at most 2.4", lambda ratio: ratio <= 2.4),
    ]
    for above, below, target, met in targets:
        if above in seconds:
            names = f"{NAMES[above]} / {NAMES[below]}"
            line(names, seconds[above], seconds[below], target, met)
