"""The picture of "a row times a matrix is a weighted sum of its rows"."""

import pytest
import torch

from attnlab.lab import plots
from attnlab.lab.weighted_sum import WeightedSum


def drawn(words, row, matrix, **options):
    picture, axes = plots.panels(1, width=9.5, height=2.7)
    return picture, WeightedSum(axes, words, row, matrix, **options)


def test_the_sum_is_the_row_times_the_matrix_as_drawn():
    """Read from the heights of the bars alone."""
    generator = torch.Generator().manual_seed(0)
    row, matrix = torch.randn(3, 3, generator=generator).double().tensor_split([1], dim=1)
    row = row[:, 0]
    _, drawing = drawn(["river", "money", "bank"], row, matrix, limits=(-12, 12))
    drawing.update(2 * row, matrix)
    heights = [sum(bar.get_height() for bar in bars) for _, bars in drawing.cells[-2:]]
    size = drawing.cells[0][1][0].get_height() / (2 * row[0])  # of 1
    torch.testing.assert_close(torch.tensor(heights) / size, 2 * row @ matrix)
    per_word = [[bar.get_height() for bar in bars] for _, bars in drawing.cells[-2:]]
    torch.testing.assert_close(torch.tensor(per_word).T / size, 2 * row[:, None] * matrix)


def test_the_bars_of_a_sum_stand_on_one_another():
    _, drawing = drawn("abcd", [0.5, 0.25, -0.5, 0.25], torch.ones(4, 1), limits=(-1, 1))
    *_, (number, bars) = drawing.cells
    ends = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars]
    zero = ends[0][0]
    assert number.get_text() == "0.50"
    assert ends[1][0] == ends[0][1] and ends[3][0] == ends[1][1]  # upwards
    assert ends[2][0] == zero > ends[2][1]  # downwards
    assert len({bar.get_facecolor() for bar in bars}) == 4


def test_what_it_says_is_read_from_the_picture():
    picture, drawing = drawn(["river", "bank"], [0, 1], [[2, 0, 1.5], [1, 0, -3]], title="One-hot")
    assert picture.description == (
        "One-hot: river, bank; a row [0.00, 1.00]; a matrix [[2.00, 0.00, 1.50], [1.00, 0.00, "
        "-3.00 with a bar to 0.00]]; its rows, scaled [[0.00, 0.00, 0.00], [1.00, 0.00, -3.00 with "
        "a bar to 0.00]]; their sum [1.00, 0.00, -3.00 with a bar to 0.00]."
    )
    for number, bars in drawing.cells:
        for artist, change in [(number, {"text": "9.00"}), (bars[0], {"height": 0.5})]:
            before, said = {name: artist.properties()[name] for name in change}, picture.description
            artist.set(**change)
            assert picture.description != said
            artist.set(**before)


def test_a_frame_follows_an_update():
    picture, drawing = drawn(["river", "bank"], [0, 1], [[2, 0], [1, 0]])
    before = picture.frame()
    drawing.update([0.67, 0.33], [[2, 0], [1, 0]])
    assert picture.frame() != before
    assert [factor.get_text() for factor in drawing.factors] == ["0.67 ×", "+ 0.33 ×"]
    drawing.update([0, 1], [[2, 0], [1, 0]])
    assert picture.frame() == before


def test_a_row_that_does_not_fit_the_matrix_is_refused():
    with pytest.raises(ValueError, match=r"values have shape \(3,\), not \(2,\)"):
        drawn(["river", "bank"], [0, 1, 0], [[2, 0], [1, 0]])
