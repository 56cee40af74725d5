"""The slides live in JupyterLab: an explorer moves on its slide, and its keys stay there.

Not part of `make test`: it needs the network for the extra "teach", which is installed apart.
"""

import sys
import tomllib

import pytest
from browser import lab_server
from browser.test_learners_lab import running
from support import NOTEBOOKS, ROOT, run

playwright = pytest.importorskip("playwright.sync_api")

ENVIRONMENT = ROOT / "build/environments/teach"
EXTENSIONS = ENVIRONMENT / "share/jupyter/labextensions"
STEP = "Explorer: the whole step, one part at a time"
TEACH = "Explorer: teach bank to look for money"
ROOM = {"width": 1280, "height": 720}
PATIENCE = 60_000  # milliseconds

# Run the cells up to the explorer of that title, as before a lesson, and go back to the first cell.
RUN = """
await panel.sessionContext.ready;
const last = panel.content.widgets.findIndex(cell => cell.model.getMetadata("title") === argument);
panel.content.activeCellIndex = last + 1;
await jupyterapp.commands.execute("notebook:run-all-above");
panel.content.activeCellIndex = 0;
"""
# The slide: its cell, and whether the slideshow still runs with all of its cells.
SLIDE = """[
    panel.content.activeCellIndex,
    panel.content.activeCell.model.getMetadata("title"),
    panel.content.widgets.length,
    document.body.dataset.jpDeckMode,
    document.querySelectorAll(".jp-Deck .jp-Cell.jp-deck-mod-onscreen").length,
]"""


@pytest.fixture(scope="module")
def slides(tmp_path_factory):
    """Notebook 4 of the learner's edition as a slideshow in JupyterLab, from its first slide on."""
    if not lab_server.CHROMIUM:
        pytest.skip("no Chromium here: on Debian or Ubuntu, apt install chromium")
    if not (EXTENSIONS / "jupyterlab-slideshow").exists():
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--prefix", ENVIRONMENT]
        pins = ROOT / ".ci/constraints.txt"
        run(*pip, "--constraint", pins, *project["optional-dependencies"]["teach"])
    home = tmp_path_factory.mktemp("home")
    more = f"--LabApp.extra_labextensions_path={EXTENSIONS}"
    with (
        running(home / "my course", NOTEBOOKS[3].parent, home, more) as address,
        playwright.sync_playwright() as started,
    ):
        page = lab_server.open_browser(started).new_page(viewport=ROOM)
        page.set_default_timeout(PATIENCE)
        lab_server.open_file(page, address, NOTEBOOKS[3].name)
        lab_server.ask(page, RUN, TEACH, seconds=120)
        page.get_by_role("button", name="Toggle Deck").click()
        page.wait_for_function("document.querySelector('.jp-deck-mod-onscreen')")
        yield page
        page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


def go_to(page, title):
    """From the first slide press Space until that one is shown; return its cell."""
    page.evaluate("panel.content.activeCellIndex = 0")
    page.evaluate("panel.content.activeCell.node.focus()")
    while (slide := page.evaluate(SLIDE))[1] != title:
        page.keyboard.press("Space")
        page.wait_for_function(f"panel.content.activeCellIndex > {slide[0]}")
    cell = page.locator(".jp-Cell.jp-deck-mod-onscreen")
    playwright.expect(cell).to_have_count(1)
    return cell


# Whether all of a part of the page is in the window, and its middle is behind nothing else.
SEEN = """part => {
    const {left, right, top, bottom} = part.getBoundingClientRect();
    const middle = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight
        && part.contains(middle);
}"""
# What a picture shows: the bytes of an image, the numbers of a grid.
LOOK = """async node => node.src
    ? String(new Uint8Array(await (await fetch(node.src)).arrayBuffer())) : node.innerText"""
CHANGED = f"async ([node, before]) => await ({LOOK})(node) !== before"
# Each of them is a command of the slideshow or of Lab where a cell has the focus.
KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Space", "Shift+Space", "Escape"]
KEYS += ["x", "d", "d", "a"]


@pytest.mark.parametrize(
    ("title", "picture"),
    [(STEP, "[role=grid][aria-label=Q]"), (TEACH, ".attnlab-screen img")],
    ids=["the step", "an explorer"],
)
def test_a_knob_moves_the_picture_and_not_the_slide(slides, figure, title, picture):
    cell = go_to(slides, title)
    shown, slide = cell.locator(picture), slides.evaluate(SLIDE)
    slider = cell.get_by_label("W_Q row 0 column 1, slider", exact=True)
    entry = cell.get_by_label("W_Q row 0 column 1", exact=True)
    for part in (shown, slider, entry):
        slides.wait_for_function(SEEN, arg=part.element_handle())
    before = shown.evaluate(LOOK)
    slider.focus()
    slides.keyboard.press("ArrowRight")
    slides.wait_for_function(CHANGED, arg=[shown.element_handle(), before])
    assert float(slider.input_value()) > 0
    for knob in (slider, entry):
        for key in KEYS:
            knob.focus()
            slides.keyboard.press(key)
            assert slides.evaluate(SLIDE) == slide, key
    slides.wait_for_timeout(300)  # for a command that takes its time
    assert slides.evaluate(SLIDE) == slide
    figure(f"live slides | {title}: its knob and picture on 1280 x 720")
    slides.get_by_title("Go to next fragment or subslide in Deck").click()
    slides.wait_for_function(f"panel.content.activeCellIndex > {slide[0]}")
