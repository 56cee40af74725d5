"""The page's attention step under somebody's hands: in JupyterLab, and on a page from file://."""

import json
import random

import nbformat
import pytest

from attnlab.step import AttentionStep, html, script

from .lab_server import ask, git, open_file, run_all

playwright = pytest.importorskip("playwright.sync_api")
GRIDS = ["X", "Q", "K", "V", "raw", "scaled", "masked", "weights", "output", "sum"]
KNOBS = ["phrase", "query", "temperature", "causal", "W_Q", "W_K", "W_V"]
CHAIN = [*KNOBS, *GRIDS[:4], "words", *GRIDS[4:]]
TEACH = {
    "show": ["W_Q", "words", "plane"],
    "phrase": "river bank",
    "beside": "money bank",
    "goal": "Make bank give money more than 0.95.",
    "when": [["weights", "bank", "money", ">", 0.95]],
}
SCREEN = 598  # pixels that a notebook has in Lab at 1280 x 720, the sidebar closed


def random_values(chance):
    """Traits that Python may set at any time."""
    words = ["river", "money", "bank"]
    phrases = [" ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in "ab"]
    entries = {
        name: [[round(chance.uniform(-3, 3), 1) for _ in "01"] for _ in "01"]
        for name in ("W_Q", "W_K", "W_V")
    }
    return {
        **entries,
        "phrase": phrases[0],
        "beside": chance.choice(["", phrases[1]]),
        "query": chance.choice(words),
        "temperature": round(chance.uniform(0.1, 5), 1),
        "causal": chance.random() < 0.7,
    }


# --- Without a kernel -------------------------------------------------------------------------


@pytest.fixture
def static(browser, tmp_path):
    """Opens a page with these steps from a file; it may ask for nothing else and log nothing."""
    page, trouble = browser.new_page(), []
    page.on("request", lambda request: trouble.append(request.url))
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))

    def open_steps(*steps, width=1280, height=720):
        page.set_viewport_size({"width": width, "height": height})
        body = "".join(map(html, steps))
        file = tmp_path / "page.html"
        head = f'<!doctype html><meta charset="utf-8"><script>{script()}</script>'
        file.write_text(f"{head}<body>{body}", encoding="utf-8")
        page.goto(file.as_uri())
        assert trouble == [file.as_uri()]
        return page

    yield open_steps
    assert len(trouble) <= 1, trouble
    page.close()


def entry(page, name, i, j):
    return page.get_by_label(f"{name} row {i} column {j}", exact=True)


def note(page):
    return page.locator(".note").first


def test_a_page_from_a_file_says_what_python_says(static):
    page, chance = static(AttentionStep()), random.Random(1)
    for _ in range(50):
        step = AttentionStep(
            show=chance.sample([*GRIDS, "words", "plane"], 3), **random_values(chance)
        )
        said = page.evaluate(
            """state => {
                const node = document.body.appendChild(document.createElement("div"));
                attentionStep.mount(node, state);
                const said = node.querySelector(".sentence").textContent;
                node.remove();
                return said;
            }""",
            step.state(),
        )
        assert said == step.sentence


def test_typed_numbers(static):
    page = static(AttentionStep())
    field = entry(page, "W_Q", 0, 1)
    for typed, shown, told in [
        ("0,5", "0.5", None),
        ("−1.25", "-1.25", None),
        ("abc", "-1.25", "“abc” is not a number: W_Q[0, 1] stays −1.25."),
        ("", "-1.25", "“” is not a number: W_Q[0, 1] stays −1.25."),
        ("7", "3", "7 is out of range: W_Q[0, 1] is now 3."),
    ]:
        field.fill(typed)
        field.press("Enter")
        playwright.expect(field).to_have_value(shown)
        if told:
            playwright.expect(note(page)).to_have_text(told)


def test_one_drag_is_one_undo(static):
    page = static(AttentionStep())
    slider, field = page.get_by_label("W_Q row 0 column 1, slider"), entry(page, "W_Q", 0, 1)
    box = slider.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    for x in range(1, 30):
        page.mouse.move(middle[0] + x, middle[1])
    page.mouse.up()
    assert float(field.input_value()) > 0.8
    page.get_by_label("set W_Q to").select_option("swap")
    playwright.expect(entry(page, "W_Q", 1, 0)).to_have_value("1")
    undo = page.get_by_role("button", name="Undo")
    undo.click()
    assert float(field.input_value()) > 0.8
    undo.click()
    playwright.expect(field).to_have_value("0")
    playwright.expect(undo).to_be_disabled()


def test_a_preset_can_be_chosen_again(static):
    page = static(AttentionStep())
    preset = page.get_by_label("set W_V to")
    for _ in "ab":
        preset.select_option("zero")
        playwright.expect(preset).to_have_value("")  # choosing what is chosen is no change
        playwright.expect(entry(page, "W_V", 0, 0)).to_have_value("0")
        entry(page, "W_V", 0, 0).fill("2")
        entry(page, "W_V", 0, 0).press("Enter")
    page.get_by_role("button", name="Start again").click()
    playwright.expect(entry(page, "W_V", 0, 0)).to_have_value("1")


def test_a_vertical_swipe_changes_nothing(browser, static):
    page = static(AttentionStep(), width=390, height=500)
    client = page.context.new_cdp_session(page)
    slider = page.get_by_label("W_Q row 0 column 1, slider")
    slider.scroll_into_view_if_needed()
    before, box = page.evaluate("scrollY"), slider.bounding_box()

    def swipe(dx, dy):
        x, y = box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2
        for n in range(12):
            kind = "touchMove" if n else "touchStart"
            points = [{"x": x + dx * n, "y": y + dy * n}]
            client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            page.wait_for_timeout(16)
        client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_timeout(300)

    swipe(0, -12)
    assert page.evaluate("scrollY") > before  # it did scroll
    playwright.expect(entry(page, "W_Q", 0, 1)).to_have_value("0")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    swipe(-4, 0)
    assert entry(page, "W_Q", 0, 1).input_value() != "0"  # a horizontal one drags


def test_pointing_and_the_keyboard_say_where_a_number_comes_from(static):
    page = static(AttentionStep(show=CHAIN))
    status = page.locator(".attnlab-step").get_by_role("status").element_handle()
    scores = page.get_by_role("grid", name="scores", exact=True)
    cell = scores.get_by_role("gridcell").nth(6)  # row bank, column river
    score = "score(bank, river) = q_bank · k_river = 1 × 2 + 0 × 0 = 2"
    cell.hover()
    playwright.expect(note(page)).to_have_text(score)
    marked = page.evaluate("[...document.querySelectorAll('.from')].map(x => x.textContent)")
    assert marked == ["1.00", "0.00", "2.00", "0.00"]  # the query of bank, the key of river
    page.mouse.move(5, 5)
    playwright.expect(note(page)).to_have_text(
        "z_bank = 0.576 v_river + 0.14 v_money + 0.284 v_bank"
    )

    scores.get_by_role("gridcell").first.focus()
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown", "ArrowLeft"]:
        page.keyboard.press(key)
    playwright.expect(note(page)).to_have_text(score)
    playwright.expect(page.get_by_role("status")).to_have_text(score.replace("_", " "))
    assert scores.locator("[tabindex='0']").count() == 1

    page.get_by_role("gridcell", name="money asks").press("Enter")
    sentence = page.locator(".sentence")
    playwright.expect(sentence).to_contain_text("money gives river 0.0558")
    playwright.expect(page.get_by_role("status")).to_contain_text("money gives river 0.0558")
    assert status.evaluate("node => node.isConnected")  # the live region was changed, not replaced


def test_words_are_joined_by_lines_as_thick_as_the_weights(static):
    page = static(AttentionStep(show=["words"]))
    page.get_by_role("gridcell", name="bank gives river 0.5760").hover()
    playwright.expect(note(page)).to_contain_text("weight(bank, river) = exp(1.4142) / (")
    widths = page.locator(".line").evaluate_all(
        "lines => lines.map(line => Number(line.getAttribute('stroke-width')))"
    )
    weights = AttentionStep().parts[0]["weights"].flatten().tolist()
    assert widths == pytest.approx([18 * weight for weight in weights], abs=0.005)


def test_the_stages_one_after_another(static):
    step = AttentionStep(show=["step", *GRIDS])
    page = static(step)
    assert page.locator(".later").count() == 6
    page.get_by_role("radio", name="project").focus()
    for stage in ["score", "scale", "mask", "softmax", "mix", "add"]:
        page.keyboard.press("ArrowRight")
        step.step = stage
        playwright.expect(page.locator(".sentence")).to_have_text(step.sentence)
    assert page.locator(".later").count() == 0
    page.get_by_role("button", name="Play").click()
    playwright.expect(page.get_by_role("radio", name="score")).to_be_checked(timeout=5000)
    page.get_by_role("button", name="Pause").click()


def test_reduced_motion_is_respected(static):
    page = static(AttentionStep(show=["step", "weights"]))
    duration = "getComputedStyle(document.querySelector('.panel')).transitionDuration"
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(duration) != "0s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(duration) == "0s"


def test_everything_fits_a_phone(static):
    page = static(*map(lambda show: AttentionStep(show=show), [CHAIN, TEACH["show"]]), width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    ends = """[...document.querySelectorAll("svg, input, select, button")]
        .map(x => [x, x.closest(".attnlab-step")].map(y => y.getBoundingClientRect().right))"""
    assert all(end <= edge for end, edge in page.evaluate(ends))


# --- In JupyterLab ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(browser, address, copy):
    """A notebook with two steps, run, each on its screen."""
    setup = "import sys\nsys.path.insert(0, '../src')\nfrom attnlab.step import AttentionStep"
    cells = [setup, f"step = AttentionStep(show={CHAIN})\nstep", f"AttentionStep(**{TEACH})"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(made, copy / "course/step.ipynb")
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.set_default_timeout(30_000)
    open_file(page, address, "course/step.ipynb")
    ask(page, "if (!jupyterapp.shell.leftCollapsed) jupyterapp.shell.collapseLeft();")
    ran = run_all(page)
    errors = [out for cell in ran["cells"] for out in cell["outputs"] if "ename" in out]
    assert not errors, errors
    yield page
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    page.close()
    git(copy, "reset", "--hard", "--quiet")
    git(copy, "clean", "-fdq")


# The body of a function in the page: what some code prints in the kernel.
PRINTED = """
    const printed = async code => {
        const future = panel.sessionContext.session.kernel.requestExecute({code});
        let text = "";
        future.onIOPub = message => { text += message.content.text ?? ""; };
        await future.done;
        return text.trimEnd();
    };
"""


def test_python_sets_and_the_page_says_the_same(lab):
    chance = random.Random(2)
    codes = [
        f"for trait in {random_values(chance)}.items(): setattr(step, *trait)\nprint(step.sentence)"
        for _ in range(50)
    ]
    body = """
        const pairs = [], node = document.querySelector(".attnlab-step .sentence");
        for (const code of argument) {
            const said = await printed(code);
            await new Promise(resolve => setTimeout(resolve, 20));
            pairs.push([node.textContent, said]);
        }
        return pairs;
    """
    pairs = ask(lab, PRINTED + body, codes)
    assert len({said for said, _ in pairs}) > 40
    for said, printed in pairs:
        assert said == printed


def test_the_page_sets_and_python_reads(lab):
    lab.get_by_role("button", name="Start again").first.click()
    field = entry(lab, "W_Q", 0, 1).first
    field.fill("1,5")
    field.press("Tab")
    body = """
        await printed("");  // a second change waits until the first has been answered
        await new Promise(resolve => setTimeout(resolve, 200));
        return printed("print(step.W_Q)");
    """
    assert json.loads(ask(lab, PRINTED + body)) == [[1, 1.5], [0, 1]]


def test_goal_reached(lab):
    teach = lab.locator(".attnlab-step").nth(1)
    playwright.expect(teach.get_by_text("Goal reached", exact=False).first).to_be_hidden()
    entry(teach, "W_Q", 0, 1).fill("3")
    entry(teach, "W_Q", 0, 1).press("Enter")
    playwright.expect(teach.locator(".reached")).to_be_visible()
    playwright.expect(teach.locator(".sentence")).to_contain_text("money 0.9717")
    playwright.expect(teach.locator(".sentence")).to_contain_text("river 0.6698")


def test_no_key_reaches_lab(lab):
    words = [".title", ".sentence", ".note", ".board"]
    pictures = ["svg", ".cell", ".asking", ".link .reach"]
    knobs = [".entry", "select", "fieldset span", "input[type=range]", "button"]
    for place in words + pictures + knobs:
        lab.locator(f".attnlab-step {place}").first.click(force=True, position={"x": 4, "y": 4})
        for key in ["Escape", "x", "d", "d"]:
            lab.keyboard.press(key)
        assert lab.evaluate("panel.content.model.cells.length") == 3, place


@pytest.mark.parametrize("number", [0, 1])
def test_all_of_it_is_on_one_screen_in_letters_that_can_be_read(lab, number):
    step = lab.locator(".attnlab-step").nth(number)
    step.get_by_role("button", name="Start again").click()
    assert step.bounding_box()["height"] <= SCREEN
    sizes = step.evaluate(
        """step => [...step.querySelectorAll("text, p, input, button, select, span, label, legend")]
            .filter(x => !x.closest("[hidden], sub, .unseen"))
            .filter(x => !["radio", "range", "checkbox"].includes(x.type))
            .map(x => parseFloat(getComputedStyle(x).fontSize))"""
    )
    assert min(sizes) >= 14.7


def test_a_step_whose_cell_runs_again_is_replaced(lab):
    body = """
        const models = () => printed("import ipywidgets; print(len(ipywidgets.Widget.widgets))");
        const before = await models();
        panel.content.activeCellIndex = 1;
        await jupyterapp.commands.execute("notebook:run-cell");
        return [before, await models()];
    """
    before, after = ask(lab, PRINTED + body)
    assert before == after
    playwright.expect(lab.locator(".attnlab-step")).to_have_count(2)


def test_a_kernel_that_was_shut_down_is_said(lab):
    """The last test of this notebook: it ends its kernel."""
    gone = lab.get_by_text("The kernel has gone").first
    playwright.expect(gone).to_be_hidden()
    ask(lab, "await panel.sessionContext.shutdown();")
    playwright.expect(gone).to_be_visible()
    lab.get_by_role("button", name="Start again").first.click()
    entry(lab, "W_Q", 0, 1).first.fill("2")
    entry(lab, "W_Q", 0, 1).first.press("Enter")
    playwright.expect(lab.locator(".sentence").first).to_contain_text("money 0.7337")  # it computes
