"""Questions that wait for a vote, and what is behind them."""

import pytest
import traitlets

from attnlab.lab import predictions
from attnlab.lab.predictions import predict

CHOICES = {"to 0": "Nothing else arrives.", "to ln 2": "", "to <ln 5>": "Only two words follow."}


@pytest.fixture(autouse=True)
def nobody_has_voted(monkeypatch):
    monkeypatch.setattr(predictions, "_votes", {})


def test_the_same_text_with_and_without_a_vote():
    texts = []
    for vote in ("", "to 0", "to ln 2"):
        asked = predict("How low?", CHOICES, key="ln 2")
        asked.vote = vote
        texts.append((repr(asked), repr(asked.reveal("to ln 2", "It stops at **0.6932**."))))
    assert texts[0] == texts[1] == texts[2]
    assert texts[0][1].splitlines() == [
        "How low?",
        "· to 0: Nothing else arrives.",
        "✓ to ln 2",
        "· to <ln 5>: Only two words follow.",
        "It stops at **0.6932**.",
    ]


def test_the_page_waits_for_a_vote_and_opens_by_itself():
    asked = predict("How low?", CHOICES, key="ln 2")
    shown = asked.reveal("to ln 2")
    assert not shown.revealed
    asked.vote = "to 0"
    assert shown.revealed
    assert '<li class="right"><b>to ln 2</b> <b>(✓ right)</b>' in shown.content
    assert '<li class="yours"><b>to 0</b> <b>(your vote)</b>' in shown.content
    asked.vote = "to ln 2"  # a changed vote: one verdict, not two
    assert shown.content.count("your vote") == 1
    assert "(✓ right, your vote)" in shown.content


def test_the_page_shows_letters_as_letters():
    shown = predict("How low?", CHOICES, key="ln 2").reveal("to ln 2", "<b>bold</b> & **strong**")
    assert "to &lt;ln 5&gt;" in shown.content
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; <strong>strong</strong>" in shown.content


def test_a_vote_is_acknowledged_at_once_and_survives_running_the_cell_again():
    predict("How low?", CHOICES, key="ln 2").vote = "to 0"
    again = predict("How low?", CHOICES, key="ln 2")
    assert again.vote == "to 0"
    assert again.note == "Noted. Run the next cell."
    assert again.reveal("to ln 2").revealed
    assert predict("How high?", CHOICES, key="ln 2").vote == ""


def test_only_a_choice_can_be_voted_for():
    asked = predict("How low?", CHOICES, key="ln 2")
    with pytest.raises(traitlets.TraitError, match="the vote is one of"):
        asked.vote = "to 1"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("0.67", "Right."), ("2/3", "Right."), ("0,5", "0.17 away."), ("−1", "1.7 away.")],
)
def test_a_number_is_compared_with_a_sense_of_how_near_it_was(typed, said):
    asked = predict("Which weight?", key="0.67")
    asked.vote = typed
    content = asked.reveal(0.6698).content
    assert f"You said {typed}. Computed: 0.6698." in content
    assert said in content


def test_what_is_not_a_number_is_refused_in_words_and_the_vote_stays():
    asked = predict("Which weight?", key="0.67")
    asked.vote = "0.5"
    shown = asked.reveal(0.67)
    asked.set_state({"vote": "half"})  # as from the page
    assert asked.vote == "0.5" and "You said 0.5." in shown.content
    assert asked.note == "“half” is not a number: write it as 0.5, 1/2 or -3."


def test_numbers_changed_by_the_learner_leave_no_traceback():
    shown = predict("How low?", CHOICES, key="ln 2").reveal("to 0.3")
    assert "With these numbers the answer is none of the choices: to 0.3." in repr(shown)
    assert "none of the choices" in shown.content


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="at least two choices but has 1"):
        predict("Yes?", {"yes": ""}, key="yes")
    with pytest.raises(ValueError, match="could not convert string to float: 'three'"):
        predict("How many?", key="3").reveal("three")


def test_the_stored_bundle_has_text_beside_the_widget():
    asked = predict("How low?", CHOICES, key="ln 2")
    for shown in (asked, asked.reveal("to ln 2")):
        bundle, _ = shown._repr_mimebundle_()
        assert bundle["text/plain"] == repr(shown)
        assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_show_of_hands_becomes_bars():
    vote = predict("Which?", {"one": "", "two": "No.", "three": "No."}, key="one")
    assert "A: 12, B: 30, C: 8" in vote.counts("12 30 8").description
    with pytest.raises(ValueError, match="2 counts for 3 choices: '12 30'"):
        vote.counts("12 30")
    with pytest.raises(ValueError, match="is not a number"):
        vote.counts("12 30 many")
