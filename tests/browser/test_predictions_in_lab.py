"""Votes and progress under the hands of a learner, in a real JupyterLab with a real kernel."""

import nbformat
import pytest

from .lab_server import ask, open_file, run_all

playwright = pytest.importorskip("playwright.sync_api")

SETUP = """
from collections import namedtuple
from attnlab.lab import Explorer, choice, typed, plots, predict, progress, slider, toggle

class Exercise:
    number, name, variables = "1.1", "lookup", ("my_lookup",)

    def __call__(self, answer):
        return namedtuple("Verdict", "status message")("done", "Right.")
"""
ASK = """
reasons = {"22": "Those are letters.", "4": "", "5": "<b>too much</b>"}
vote = predict("What is 2 + 2?", reasons, key="4")
vote"""
NUMBER = """
number = predict("What is 1 + 1?", key="2")
number"""
KNOBS = """
picture, axes = plots.panels(1)
bars = plots.bars(axes, ["n"], limits=(0, 10))

def show(n, c, t, p):
    bars.update([n])
    return f"n is {n}, {c}, {t}, {p}."

Explorer(picture, show, goal="Move.", n=slider(0, 9, 0), c=choice("ab"), t=toggle(False),
         p=typed("it"))"""


def write(copy, name, *cells):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    )
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, copy / name)
    return name


def test_a_reveal_waits_for_a_vote_by_mouse_or_keyboard(page, address, copy):
    cells = SETUP, ASK, 'vote.reveal(str(2 + 2), "Numbers are **added**.")'
    open_file(page, address, write(copy, "own.ipynb", *cells))
    run_all(page)
    question = page.get_by_role("group", name="What is 2 + 2?")
    revealed = page.locator(".attnlab-prediction .reveal")
    playwright.expect(page.get_by_text("Vote above first.")).to_be_visible()
    playwright.expect(revealed).to_be_hidden()
    question.get_by_label("22").check()
    playwright.expect(page.get_by_role("status")).to_contain_text("Noted.")
    playwright.expect(revealed).to_contain_text("22 (your vote) Those are letters.")
    playwright.expect(revealed).to_contain_text("4 (✓ right)")
    playwright.expect(revealed.locator("strong")).to_have_text("added")
    page.keyboard.press("ArrowDown")  # as radio buttons do
    playwright.expect(revealed).to_contain_text("4 (✓ right, your vote)")
    question.get_by_label("5").check()  # and what an option says of itself is text
    playwright.expect(revealed).to_contain_text("5 (your vote) <b>too much</b>")
    run_all(page)  # the vote stays
    playwright.expect(question.get_by_label("5")).to_be_checked()
    playwright.expect(page.locator(".attnlab-prediction .reveal")).to_be_visible()


def test_who_does_not_want_to_vote_can_see_it_anyway(page, address, copy):
    open_file(page, address, write(copy, "own.ipynb", SETUP, NUMBER, "number.reveal(1.5)"))
    run_all(page)
    revealed = page.locator(".attnlab-prediction .reveal")
    playwright.expect(revealed).to_be_hidden()
    page.get_by_role("button", name="Show anyway").click()
    playwright.expect(revealed).to_contain_text("Computed: 1.5.")


def test_a_typed_number_is_read_with_its_comma(page, address, copy):
    open_file(page, address, write(copy, "own.ipynb", SETUP, NUMBER, "number.reveal(1.5)"))
    run_all(page)
    field = page.get_by_label("What is 1 + 1?")
    field.fill("1,5")
    field.press("Enter")
    revealed = page.locator(".attnlab-prediction .reveal")
    playwright.expect(revealed).to_contain_text("You said 1,5. Computed: 1.5. Right.")
    field.fill("much")
    field.press("Enter")
    playwright.expect(page.get_by_role("status")).to_contain_text("“much” is not a number")


NOTEBOOK = """() => JSON.stringify([
    panel.content.activeCellIndex, panel.content.mode, document.querySelector(".jp-Dialog"),
    panel.content.widgets.map(w => [w.model.type, w.model.id, w.model.executionCount]),
])"""
LETTERS = "a b c x v m y r 0 0 i j k z d d Shift+l Shift+m".split()


def test_keys_in_votes_and_knobs_are_no_shortcuts_of_lab(page, address, copy):
    """With one of Lab's one-key shortcuts, x, a learner would cut the cell."""
    open_file(page, address, write(copy, "own.ipynb", SETUP, ASK, NUMBER, KNOBS, "1"))
    run_all(page)
    controls = [
        page.get_by_label("22"),
        page.get_by_placeholder("a number, then Enter"),
        page.get_by_role("slider"),
        page.get_by_role("checkbox"),
        page.locator(".widget-toggle-button").last,
        page.locator(".widget-text input").last,
    ]
    for control in controls:
        control.click()
        before = page.evaluate(NOTEBOOK)
        for key in LETTERS:
            page.keyboard.press(key)
        ask(page, "await panel.sessionContext.session.kernel.requestExecute({code: ''}).done;")
        assert page.evaluate(NOTEBOOK) == before
    # What is no one-key shortcut still works: Shift+Enter on a vote goes on to the next cell.
    controls[0].click()
    active = page.evaluate("panel.content.activeCellIndex")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("n => panel.content.activeCellIndex === n + 1", arg=active)


def test_progress_can_be_checked_again(page, address, copy):
    cell = "progress([Exercise()], globals())"
    open_file(page, address, write(copy, "own.ipynb", SETUP, cell))
    run_all(page)
    status = page.locator('.attnlab [role="status"]')
    playwright.expect(status).to_contain_text("… 1.1 lookup")
    ask(
        page,
        "await panel.sessionContext.session.kernel.requestExecute({code: 'my_lookup = 1'}).done;",
    )
    page.get_by_role("button", name="Check again").click()
    playwright.expect(status).to_contain_text("✓ 1.1 lookup")
