"""Pictures are tested by their artists; pixels are compared where pixels are the promise."""

import base64
import io
import json
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib
import nbformat
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import font_manager
from nbconvert import HTMLExporter
from PIL import Image

from attnlab.lab import plots

NASTY = ["$$", "$_$", "$5 and $6", "<unk>", "", "\n", "猫", "a" * 80, "🙂", "שלום", "\\frac", " "]
INF, NAN = float("inf"), float("nan")


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.frame())))


def one(draw, *arguments, **options):
    picture, axes = plots.panels(1)
    return picture, draw(axes, *arguments, **options)


def luminance(colour):
    """Relative luminance as WCAG 2 defines it, written out again here."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted([luminance(a), luminance(b)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


INK = {"black": (0, 0, 0), "white": (1, 1, 1)}


# --- Heat maps ------------------------------------------------------------------------------


def test_weights_are_coloured_from_zero_to_one_however_close_together():
    _, heat = one(plots.heatmap, "ab", "cd", [[0.25, 0.26], [0.25, 0.25]])
    assert heat.image.get_clim() == (0, 1)
    heat.update([[0, 0], [0, 0]])
    assert heat.image.get_clim() == (0, 1)


@pytest.mark.parametrize("kind, limit, high", [("scores", None, 4), ("values", 7.0, 7)])
def test_scores_and_values_are_centred_at_zero(kind, limit, high):
    _, heat = one(plots.heatmap, "ab", "cd", [[0, 1], [2, 3]], kind=kind, limit=limit)
    assert heat.image.get_clim() == (-high, high)
    middle = heat.image.to_rgba(np.array([[0.0]]))[0, 0, :3]
    assert middle.min() > 0.9  # almost white


@pytest.mark.parametrize("kind, values", [
    ("weights", torch.linspace(0, 1, 101)),
    ("scores", [*torch.linspace(-4, 4, 161), -100, 100, INF]),
    ("values", torch.linspace(-3, 3, 121)),
    ("mask", [0, 1]),
])  # fmt: skip
def test_every_number_can_be_read_on_its_cell(kind, values):
    _, heat = one(plots.heatmap, "q", range(len(values)), [list(values)], kind=kind)
    cells = heat.image.to_rgba(heat.image.get_array())[0]
    for text, cell in zip(heat.cells, cells, strict=True):
        assert contrast(INK[text.get_color()], cell) >= 4.5


def test_every_cell_shows_its_own_number():
    values = torch.tensor([[0.125, 0.25, 0.5], [0.3, 0.4, 0.0]])
    _, heat = one(plots.heatmap, "ab", "cde", values)
    texts = {tuple(t.get_position()): t.get_text() for t in heat.axes.texts}
    assert texts == {(0, 0): "0.12", (1, 0): "0.25", (2, 0): "0.50",
                     (0, 1): "0.30", (1, 1): "0.40", (2, 1): "0.00"}  # fmt: skip
    assert [t.get_text() for t in heat.axes.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in heat.axes.get_xticklabels()] == ["c", "d", "e"]
    assert (heat.axes.get_ylabel(), heat.axes.get_xlabel()) == ("query", "key")


def test_the_first_row_is_on_top_and_colours_belong_to_their_cells():
    picture, heat = one(plots.heatmap, "ab", "cde", [[1, 0, 0], [0, 0, 0]])
    dark = pixels(picture)
    assert (corner(dark, heat, 0, 0) < 60).any()
    for cell in [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]:
        assert (corner(dark, heat, *cell) > 240).all()


def corner(image, heat, row, column):
    """A few pixels of a cell, away from its number."""
    x, y = heat.axes.transData.transform((column - 0.35, row - 0.35))
    x, y = round(x), image.shape[0] - round(y)
    return image[y - 4 : y + 5, x - 4 : x + 5]


def test_a_masked_cell_is_marked_and_does_not_look_like_zero():
    picture, heat = one(plots.heatmap, "ab", "cd", [[0, -INF], [0, 0]], kind="scores")
    assert heat.cells[1].get_text() == "-inf"
    image = pixels(picture)
    masked, zero = corner(image, heat, 0, 1), corner(image, heat, 0, 0)
    assert len(np.unique(zero.reshape(-1, 3), axis=0)) == 1
    assert len(np.unique(masked.reshape(-1, 3), axis=0)) > 1  # hatched
    assert masked.max() < zero.min()
    assert min(contrast(INK[heat.cells[1].get_color()], c / 255)
               for c in masked.reshape(-1, 3)) >= 4.5  # fmt: skip


def test_a_cell_that_was_masked_shows_nothing_of_what_it_was():
    picture, heat = one(plots.heatmap, "ab", "cd", [[1, 1], [1, 1]])
    pixels(picture)
    heat.update([[1, -INF], [1, 1]])
    fresh, _ = one(plots.heatmap, "ab", "cd", [[1, -INF], [1, 1]])
    assert (pixels(picture) == pixels(fresh)).all()


def test_nan_is_written_as_such_and_not_hatched_like_a_masked_cell():
    picture, heat = one(plots.heatmap, "ab", "cd", [[0.5, NAN], [NAN, -INF]])
    image = pixels(picture)
    assert [t.get_text() for t in heat.cells] == ["0.50", "NaN", "NaN", "–"]
    assert (corner(image, heat, 0, 1) == 255).all() and (corner(image, heat, 1, 0) == 255).all()
    assert len(np.unique(corner(image, heat, 1, 1))) > 1
    assert heat.description.endswith("a: 0.50, NaN; b: NaN, masked.")
    heat.update([[0.5, 0.5], [0.5, 0.5]])
    fresh, _ = one(plots.heatmap, "ab", "cd", [[0.5, 0.5], [0.5, 0.5]])
    assert (pixels(picture) == pixels(fresh)).all()


def test_numbers_are_never_minus_zero_and_short_if_very_large():
    values = [[-0.0, -0.001, -0.01, 1e30, -1e5, 1234.5]]
    _, heat = one(plots.heatmap, "a", range(6), values, kind="scores")
    shown = [t.get_text() for t in heat.cells]
    assert shown == ["0.00", "0.00", "-0.01", "1e+30", "-1e+05", "1234.50"]


@pytest.mark.parametrize("columns, width", [(2, 4), (6, 2.4), (8, 3)])
def test_numbers_stay_inside_their_cells_and_are_at_most_11_points(columns, width):
    picture, axes = plots.panels(1, width=width, height=2)
    heat = plots.heatmap(axes, "ab", range(columns), torch.full((2, columns), -0.25), "scores")
    picture.frame()
    room = axes.bbox.width / columns
    for text in heat.cells:
        assert text.get_fontsize() <= 11
        assert text.get_window_extent(picture.canvas.get_renderer()).width < room


@pytest.mark.parametrize("draw", [
    lambda axes, names: plots.heatmap(axes, "a", names),
    lambda axes, names: plots.bars(axes, names, torch.full((len(names),), 0.25)),
])  # fmt: skip
@pytest.mark.parametrize("names", [
    ["river", "money", "bank"],
    ["river · money", "river · bank", "money · bank"],
    ["unbelievably", "internationally", "x", "straightforward"],
    range(10),
], ids=str)  # fmt: skip
def test_names_below_the_axes_do_not_touch(draw, names):
    picture, axes = plots.panels(1, width=2.4)
    drawing = draw(axes, names)
    picture.frame()
    renderer = picture.canvas.get_renderer()
    labels = axes.get_xticklabels()
    boxes = [text.get_window_extent(renderer) for text in labels]
    aslant = labels[0].get_rotation()
    for left, right in zip(boxes, boxes[1:], strict=False):
        # Parallel lines at 45 degrees keep their distance if their ends do.
        assert right.x1 - left.x1 > 14 if aslant else right.x0 > left.x1
    if isinstance(drawing, plots.Bars):
        numbers = [text.get_window_extent(renderer) for text in drawing.numbers]
        assert all(a.x1 < b.x0 for a, b in zip(numbers, numbers[1:], strict=False))


def test_short_names_stand_upright_also_after_long_ones():
    picture, heat = one(plots.heatmap, "abc", ["a" * 14] * 3)
    pixels(picture)
    heat.relabel("abc", "xyz")
    fresh, _ = one(plots.heatmap, "abc", "xyz")
    assert (pixels(picture) == pixels(fresh)).all()


def test_names_of_several_words_are_broken_into_lines_rather_than_set_aslant():
    picture, axes = plots.panels(1, width=3.2)
    bars = plots.bars(axes, ["river · money", "river · bank", "money · bank"], [1, 2, 3])
    assert [text.get_text() for text in axes.get_xticklabels()][0] == "river ·\nmoney"
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}
    assert bars.description == "river · money: 1.00, river · bank: 2.00, money · bank: 3.00."


# --- Updating in place ----------------------------------------------------------------------

WORDS = ["river", "money", "bank"]
DRAWN = {
    "weights": (
        lambda axes: plots.heatmap(axes, WORDS, WORDS),
        [lambda d: d.update(torch.eye(3)), lambda d: d.update(torch.full((3, 3), 1 / 3))],
    ),
    "scores, masked": (
        lambda axes: plots.heatmap(axes, WORDS, WORDS, kind="scores"),
        [lambda d: d.update(torch.ones(3, 3)),
         lambda d: d.update(torch.full((3, 3), -INF).triu(1) - 1)],
    ),
    "mask": (
        lambda axes: plots.heatmap(axes, WORDS, WORDS, kind="mask"),
        [lambda d: d.update(torch.ones(3, 3)), lambda d: d.update(torch.eye(3))],
    ),
    "weights, other words": (
        lambda axes: plots.heatmap(axes, WORDS, WORDS),
        [lambda d: d.update(torch.eye(3)),
         lambda d: d.relabel(["a" * 14] * 3, ["b" * 14] * 3),
         lambda d: d.relabel(WORDS[::-1], WORDS[::-1])],
    ),
    "vectors": (
        lambda axes: plots.vectors(axes, WORDS),
        [lambda d: d.update([[1, 0], [0, 2], [1, 1]]),
         lambda d: d.update([[-1, 0], [2, 2], [0, 0]])],
    ),
    "bars": (
        lambda axes: plots.bars(axes, WORDS, limits=(-1, 1)),
        [lambda d: d.update([0, 0.5, 1]), lambda d: d.update([-0.5, 2, 0.25])],
    ),
    "curves": (
        lambda axes: plots.curves(axes, ["loss", "floor"], xlim=(0, 9), ylim=(0, 1)),
        [lambda d: d.update(loss=[1, 0.5]),
         lambda d: d.update(loss=[0.1, 0.2, 0.3], floor=[0.5, 0.5, 0.5], x=[2, 4, 8], mark=4)],
    ),
    "curves, level": (
        lambda axes: plots.curves(axes, ["loss"], xlim=(0, 9), ylim=(0, 1)),
        [lambda d: d.update(loss=[1, 0.5]), lambda d: d.level(0.3, "ln 2"),
         lambda d: d.band([0, 1, 2], [0, 0, 0], [1, 1, 1])],
    ),
}  # fmt: skip
every_drawing = pytest.mark.parametrize("draw, changes", DRAWN.values(), ids=DRAWN)


@every_drawing
def test_a_picture_that_was_updated_equals_one_drawn_afresh(draw, changes):
    picture, drawing = one(draw)
    blank = pixels(picture)
    for n, change in enumerate(changes, 1):
        before = pixels(picture)
        change(drawing)
        after = pixels(picture)
        assert (after != before).any()
        fresh, again = one(draw)
        for earlier in changes[:n]:
            earlier(again)
        assert (pixels(fresh) == after).all()
        assert fresh.description == picture.description
    assert (pixels(picture) == after).all() and (after != blank).any()


def test_drawings_on_one_picture_do_not_disturb_each_other():
    def everything():
        picture, axes = plots.panels(len(DRAWN), width=20)
        return picture, [draw(ax) for (draw, _), ax in zip(DRAWN.values(), axes, strict=True)]

    def change(drawings):
        for drawing, (_, changes) in zip(drawings, DRAWN.values(), strict=True):
            for change in changes:
                change(drawing)

    picture, drawings = everything()
    pixels(picture)
    change(drawings)
    fresh, again = everything()
    change(again)
    assert (pixels(picture) == pixels(fresh)).all()


def test_what_is_hidden_is_not_drawn():
    picture, (left, right) = plots.panels(2)
    plots.bars(left, ["x"], [1])
    heat = plots.heatmap(right, "ab", "cd", torch.ones(2, 2))
    assert (pixels(picture)[:, 360:] < 200).any()
    right.set_visible(False)
    heat.update(torch.eye(2))
    hidden = pixels(picture)
    assert (hidden[:, round(left.get_window_extent().x1) + 2 :] == 255).all()
    right.set_visible(True)
    fresh, (left, right) = plots.panels(2)
    plots.bars(left, ["x"], [1])
    plots.heatmap(right, "ab", "cd", torch.eye(2))
    assert (pixels(picture) == pixels(fresh)).all()


def test_only_what_moves_is_drawn_again():
    picture, heat = one(plots.heatmap, "ab", "cd", torch.eye(2))
    pixels(picture)
    draws = []
    picture.canvas.mpl_connect("draw_event", draws.append)
    heat.update(1 - torch.eye(2))
    pixels(picture)
    assert not draws
    heat.relabel("xy", "zw")
    pixels(picture)
    assert len(draws) == 1


def test_a_frame_shows_what_the_whole_figure_saved_to_a_file_shows():
    picture, (left, middle, right, last) = plots.panels(4)
    lines = plots.curves(last, ["loss"], xlim=(0, 2), ylim=(0, 1))
    lines.update(loss=[0, 1, 0], mark=1)
    lines.level(0.5, "half")
    lines.band([0, 2], [0, 0.5], [0.5, 1])
    plots.heatmap(left, WORDS, WORDS, [[0.5, 0.25, 0.25], [-INF, 1, NAN], [0.1, 0.2, 0.7]])
    plots.vectors(middle, WORDS, [[1, 0], [0, 2], [2, 2]])
    plots.bars(right, range(8), torch.ones(8)).level(0.5, "half")
    for each in picture, one(plots.vectors, "ab", [[1, 0], [0, 2]])[0]:
        saved = io.BytesIO()
        each.savefig(saved, format="png")  # before any frame was drawn
        assert (np.asarray(Image.open(saved).convert("RGB")) == pixels(each)).all()


def test_a_level_is_seen_in_front_of_a_bar():
    picture, bars = one(plots.bars, "a", [1])
    bars.level(0.5, "half")
    image = pixels(picture)
    x, y = bars.axes.transData.transform((0, 0.5))
    around = image[image.shape[0] - round(y) - 3 : image.shape[0] - round(y) + 3]
    assert around[:, round(x) - 20 : round(x) + 20].sum(axis=-1).min() < 100  # black, not blue


@pytest.mark.parametrize("format", ["pdf", "svg"])
def test_a_picture_can_be_saved_for_print(format):
    picture, _ = one(plots.heatmap, WORDS, WORDS, torch.eye(3))
    saved = io.BytesIO()
    picture.savefig(saved, format=format)
    assert len(saved.getvalue()) > 1000


# --- Tokens ---------------------------------------------------------------------------------

WITH_TOKENS = {
    "heatmap": lambda axes, t: plots.heatmap(axes, t, t, torch.eye(len(t))),
    "vectors": lambda axes, t: plots.vectors(axes, t, torch.ones(len(t), 2)),
    "bars": lambda axes, t: plots.bars(axes, t, torch.ones(len(t))),
    "curves": lambda axes, t: plots.curves(axes, t),
}


@pytest.mark.parametrize("draw", WITH_TOKENS.values(), ids=WITH_TOKENS)
@pytest.mark.parametrize("tokens", [NASTY[:6], NASTY[6:]], ids=["plain", "strange"])
def test_any_token_can_be_drawn(draw, tokens):
    picture, axes = plots.panels(1, width=9)
    drawing = draw(axes, tokens)
    picture.frame()  # a warning would be an error
    legend = axes.get_legend()
    texts = [*axes.get_xticklabels(), *axes.get_yticklabels(), *getattr(drawing, "names", ())]
    texts += legend.get_texts() if legend else []
    drawn = [t.get_text() for t in texts]
    longest = 40 if legend else 14
    for token in tokens:
        name = plots.printable(token, longest)
        assert name.strip() and name in drawn
        assert not any(t.get_parse_math() for t in texts if t.get_text() == name)


def test_a_token_in_the_title_is_not_taken_for_mathematics():
    picture, heat = one(plots.heatmap, "a", "b", title="$$ <unk>")
    picture.frame()
    assert heat.axes.title.get_text() == "$$ <unk>"


@pytest.mark.parametrize("token, drawn", [
    ("bank", "bank"),
    ("", "∅"),
    (" ", "␣"),
    ("  ", "␣␣"),
    (" a", " a"),
    ("\n", "⏎"),
    ("\t", "⇥"),
    ("猫", "U+732B"),
    ("\u200b", "U+200B"),
    ("\x00", "U+0"),
    ("\ud83d", "U+D83D"),
    ("é", "é"),
    ("a" * 14, "a" * 14),
    ("a" * 15, "a" * 13 + "…"),
    (7, "7"),
])  # fmt: skip
def test_a_printable_token_can_be_seen(token, drawn):
    assert plots.printable(token) == drawn


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_a_printable_token_is_never_blank_nor_long_nor_without_glyphs(token):
    name = plots.printable(token)
    assert name.strip() and len(name) <= 14 and name.isprintable()
    for weight in "normal", "bold":
        face = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
        font = font_manager.get_font(font_manager.findfont(face))
        assert all(font.get_char_index(ord(c)) for c in name if ord(c) < 0x2000)


def test_tokens_that_look_alike_stay_apart():
    _, heat = one(plots.heatmap, ["", "", "a", "a"], ["", " ", "a"], torch.zeros(4, 3))
    assert len(heat.axes.get_yticklabels()) == 4 and len(heat.axes.get_xticklabels()) == 3


# --- What may be drawn ----------------------------------------------------------------------


@pytest.mark.parametrize("values", [
    torch.eye(2, requires_grad=True) * 1,
    torch.eye(2, dtype=torch.bfloat16),
    torch.eye(2, dtype=torch.float16),
    torch.eye(2).bool(),
    torch.eye(2).int(),
    np.eye(2, dtype="float32"),
    [[1, 0], [0, 1]],
    (torch.tensor([1.0, 0.0], requires_grad=True), torch.tensor([0.0, 1.0])),
    torch.nn.Parameter(torch.eye(2)),
    torch.eye(4)[::2, ::2],
], ids=str)  # fmt: skip
def test_any_kind_of_number_is_drawn_alike(values):
    _, heat = one(plots.heatmap, "ab", "cd", values)
    assert heat.description.endswith("a: 1.00, 0.00; b: 0.00, 1.00.")


def test_a_list_of_losses_may_still_have_gradients():
    losses = [torch.tensor(1.0, requires_grad=True), torch.tensor(0.5)]
    picture, lines = one(plots.curves, ["loss"], xlim=(0, 1), ylim=(0, 1))
    lines.update(loss=losses)
    picture.frame()
    assert lines.lines["loss"].get_ydata().tolist() == [1.0, 0.5]


@pytest.mark.parametrize("draw, bad, described", [
    (lambda axes: plots.vectors(axes, "ab"), [[NAN, 1], [INF, -INF]],
     "arrows a [NaN, 1.00] without an arrow, b [inf, -inf] without an arrow."),
    (lambda axes: plots.bars(axes, "abc"), [NAN, INF, -INF],
     "a: NaN with a bar to 0.00, b: inf with a bar to 1.10, c: -inf with a bar to 0.00."),
    (lambda axes: plots.heatmap(axes, "ab", "cd", kind="scores", title=""), [[NAN, INF], [-INF, 1]],
     "query down, key across; a: NaN, inf coloured as 4.00; b: -inf, 1.00."),
    (lambda axes: plots.heatmap(axes, "ab", "cd", kind="mask", title=""), [[NAN, 0], [-INF, 1]],
     "query down, key across; a: NaN, no; b: masked, may."),
])  # fmt: skip
def test_numbers_that_are_not_finite_are_named_and_drawn_without_a_warning(draw, bad, described):
    picture, drawing = one(draw)
    drawing.update(bad)
    picture.frame()
    assert drawing.description == described


@pytest.mark.parametrize("lengths", [(2, 1), (1, 2), (2, 2)])
def test_arrows_on_the_same_line_are_all_seen(lengths):
    picture, _ = one(plots.vectors, "ab", [[length, 0] for length in lengths])
    seen = pixels(picture).reshape(-1, 3)
    for colour in plots.CYCLE[:2]:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        # The letter alone is at most 30 pixels of pure colour.
        assert (seen == rgb).all(axis=-1).sum() > 100, colour


def test_lines_that_coincide_are_all_seen():
    picture, lines = one(plots.curves, "abc", xlim=(0, 9), ylim=(0, 2), legend=False)
    lines.update(range(10), a=[1] * 10, b=[1] * 10, c=[1] * 10)
    seen = pixels(picture).reshape(-1, 3)
    for colour in plots.CYCLE[:3]:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert (abs(seen - np.array(rgb)).max(axis=-1) < 60).sum() > 200, colour


def test_the_name_of_an_arrow_that_cannot_be_drawn_is():
    picture, arrows = one(plots.vectors, "ab", [[NAN, 1], [1, 2]])
    picture.frame()
    assert arrows.names[0].get_text() == "a [NaN, 1.00]"
    place = arrows.axes.transData.transform(arrows.names[0].get_position())
    assert arrows.axes.bbox.contains(*place)


def test_a_curve_with_a_hole_is_drawn():
    picture, lines = one(plots.curves, ["a"], yscale="log", ylim=(0.1, 10))
    lines.update(a=[1, NAN, 0, 3])
    picture.frame()
    assert lines.description.endswith("a: 1 at 0, NaN at 1, 0 at 2, 3 at 3, lowest 0, highest 3.")


def test_a_heat_map_takes_as_many_tokens_as_it_is_given():
    picture, heat = one(plots.heatmap, "ab", "ab", torch.eye(2))
    picture.frame()
    heat.relabel("xyz", "wxyz")
    heat.update(torch.full((3, 4), 0.5))
    _, fresh = one(plots.heatmap, "xyz", "wxyz", torch.full((3, 4), 0.5))
    assert picture.frame() == fresh.axes.figure.frame()
    assert heat.description == fresh.description


def test_stills_are_stacked_under_their_sentences():
    picture, _ = one(plots.bars, "ab", [0.2, 0.8])
    words = "A sentence that is much too long to stand on a single line above its picture. " * 3
    stacked = Image.open(io.BytesIO(base64.b64decode(plots.stack([(picture.pixels(), words)] * 2))))
    frame = Image.open(io.BytesIO(picture.frame()))
    assert stacked.width == frame.width and stacked.height > 2 * frame.height + 2 * 40


def drawn(draw, *arguments, **options):
    return one(draw, *arguments, **options)[1]


@pytest.mark.parametrize("drawing, change, sentence", [
    (drawn(plots.heatmap, "ab", "cde"), lambda d: d.update(torch.zeros(3, 2)),
     "values have shape (3, 2), not (2, 3)"),
    (drawn(plots.heatmap, "ab", "cde"), lambda d: d.update(torch.zeros(1, 2, 3)),
     "values have shape (1, 2, 3), not (2, 3)"),
    (drawn(plots.vectors, "ab"), lambda d: d.update(torch.zeros(2, 3)),
     "values have shape (2, 3), not (2, 2)"),
    (drawn(plots.bars, "ab"), lambda d: d.update([1, 2, 3]), "values have shape (3,), not (2,)"),
    (drawn(plots.curves, ["a", "b"]), lambda d: d.update(c=[1]), "no line is called 'c': a, b"),
    (drawn(plots.curves, ["a"]), lambda d: d.update(a=[1, 2, 3], x=[1, 2]),
     "a has shape (3,) but x has shape (2,)"),
    (None, lambda d: drawn(plots.heatmap, "a", "b", kind="weight"),
     "kind must be one of weights, scores, values, mask but is 'weight'"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence_and_changes_nothing(
    drawing, change, sentence, refuses
):
    before = drawing and (drawing.description, pixels(drawing.axes.figure))
    refuses(ValueError, sentence, change, drawing)
    if drawing:
        assert drawing.description == before[0]
        assert (pixels(drawing.axes.figure) == before[1]).all()


# --- In words -------------------------------------------------------------------------------


def test_the_description_follows_the_data():
    picture, (a, b, c, d, e) = plots.panels(5)
    heat = plots.heatmap(a, "qr", "st", torch.eye(2))
    arrows = plots.vectors(b, "xy", [[1, 0], [0, 1]], title="Plane")
    columns = plots.bars(c, ["x", "y " * 20], [0.25, 0.75], title="Shares")
    lines = plots.curves(d, ["loss", "floor"], "Training", xlim=(0, 9), ylim=(0, 3))
    plots.flow(e, [(0, 0, "x\n(B, S, D)"), (1, 0, "q")], [(0, 1)], "Shapes")
    lines.update(loss=[1, 2.04])
    assert picture.description.split("\n") == [
        "Attention weights: query down, key across; q: 1.00, 0.00; r: 0.00, 1.00.",
        "Plane: arrows x [1.00, 0.00], y [0.00, 1.00].",
        "Shares: x: 0.25, y y y y y y y…: 0.75.",
        "Training: loss over step; loss: 1 at 0, 2 at 1, lowest 1, highest 2; "
        "floor: no points yet.",
        "Shapes: x (B, S, D) -> q.",
    ]
    heat.update([[-INF, 0.5], [0.25, -0.001]])
    arrows.update([[-0.001, 2], [3, 4]])
    columns.update([0.5, -0.0])
    lines.update(x=[1, 2, 3, 5, 7, 9], floor=[0.5, 0.5, 0.7, 1, 1.5, 0.5], mark=4)
    lines.level(0.6931, "ln 2")
    lines.band([0, 8], [0.25, 0.5], [1, 2.5])
    assert picture.description.split("\n")[:4] == [
        "Attention weights: query down, key across; q: masked, 0.50; r: 0.25, 0.00.",
        "Plane: arrows x [0.00, 2.00], y [3.00, 4.00].",
        "Shares: x: 0.50, y y y y y y y…: 0.00.",
        "Training: loss over step; loss: 1 at 0, 2 at 1, lowest 1, highest 2; "
        "floor: 0.5 at 1, 0.5 at 2, 0.7 at 3, 0.5 at 9, lowest 0.5, highest 1.5; "
        "band from 0.3 to 2.5, x from 0 to 8; cursor at 4; ln 2 at 0.69.",
    ]


def test_a_mask_is_described_by_the_labels_of_its_cells():
    _, heat = one(plots.heatmap, "ab", "cd", [[True, False], [True, True]], kind="mask")
    assert heat.description == "Mask: query down, key across; a: may, no; b: may, may."
    options = {"kind": "mask", "names": ("", ""), "labels": ("stale", "holds", "new")}
    _, heat = one(plots.heatmap, "a", "cde", [[0, 1, 2]], **options)
    assert heat.description == "Mask: a: stale, holds, new."


def test_many_cells_without_numbers_are_summarised():
    weights = torch.eye(12).roll(1, dims=1) * 0.75 + 0.02
    weights[3] = 1 / 12
    options = {"names": ("", ""), "numbers": False}
    _, heat = one(plots.heatmap, [""] * 12, "abcdefghijkl", weights, **options)
    assert heat.description == (
        "Attention weights: 12 x 12 cells, 144 with a number; 0.02 to 0.77, mean 0.08; "
        "1: highest at b, 0.77; 3: highest at d, 0.77; 4: highest at a, 0.08; "
        "6: highest at g, 0.77; 7: highest at h, 0.77; 9: highest at j, 0.77; "
        "10: highest at k, 0.77; 12: highest at a, 0.77."
    )
    before = heat.description
    heat.update(weights.T)
    assert heat.description != before
    heat.update(torch.full((12, 12), -INF))
    assert "144" not in heat.description and "with a number" in heat.description


def test_differences_in_last_digits_do_not_change_a_summary():
    def described(error):
        picture, (left, right) = plots.panels(2)
        limits = {"xlim": (0, 200), "ylim": (0, 2.2)}
        losses = 2 * torch.exp(-torch.arange(200) / 30) + error * torch.randn(200)
        plots.curves(left, ["loss"], **limits).update(loss=losses)
        weights = torch.full((8, 8), 0.125) + error * torch.randn(8, 8)
        plots.heatmap(right, "abcdefgh", "abcdefgh", weights, numbers=False)
        return picture.description

    assert {described(1e-6) for _ in range(20)} == {described(0.0)}


def every_kind():
    """A picture with every kind of drawing, and the drawings."""
    picture, axes = plots.panels(6, width=20)
    heat = plots.heatmap(axes[0], "ab", "cd", [[0.1, 0.2], [0.3, 0.4]])
    large = plots.heatmap(axes[1], "abcdef", "ghijklm", torch.rand(6, 7), numbers=False)
    arrows = plots.vectors(axes[2], "ab", [[1, 2], [2, 1]])
    bars = plots.bars(axes[3], "ab", [0.25, 0.75])
    lines = plots.curves(axes[4], ["loss", "floor"], xlim=(0, 3), ylim=(0, 2))
    lines.update(loss=[2, 1, 0.5, 0.1], floor=[0.5, 0.5, 0.5, 0.5], mark=1)
    lines.level(1.5, "ceiling")
    lines.band([0, 3], [0, 0], [1, 1])
    path = plots.flow(axes[5], [(0, 0, "x"), (1, 0, "q"), (2, 0, "k")], [(0, 1), (1, 2)])
    return picture, heat, large, arrows, bars, lines, path


def test_a_change_to_any_artist_changes_the_description():
    picture, heat, large, arrows, bars, lines, path = every_kind()
    changes = [
        lambda: heat.image.set_data([[0.1, 0.2], [0.3, 0.5]]),
        lambda: heat.image.set_data(heat.values[::-1]),
        lambda: heat.image.set_data(heat.values.T),
        lambda: heat.cells[2].set_text("0.31"),
        lambda: heat.cells[2].set_text(""),
        lambda: heat.axes.set_yticklabels(["b", "a"]),
        lambda: heat.axes.set_xlabel("query"),
        lambda: heat.mark(row=1),
        lambda: heat.axes.set_title("Scores"),
        lambda: large.image.set_data(large.values[::-1]),
        lambda: arrows.arrows[0].set_UVC([1], [1]),
        lambda: arrows.names[1].set_text("a"),
        lambda: bars.bars[0].set_height(0.75),
        lambda: bars.numbers[1].set_text("0.76"),
        lambda: bars.axes.set_xticklabels(["b", "a"]),
        lambda: lines.lines["loss"].set_ydata([2, 1, 0.5, 0.3]),
        lambda: lines.lines["loss"].set_ydata([2, 1, -0.5, 0.1]),
        lambda: lines.lines["loss"].set_data([0, 1], [2, 1]),
        lambda: lines.lines["floor"].set_data([], []),
        lambda: lines.cursor.set_xdata([2, 2]),
        lambda: lines.cursor.set_visible(False),
        lambda: lines.axes.texts[0].set_text("floor"),
        lambda: lines._levels[0][0].set_ydata([1, 1]),
        lambda: lines.axes.collections[0].get_paths()[0].vertices.__imul__(0.5),
        lambda: path.axes.texts[1].set_text("v"),
        lambda: path.arrows[1].set_patchA(next(iter(path.boxes))),
        lambda: picture.axes[0].set_visible(False),
    ]  # fmt: skip
    before = picture.description
    for number, change in enumerate(changes):
        change()
        assert picture.description != before, number
        before = picture.description


def test_swapped_panels_change_the_description():
    def described(order):
        picture, axes = plots.panels(2)
        plots.bars(axes[order[0]], "ab", [0.2, 0.8])
        plots.bars(axes[order[1]], "ab", [0.3, 0.7])
        return picture.description

    assert described([0, 1]) == "a: 0.20, b: 0.80.\na: 0.30, b: 0.70."
    assert described([1, 0]) == "a: 0.30, b: 0.70.\na: 0.20, b: 0.80."


def test_a_drawing_without_a_title_does_not_begin_with_a_colon():
    picture, axes = plots.panels(1)
    plots.vectors(axes, "a", [[1, 2]])
    plots.heatmap(axes, "a", "b", [[1]], title="", names=("", ""))
    assert picture.description == "arrows a [1.00, 2.00].\na: 1.00."


# --- The user's matplotlib ------------------------------------------------------------------


def other_settings():
    """Nearly every setting of matplotlib, each with another value than its default."""
    other = matplotlib.RcParams()
    for name, value in dict.items(matplotlib.rcParamsDefault):
        if name.startswith(("backend", "savefig.format", "savefig.directory")):
            continue
        names = {"true": not value} if isinstance(value, bool) else {}
        tries = [*names.values(), "#ff0000", "dotted"]
        if isinstance(value, int | float) and not isinstance(value, bool):
            tries = [2 * value + 1, value / 2]
        for new in tries:
            try:
                other[name] = new
            except (ValueError, TypeError, RuntimeError):
                continue
            if other[name] != value:
                break
    other.update({"image.origin": "lower", "font.family": "serif", "font.serif": ["DejaVu Serif"]})
    return dict.copy(other)


@pytest.mark.parametrize("moment", ["before it is made", "before it is drawn", "while it is used"])
def test_a_picture_is_the_same_whatever_the_users_style(moment):
    def frames(settings):
        """Several frames, made under these settings; they are as they were afterwards."""
        torch.manual_seed(0)
        found = []
        if moment == "before it is made":
            dict.update(matplotlib.rcParams, settings)
        picture, heat, large, arrows, bars, lines, path = every_kind()
        if moment == "before it is drawn":
            dict.update(matplotlib.rcParams, settings)
        found += [picture.description, picture.frame()]
        if moment == "while it is used":
            dict.update(matplotlib.rcParams, settings)
        heat.relabel("xyz", ["a longer one", "z"])
        heat.update([[1, 0], [-INF, NAN], [1e308, 0.5]])
        large.update(np.full((6, 7), 1e308))
        arrows.update([[1.7e308, 1.7e308], [5e-324, 0]])
        bars.update([1e308, 0.5])
        lines.level(0.25, "another")
        lines.band([1, 2], [0, 0], [2, 2])
        found += [picture.frame(), picture.still()]
        saved = io.BytesIO()
        picture.savefig(saved)
        assert all(matplotlib.rcParams[name] == value for name, value in settings.items())
        return [*found, saved.getvalue(), picture.description]

    plain = frames({})
    hostile = other_settings()
    assert len(hostile) > 250
    with matplotlib.rc_context(), np.errstate(all="raise"):
        matplotlib.rcParams["font.sans-serif"].insert(0, "DejaVu Serif")  # changed in place
        try:
            plots._stamp.cache_clear()
            assert frames(hostile) == plain
        finally:
            matplotlib.rcParamsDefault["font.sans-serif"][:] = [
                font for font in matplotlib.rcParamsDefault["font.sans-serif"]
                if font != "DejaVu Serif"
            ]  # fmt: skip


# --- The picture as a whole -----------------------------------------------------------------


class Images(HTMLParser):
    """The attributes of every image in a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes))


@pytest.fixture(scope="module")
def other_process():
    """What a fresh process found: the outputs of a cell, and what was left behind."""
    program = """
import gc, json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
with capture_output() as captured:
    shell.run_cell('''
from attnlab.lab import plots
picture, axes = plots.panels(1)
plots.bars(axes, ['"quoted" & <b>', "y"], [0.25, 0.75])
picture''')
for _ in range(25):
    picture, axes = shell.user_ns["plots"].panels(1)
    shell.user_ns["plots"].heatmap(axes, "ab", "cd", [[0, 1], [1, 0]]).update([[1, 1], [1, 1]])
    picture.frame(), picture.still()
gc.collect()
kind = type(picture)
print(json.dumps({
    "still": shell.user_ns["picture"].still(),
    "outputs": [[output.data, output.metadata] for output in captured.outputs],
    "pyplot": [m for m in sys.modules if "pyplot" in m or m == "pylab"],
    "pictures": sum(type(o) is kind for o in gc.get_objects()),
}))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_there_is_no_pyplot_and_no_picture_stays_in_memory(other_process):
    assert other_process["pyplot"] == []
    assert other_process["pictures"] == 2  # the one that was shown and the last one


def test_an_exported_notebook_holds_the_words_where_a_screen_reader_finds_them(other_process):
    outputs = other_process["outputs"]
    words = '"quoted" & <b>: 0.25, y: 0.75.'
    assert [sorted(data) for data, _ in outputs] == [["image/png", "text/plain"], ["text/html"]]
    assert outputs[0][0] == {"image/png": other_process["still"], "text/plain": words}
    assert outputs[0][1] == {"image/png": {"alt": words}}
    cell = nbformat.v4.new_code_cell(
        outputs=[nbformat.v4.new_output("display_data", d, metadata=m) for d, m in outputs]
    )
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    picture, spoken = Images(page).found
    assert picture["src"].endswith(outputs[0][0]["image/png"])
    assert spoken["alt"] == words
    pixel = Image.open(io.BytesIO(base64.b64decode(spoken["src"].partition(",")[2])))
    assert pixel.size == (1, 1) and pixel.convert("RGBA").getpixel((0, 0))[3] == 0
    # Nothing but the image, which even without its style is a pixel large.
    assert outputs[1][0]["text/html"].startswith("<img ") and spoken["width"] == "1"


def test_a_still_is_a_small_png_that_looks_like_the_frame():
    picture, axes = plots.panels(3)
    values = 2 * torch.rand(40, 16) - 1
    plots.heatmap(axes[0], [""] * 40, [""] * 16, values, "values", numbers=False, limit=1.0)
    plots.vectors(axes[1], WORDS, [[1, 0], [0, 1], [2, 2]])
    plots.curves(axes[2], ["loss"], xlim=(0, 200), ylim=(0, 1)).update(loss=torch.rand(200))
    still = picture.still()
    assert len(still) < 50_000
    png = base64.b64decode(still)
    Image.open(io.BytesIO(png)).verify()
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    frame = pixels(picture).astype(int)
    assert image.shape == frame.shape
    assert abs(image - frame).max() <= 16
    grey = np.ptp(frame, axis=-1) < 3
    assert np.ptp(image, axis=-1)[grey].max() <= 16  # grey letters stay grey


def test_the_paper_is_white_also_on_a_dark_page():
    picture, _ = one(plots.heatmap, "ab", "cd", torch.eye(2))
    assert picture.get_facecolor() == (1, 1, 1, 1)
    image = Image.open(io.BytesIO(picture.frame()))
    assert image.mode == "RGB" and image.getpixel((0, 0)) == (255, 255, 255)


def test_panels_stand_side_by_side():
    picture, (left, right) = plots.panels(2, ratios=(3, 1))
    picture.frame()
    assert left.get_position().width > 2 * right.get_position().width
    assert plots.panels(4, width=5, height=2)[0].get_size_inches().tolist() == [5, 2]
