"""The questions that open notebook 1 and close notebook 6."""

import json
import math
from collections import Counter

import pytest

from attnlab import checks
from attnlab.checks.eight_questions import FIRST, OPEN, QUESTIONS, ask, compare, note

RIGHT = "".join(question.right for question in QUESTIONS)


def table(shown):
    """The rows of the comparison: what was answered at first and now."""
    return [line.split(" | ")[1:3] for line in repr(shown).splitlines() if line[:3] != "|--"][1:9]


def notebook_1(folder, *sources):
    cells = [{"cell_type": "code", "source": source} for source in sources]
    path = folder / "01_static_embeddings.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_each_has_four_different_choices_and_the_right_letters_are_spread():
    assert len(QUESTIONS) == 8
    assert all(len({*question.choices}) == 4 for question in QUESTIONS)
    assert Counter(RIGHT) == {"a": 2, "b": 2, "c": 2, "d": 2}
    longest = [max("abcd", key=lambda x, q=q: len(q.choices["abcd".index(x)])) for q in QUESTIONS]
    assert sum(map(str.__eq__, longest, RIGHT)) <= 3, "the longest choice must not be a hint"


def test_the_share_that_a_question_names_is_the_softmax():
    assert "scores 2 and 0" in QUESTIONS[2].text and "about 0.12" in QUESTIONS[2].choices[3]
    assert round(1 / (1 + math.exp(2)), 2) == 0.12


def test_asking_shows_every_choice_and_no_reason():
    text = repr(ask())
    for number, question in enumerate(QUESTIONS, start=1):
        assert f"{number}. {question.text.replace('*', '')}" in text
        assert all(choice.replace("*", "") in text for choice in question.choices)
        assert question.reason not in text
    assert ask()._repr_markdown_().count("  \n") == 32
    assert "✓" not in text


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (OPEN, "Put a letter in place of each ?"),
        ("abcdabcd", "Noted. The questions come back"),
        (" ABCD, abc? ", "Noted, with 1 left open."),
        ("abc", "These are 3."),
        ("abcdabcda", "These are 9."),
        ("abcdefgh", "Not e, f, g, h."),
        (None, "Type eight letters in quotation marks"),
        (..., "Type eight letters in quotation marks"),
    ],
)
def test_a_note_says_whether_these_are_eight_letters_and_reveals_nothing(answers, said):
    shown = repr(note(answers))
    assert shown.startswith(said) or shown.endswith(said)
    assert not any(question.reason in shown for question in QUESTIONS)


def test_right_and_wrong_answers_get_the_same_note():
    assert repr(note(RIGHT)) == repr(note("d" * 8))


def test_both_answers_stand_side_by_side(tmp_path):
    notebook_1(tmp_path, "x = 1", f'{FIRST} = "{RIGHT[:4]}?bb?"\nnote({FIRST})')
    rows = table(compare("d" * 7 + RIGHT[7], folder=tmp_path))
    assert [first for first, _ in rows] == [f"{x} ✓" for x in RIGHT[:4]] + ["?", "b", "b", "?"]
    assert [last.strip("✓ ") for _, last in rows] == [*"d" * 7, RIGHT[7]]
    assert all(("✓" in last) == (last[0] == x) for (_, last), x in zip(rows, RIGHT, strict=True))
    shown = repr(compare(RIGHT, folder=tmp_path))
    assert all(question.reason in shown for question in QUESTIONS)


def test_the_last_line_that_was_typed_counts(tmp_path):
    notebook_1(tmp_path, [f"{FIRST} = 'aaaaaaaa'\n", f"{FIRST} = 'bbbbbbbb'"])
    assert {first[0] for first, _ in table(compare("c" * 8, folder=tmp_path))} == {"b"}


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"cells": 3}', '{"cells": [{}]}', "\ud800"])
def test_without_notebook_1_one_sentence_says_so(text, tmp_path):
    path = notebook_1(tmp_path, "x = 1")
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    shown = compare(RIGHT, folder=tmp_path)
    assert {first for first, _ in table(shown)} == {"?"}
    last = repr(shown).splitlines()[-1]
    assert last.startswith(
        ("There is no 01_static", "01_static_embeddings.ipynb could not be read")
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("y = 2", f"No line of 01_static_embeddings.ipynb begins with {FIRST} =."),
        (f'{FIRST} = "abc"', "The first answers are not eight letters."),
    ],
)
def test_first_answers_that_cannot_be_used_are_left_out(source, said, tmp_path):
    notebook_1(tmp_path, source)
    shown = compare(RIGHT, folder=tmp_path)
    assert {first for first, _ in table(shown)} == {"?"} and repr(shown).splitlines()[-1] == said


def test_nothing_is_revealed_before_there_is_a_last_answer(tmp_path):
    notebook_1(tmp_path, f'{FIRST} = "{RIGHT}"')
    for answers in (OPEN, "abc", None):
        shown = repr(compare(answers, folder=tmp_path))
        assert "\n" not in shown and "✓" not in shown


def test_left_open_in_notebook_1_is_no_mistake(tmp_path):
    notebook_1(tmp_path, f'{FIRST} = "{OPEN}"')
    assert repr(compare(RIGHT, folder=tmp_path)).splitlines()[-1].startswith("| 8.")
    assert checks.eight_questions.compare is compare
