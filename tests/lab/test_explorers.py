"""Explorers are tested by moving a control and reading the sentence and the picture."""

import asyncio
import base64
import gc
import io
import random
import sys
import threading
import tracemalloc

import ipywidgets as widgets
import numpy as np
import pytest
import torch
import traitlets
from PIL import Image

from attnlab.lab import plots
from attnlab.lab.explorers import PRESETS, Explorer, choice, matrix, slider, toggle


def walk(widget):
    """A widget and all it holds."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def find(widget, kind, n=0):
    return [w for w in walk(widget) if isinstance(w, kind)][n]


def shown(explorer):
    return np.asarray(Image.open(io.BytesIO(bytes(find(explorer, widgets.Image).value))))


def words(explorer):
    """The box below the picture."""
    return [w for w in walk(explorer) if isinstance(w, widgets.HTML)][-1].value


class Seen(list):
    """An explorer of every knob, and what its ``show`` was called with."""

    def __init__(self, more=(), size=(None, 3.2), **knobs):
        super().__init__()
        picture, (left, right) = plots.panels(2, *size)
        self.heat = plots.heatmap(left, "ab", "cd", kind="values")
        self.bars = plots.bars(right, ["x"], limits=(-10, 10))
        self.explorer = Explorer(picture, self.show, goal="Turn it.", more=more, **knobs)

    def show(self, **values):
        self.append(values)
        numbers = [float(torch.as_tensor(v).sum()) if not isinstance(v, str) else len(v)
                   for v in values.values()]  # fmt: skip
        self.heat.update(values.get("w", torch.zeros(2, 2)))
        self.bars.update([sum(numbers)])
        return f"{sum(numbers):.2f} from {values}"


KNOBS = {
    "whole": (lambda: slider(1, 9, 3), [1, 5, 9, 3]),
    "real": (lambda: slider(0.0, 1.0, 0.3), [0.0, 0.5, 1.0, 0.3]),
    "steps": (lambda: slider(0, 1, 0.25, step=0.25), [0.0, 0.5, 1.0, 0.25]),
    "words": (lambda: choice(["x", "yy", "zzz"]), ["yy", "zzz", "x"]),
    "pairs": (lambda: choice([("none", 0), ("some", 2)], 2), [0, 2]),
    "switch": (lambda: toggle(True), [False, True]),
    "text": (lambda: widgets.Text("river bank"), ["<unk> & $$ are strange", "", "猫"]),
    "w": (lambda: matrix(2, 2), [((-3.0,) * 2,) * 2, ((0.0,) * 2,) * 2, ((3.0,) * 2,) * 2]),
    "vectors": (lambda: matrix(3, 2, row_names="rmb"), [((1.0, 2.0),) * 3, ((-3.0, 3.0),) * 3]),
}


@pytest.mark.parametrize("folded", [False, True], ids=["open", "folded"])
@pytest.mark.parametrize("name", KNOBS)
def test_every_kind_of_knob_changes_sentence_and_picture(name, folded):
    make, settings = KNOBS[name]
    other = slider(0, 5, 2)
    seen = Seen(more=[name] if folded else [], **{name: make(), "other": other})
    explorer = seen.explorer
    for value in settings:
        before, image = explorer.sentence, shown(explorer)
        explorer.knobs[name].value = value
        got = seen[-1].pop(name)
        assert (tuple(map(tuple, got.tolist())) if torch.is_tensor(got) else got) == value
        assert seen[-1] == {"other": 2}  # what never moved keeps its value
        assert explorer.sentence != before
        assert (shown(explorer) != image).any()
        assert explorer.error == ""
    assert len(seen) == 1 + len(settings)


def test_a_matrix_arrives_as_a_float_tensor():
    seen = Seen(w=matrix(2, 2, [[1, 2], [3, 0]]))
    assert seen[0]["w"].dtype == torch.float32
    assert seen[0]["w"].tolist() == [[1, 2], [3, 0]]


# --- Matrix ---------------------------------------------------------------------------------


def move(knob, row, column, number):
    """What the page sends when one entry is dragged: the whole value, as lists."""
    value = [list(r) for r in knob.value]
    value[row][column] = number
    knob.set_state({"value": value})


def choose(knob, preset, by=None):
    """What the page sends when a preset is chosen."""
    knob.set_state({"asked": {"preset": preset, "by": by, "times": knob.asked.get("times", 0) + 1}})


def changes(knob):
    seen = []
    knob.observe(lambda change: seen.append(change["new"]), names="value")
    return seen


def test_moving_one_entry_of_a_matrix_changes_its_value_once():
    knob = matrix(2, 3, [[1, 2, 3], [-1, -2, -3]])
    seen = changes(knob)
    move(knob, 1, 1, 0.5)
    assert seen == [((1, 2, 3), (-1, 0.5, -3))] == [knob.value]


def test_setting_a_matrix_to_what_it_is_changes_nothing():
    knob = matrix(2, 2)
    seen = changes(knob)
    knob.value = torch.tensor([[1, 2], [3, -1]])
    knob.value = [[1, 2], [3, -1]]
    assert seen == [((1, 2), (3, -1))]


@pytest.mark.parametrize("value", [
    [[0.5, 1], [2, 3]],
    ((0.5, 1), (2, 3)),
    np.array([[0.5, 1], [2, 3]]),
    torch.tensor([[0.5, 1], [2, 3]], dtype=torch.float64),
    torch.tensor([[0.5, 1], [2, 3]], requires_grad=True),
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
    move(knob, 1, 1, 9)
    assert knob.value == ((-1, 2), (0, 2))


@pytest.mark.parametrize("value, sentence", [
    ([[1, 2]], "W_Q is 2 x 2: ((1.0, 2.0),) does not fit"),
    ([[1, 2], [3]], "W_Q is 2 x 2: ((1.0, 2.0), (3.0,)) does not fit"),
    (torch.zeros(1, 3), "W_Q is 2 x 2: ((0.0, 0.0, 0.0),) does not fit"),
    (torch.tensor([[1, float("nan")], [0, 0]]), "W_Q holds a number that is not finite"),
    ([[1, float("inf")], [0, 0]], "W_Q holds a number that is not finite"),
    (3, "W_Q is rows of numbers, not 3"),
    (None, "W_Q is rows of numbers, not None"),
    ([1, 2], "W_Q is rows of numbers, not [1, 2]"),
    ("ab", "W_Q is rows of numbers, not 'ab'"),
])  # fmt: skip
def test_what_is_no_matrix_is_refused_and_nothing_moves(value, sentence, refuses):
    seen = Seen(w=matrix(2, 2, label="W_Q"))
    knob = seen.explorer.knobs["w"]
    refuses(traitlets.TraitError, sentence, setattr, knob, "value", value)
    assert knob.value == ((1, 0), (0, 1))
    assert len(seen) == 1


def test_a_matrix_that_starts_in_another_shape_is_refused(refuses):
    refuses(ValueError, "start has shape (2, 2), not (2, 3)", matrix, 2, 3, torch.eye(2))
    refuses(ValueError, "start has shape (2,), not (2, 2)", matrix, 2, 2, [1, 2])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("by", [2, None])
def test_a_preset_redraws_exactly_once_and_can_be_chosen_again(preset, by):
    seen = Seen(w=matrix(2, 2, [[0.5, 0.5], [0.5, 0.5]]))
    knob = seen.explorer.knobs["w"]
    values = set()
    for n in 2, 4:
        choose(knob, preset, by)
        values.add(knob.value)
        assert len(seen) == n
        choose(knob, "start")
        assert knob.value == ((0.5, 0.5), (0.5, 0.5)) and len(seen) == n + 1
    assert len(values) == 1


@pytest.mark.parametrize("preset, by, value", [
    ("identity", 0, [[1, 0], [0, 1]]),
    ("zero", 0, [[0, 0], [0, 0]]),
    ("swap", 0, [[0, 1], [1, 0]]),
    ("scale", 2, [[2, 0], [0, 2]]),
    ("scale", 100, [[3, 0], [0, 3]]),  # stays between its ends
    ("rotation", 0, [[1, 0], [0, 1]]),
    ("rotation", 90, [[0, 1], [-1, 0]]),  # [1, 0] @ W = [0, 1]
    ("rotation", 45, [[0.5**0.5, 0.5**0.5], [-(0.5**0.5), 0.5**0.5]]),
])  # fmt: skip
def test_presets_are_what_they_say(preset, by, value):
    knob = matrix(2, 2, [[0.5, 0.5], [0.5, 0.5]])
    knob.preset(preset, by)
    torch.testing.assert_close(torch.tensor(knob.value), torch.tensor(value).float())


def test_a_random_matrix_is_the_same_for_the_same_seed():
    knob, values = matrix(2, 2), []
    for seed in 1, 2, 1:
        knob.preset("random", seed)
        values.append(knob.value)
    assert values[0] == values[2] != values[1]


def test_a_reset_that_changes_nothing_redraws_nothing():
    seen = Seen(w=matrix(2, 2))
    choose(seen.explorer.knobs["w"], "start")
    assert len(seen) == 1


def test_a_reset_right_after_a_gesture_is_what_stays():
    seen = Seen(w=matrix(2, 2))
    knob = seen.explorer.knobs["w"]
    knob.set_state({"value": [[3, 3], [3, 3]], "asked": {"preset": "start", "times": 1}})
    assert knob.value == ((1, 0), (0, 1))
    knob.set_state({"asked": {"preset": "zero", "times": 2}, "value": [[2, 2], [2, 2]]})
    assert knob.value == ((0, 0), (0, 0))


def test_presets_are_for_two_by_two():
    assert matrix(2, 2).presets == list(PRESETS)
    assert matrix(3, 2).presets == matrix(2, 3).presets == []


def test_a_matrix_is_called_by_its_knob_unless_it_has_a_name():
    seen = Seen(W_Q=matrix(2, 2), u=matrix(2, 2, label="W_<K>"))
    assert [k.description for k in seen.explorer.knobs.values()] == ["W_Q", "W_<K>"]


def test_the_rows_of_a_matrix_can_be_tokens():
    knob = matrix(3, 2, row_names=["river", "<unk>", "bank"])
    assert knob.row_names == ["river", "<unk>", "bank"]


def test_the_page_gets_all_it_needs_and_asks_no_network():
    knob = matrix(2, 2, low=-1, high=2, step=0.25, label="W_Q")
    state = knob.get_state()
    assert {k: state[k] for k in ("value", "low", "high", "step", "description")} == {
        "value": ((1, 0), (0, 1)), "low": -1, "high": 2, "step": 0.25, "description": "W_Q",
    }  # fmt: skip
    assert "render" in state["_esm"] and state["_css"]
    assert "http" not in state["_esm"].replace("http://www.w3.org", "") + state["_css"]


# --- Knobs in an explorer -------------------------------------------------------------------


def test_every_change_redraws_exactly_once():
    seen = Seen(
        w=matrix(2, 2), n=slider(0, 9, 1), s=toggle(False), c=choice(["x", "yy"]), more=["n", "w"]
    )
    knobs = seen.explorer.knobs
    draws = []
    find(seen.explorer, widgets.Image).observe(draws.append, names="value")
    for n, change in enumerate([
        lambda: move(knobs["w"], 1, 0, 1.5),
        lambda: setattr(knobs["w"], "value", [[-1, 0], [0, -1]]),
        lambda: choose(knobs["w"], "swap"),
        lambda: choose(knobs["w"], "start"),
        lambda: setattr(knobs["n"], "value", 7),
        lambda: setattr(knobs["s"], "value", True),
        lambda: setattr(knobs["c"], "value", "yy"),
    ], 1):  # fmt: skip
        change()
        assert len(seen) == 1 + n and len(draws) == n
    knobs["n"].value = 7  # nothing new
    assert len(seen) == 1 + n


@pytest.mark.parametrize("generator", [False, True])
def test_an_explorer_keeps_working_when_later_cells_use_its_names_again(generator):
    first = """
picture, axes = plots.panels(1)
drawing = plots.bars(axes, ["n"], limits=(0, 10))
def show(n, *, factor=2):
    drawing.update([factor * n])
    SENTENCE f"{word} is {factor * n}"
made = Explorer(picture, show, goal="", n=slider(0, 9, 1))
""".replace("SENTENCE", "yield" if generator else "return")
    later = """
picture, axes = plots.panels(1)
drawing, word = plots.vectors(axes, ["v"], [[1, 1]]), None
"""
    notebook = {"plots": plots, "Explorer": Explorer, "slider": slider, "word": "it"}
    exec(first, notebook)
    exec(later, notebook)
    explorer = notebook["made"]
    before = shown(explorer)
    explorer.knobs["n"].value = 4
    assert explorer.error == "" and explorer.sentence == "it is 8"
    assert (shown(explorer) != before).any()


def box_of(knob, explorer):
    return next(w for w in walk(explorer) if knob in getattr(w, "children", ()))


def test_knobs_that_wait_are_folded_until_asked_for():
    explorer = Seen(w=matrix(2, 2), n=slider(0, 9, 1), more=["w"]).explorer
    folded = box_of(explorer.knobs["w"], explorer)
    button = find(explorer, widgets.ToggleButton)
    assert button.description == "More knobs" and folded.layout.display == "none"
    assert box_of(explorer.knobs["n"], explorer).layout.display == "flex"
    button.value = True
    assert folded.layout.display == "flex"
    button.value = False
    assert folded.layout.display == "none"


def test_without_folded_knobs_there_is_nothing_to_unfold():
    explorer = Seen(n=slider(0, 1, 0)).explorer
    assert not any(isinstance(w, widgets.ToggleButton) for w in walk(explorer))


def test_an_unknown_name_to_fold_is_refused(refuses):
    refuses(ValueError, "no knob is called 'm': n, s", Seen, more=["n", "m"],
            n=slider(0, 9, 1), s=toggle(True))  # fmt: skip


def still_of(explorer):
    return base64.b64decode(explorer._repr_mimebundle_()[0]["image/png"])


@pytest.mark.parametrize("generator", [False, True])
def test_stills_show_their_settings_and_leave_the_explorer_as_it_was(generator):
    picture, axes = plots.panels(1)
    bars = plots.bars(axes, ["x"], limits=(0, 10))

    def show(n):
        bars.update([n])
        return f"it is **{n}**"

    def steps(n):
        yield "starting"
        yield show(n)

    knob = slider(0, 9, 1)
    explorer = Explorer(
        picture, steps if generator else show, goal="Turn it.", n=knob, stills=[{"n": 3}, {"n": 9}]
    )
    before = shown(explorer)
    still = Image.open(io.BytesIO(still_of(explorer)))
    assert still.height > 2 * before.shape[0]
    assert explorer.sentence == "it is 1" and knob.value == 1
    assert (np.asarray(Image.open(io.BytesIO(picture.frame()))) == before).all()


def test_what_stands_between_stars_is_large_on_the_page_and_plain_elsewhere():
    explorer = Explorer(
        plots.panels(1)[0], lambda n: f"it is **<{n}>** now", goal="Turn it.", n=slider(0, 9, 1)
    )
    assert explorer.sentence == repr(explorer) == "it is <1> now"
    assert "font-size:1.7em" in words(explorer) and "&lt;1&gt;</b> now" in words(explorer)


def test_a_burst_of_changes_ends_on_the_last_value():
    seen = Seen(n=slider(0, 100, 0))
    for value in range(1, 51):
        seen.explorer.knobs["n"].value = value
    assert seen[-1] == {"n": 50} and seen.explorer.sentence == "50.00 from {'n': 50}"
    fresh = Seen(n=slider(0, 100, 50)).explorer
    assert (shown(seen.explorer) == shown(fresh)).all()


def test_sliders_follow_the_mouse():
    for knob in [slider(0, 1, 0), slider(0.0, 1.0, 0.5)]:
        assert knob.continuous_update


def test_a_knob_is_called_by_its_name_unless_it_has_a_label():
    seen = Seen(d_k=slider(0, 9, 1), s=toggle(True, "causal mask"))
    assert [k.description for k in seen.explorer.knobs.values()] == ["d k", "causal mask"]


# --- When something goes wrong --------------------------------------------------------------


@pytest.mark.parametrize("generator", [False, True])
def test_an_error_is_told_in_words_and_the_next_good_value_recovers(generator):
    explorer = failing(generator)
    good = shown(explorer)
    assert "n is 1" in words(explorer)
    explorer.knobs["n"].value = 5
    assert explorer.error == "ValueError: <b>five</b> & more"
    assert "&lt;b&gt;five&lt;/b&gt; &amp; more" in words(explorer) and "<b>" not in words(explorer)
    assert 'role="alert"' in words(explorer)
    assert (shown(explorer) == good).all()
    assert explorer.sentence == repr(explorer) == "n is 1"
    explorer.knobs["n"].value = 7
    assert explorer.error == "" and "n is 7" in words(explorer)
    assert 'role="status"' in words(explorer)
    assert (shown(explorer) != good).any()
    explorer.knobs["n"].value = 1
    assert (shown(explorer) == good).all()


def failing(generator, bad=(5,)):
    """An explorer whose ``show`` raises for some values of n."""
    picture, axes = plots.panels(1)
    bars = plots.bars(axes, ["n"], limits=(0, 10))

    def show(n):
        if n in bad:
            raise ValueError("<b>five</b> & more")
        bars.update([n])
        return f"n is {n}"

    def frames(n):
        yield show(n)

    return Explorer(picture, frames if generator else show, goal="", n=slider(0, 9, 1))


@pytest.mark.parametrize("generator", [False, True])
def test_an_author_sees_an_error_of_the_first_picture_as_an_error(generator, refuses):
    refuses(ValueError, "<b>five</b> & more", failing, generator, [1])


@pytest.mark.parametrize("result, name", [(None, "NoneType"), (3, "int"), (["a"], "list")])
def test_show_must_give_a_sentence(result, name, refuses):
    picture, _ = plots.panels(1)
    refuses(TypeError, f"show must give one sentence, not {name}",
            Explorer, picture, lambda: result, goal="")  # fmt: skip


def test_an_error_while_drawing_keeps_the_old_sentence_with_the_old_picture():
    picture, axes = plots.panels(1)

    def show(n):
        axes.set_title("$" * n)  # "$$" cannot be drawn
        return f"n is {n}"

    explorer = Explorer(picture, show, goal="", n=slider(0, 9, 1))
    before = shown(explorer)
    explorer.knobs["n"].value = 2
    assert explorer.error.startswith("ValueError") and explorer.sentence == "n is 1"
    assert (shown(explorer) == before).all()
    explorer.knobs["n"].value = 0
    assert explorer.error == "" and explorer.sentence == "n is 0"


def test_boxes_that_set_a_colour_set_the_background_too():
    explorer = failing(False)
    for value in 1, 5:
        explorer.knobs["n"].value = value
        style = words(explorer).split('style="')[1].split('"')[0]
        names = [rule.split(":")[0].strip() for rule in style.split(";")]
        assert {"color", "background"} <= set(names)
    for box in walk(explorer):
        if isinstance(box, widgets.HTML):
            assert ("color:" in box.value) == ("background:" in box.value)


# --- What a notebook stores -----------------------------------------------------------------


def test_the_notebook_keeps_a_sentence_a_still_and_a_widget():
    explorer = Seen(w=matrix(2, 2)).explorer
    bundle, about = explorer._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {
        "text/plain", "image/png", "application/vnd.jupyter.widget-view+json",
    }  # fmt: skip
    assert bundle["text/plain"] == explorer.sentence == repr(explorer)
    assert about == {"image/png": {"alt": f"Try: {explorer.goal} {explorer.sentence}"}}
    still = np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB"))
    now = shown(explorer)  # below its sentence
    assert len(now) < len(still) < len(now) + 60
    assert abs(still[-len(now) :].astype(int) - now).mean() < 2
    view = bundle["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.model_id


def test_what_is_shown_is_escaped():
    picture, _ = plots.panels(1)
    explorer = Explorer(picture, lambda: "<unk> & 'x'", goal="Make <s> small.")
    assert "&lt;unk&gt; &amp;" in words(explorer)
    assert explorer.sentence == "<unk> & 'x'"
    assert find(explorer, widgets.HTML).value == "<b>Try:</b> Make &lt;s&gt; small."


# --- Work in slices -------------------------------------------------------------------------


class Counter:
    """A generator ``show`` that counts up to n, and notes what it did."""

    def __init__(self, fails_at=None):
        self.log, self.fails_at = [], fails_at
        picture, axes = plots.panels(1)
        self.bars = plots.bars(axes, ["n"], limits=(0, 100))
        self.explorer = Explorer(picture, self.show, goal="", n=slider(0, 100, 3))
        self.images = []
        find(self.explorer, widgets.Image).observe(self.images.append, names="value")

    def show(self, n):
        for i in range(n):
            if i == self.fails_at:
                raise RuntimeError("lost")
            self.bars.update([i + 1])
            self.log.append((n, i))
            yield f"{i + 1} of {n}"

    @property
    def stop(self):
        return find(self.explorer, widgets.Button)


def test_without_an_event_loop_work_runs_to_its_end():
    counter = Counter()
    assert counter.explorer.sentence == "3 of 3"
    counter.explorer.knobs["n"].value = 20
    assert counter.explorer.sentence == "20 of 20" and "20 of 20" in words(counter.explorer)
    assert len(counter.images) == 1  # only the end is drawn
    assert counter.stop.disabled


def test_in_an_event_loop_work_runs_in_slices_and_the_page_stays_alive():
    counter = Counter()

    async def page():
        counter.explorer.knobs["n"].value = 10
        assert counter.log[-1] == (3, 2)  # nothing is done before the knob's message is answered
        ticks = 0
        while counter.explorer.sentence != "10 of 10":
            assert not counter.stop.disabled
            await asyncio.sleep(0)
            ticks += 1
        await asyncio.sleep(0.05)
        return ticks

    ticks = asyncio.run(page())
    assert ticks > 10
    assert counter.log[3:] == [(10, i) for i in range(10)]
    assert len(counter.images) == 10 and counter.stop.disabled


def test_the_first_picture_is_complete_even_in_an_event_loop():
    async def page():
        return Counter().explorer.sentence

    assert asyncio.run(page()) == "3 of 3"


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_new_change_drops_the_work_that_runs_and_the_last_value_wins():
    counter = Counter()
    knob = counter.explorer.knobs["n"]

    async def page():
        knob.value = 90
        await until(lambda: counter.explorer.sentence == "4 of 90")
        for value in range(50, 4, -1):
            knob.value = value
        await until(lambda: counter.explorer.sentence == "5 of 5")
        await asyncio.sleep(0.1)

    asyncio.run(page())
    assert counter.explorer.sentence == "5 of 5"
    after = counter.log[counter.log.index((90, 3)) + 1 :]
    assert after == [(5, i) for i in range(5)]
    assert counter.stop.disabled and counter.explorer.error == ""


@pytest.mark.parametrize("press", [lambda c: c.stop.click(), lambda c: c.explorer.stop()],
                         ids=["button", "method"])  # fmt: skip
def test_stop_stops_and_keeps_the_picture(press):
    counter = Counter()

    async def page():
        counter.explorer.knobs["n"].value = 90
        await until(lambda: counter.explorer.sentence == "6 of 90")
        press(counter)
        image = shown(counter.explorer)
        await asyncio.sleep(0.1)
        assert (shown(counter.explorer) == image).all()
        assert counter.explorer.sentence == "6 of 90" and counter.stop.disabled
        counter.explorer.knobs["n"].value = 2  # and it can be started again
        await until(lambda: counter.explorer.sentence == "2 of 2")

    asyncio.run(page())
    assert counter.explorer.error == ""


def test_an_error_in_the_middle_of_the_work_is_told_and_the_picture_stays():
    counter = Counter(fails_at=7)

    async def page():
        counter.explorer.knobs["n"].value = 90
        await until(lambda: counter.explorer.error)
        assert counter.explorer.error == "RuntimeError: lost" and "lost" in words(counter.explorer)
        assert counter.explorer.sentence == "7 of 90" and counter.stop.disabled
        counter.explorer.knobs["n"].value = 4
        await until(lambda: counter.explorer.sentence == "4 of 4")

    asyncio.run(page())
    assert counter.explorer.error == "" and "4 of 4" in words(counter.explorer)


def test_stop_is_only_where_there_is_something_to_stop():
    stops = [b for b in walk(Seen(n=slider(0, 1, 0)).explorer) if isinstance(b, widgets.Button)]
    assert not stops
    assert Counter().stop.description == "Stop"
    Counter().explorer.stop()  # nothing runs: nothing happens


# --- For a long lesson ----------------------------------------------------------------------


def test_a_thousand_moves_leave_nothing_behind():
    seen = Seen(w=matrix(2, 2), n=slider(0, 9, 1), real=slider(0.0, 1.0, 0.5), s=toggle(False),
                c=choice(["x", "yy"]), text=widgets.Text("a"),
                more=["s"], size=(3, 1.5))  # fmt: skip
    explorer, knobs = seen.explorer, seen.explorer.knobs
    chance = random.Random(0)
    moves = [
        lambda: move(knobs["w"], chance.randint(0, 1), chance.randint(0, 1), chance.uniform(-4, 4)),
        lambda: choose(knobs["w"], chance.choice(["start", *PRESETS]), chance.randint(-9, 99)),
        lambda: setattr(knobs["n"], "value", chance.randint(0, 9)),
        lambda: setattr(knobs["real"], "value", chance.random()),
        lambda: setattr(knobs["s"], "value", not knobs["s"].value),
        lambda: setattr(knobs["c"], "value", chance.choice(["x", "yy"])),
        lambda: setattr(knobs["text"], "value", chance.choice(["", "猫", "<unk>", "$$"])),
    ]

    def play(times):
        for _ in range(times):
            chance.choice(moves)()
            assert explorer.error == ""
        seen.clear()
        gc.collect()
        alive = [type(o) for o in gc.get_objects()]
        return [sum(issubclass(kind, base) for kind in alive)
                for base in (plots.Picture, widgets.Widget)], len(alive)  # fmt: skip

    pyplot, threads = "matplotlib.pyplot" in sys.modules, threading.active_count()
    alive, objects = play(300)
    assert play(600)[0] == alive
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    later, more_objects = play(100)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert later == alive
    assert more_objects < objects + 1000
    assert grown < 1_000_000
    assert threading.active_count() == threads
    assert ("matplotlib.pyplot" in sys.modules) == pyplot
