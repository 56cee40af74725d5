"""Notebook 4: how moves are counted in the race against the gradient, and its other new cells."""

import jupytext
import pytest
import torch
from support import COURSE

SOURCE = COURSE / "04_softmax_and_values.py"


@pytest.fixture
def notebook(monkeypatch):
    """The names of notebook 4 after Run All."""
    monkeypatch.chdir(COURSE)
    names = {"__name__": "__main__", "display": lambda *_, **__: None}
    exec(compile(SOURCE.read_text(encoding="utf-8"), str(SOURCE), "exec"), names)
    return names


def one_step(race):
    """Press the button."""
    [button] = [w for w in race.children[1].children if w.description == "One gradient step"]
    button.click()


def moves(race):
    return int(race.sentence.split(" after ")[1].split()[0])


def test_dragging_one_number_is_one_move_and_two_numbers_beat_the_gradient(notebook):
    race = notebook["race"]
    W_Q, W_V = race.knobs["W_Q"], race.knobs["W_V"]
    for x in (0.5, 1.0, 2.5, 3.0):
        W_Q.value = [[1, x], [0, 1]]
    assert moves(race) == 1 and not race.reached
    W_V.value = [[3, 0], [0, 1]]
    assert moves(race) == 2 and race.reached
    W_V.value = [[3, 0], [0, 1.5]]
    W_Q.value = [[1, 2], [0, 1]]  # not the entry moved last: a new move
    assert moves(race) == 4 and not race.reached


def test_going_back_takes_the_moves_back(notebook):
    race = notebook["race"]
    start = race.text
    W_V = race.knobs["W_V"]
    W_V.move([[2, 0], [0, 1]])
    W_V.move([[2, 0], [0, 2]])
    assert moves(race) == 2
    W_V.undo()
    assert moves(race) == 1
    W_V.preset("start")
    assert race.text == start


@pytest.mark.parametrize("learn", ["all three", "W_V"])
def test_a_gradient_step_is_one_move_along_the_dashed_line(notebook, learn):
    race = notebook["race"]
    race.knobs["learn"].value = learn
    for n in range(1, 6):
        one_step(race)
        assert moves(race) == n
        assert f"Loss {notebook['gradient'][learn][n]:.3f} after" in race.sentence
        assert not race.reached  # four steps are not fewer than the gradient's four
    for name in ("W_Q", "W_K", "W_V"):
        knob = race.knobs[name]
        assert knob.can_undo is (name == learn or learn == "all three")
        while knob.can_undo:
            knob.undo()
    assert moves(race) == 0


def test_the_python_below_the_step_follows_the_page(notebook, capsys):
    [twin] = [
        cell.source
        for cell in jupytext.read(SOURCE).cells
        if cell.metadata.get("title", "").startswith("The same in Python")
    ]
    step = notebook["step"]
    step.phrase, step.causal, step.temperature = "money bank river", False, 2.5
    step.W_Q, step.W_K, step.W_V = [[1, 2], [0, -1]], [[0.5, 1], [1, 0]], [[3, 0], [-1, 2]]
    before = notebook["in_python"].output
    exec(twin, notebook)  # it asserts that both agree
    assert notebook["in_python"].output.shape == (3, 2) != before.shape
    step.W_V = [[0, 0], [0, 0]]
    exec(twin, notebook)
    assert not notebook["in_python"].output.any()


def test_half_of_each_of_two_equal_patches_and_the_padding_once_the_mask_is_off(notebook):
    image = notebook["ask_image"]
    weights = notebook["crossed"].weights
    torch.testing.assert_close(weights[0, [0, 2]], torch.full((2,), 0.4983), atol=1e-4, rtol=0)
    image.knobs["bottom_left"].value = "blue"
    assert "red looks most at red ↖: 0.9" in image.sentence  # alone now
    assert "blue looks most at blue ↗: 0.50" in image.sentence
    image.knobs["mask_padding"].value = False
    assert image.sentence.count("padding: 1.00") == 2 and not image.reached
    image.knobs["mask_padding"].value = True
    image.knobs["W_Q"].value = [[0, 1], [0, 1]]
    assert image.reached
