"""Explorers under the hands of a learner: in a real JupyterLab with a real kernel, and without one.

What the page must show after a move is asked of the same explorer in this process: the sentence,
and the picture to the last byte.
"""

import json
import re
import subprocess
import sys

import nbformat
import pytest

from .lab_server import ROOT, ask, git, open_file, run_all, save

playwright = pytest.importorskip("playwright.sync_api")
PATIENCE = 30_000  # milliseconds; CI's machines are small
NOTEBOOKS = sorted(ROOT.glob("course/0*.ipynb"))
LESSON, TRAINER = "course/04_softmax_and_values.ipynb", "course/06_tiny_trainer_and_kv_cache.ipynb"
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]

# One explorer whose show may fail, one that works without end (each calls its bars "bars"), and a
# matrix with two views.
OWN = """
from attnlab.lab import Explorer, matrix, plots, slider, toggle

picture, axes = plots.panels(1)
bars = plots.bars(axes, ["n"], limits=(0, 10))

def show(n):
    if n == 3:
        raise ValueError("three is <b>too</b> much")
    bars.update([n])
    return f"n is {n}."

Explorer(picture, show, goal="Move n to 3 and on.", n=slider(0, 9, 0))
# next cell
picture, axes = plots.panels(1)
bars = plots.bars(axes, ["step"], limits=(0, 10))

def work(go):
    n = 0
    while go:
        n += 1
        bars.update([n % 10])
        yield f"Step {n}."
    yield "At rest."

Explorer(picture, work, goal="Let it work, then stop it.", go=toggle(False))
# next cell
M = matrix(label="M")
M
# next cell
M
"""


class OnPage:
    """An explorer on a page, the first of an open notebook or a later one."""

    def __init__(self, page, number=0):
        self.page = page
        self.box = page.locator(".widget-vbox:has(.attnlab-screen img:not([hidden]))").nth(number)
        screen = self.box.locator(".attnlab-screen")
        self.status, self.alert = screen.get_by_role("status"), screen.get_by_role("alert")

    def entry(self, name, i, j):
        """The field of one entry of a matrix."""
        return self.box.get_by_label(f"{name} row {i} column {j}", exact=True)

    def slider(self, name, i, j):
        return self.box.get_by_label(f"{name} row {i} column {j}, slider", exact=True)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def shows(self, sentence, png=None):
        """Wait for a sentence, an exact one or a pattern; then the picture must be this one."""
        if isinstance(sentence, str):
            sentence = re.compile(rf"^(✓ Goal reached\. )?{re.escape(sentence)}$")
        playwright.expect(self.status).to_have_text(sentence, timeout=PATIENCE)
        assert png is None or self.png() == png, "the sentence is right, but the picture is another"

    def png(self):
        code = "async img => [...new Uint8Array(await (await fetch(img.src)).arrayBuffer())]"
        return bytes(self.box.locator("img").evaluate(code))


def settle(page):
    """Wait until the kernel has answered all that the page has sent so far."""
    ask(page, "await panel.sessionContext.session.kernel.requestExecute({code: ''}).done;")


def run_cell(page, index):
    """Run one cell and wait until it has run."""
    ask(
        page,
        """
        panel.content.activeCellIndex = argument;
        await jupyterapp.commands.execute("notebook:run-cell");
        """,
        index,
    )


@pytest.fixture(scope="module")
def open_page(browser, address, copy):
    """Opens a notebook in a page of its own and runs it."""
    pages = []

    def open_page(notebook):
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        pages.append(page)
        open_file(page, address, notebook)
        run_all(page)
        return page

    yield open_page
    pages[0].evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    for page in pages:
        page.close()
    git(copy, "reset", "--hard", "--quiet")
    git(copy, "clean", "-fdq")


@pytest.fixture(scope="module")
def lesson(open_page):
    return open_page(LESSON)


@pytest.fixture(scope="module")
def trainer(open_page):
    return open_page(TRAINER)


@pytest.fixture(scope="module")
def own(open_page, copy):
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in OWN.split("# next cell")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, copy / "own.ipynb")
    return open_page("own.ipynb")


@pytest.fixture(scope="module")
def twin():
    """The lesson's first explorer, here: ``twin(W_Q=...)`` is what the page must show then."""
    from attnlab.lab.explorers import Explorer

    made, init = [], Explorer.__init__

    def record(self, *arguments, **options):
        init(self, *arguments, **options)
        made.append(self)

    source = (ROOT / LESSON).with_suffix(".py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Explorer, "__init__", record)
        patch.chdir(source.parent)
        names = {"__name__": "__main__", "display": lambda *_, **__: None}
        exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    explorer = made[0]

    def twin(preset=None, **matrices):
        explorer.knobs["W_Q"].value = matrices.get("W_Q", IDENTITY)
        if preset:
            explorer.knobs["W_Q"].preset(*preset)
        assert not explorer.error
        return explorer.sentence, explorer.screen.frame

    return twin


@pytest.fixture
def teach(lesson, twin):
    """The lesson's first explorer on its page, with W_Q as it was at the start."""
    lesson.bring_to_front()
    settle(lesson)  # what the last test left behind
    teach = OnPage(lesson)
    teach.box.get_by_label("Reset").first.click()
    teach.shows(*twin())
    return teach


# --- Moving -----------------------------------------------------------------------------------


def test_arrow_keys_move_an_entry(teach, twin):
    before = teach.png()
    teach.slider("W_Q", 0, 1).focus()
    for _ in range(10):
        teach.press("ArrowRight")
    sentence, png = twin(W_Q=[[1, 1], [0, 1]])
    assert "money 0.6698" in sentence and png != before
    teach.shows(sentence, png)
    playwright.expect(teach.entry("W_Q", 0, 1)).to_have_value("1")
    teach.press("ArrowLeft", "ArrowLeft")
    teach.shows(*twin(W_Q=[[1, 0.8], [0, 1]]))


def test_a_typed_entry(teach, twin):
    teach.entry("W_Q", 0, 1).click()
    teach.press("Control+a", "3", "Enter")
    sentence, png = twin(W_Q=[[1, 3], [0, 1]])
    assert "money 0.9717" in sentence
    teach.shows(sentence, png)


def test_what_an_entry_shows_is_what_is_used(teach, twin):
    teach.entry("W_Q", 0, 1).click()
    for typed in ("9", "99"):  # both are out of range
        teach.press("Control+a", *typed, "Enter")
        teach.shows(*twin(W_Q=[[1, 3], [0, 1]]))
        settle(teach.page)
        assert teach.entry("W_Q", 0, 1).input_value() == "3"


def test_a_comma_is_a_decimal_sign_and_what_is_not_a_number_is_told(teach, twin):
    entry = teach.entry("W_Q", 0, 1)
    said = teach.box.locator(".attnlab-matrix .said").first
    for typed, number in ("0,5", 0.5), ("-1,5", -1.5), ("1/2", 0.5), ("−3", -3), ("1e9", 3):
        entry.fill(typed)
        teach.press("Enter")
        teach.shows(*twin(W_Q=[[1, number], [0, 1]]))
        playwright.expect(entry).to_have_value(str(number))
    entry.fill("")
    teach.press("Enter")
    playwright.expect(said).to_have_text("“” is not a number: write it as 0.5, 1/2 or -3.")
    playwright.expect(entry).to_have_value("3")
    entry.click()
    teach.press("ArrowDown", "ArrowDown")  # a number field's own keys
    teach.shows(*twin(W_Q=[[1, 2.8], [0, 1]]))
    playwright.expect(said).to_have_text("")


def test_undo_in_one_view_takes_back_what_another_view_did(own):
    own.bring_to_front()
    first, second = own.get_by_label("M row 0 column 1", exact=True).all()
    undo = own.locator(".attnlab-matrix").first.get_by_label("Undo")
    first.fill("2")
    first.press("Enter")
    playwright.expect(second).to_have_value("2")
    second.fill("-1")
    second.press("Enter")
    playwright.expect(first).to_have_value("-1")
    undo.click()
    playwright.expect(first).to_have_value("2")
    undo.click()
    playwright.expect(second).to_have_value("0")
    playwright.expect(undo).to_be_disabled()


def test_dragging_changes_the_picture_under_way_and_is_one_step_to_undo(teach, twin):
    slider, mouse = teach.slider("W_Q", 0, 1), teach.page.mouse
    slider.scroll_into_view_if_needed()
    place = slider.bounding_box()
    middle, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    mouse.move(middle, y)
    mouse.down()
    for part in range(1, 6):
        mouse.move(middle + part * place["width"] / 20, y)
    playwright.expect(teach.status).not_to_have_text(twin()[0], timeout=PATIENCE)
    assert not teach.entry("W_Q", 0, 1).evaluate("field => field.value === '3'")
    mouse.move(middle + place["width"], y, steps=5)
    mouse.up()
    teach.shows(*twin(W_Q=[[1, 3], [0, 1]]))
    teach.box.get_by_label("Undo").first.click()
    teach.shows(*twin())
    assert teach.slider("W_Q", 0, 1).input_value() == "0"


def test_presets_undo_and_reset(teach, twin):
    preset, undo = teach.box.get_by_label("Preset").first, teach.box.get_by_label("Undo").first
    preset.select_option("rotation")
    teach.shows(*twin(preset=("rotation", 90)))
    by = teach.box.get_by_label("rotation: degrees").first
    assert by.input_value() == "90"
    by.fill("45")
    teach.press("Enter")
    teach.shows(*twin(preset=("rotation", 45)))
    undo.click()
    teach.shows(*twin(preset=("rotation", 90)))
    undo.click()
    teach.shows(*twin())
    preset.select_option("zero")
    teach.shows(*twin(W_Q=[[0, 0], [0, 0]]))
    teach.box.get_by_label("Reset").first.click()
    teach.shows(*twin())
    undo.click()  # of Reset
    teach.shows(*twin(W_Q=[[0, 0], [0, 0]]))
    teach.entry("W_Q", 0, 1).fill("1")
    teach.press("Enter")
    teach.shows(*twin(W_Q=[[0, 1], [0, 0]]))
    preset.select_option("zero")  # again: an edit came between
    teach.shows(*twin(W_Q=[[0, 0], [0, 0]]))


def test_a_burst_of_keys_ends_on_the_last_value(teach, twin):
    teach.slider("W_Q", 0, 1).focus()
    teach.press("Home")
    teach.shows(*twin(W_Q=[[1, -3], [0, 1]]))
    teach.press(*["ArrowRight"] * 40)
    last = twin(W_Q=[[1, 1], [0, 1]])
    teach.shows(*last)
    settle(teach.page)  # and nothing stale comes after it
    assert (teach.status.text_content(), teach.png()) == last


def test_two_explorers_in_one_page_do_not_disturb_one_another(teach, twin):
    other = OnPage(teach.page, 1)
    before = other.status.text_content(), other.png()
    teach.slider("W_Q", 0, 1).focus()
    teach.press("End")
    moved = twin(W_Q=[[1, 3], [0, 1]])
    teach.shows(*moved)
    settle(teach.page)
    assert (other.status.text_content(), other.png()) == before
    # Both have a knob named W_Q, and the notebook has two functions named show.
    other.slider("W_Q", 0, 0).focus()
    teach.press("Home")
    playwright.expect(other.status).to_contain_text("Loss 0.228", timeout=PATIENCE)
    settle(teach.page)
    teach.shows(*moved)
    assert other.png() != before[1]
    other.box.get_by_label("Reset").first.click()
    other.shows(*before)


# --- The keyboard alone -------------------------------------------------------------------------

# The name of a control, as a screen reader finds it, and its height.
NAMES = """
nodes => nodes.filter(node => node.checkVisibility()).map(node => [
    node.ariaLabel || node.labels?.[0]?.textContent || node.textContent || node.title || "",
    Math.round((node.type === "checkbox" ? node.closest("label") : node)
        .getBoundingClientRect().height),
])
"""
FOCUSABLE = "input, select, button, [tabindex='0']"


def reached_by_tab(explorer):
    """What Tab reaches in an explorer and all that it should reach, each by its number."""
    explorer.box.evaluate(
        """(box, focusable) => {
            box.querySelectorAll(focusable).forEach((node, n) => { node.dataset.n = n; });
            box.tabIndex = -1;  // to begin right before it
            box.focus();
        }""",
        FOCUSABLE,
    )
    reached = []
    while True:
        explorer.press("Tab")
        number = explorer.box.evaluate(
            "box => box.contains(document.activeElement) ? document.activeElement.dataset.n : null"
        )
        if number is None:
            break
        reached.append(number)
    shown = "nodes => nodes.filter(n => !n.disabled && n.checkVisibility()).map(n => n.dataset.n)"
    return reached, explorer.box.locator(FOCUSABLE).evaluate_all(shown)


def test_tab_alone_reaches_every_control(teach):
    for explorer in (teach, OnPage(teach.page, 1)):
        reached, wanted = reached_by_tab(explorer)
        assert reached == wanted
        assert len(wanted) >= 10  # each entry twice, Preset, Reset


def test_every_control_has_a_name_and_is_large_enough_to_touch(teach, trainer):
    for page in trainer, teach.page:  # sliders and choices; matrices
        page.bring_to_front()
        page.get_by_role("button", name="More knobs").first.click()
        controls = OnPage(page).box.locator(FOCUSABLE)
        controls.nth(10).wait_for()  # until the kernel has shown the others: there are more than 10
        found = controls.evaluate_all(NAMES)
        page.get_by_role("button", name="More knobs").first.click()
        assert [name for name, _ in found if not name or "null" in name] == []
        assert [(name, height) for name, height in found if height < 24] == []
        assert page.locator("[title=null]").count() == 0


def test_tab_and_enter_unfold_more_knobs(teach):
    folded = teach.entry("W_K", 0, 0)
    playwright.expect(folded).to_be_hidden()
    teach.box.evaluate("box => { box.tabIndex = -1; box.focus(); }")
    for _ in range(60):
        teach.press("Tab")
        if "More knobs" in teach.page.evaluate("document.activeElement.textContent.slice(0, 20)"):
            teach.press("Enter")
            break
    playwright.expect(folded).to_be_visible(timeout=3000)


@pytest.mark.parametrize("where", ["entry", "slider"])
def test_keys_in_a_matrix_are_no_shortcuts_of_lab(teach, where):
    notebook = """() => JSON.stringify([
        panel.content.activeCellIndex, panel.content.mode, document.querySelector(".jp-Dialog"),
        panel.content.widgets.map(w => [w.model.type, w.model.id, w.model.executionCount]),
    ])"""
    cell = getattr(teach, where)("W_Q", 1, 1)
    cell.click()
    before = teach.page.evaluate(notebook)
    letters = (
        "a b c d d x v m y r 0 0 i i j k z Shift+l Shift+m Shift+Enter Control+Enter Alt+Enter"
    )
    teach.press(*letters.split(), "ArrowDown", "ArrowUp", "Delete", "Enter")
    settle(teach.page)
    assert teach.page.evaluate(notebook) == before
    assert cell.evaluate("cell => cell === document.activeElement")


# --- Looks --------------------------------------------------------------------------------------

# Of the text of each element, by WCAG; the pixel of a canvas turns any way to write a colour into
# numbers, laid over what lies behind it.
CONTRAST = """
nodes => nodes.map(node => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const paint = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); };
    const luminance = () => [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
        .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = [];
    for (let n = node; n; n = n.parentElement) behind.unshift(getComputedStyle(n).backgroundColor);
    ["white", ...behind].forEach(paint);
    const below = luminance();
    paint(getComputedStyle(node).color);
    const [low, high] = [below, luminance()].sort((a, b) => a - b);
    const name = node.ariaLabel || node.textContent.slice(0, 30);
    return [`${node.tagName} ${name}`, (high + 0.05) / (low + 0.05)];
})
"""


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_every_word_can_be_read_in_either_theme(teach, theme):
    change = "await jupyterapp.commands.execute('apputils:change-theme', {theme: argument});"
    ask(teach.page, change, theme)
    try:
        teach.page.wait_for_function(
            "name => document.body.dataset.jpThemeName === name", arg=theme, timeout=PATIENCE
        )
        teach.slider("W_Q", 0, 0).focus()
        teach.press("End")  # the strongest tint
        teach.slider("W_Q", 1, 1).focus()
        teach.press("Home")
        playwright.expect(teach.status).to_be_visible()
        texts = "[role=status], .attnlab-matrix :is(input[type=text], b, select, button:enabled)"
        nodes = teach.box.locator(f"{texts}, b, .widget-html-content")
        for _ in range(50):  # the theme has its name before all of its style sheet counts
            found = nodes.evaluate_all(CONTRAST)
            faint = [(name, ratio) for name, ratio in found if ratio < 4.5]
            if not faint:
                break
            teach.page.wait_for_timeout(100)
        assert len(found) > 20
        assert faint == []
    finally:
        ask(teach.page, change, "JupyterLab Light")


CUT_OFF = """
box => {
    // An entry in focus may have scrolled its output sideways.
    for (let n = box; n; n = n.parentElement) n.scrollLeft = 0;
    const room = box.closest(".jp-OutputArea-output").getBoundingClientRect();
    const nodes = [...box.querySelectorAll(".attnlab-matrix *, [role=status]")];
    return nodes.filter(node => node.checkVisibility()).filter(node => {
        const place = node.getBoundingClientRect();
        return place.left < room.left || place.right > room.right + 1
            || node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0;
    }).map(node => node.ariaLabel || node.className || node.tagName);
}
"""


def test_at_200_percent_nothing_of_a_matrix_is_cut_off(teach):
    page = teach.page
    teach.entry("W_Q", 1, 1).fill("-2.65")  # as long as a number gets
    teach.press("Enter")
    before = page.viewport_size
    # What zooming does to a page: half as many pixels of CSS each way.
    page.set_viewport_size({"width": before["width"] // 2, "height": before["height"] // 2})
    try:
        for number in (0, 1):
            box = OnPage(page, number).box
            box.scroll_into_view_if_needed()
            for _ in range(50):  # Lab lays its panels out a moment later
                cut = box.evaluate(CUT_OFF)
                if not cut:
                    break
                page.wait_for_timeout(100)
            assert cut == []
    finally:
        page.set_viewport_size(before)


# --- Trouble ------------------------------------------------------------------------------------


def test_a_failing_show_says_so_in_words_and_the_next_value_recovers(own):
    own.bring_to_front()
    explorer = OnPage(own)
    explorer.status.evaluate("node => { node.dataset.same = 'node'; }")
    explorer.box.get_by_role("slider").focus()
    explorer.press("ArrowRight", "ArrowRight")
    explorer.shows("n is 2.")
    picture = explorer.png()
    assert explorer.box.locator("img").get_attribute("alt") == "n: 2.00."
    explorer.press("ArrowRight")
    told = "This setting did not work, so the picture is an earlier one. ValueError: three is "
    playwright.expect(explorer.alert).to_have_text(told + "<b>too</b> much", timeout=PATIENCE)
    explorer.shows("n is 2.", picture)
    explorer.press("ArrowRight")
    explorer.shows("n is 4.")
    playwright.expect(explorer.alert).to_have_text("")
    assert explorer.png() != picture
    # It is one node whose text changes: a new one would not be announced.
    assert explorer.status.get_attribute("data-same") == "node"
    field = explorer.box.get_by_role("textbox")
    field.fill("7,0")
    field.press("Enter")
    explorer.shows("n is 7.")
    field.fill("seven")
    field.press("Enter")
    playwright.expect(explorer.box.locator(".said")).to_contain_text("“seven” is not a number")
    playwright.expect(field).to_have_value("7")


def test_while_long_work_runs_the_page_answers_and_stop_ends_it(own):
    own.bring_to_front()
    quick, working = OnPage(own), OnPage(own, 1)
    stop = working.box.get_by_role("button", name="Stop")
    step = "box => Number(box.querySelector('[role=status]').textContent.match(/Step (\\d+)/)[1])"
    grows = "([box, n]) => Number(box.textContent.match(/Step (\\d+)/)[1]) > n"
    playwright.expect(stop).to_be_disabled()
    at_rest = working.png()
    working.box.get_by_role("checkbox").check()
    playwright.expect(stop).to_be_enabled(timeout=PATIENCE)
    playwright.expect(working.status).to_contain_text("Step ", timeout=PATIENCE)

    quick.box.get_by_role("slider").focus()
    quick.press("Home")
    quick.shows("n is 0.")
    quick.press("ArrowRight")
    quick.shows("n is 1.")
    now = working.box.evaluate(step)
    own.wait_for_function(grows, arg=[working.box.element_handle(), now])  # it still works

    stop.click()
    playwright.expect(stop).to_be_disabled(timeout=PATIENCE)
    settle(own)
    stopped = working.status.text_content(), working.png()
    assert stopped[0].startswith("Stopped at: Step ")
    assert stopped[0].endswith(" The last complete result: At rest.") and stopped[1] == at_rest
    quick.box.get_by_role("slider").focus()
    quick.press("ArrowRight")
    quick.shows("n is 2.")
    settle(own)
    assert (working.status.text_content(), working.png()) == stopped

    working.box.get_by_role("checkbox").uncheck()
    working.shows("At rest.")


def test_retraining_grows_in_the_page_and_can_be_stopped_and_scrubbed(trainer):
    trainer.bring_to_front()
    explorer = OnPage(trainer, 1)
    seed = explorer.box.get_by_label("seed, slider", exact=True)
    at = explorer.box.get_by_label("look at step, slider", exact=True)
    playwright.expect(explorer.status).to_contain_text("Step 200:", timeout=PATIENCE)
    first = explorer.png()
    at.focus()
    explorer.press("Home")
    playwright.expect(explorer.status).to_contain_text("Step 0:", timeout=PATIENCE)
    playwright.expect(explorer.status).to_contain_text("Loss above ln 2: True")
    assert explorer.png() != first
    # Every sentence from here on is noted, and Stop is pressed at the third of the training.
    explorer.box.evaluate(
        """box => {
            window.said = [];
            let pressed = false;
            const look = () => {
                const sentence = box.querySelector(".attnlab-screen [role=status]").textContent;
                if (sentence && sentence !== said.at(-1)) said.push(sentence);
                if (pressed || said.filter(text => text.startsWith("Training")).length < 3) return;
                pressed = true;
                [...box.querySelectorAll("button")].find(b => b.textContent === "Stop").click();
            };
            new MutationObserver(look).observe(box, {subtree: true, childList: true});
        }"""
    )
    seed.focus()
    explorer.press("ArrowRight")
    stopped = re.compile(r"^Stopped at step (\d+)\. Step 0: ")
    playwright.expect(explorer.status).to_have_text(stopped, timeout=PATIENCE)
    playwright.expect(explorer.box.get_by_role("button", name="Stop")).to_be_disabled()
    # What there is can be scrubbed, and nothing is trained any more.
    step = stopped.match(explorer.status.text_content())[1]
    trained = len(trainer.evaluate("said.filter(text => text.startsWith('Training'))"))
    at.focus()
    explorer.press("End")
    last = re.compile(rf"^Stopped at step {step}\. Step {step}: ")
    playwright.expect(explorer.status).to_have_text(last, timeout=PATIENCE)
    for _ in range(5):  # it would train to the end meanwhile
        settle(trainer)
    playwright.expect(explorer.status).to_have_text(last)
    assert trainer.evaluate("said.filter(t => t.startsWith('Training')).length") == trained
    # The next seed is trained to its end.
    seed.focus()
    explorer.press("ArrowRight")
    playwright.expect(explorer.status).to_contain_text("Step 200:", timeout=PATIENCE)


def test_after_a_reload_the_knobs_are_back_while_the_kernel_runs(teach, twin):
    page = teach.page
    save(page)
    kernel = page.evaluate("panel.sessionContext.session.kernel.id")
    page.reload()
    page.wait_for_function("window.jupyterapp")
    cells = ask(
        page,
        """
        await jupyterapp.restored;
        window.panel = await jupyterapp.commands.execute("docmanager:open", {path: argument});
        await panel.context.ready;
        await panel.sessionContext.ready;
        return panel.content.widgets.flatMap((cell, index) =>
            cell.model.getMetadata("tags")?.includes("explorer") ? [index] : []);
        """,
        LESSON,
    )
    assert page.evaluate("panel.sessionContext.session.kernel.id") == kernel
    assert len(cells) >= 2
    for index in reversed(cells):
        page.wait_for_function(
            """index => {
                panel.content.scrollToItem(index);  // again, while cells above it are still drawn
                const {node} = panel.content.widgets[index];
                return node.querySelector(".attnlab img, .attnlab-step");
            }""",
            arg=index,
            polling=200,
        )
    teach.shows(*twin())
    teach.slider("W_Q", 0, 1).focus()
    teach.press("End")
    teach.shows(*twin(W_Q=[[1, 3], [0, 1]]))


@pytest.mark.parametrize("how", ["restart", "death"])
def test_when_the_kernel_has_gone_the_controls_say_so_until_the_cell_runs_again(
    page, address, copy, how
):
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in OWN.split("# next cell")]
    notebook = nbformat.v4.new_notebook(cells=[cells[0], cells[2]])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, copy / "gone.ipynb")
    open_file(page, address, "gone.ipynb")
    run_all(page)
    explorer, gone = OnPage(page), "The kernel has gone: run this cell again."
    explorer.shows("n is 0.")
    matrix = page.locator(".attnlab-matrix")
    if how == "restart":
        ask(page, "await panel.sessionContext.session.kernel.restart();")
    else:
        code = "{code: 'import os; os._exit(1)'}"
        page.evaluate(f"() => {{ panel.sessionContext.session.kernel.requestExecute({code}); }}")
    playwright.expect(explorer.alert).to_have_text(gone, timeout=PATIENCE)
    playwright.expect(matrix.get_by_role("status")).to_have_text(gone)
    playwright.expect(matrix.get_by_label("M row 0 column 1", exact=True)).to_be_disabled()
    playwright.expect(explorer.box.get_by_role("slider")).to_be_disabled()
    if how == "death":
        page.locator(".jp-Dialog button").click()  # Lab tells it, too
    ask(page, "await panel.sessionContext.session.kernel.info;")
    run_all(page)
    playwright.expect(explorer.alert).to_have_text("", timeout=PATIENCE)
    explorer.box.get_by_role("slider").focus()
    explorer.press("ArrowRight")
    explorer.shows("n is 1.")


# --- Without a kernel and without a network -----------------------------------------------------


def export(folder, *options):
    """All notebooks as static pages."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", f"--output-dir={folder}"]
    # Its log in pytest's own way: only if something fails.
    done = subprocess.run(
        [*command, *options, *map(str, NOTEBOOKS)], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def offline(browser):
    """A page of a browser that has no network, and the addresses it asked for nevertheless."""
    context = browser.browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    context.close()


@pytest.mark.parametrize("kind", ["as it comes", "self-contained"])
def test_a_static_export_shows_every_explorer_with_the_network_off(offline, tmp_path, kind):
    # As it comes, nbconvert's page asks for two scripts: one that typesets formulas (without it
    # they are read as TeX) and one for widgets, of which there are none.
    options = ["--HTMLExporter.mathjax_url=", "--HTMLExporter.require_js_url="]
    export(tmp_path, *(options if kind == "self-contained" else []))
    scripts = {"mathjax", "require.js"} if kind == "as it comes" else set()
    for notebook in NOTEBOOKS:
        offline.asked.clear()
        offline.goto((tmp_path / notebook.name).with_suffix(".html").as_uri())
        outside = [url for url in offline.asked if not url.startswith(("file:", "data:", "blob:"))]
        libraries = {url.split("/ajax/libs/")[-1].split("/")[0] for url in outside}
        assert libraries <= scripts, outside
        tagged = [
            cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
            if "explorer" in cell["metadata"].get("tags", [])
        ]  # fmt: skip
        widths = "cells => cells.map(cell => cell.querySelector('img')?.naturalWidth ?? 0)"
        shown = offline.locator(".celltag_explorer").evaluate_all(widths)
        assert len(shown) == len(tagged) > 0
        assert all(width > 100 for width in shown), (notebook.name, shown)
        assert offline.locator(".jupyter-widgets, .widget-view, [class*=error]").count() == 0
        assert offline.get_by_text("widget", exact=False).count() == 0, notebook.name
