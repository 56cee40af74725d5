"""Predictions wait for a vote and disturb nobody."""

import re

import nbformat
import pytest
import torch
from support import ROOT

from attnlab.lab import predictions
from attnlab.lab.predictions import predict

WIDGET = "application/vnd.jupyter.widget-view+json"
CHOICES = {"about 1": "A person would look there; the model need not.", "about 0": ""}


@pytest.fixture(autouse=True)
def nobody_has_voted(monkeypatch):
    monkeypatch.setattr(predictions, "_votes", {})


@pytest.fixture
def shown(monkeypatch):
    """What the cells display."""
    seen = []
    monkeypatch.setattr(
        predictions, "display", lambda data, raw, metadata: seen.append((data, metadata))
    )
    return seen


def page(vote):
    """Its field and its screen, once it is displayed."""
    assert WIDGET in vote._repr_mimebundle_()
    question, field, screen = vote._page.children
    assert question.value.startswith("<b>Predict:</b>")
    return field, screen


def test_without_a_person_nothing_is_said(shown, capsys):
    vote = predict("How large is it?", CHOICES)
    assert repr(vote) == "How large is it?\n( ) about 1\n( ) about 0"
    assert vote._repr_mimebundle_()["text/plain"] == repr(vote)
    assert vote.answer("about 0") is None
    number = predict("How many?")
    assert repr(number) == "How many?\n[ a number ]"
    number.answer(3)
    assert shown == [] and capsys.readouterr() == ("", "")


def test_a_wrong_choice_is_explained(shown):
    vote = predict("How large is it?", CHOICES)
    page(vote)[0].value = "about 1"
    vote.answer("about 0")
    [(data, metadata)] = shown
    said = "You said “about 1”, it is “about 0”. A person would look there; the model need not."
    assert data["text/plain"] == said
    assert said in data["text/html"] and 'role="status"' in data["text/html"]
    assert metadata == {"attnlab": "vote"}


def test_a_right_choice_is_told_so_and_text_has_its_own_background(shown):
    vote = predict("How large is it?", CHOICES)
    vote.vote = "about 0"
    vote.answer("about 0")
    assert shown[0][0]["text/plain"] == "You said “about 0”: right."
    assert repr(vote) == "How large is it?\n( ) about 1\n( ) about 0"  # stored: the same
    html = shown[0][0]["text/html"]
    assert re.search(r'[" ;]color:#[0-9a-f]{6}; background:#[0-9a-f]{6}', html)


def test_a_vote_that_comes_after_the_answer_is_answered_on_its_page(shown):
    vote = predict("How large is it?", CHOICES)
    field, screen = page(vote)
    vote.answer("about 0")  # Run All
    assert screen.status == ""
    field.value = "about 1"
    assert "A person would look there" in screen.status
    field.value = "about 0"
    assert "right." in screen.status
    assert shown == []


def test_running_all_again_does_not_forget_the_vote(shown):
    predict("How large is it?", CHOICES).vote = "about 1"
    again = predict("How large is it?", CHOICES)
    assert page(again)[0].value == "about 1"
    again.answer("about 0")
    assert len(shown) == 1
    assert predict("How large is it?", {"2": "", "3": ""}).vote is None  # another question


def test_a_number_is_read_as_it_is_typed_and_anything_else_keeps_the_vote():
    vote = predict("What is the cosine?")
    field, screen = page(vote)
    for typed, number in [("0,5", 0.5), (" 1/2 ", 0.5), ("−3", -3.0), ("2e3", 2000)]:
        field.value = typed
        assert vote.vote == number and screen.alert == ""
    for typed in ("half", "1/0", "", "nan"):
        field.value = typed
        assert f"“{typed}” is not a number" in screen.alert
        assert vote.vote == 2000
    field.value = "1,5"
    assert vote.vote == 1.5 and screen.alert == ""


@pytest.mark.parametrize(
    ("said", "truth", "sentence"),
    [
        (1, torch.tensor(1.0), "You said 1, computed is 1: right."),
        (0.66, 0.6698, "You said 0.66, computed is 0.6698: right."),
        (0.5, 0.67, "You said 0.5, computed is 0.67: not this time."),
        (0, 0.0, "You said 0, computed is 0: right."),
        (1, 0.0, "You said 1, computed is 0: not this time."),
        (-2, 2, "You said -2, computed is 2: not this time."),
    ],
)
def test_a_number_within_the_tolerance_is_right(shown, said, truth, sentence):
    vote = predict("What is it?")
    vote.vote = said
    vote.answer(truth)
    assert shown[0][0]["text/plain"] == sentence


def test_the_tolerance_is_relative(shown):
    for rtol, end in (0.2, "right."), (0.05, "not this time."):
        vote = predict("What is it?", rtol=rtol)
        vote.vote = 110
        vote.answer(100)
        assert shown.pop()[0]["text/plain"].endswith(end)


def test_a_stale_answer_is_an_error_also_when_nobody_votes(refuses):
    vote, number = predict("How large is it?", CHOICES), predict("How many?")
    options = "['about 1', 'about 0']"
    refuses(ValueError, f"the answer must be one of {options} but is 'about 2'",
            vote.answer, "about 2")  # fmt: skip
    refuses(TypeError, "the answer must be a number, not str", number.answer, "3")
    refuses(TypeError, "the answer must be a number, not bool", number.answer, True)
    refuses(ValueError, "the answer must be a finite number but is nan",
            number.answer, torch.tensor(float("nan")))  # fmt: skip
    refuses(ValueError, "a prediction needs at least two choices but has 1",
            predict, "How many?", ["3"])  # fmt: skip
    refuses(ValueError, f"the vote must be one of {options} but is 'about 2'",
            setattr, vote, "vote", "about 2")  # fmt: skip


def test_text_is_shown_as_it_is(shown):
    vote = predict("Is a < b & c?", {"a < b": "<b>bold</b>", "no": ""})
    page(vote)
    assert "a &lt; b &amp; c" in vote._page.children[0].value
    vote.vote = "a < b"
    vote.answer("no")
    assert "&lt;b&gt;bold" in shown[0][0]["text/html"]


def test_the_hook_takes_feedback_out_of_a_saved_notebook(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".jupyter"))
    import hooks

    said = nbformat.v4.new_output("display_data", {"text/plain": "You said"})
    said.metadata = {"attnlab": "vote"}
    kept = nbformat.v4.new_output("stream", text="printed")
    cell = nbformat.v4.new_code_cell("1", outputs=[said, kept])
    hooks.clean(nbformat.v4.new_notebook(cells=[cell]))
    assert cell.outputs == [kept]
