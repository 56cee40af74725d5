"""Pictures are tested by the artists on their axes; pixels only where pixels are the promise."""

import base64
import io
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import font_manager
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


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_weights_are_coloured_from_zero_to_one_however_close_together(spread):
    weights = 0.25 + spread * torch.tensor([[0.0, 0.25], [0.5, 0.75]])
    _, heat = one(plots.heatmap, "ab", "cd", weights)
    assert heat.image.get_clim() == (0, 1)
    heat.update([[0, 0], [0, 0]])
    assert heat.image.get_clim() == (0, 1)


@pytest.mark.parametrize("kind", ["scores", "values"])
@pytest.mark.parametrize("limit", [None, 7.0])
def test_scores_are_centred_at_zero(kind, limit):
    _, heat = one(plots.heatmap, "ab", "cd", [[0, 1], [2, 3]], kind=kind, limit=limit)
    low, high = heat.image.get_clim()
    assert low == -high and high == (limit or high)
    middle = heat.image.to_rgba(np.array([[0.0]]))[0, 0, :3]
    assert middle.min() > 0.9  # no colour where there is no score


@pytest.mark.parametrize("kind, values", [
    ("weights", [0, 0.25, 0.5, 0.75, 1]),
    ("weights", torch.linspace(0, 1, 101)),
    ("scores", torch.linspace(-4, 4, 161)),
    ("scores", [-100, 100]),
    ("values", torch.linspace(-3, 3, 121)),
    ("mask", [0, 1]),
])  # fmt: skip
def test_every_number_can_be_read_on_its_cell(kind, values):
    _, heat = one(plots.heatmap, "q", range(len(values)), [list(values)], kind=kind)
    cells = heat.image.to_rgba(heat.image.get_array())[0]
    for text, cell in zip(heat.cells[0], cells, strict=True):
        assert contrast(INK[text.get_color()], cell) >= 4.5


def test_every_cell_shows_its_own_number():
    values = torch.tensor([[0.125, 0.25, 0.5], [0.3, 0.4, 0.0]])
    picture, heat = one(plots.heatmap, "ab", "cde", values)
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
    assert heat.cells[0][1].get_text() == "-inf"
    assert np.ma.getmaskarray(heat.image.get_array()).tolist() == [[False, True], [False, False]]
    assert heat.axes.patch.get_hatch()
    image = pixels(picture)
    masked, zero = corner(image, heat, 0, 1), corner(image, heat, 0, 0)
    assert len(np.unique(zero.reshape(-1, 3), axis=0)) == 1
    assert len(np.unique(masked.reshape(-1, 3), axis=0)) > 1  # hatched
    assert masked.max() < zero.min()
    assert min(contrast(INK[heat.cells[0][1].get_color()], c / 255)
               for c in masked.reshape(-1, 3)) >= 4.5  # fmt: skip


def test_a_cell_that_was_masked_shows_nothing_of_what_it_was():
    picture, heat = one(plots.heatmap, "ab", "cd", [[1, 1], [1, 1]])
    pixels(picture)
    heat.update([[1, -INF], [1, 1]])
    fresh, _ = one(plots.heatmap, "ab", "cd", [[1, -INF], [1, 1]])
    assert (pixels(picture) == pixels(fresh)).all()


def test_what_is_not_there_is_empty_and_not_a_number():
    picture, heat = one(plots.heatmap, "a", "cd", [[NAN, 0.5]])
    pixels(picture)
    assert [t.get_text() for t in heat.cells[0]] == ["", "0.50"]
    assert heat.text == "Attention weights (query down, key across): a: empty, 0.50."


def test_no_cell_reads_minus_zero():
    _, heat = one(plots.heatmap, "a", "cde", [[-0.0, -0.001, -0.01]], kind="scores")
    assert [t.get_text() for t in heat.cells[0]] == ["0.00", "0.00", "-0.01"]


def test_a_number_too_long_for_a_cell_is_shortened():
    picture, heat = one(plots.heatmap, "a", "cde", [[1e30, -1e5, 1234.5]], kind="scores")
    pixels(picture)
    assert [t.get_text() for t in heat.cells[0]] == ["1e+30", "-1e+05", "1234.50"]


def test_numbers_can_be_left_out():
    picture, heat = one(plots.heatmap, "ab", "cd", [[1, -INF], [0, NAN]], numbers=False)
    pixels(picture)
    assert not heat.axes.texts
    assert heat.text == "Attention weights (query down, key across): 2 x 2."


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
        assert fresh.text == picture.text
    assert (pixels(picture) == after).all() and (after != blank).any()


def test_drawings_on_one_picture_do_not_disturb_each_other():
    def everything():
        picture, axes = plots.panels(len(DRAWN), width=20)
        return picture, [draw(ax) for (draw, _), ax in zip(DRAWN.values(), axes, strict=True)]

    picture, drawings = everything()
    pixels(picture)
    for drawing, (_, changes) in zip(drawings, DRAWN.values(), strict=True):
        for change in changes:
            change(drawing)
            pixels(picture)
    fresh, again = everything()
    for drawing, (_, changes) in zip(again, DRAWN.values(), strict=True):
        for change in changes:
            change(drawing)
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
    picture, heat = one(plots.heatmap, WORDS, WORDS, torch.eye(3))
    pixels(picture)
    heat.update([[0.5, 0.25, 0.25], [-INF, 1, NAN], [0.1, 0.2, 0.7]])
    saved = io.BytesIO()
    picture.savefig(saved, format="png")
    assert (np.asarray(Image.open(saved).convert("RGB")) == pixels(picture)).all()


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
    texts = [t for t in texts if not isinstance(t, str)] + (legend.get_texts() if legend else [])
    drawn = [t.get_text() for t in texts]
    longest = 40 if legend else 14
    for token in tokens:
        name = plots.label(token, longest)
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
def test_a_label_makes_a_token_visible(token, drawn):
    assert plots.label(token) == drawn


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_a_label_is_never_blank_nor_long_nor_without_glyphs(token):
    name = plots.label(token)
    assert name.strip() and len(name) <= 14 and name.isprintable()
    for weight in "normal", "bold":
        face = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
        font = font_manager.get_font(font_manager.findfont(face))
        assert all(font.get_char_index(ord(c)) for c in name if ord(c) < 0x2000)


def test_the_count_of_tokens_is_kept_when_they_look_alike():
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
    picture, heat = one(plots.heatmap, "ab", "cd", values)
    picture.frame()
    assert heat.text == "Attention weights (query down, key across): a: 1.00, 0.00; b: 0.00, 1.00."


def test_a_list_of_losses_may_still_have_gradients():
    losses = [torch.tensor(1.0, requires_grad=True), torch.tensor(0.5)]
    picture, lines = one(plots.curves, ["loss"], xlim=(0, 1), ylim=(0, 1))
    lines.update(loss=losses)
    picture.frame()
    assert lines.lines["loss"].get_ydata().tolist() == [1.0, 0.5]


@pytest.mark.parametrize("draw, bad", [
    (lambda axes: plots.vectors(axes, "ab"), [[NAN, 1], [INF, -INF]]),
    (lambda axes: plots.bars(axes, "ab"), [NAN, INF]),
    (lambda axes: plots.heatmap(axes, "ab", "cd", kind="scores"), [[NAN, INF], [-INF, 1]]),
])  # fmt: skip
def test_numbers_that_are_not_finite_are_drawn_without_a_warning(draw, bad):
    picture, drawing = one(draw)
    drawing.update(bad)
    picture.frame()
    assert "nan" in drawing.text or "empty" in drawing.text
    assert "inf" in drawing.text


def test_a_curve_with_a_hole_is_drawn():
    picture, lines = one(plots.curves, ["a"], yscale="log", ylim=(0.1, 10))
    lines.update(a=[1, NAN, 0, 3])
    picture.frame()


def test_a_heat_map_takes_as_many_tokens_as_it_is_given():
    picture, heat = one(plots.heatmap, "ab", "ab", torch.eye(2))
    picture.frame()
    heat.relabel("xyz", "wxyz")
    heat.update(torch.full((3, 4), 0.5))
    _, fresh = one(plots.heatmap, "xyz", "wxyz", torch.full((3, 4), 0.5))
    assert picture.frame() == fresh.axes.figure.frame()
    assert heat.text == fresh.text


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
     "values have shape (3, 2) but the heat map is (2, 3)"),
    (drawn(plots.heatmap, "ab", "cde"), lambda d: d.update(torch.zeros(1, 2, 3)),
     "values have shape (1, 2, 3) but the heat map is (2, 3)"),
    (drawn(plots.vectors, "ab"), lambda d: d.update(torch.zeros(2, 3)),
     "vectors have shape (2, 3), not (2, 2)"),
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
    before = drawing and (drawing.text, pixels(drawing.axes.figure))
    refuses(ValueError, sentence, change, drawing)
    if drawing:
        assert drawing.text == before[0]
        assert (pixels(drawing.axes.figure) == before[1]).all()


# --- In words -------------------------------------------------------------------------------


def test_the_words_follow_the_data():
    picture, (a, b, c, d, e) = plots.panels(5)
    heat = plots.heatmap(a, "qr", "st", torch.eye(2))
    arrows = plots.vectors(b, "xy", [[1, 0], [0, 1]], title="Plane")
    columns = plots.bars(c, "xy", [0.25, 0.75], title="Shares")
    lines = plots.curves(d, ["loss"], "Training")
    plots.flow(e, [(0, 0, "x\n(B, S, D)"), (1, 0, "q")], [(0, 1)], "Shapes")
    lines.update(loss=[1, 2])
    assert picture.text.split("\n") == [
        "Attention weights (query down, key across): q: 1.00, 0.00; r: 0.00, 1.00.",
        "Plane: arrows x [1.00, 0.00], y [0.00, 1.00].",
        "Shares: x 0.25, y 0.75.",
        "Training: loss, loss over step.",
        "Shapes: x (B, S, D) -> q.",
    ]
    heat.update([[-INF, 0.5], [0.25, -0.001]])
    arrows.update([[-0.001, 2], [3, 4]])
    columns.update([0.5, -0.0])
    assert picture.text.split("\n")[:3] == [
        "Attention weights (query down, key across): q: masked, 0.50; r: 0.25, 0.00.",
        "Plane: arrows x [0.00, 2.00], y [3.00, 4.00].",
        "Shares: x 0.50, y 0.00.",
    ]


def test_the_words_of_a_mask_say_who_may_attend():
    _, heat = one(plots.heatmap, "ab", "cd", [[True, False], [True, True]], kind="mask")
    assert heat.text == "Mask (query down, key across): a: may, no; b: may, may."


def test_a_heat_map_too_large_to_read_aloud_gives_its_size():
    _, heat = one(plots.heatmap, range(6), range(7), torch.zeros(6, 7), names=("", ""))
    assert heat.text == "Attention weights: 6 x 7."


def test_a_drawing_without_a_title_does_not_begin_with_a_colon():
    picture, axes = plots.panels(1)
    plots.vectors(axes, "a", [[1, 2]])
    plots.heatmap(axes, "a", "b", [[1]], title="", names=("", ""))
    assert picture.text == "arrows a [1.00, 2.00].\na: 1.00."


# --- The picture as a whole -----------------------------------------------------------------


def test_a_picture_shows_itself_as_png_and_words():
    picture, _ = one(plots.heatmap, "ab", "cd", torch.eye(2))
    shown, about = picture._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"image/png", "text/plain"}
    assert about == {"image/png": {"alt": picture.text}}
    assert shown["text/plain"] == picture.text
    assert shown["image/png"] == picture.still()


def test_a_still_is_a_small_png_that_looks_like_the_frame():
    picture, axes = plots.panels(3)
    plots.heatmap(axes[0], range(8), range(8), torch.rand(8, 8))
    plots.vectors(axes[1], WORDS, [[1, 0], [0, 1], [2, 2]])
    plots.curves(axes[2], ["loss"], xlim=(0, 200), ylim=(0, 1)).update(loss=torch.rand(200))
    still = picture.still()
    assert len(still) < 50_000
    png = base64.b64decode(still)
    Image.open(io.BytesIO(png)).verify()
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    frame = pixels(picture).astype(int)
    assert image.shape == frame.shape
    assert abs(image - frame).mean() < 2


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


def test_there_is_no_pyplot_and_nothing_is_left_behind():
    program = """
import gc, sys, torch
from attnlab.lab import explorers, plots
def one():
    picture, axes = plots.panels(1)
    plots.heatmap(axes, "ab", "cd", torch.eye(2)).update(torch.ones(2, 2))
    return picture.frame(), picture.still(), picture
explorers.Explorer(one()[-1], lambda: "", goal="")
for _ in range(25):
    one()
gc.collect()
print(sorted(m for m in sys.modules if "pyplot" in m), "pylab" in sys.modules)
print(sum(type(o) is plots.Picture for o in gc.get_objects()))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[] False"
    assert done.stdout.split("\n")[1] == "1"
