"""Knobs are tested by what the page sends and by the value that comes out."""

import math

import numpy as np
import pytest
import torch
import traitlets

from attnlab.lab.knobs import PRESETS, choice, matrix, number, slider, toggle, typed


def ask(knob, do, **details):
    """What the page sends: a request, as state."""
    knob.set_state({"asked": {"do": do, **details, "times": knob.asked.get("times", 0) + 1}})


def replies(knob):
    """What the page hears after each request."""
    heard = []
    knob.send = lambda content: heard.append(content["said"])
    return heard


def changes(knob):
    seen = []
    knob.observe(lambda change: seen.append(change["new"]), names="value")
    return seen


# --- Numbers as people write them -----------------------------------------------------------

WRITTEN = {
    "0.5": 0.5, "0,5": 0.5, "-1,5": -1.5, "1/2": 0.5, "1,5/-3": -0.5, "1e9": 1e9, "−3": -3.0,
    " 2e-1 ": 0.2, "+4": 4.0, ".5": 0.5,
}  # fmt: skip
NOT_NUMBERS = ["", " ", "half", "1/0", "1/", "/2", "1/2/3", "nan", "inf", "-∞", "1e400", "1.000,5",
               "1 000", "0x10", "1e999999999", "½"]  # fmt: skip


def test_a_number_is_read_as_it_is_written():
    assert {text: number(text) for text in WRITTEN} == WRITTEN


def test_what_is_not_a_number_is_said_not_to_be_one(refuses):
    for text in NOT_NUMBERS:
        refuses(ValueError, f"“{text}” is not a number: write it as 0.5, 1/2 or -3.", number, text)


def test_a_slider_and_a_matrix_read_the_same_numbers():
    knobs = slider(-2.0, 2.0, 1.0), matrix(2, 3, [[1, 2, 3], [0, -1, -2]])
    for text in ["0,5", "-1,5", "1/2", "−1"]:
        for knob in knobs:
            ask(knob, "type", text=text, at=[1, 2])
        assert knobs[0].value == knobs[1].value[1][2] == number(text)
    assert knobs[1].value == ((1, 2, 3), (0, -1, -1))


@pytest.mark.parametrize("text", ["", "abc", "nan"])
def test_what_is_typed_and_not_a_number_leaves_the_value_and_is_told(text):
    for knob in slider(-2.0, 2.0, 1.0), slider(-2, 2, 1), matrix(2, 2):
        before, seen, heard = knob.value, changes(knob), replies(knob)
        ask(knob, "type", text=text, at=[0, 1])
        assert knob.value == before and seen == []
        assert heard == [f"“{text}” is not a number: write it as 0.5, 1/2 or -3."]
        ask(knob, "type", text="1", at=[0, 1])
        assert heard[1:] == [""]  # and the next number takes the complaint away


def test_what_is_typed_out_of_range_is_answered_too_so_that_the_field_shows_what_counts():
    for knob, end in (slider(0, 9, 3), 9), (matrix(2, 2), ((1, 3), (0, 1))):
        heard = replies(knob)
        for text in "99", "1e9":
            ask(knob, "type", text=text, at=[0, 1])
            assert knob.value == end
        assert heard == ["", ""]


# --- Slider ---------------------------------------------------------------------------------


def test_whole_sliders_give_ints_on_their_steps_and_others_floats():
    heads = slider(2, 12, 4, step=4)
    for given, value in [(7, 6), (9.1, 10), (99, 10), (-5, 2), (2, 2)]:
        heads.value = given
        assert heads.value == value and type(heads.value) is int
    real = slider(0, 1, 0.25)
    real.value = 1
    assert real.value == 1.0 and type(real.value) is float
    real.value = 0.123
    assert real.value == 0.123


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, True, "3", [1]])
def test_a_slider_refuses_what_is_not_a_finite_number(value, refuses):
    knob = slider(0, 9, 3, label="seed")
    seen = changes(knob)
    sentence = f"seed must be a finite number, not {value!r}"
    refuses(traitlets.TraitError, sentence, setattr, knob, "value", value)
    assert knob.value == 3 and seen == []


def test_the_other_knobs_are_what_they_say():
    assert choice([("none", 0), ("some", 2)]).value == 0
    assert choice(["x", "yy"], "yy", label="which").description == "which"
    assert toggle(True, "causal mask").value is True
    assert typed("river bank").value == "river bank"
    assert not typed("river bank").continuous_update


# --- Matrix ---------------------------------------------------------------------------------


def drag(knob, row, column, *numbers):
    """What the page sends while one entry is dragged and when it is let go."""
    for entry in numbers:
        value = [list(r) for r in knob.value]
        value[row][column] = entry
        knob.set_state({"value": value})
    ask(knob, "settle")


def test_moving_one_entry_of_a_matrix_changes_its_value_once():
    knob = matrix(2, 3, [[1, 2, 3], [-1, -2, -3]])
    seen = changes(knob)
    drag(knob, 1, 1, 0.5)
    assert seen == [((1, 2, 3), (-1, 0.5, -3))] == [knob.value]


def test_setting_a_matrix_to_what_it_is_changes_nothing():
    knob = matrix(2, 2)
    seen = changes(knob)
    knob.value = torch.tensor([[1, 2], [3, -1]])
    knob.value = [[1, 2], [3, -1]]
    ask(knob, "settle")
    ask(knob, "settle")
    assert seen == [((1, 2), (3, -1))]


@pytest.mark.parametrize("value", [
    ((0.5, 1), (2, 3)),
    np.array([[0.5, 1], [2, 3]]),
    torch.tensor([[0.5, 1], [2, 3]], dtype=torch.float64, requires_grad=True),
], ids=type)  # fmt: skip
def test_a_matrix_takes_any_rows_of_numbers(value):
    knob = matrix(2, 2)
    knob.value = value
    assert knob.value == ((0.5, 1.0), (2.0, 3.0))


def test_a_matrix_keeps_decimals_as_they_were_written():
    assert matrix(1, 2, [[0.1, 0.7]]).value == ((0.1, 0.7),)


def test_a_matrix_stays_between_its_ends():
    knob = matrix(2, 2, low=-1, high=2)
    knob.value = [[-9, 9], [0, 1]]
    assert knob.value == ((-1, 2), (0, 1))
    drag(knob, 1, 1, 9)
    assert knob.value == ((-1, 2), (0, 2))


@pytest.mark.parametrize("value, sentence", [
    ([[1, 2], [3]], "W_Q is 2 x 2: ((1.0, 2.0), (3.0,)) does not fit"),
    (torch.zeros(1, 3), "W_Q is 2 x 2: ((0.0, 0.0, 0.0),) does not fit"),
    (torch.tensor([[1, float("nan")], [0, 0]]), "W_Q holds a number that is not finite"),
    (None, "W_Q is rows of numbers, not None"),
    ([1, 2], "W_Q is rows of numbers, not [1, 2]"),
    ("ab", "W_Q is rows of numbers, not 'ab'"),
])  # fmt: skip
def test_what_is_not_a_matrix_is_refused_and_nothing_moves(value, sentence, refuses):
    knob = matrix(2, 2, label="W_Q")
    seen = changes(knob)
    refuses(traitlets.TraitError, sentence, setattr, knob, "value", value)
    assert knob.value == ((1, 0), (0, 1)) and seen == []


def test_a_matrix_that_starts_in_another_shape_is_refused(refuses):
    refuses(ValueError, "start has shape (2, 2), not (2, 3)", matrix, 2, 3, torch.eye(2))
    refuses(ValueError, "start has shape (2,), not (2, 2)", matrix, 2, 2, [1, 2])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_changes_the_value_once_and_can_be_chosen_again_after_an_edit(preset):
    knob = matrix(2, 2, [[0.5, 0.5], [0.5, 0.5]])
    seen, values = changes(knob), set()
    for n in 1, 3:
        ask(knob, preset, text="2")
        values.add(knob.value)
        assert len(seen) == n
        drag(knob, 0, 1, -2.5)
        assert len(seen) == n + 1
    assert len(values) == 1


@pytest.mark.parametrize("preset, by, value", [
    ("identity", 0, [[1, 0], [0, 1]]),
    ("zero", 0, [[0, 0], [0, 0]]),
    ("swap", 0, [[0, 1], [1, 0]]),
    ("scale", 2, [[2, 0], [0, 2]]),
    ("scale", 100, [[3, 0], [0, 3]]),  # stays between its ends
    ("rotation", 90, [[0, 1], [-1, 0]]),  # [1, 0] @ W = [0, 1]
    ("rotation", 45, [[0.5**0.5, 0.5**0.5], [-(0.5**0.5), 0.5**0.5]]),
])  # fmt: skip
def test_presets_are_what_they_say(preset, by, value):
    knob = matrix(2, 2, [[0.5, 0.5], [0.5, 0.5]])
    knob.preset(preset, by)
    torch.testing.assert_close(torch.tensor(knob.value), torch.tensor(value).float())


@pytest.mark.parametrize("preset", ["scale", "random", "rotation"])
def test_an_empty_factor_seed_or_angle_is_not_zero(preset):
    knob = matrix(2, 2)
    seen, heard = changes(knob), replies(knob)
    ask(knob, preset, text="")
    assert seen == [] and heard == ["“” is not a number: write it as 0.5, 1/2 or -3."]
    ask(knob, preset, text="1e9")  # a number of any size is one
    ask(knob, preset, text="-1e300")
    assert heard[1:] == ["", ""]


def test_a_random_matrix_is_the_same_for_the_same_seed():
    knob, values = matrix(2, 2), []
    for seed in 1, 2, 1:
        knob.preset("random", seed)
        values.append(knob.value)
    assert values[0] == values[2] != values[1]


def test_a_reset_right_after_a_gesture_is_what_stays():
    knob = matrix(2, 2)
    knob.set_state({"value": [[3, 3], [3, 3]], "asked": {"do": "start", "times": 1}})
    assert knob.value == ((1, 0), (0, 1))
    knob.set_state({"asked": {"do": "zero", "times": 2}, "value": [[2, 2], [2, 2]]})
    assert knob.value == ((0, 0), (0, 0))
    knob.undo()
    assert knob.value == ((2, 2), (2, 2))


def test_each_gesture_is_one_step_to_undo_whichever_view_made_it():
    knob = matrix(2, 2)
    assert not knob.can_undo
    steps = [knob.value]
    for gesture in [
        lambda: drag(knob, 0, 1, 0.1, 0.2, 0.3),  # in one view
        lambda: ask(knob, "type", text="2", at=[1, 0]),  # in another
        lambda: ask(knob, "swap", text=None),
        lambda: setattr(knob, "value", [[2, 2], [2, 2]]),  # by a cell
        lambda: drag(knob, 1, 1, -1),
        lambda: ask(knob, "start"),
    ]:
        gesture()
        if knob.value != ((2, 2), (2, 2)):  # the cell's step ends with the next gesture
            steps.append(knob.value)
        assert knob.can_undo
    for value in steps[-2::-1]:
        ask(knob, "undo")
        assert knob.value == value
    assert not knob.can_undo
    ask(knob, "undo")
    assert knob.value == steps[0]


def test_presets_are_for_two_by_two():
    assert matrix(2, 2).presets == list(PRESETS)
    assert matrix(3, 2).presets == matrix(2, 3).presets == []


def test_the_page_gets_all_it_needs_and_asks_no_network():
    knob = matrix(3, 2, low=-1, high=2, step=0.25, label="W_Q", row_names=["river", "<unk>", "b"])
    state = knob.get_state()
    assert {k: state[k] for k in ("low", "high", "step", "description", "row_names")} == {
        "low": -1, "high": 2, "step": 0.25, "description": "W_Q",
        "row_names": ["river", "<unk>", "b"],
    }  # fmt: skip
    for state in knob.get_state(), slider(0, 1, 0).get_state():
        assert "render" in state["_esm"] and "initialize" in state["_esm"] and state["_css"]
        assert "http" not in state["_esm"] + state["_css"]
