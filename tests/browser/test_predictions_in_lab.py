"""Votes and progress under the hands of a learner, in a real JupyterLab with a real kernel."""

import nbformat
import pytest

from .lab_server import ask, open_file, run_all

playwright = pytest.importorskip("playwright.sync_api")

ASK, COMPUTE, DONE, UNDONE, PROGRESS = (
    """
from attnlab import checks
from attnlab.lab.predictions import predict, progress

vote = predict("What is 2 + 2?", {"22": "Those are letters.", "4": "", "5": "<b>too much</b>"})
vote""",
    "vote.answer(str(2 + 2))",
    """
def my_lookup(ids, E):
    return E[ids]

checks.lookup(my_lookup)""",
    """
def my_lookup(ids, E):
    return ...

checks.lookup(my_lookup)""",
    'progress("01", lookup=my_lookup)',
)


def write(copy, name, *cells):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    )
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, copy / name)
    return name


def test_a_vote_is_answered_by_keyboard_and_by_mouse(page, address, copy):
    open_file(page, address, write(copy, "own.ipynb", ASK, COMPUTE))
    run_all(page)
    assert page.get_by_role("status").count() == 0  # nobody voted: nothing is said
    first, right, last = page.locator(".widget-toggle-button").all()
    first.click()
    told = page.locator('.jupyter-widgets [role="status"]')
    playwright.expect(told).to_have_text("You said “22”, it is “4”. Those are letters.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    playwright.expect(told).to_have_text("You said “4”: right.")
    last.click()  # and what an option says of itself is text
    playwright.expect(told).to_have_text("You said “5”, it is “4”. <b>too much</b>")
    run_all(page)  # the vote stays, and the answer stands below what computes it, too
    answer = page.locator('.jp-OutputArea-output:not(:has(.jupyter-widgets)) [role="status"]')
    playwright.expect(answer).to_have_text("You said “5”, it is “4”. <b>too much</b>")


def test_answers_survive_a_new_kernel(page, address, copy):
    open_file(page, address, write(copy, "own.ipynb", ASK, DONE, PROGRESS))
    run_all(page)
    box = page.locator(".jupyter-widgets.widget-vbox").last
    playwright.expect(box).to_contain_text("✓ 1.1 lookup")
    box.get_by_role("button", name="Save my answers").click()
    playwright.expect(box).to_contain_text("Saved 1 answer to my_answers_01.json.")
    assert (copy / "my_answers_01.json").exists()

    # Another kernel, in which the exercise is not done.
    open_file(page, address, write(copy, "again.ipynb", ASK, UNDONE, PROGRESS))
    run_all(page)
    box = page.locator(".jp-NotebookPanel:visible .jupyter-widgets.widget-vbox").last
    playwright.expect(box).to_contain_text("… 1.1 lookup")
    box.get_by_role("button", name="Load my answers").click()
    playwright.expect(box).to_contain_text("✓ 1.1 lookup")
    playwright.expect(box).to_contain_text("Loaded 1 answer into this kernel")
    reply = ask(
        page,
        """
        const kernel = panel.sessionContext.session.kernel;
        const future = kernel.requestExecute({code: "", user_expressions: {e: argument}});
        return (await future.done).content.user_expressions.e.data["text/plain"];
        """,
        "bool(checks.lookup(my_lookup))",
    )
    assert reply == "True"
