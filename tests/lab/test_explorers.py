"""Explorers are tested by moving a control and reading the sentence and the picture."""

import asyncio
import base64
import gc
import io
import random
import sys
import threading
import tracemalloc
import weakref

import ipywidgets as widgets
import numpy as np
import pytest
import torch
from PIL import Image

from attnlab.lab import plots
from attnlab.lab.explorers import Explorer
from attnlab.lab.knobs import choice, matrix, slider, toggle, typed
from attnlab.lab.snapshot import as_now


def walk(widget):
    """A widget and all it holds."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def find(widget, kind, n=0):
    return [w for w in walk(widget) if isinstance(w, kind)][n]


def shown(explorer):
    return np.asarray(Image.open(io.BytesIO(explorer.screen.frame)))


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
    "phrase": (lambda: typed("river bank"), ["<unk> & $$ are strange", "", "猫"]),
    "theirs": (lambda: widgets.Text("river bank"), ["<unk> & $$ are strange", "", "猫"]),
    "w": (lambda: matrix(2, 2), [((-3.0,) * 2,) * 2, ((0.0,) * 2,) * 2, ((3.0,) * 2,) * 2]),
    "vectors": (lambda: matrix(3, 2, row_names="rmb"), [((1.0, 2.0),) * 3, ((-3.0, 3.0),) * 3]),
}


@pytest.mark.parametrize("name", KNOBS)
def test_every_kind_of_knob_changes_sentence_and_picture(name):
    make, settings = KNOBS[name]
    seen = Seen(**{name: make(), "other": slider(0, 5, 2)})
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


def test_knobs_are_called_by_their_name_unless_they_have_a_label():
    seen = Seen(W_Q=matrix(2, 2), u=matrix(2, 2, label="W_<K>"), d_k=slider(0, 9, 1),
                s=toggle(True, "causal mask"))  # fmt: skip
    names = [k.description for k in seen.explorer.knobs.values()]
    assert names == ["W_Q", "W_<K>", "d k", "causal mask"]


# --- Knobs in an explorer -------------------------------------------------------------------


def test_every_change_redraws_exactly_once():
    seen = Seen(
        w=matrix(2, 2), n=slider(0, 9, 1), s=toggle(False), c=choice(["x", "yy"]), more=["n", "w"]
    )
    knobs = seen.explorer.knobs
    draws = []
    seen.explorer.screen.observe(draws.append, names="frame")
    for n, change in enumerate([
        lambda: knobs["w"].set_state({"value": [[1, 0], [1.5, 1]]}),
        lambda: setattr(knobs["w"], "value", [[-1, 0], [0, -1]]),
        lambda: knobs["w"].set_state({"asked": {"do": "swap", "times": 1}}),
        lambda: setattr(knobs["n"], "value", 7),
        lambda: setattr(knobs["s"], "value", True),
        lambda: setattr(knobs["c"], "value", "yy"),
    ], 1):  # fmt: skip
        change()
        assert len(seen) == 1 + n and len(draws) == n
    knobs["n"].value = 7  # nothing new
    assert len(seen) == 1 + n


# --- Later cells ----------------------------------------------------------------------------


def notebook(*cells):
    """The names of a notebook in which these cells have run."""
    names = {"__name__": "__main__", "plots": plots, "Explorer": Explorer, "slider": slider,
             "torch": torch}  # fmt: skip
    for cell in cells:
        exec(cell, names)
    return names


EXPLORER = """
import functools
picture, axes = plots.panels(1)
drawing = plots.bars(axes, ["n"], limits=(0, 10))
word, unit = "it", "cm"

def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper

def count(n):  # calls itself, another helper and a builtin
    return n if n == 0 else 1 + count(abs(n) - 1)

@torch.no_grad()
def written(n):
    return sign() + f"{count(n)} {unit}"

@decorated
def sign():
    return (lambda: f"{word} is ")()

@DECORATOR
def show(n, *, factor=2, write=written):
    drawing.update([factor * n])
    KEYWORD write(n)

made = Explorer(picture, show, goal="", n=slider(0, 9, 1))
"""
LATER = """
picture, axes = plots.panels(1)
drawing, word, unit, abs = plots.vectors(axes, ["v"], [[1, 1]]), None, None, None
def count(n): raise RuntimeError("another cell's")
sign = written = show = decorated = count
"""


@pytest.mark.parametrize("keyword", ["yield", "return"])
def test_an_explorer_keeps_working_when_later_cells_use_its_names_again(keyword):
    decorator = "torch.no_grad()" if keyword == "return" else "(lambda f: f)"
    cell = EXPLORER.replace("KEYWORD", keyword).replace("DECORATOR", decorator)
    explorer = notebook(cell, LATER)["made"]
    before = shown(explorer)
    explorer.knobs["n"].value = 4
    assert explorer.error == "" and explorer.sentence == "it is 4 cm"
    assert (shown(explorer) != before).any()


def test_only_the_values_that_an_explorer_uses_stay_in_memory():
    class Large:
        pass

    unused, used = Large(), Large()
    cell = "class Out:\n    unused = 1\ndef helper(): return used\ndef show(): return helper()"
    names = notebook() | {"unused": unused, "used": used}
    exec(cell + "\ndef other(): return Out.unused", names)
    kept = as_now(names["show"]), as_now(names["other"])  # an attribute is not a global
    about = [weakref.ref(thing) for thing in (unused, used)]
    names.clear()
    del unused, used
    gc.collect()
    assert [ref() is None for ref in about] == [True, False]
    assert kept[0]() is about[1]()


def test_what_a_function_of_a_package_uses_is_left_alone():
    assert as_now(plots.heatmap) is plots.heatmap
    assert as_now(torch.softmax) is torch.softmax


# --- More knobs -----------------------------------------------------------------------------


def box_of(knob, explorer):
    return next(w for w in walk(explorer) if knob in getattr(w, "children", ()))


def test_more_knobs_are_hidden_until_asked_for():
    explorer = Seen(w=matrix(2, 2), n=slider(0, 9, 1), more=["w"]).explorer
    hidden = box_of(explorer.knobs["w"], explorer)
    button = find(explorer, widgets.ToggleButton)
    assert button.description == "More knobs" and hidden.layout.display == "none"
    assert box_of(explorer.knobs["n"], explorer).layout.display == "flex"
    button.value = True
    assert hidden.layout.display == "flex"
    button.value = False
    assert hidden.layout.display == "none"
    plain = Seen(n=slider(0, 1, 0)).explorer
    assert not any(isinstance(w, widgets.ToggleButton) for w in walk(plain))


def test_an_error_that_names_a_hidden_knob_shows_it():
    def explorer():
        picture, _ = plots.panels(1)

        def show(phrase, key, d_k, wide):
            if wide:
                raise ValueError("the monkey is too wide")  # names none, though "key" is in it
            if key not in phrase:
                raise ValueError(f"key = {key} is not in '{phrase}'")
            if d_k > 3:
                raise ValueError(f"size of keys = {d_k} is too large")
            return "fine"

        return Explorer(
            picture, show, goal="", phrase=choice(["river bank", "bank"]), wide=toggle(False),
            key=choice(["river", "bank"]), d_k=slider(0, 5, 1, label="size of keys"),
            more=["key", "d_k"],
        )  # fmt: skip

    made = explorer()
    made.knobs["wide"].value = True
    assert made.error and not find(made, widgets.ToggleButton).value
    made.knobs["wide"].value = False
    made.knobs["phrase"].value = "bank"
    assert made.error == "ValueError: key = river is not in 'bank'"
    assert find(made, widgets.ToggleButton).value
    made = explorer()
    made.knobs["d_k"].value = 5
    assert find(made, widgets.ToggleButton).value


def test_an_unknown_name_to_hide_or_to_show_is_refused(refuses):
    refuses(ValueError, "no knob is called 'm': n, s", Seen, more=["n", "m"],
            n=slider(0, 9, 1), s=toggle(True))  # fmt: skip


# --- What a notebook stores -----------------------------------------------------------------


def test_the_notebook_keeps_sentence_and_data_a_still_and_a_widget():
    explorer = Seen(w=matrix(2, 2)).explorer
    bundle, about = explorer._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {
        "text/plain", "image/png", "application/vnd.jupyter.widget-view+json",
    }  # fmt: skip
    assert (
        bundle["text/plain"]
        == repr(explorer)
        == f"{explorer.sentence}\n{explorer.picture.description}"
    )
    assert "a: 1.00, 0.00; b: 0.00, 1.00." in bundle["text/plain"]
    assert explorer.screen.alt == explorer.picture.description
    assert about == {"image/png": {"alt": f"Try: {explorer.goal} {explorer.sentence}"}}
    still = np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB"))
    now = shown(explorer)  # below its sentence
    assert len(now) < len(still) < len(now) + 60
    assert abs(still[-len(now) :].astype(int) - now).mean() < 2
    view = bundle["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.model_id


@pytest.mark.parametrize("generator", [False, True])
def test_stills_show_their_settings_and_leave_the_explorer_as_it_was(generator):
    picture, axes = plots.panels(1)
    bars = plots.bars(axes, ["x"], limits=(0, 10))

    def show(n):
        bars.update([n])
        return f"it is **{n}**"

    def steps(n):
        yield "starting"
        yield show(n), n == 9

    knob = slider(0, 9, 1)
    explorer = Explorer(picture, steps if generator else show, goal="Turn it.", n=knob)
    before = shown(explorer)
    stills = explorer.stills({"n": 3}, {"n": 9})
    assert stills.reached == generator and not explorer.reached
    bundle, metadata = stills._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == "it is 3 it is 9"
    assert Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).height > 2 * len(before)
    # The stored text holds the numbers of every still.
    assert bundle["text/plain"] == "it is 3\nx: 3.00.\nit is 9\nx: 9.00."
    assert explorer.sentence == "it is 1" and knob.value == 1
    assert (np.asarray(Image.open(io.BytesIO(picture.frame()))) == before).all()


def test_a_picture_at_rest_is_sent_twice_as_fine_and_moves_on_from_there():
    picture, axes = plots.panels(2)
    bars, heat = plots.bars(axes[0], ["x"], limits=(0, 10)), plots.heatmap(axes[1], "ab", "ab")

    def show(n):
        bars.update([n])
        heat.update([[n / 9, 1], [0, 1]])
        return f"it is {n}"

    async def move():
        knob = slider(0, 9, 1)
        explorer = Explorer(picture, show, goal="Turn it.", n=knob)
        screen, before = explorer.screen, explorer.screen.frame
        assert screen.fine == b"", "while it moves there is one frame"
        while not screen.fine:
            await asyncio.sleep(0.05)
        fine, coarse = (Image.open(io.BytesIO(png)) for png in (screen.fine, before))
        assert fine.size == (2 * coarse.width, 2 * coarse.height)
        near = np.asarray(fine.resize(coarse.size, Image.Resampling.BOX)).astype(int)
        assert abs(near - np.asarray(coarse)).mean() < 3
        whole, draw = [], picture.canvas.draw
        picture.canvas.draw = lambda: whole.append(1) or draw()
        knob.value = 2
        assert screen.fine == b"" and not whole, "the first frame of a move draws what moves only"
        knob.value = 1
        assert screen.frame == before
        explorer.retire()
        await asyncio.sleep(0.5)  # nobody draws for what is closed

    asyncio.run(move())


def test_a_button_sets_knobs_from_the_values_of_all():
    picture, axes = plots.panels(1)
    bars = plots.bars(axes, ["x"], limits=(0, 10))

    shown = []

    def show(n, w):
        bars.update([n])
        shown.append((n, w[0, 1]))
        return f"it is {n}, {w[0, 1]:g}"

    def double(n, w):
        if n > 4:
            raise ValueError("too large")
        return {"n": 2 * n, "w": 2 * w}

    knobs = {"n": slider(0, 9, 3), "w": matrix(start=[[1, 1], [0, 1]])}
    explorer = Explorer(picture, show, goal="", buttons={"Twice": double}, **knobs)
    button = next(w for w in walk(explorer) if getattr(w, "description", "") == "Twice")
    button.click()
    assert explorer.sentence == "it is 6, 2" and shown == [(3, 1), (6, 2)]  # drawn once
    knobs["w"].undo()
    assert explorer.sentence == "it is 6, 1" and knobs["w"].can_undo is False
    knobs["w"].move([[1, 2], [0, 1]])
    button.click()
    assert explorer.sentence == "it is 6, 2" and explorer.error == "ValueError: too large"


def test_a_reached_goal_is_said_until_the_knob_moves_on():
    picture, axes = plots.panels(1)
    bars = plots.bars(axes, ["x"], limits=(0, 10))

    def show(n):
        bars.update([n])
        if n == 8:
            raise ValueError("not 8")
        return f"it is {n}", n > 5

    knob = slider(0, 9, 1)
    explorer = Explorer(picture, show, goal="More than 5.", n=knob)
    assert not explorer.reached and "Goal reached" not in explorer.screen.status
    knob.value = 6
    assert explorer.reached and explorer.sentence == "it is 6"
    assert "✓ Goal reached." in explorer.screen.status
    assert repr(explorer) == "it is 6\nx: 6.00."  # what is stored and compared
    knob.value = 8  # fails: the picture, the sentence and the goal are the last ones
    assert explorer.reached and "not 8" in explorer.error
    knob.value = 2
    assert not explorer.reached and "Goal reached" not in explorer.screen.status


def test_what_is_shown_is_escaped_and_large_between_stars():
    explorer = Explorer(
        plots.panels(1)[0], lambda n: f"it is **<{n}>** & 'x'", goal="Make <s> small.",
        n=slider(0, 9, 1),
    )  # fmt: skip
    assert explorer.sentence == repr(explorer) == "it is <1> & 'x'"
    assert '<b style="font-size:1.7em">&lt;1&gt;</b> &amp;' in explorer.screen.status
    assert find(explorer, widgets.HTML).value == "<b>Try:</b> Make &lt;s&gt; small."


def test_a_move_draws_only_what_moves():
    seen = Seen(w=matrix(2, 2))
    whole, draw = [], seen.explorer.picture.canvas.draw
    seen.explorer.picture.canvas.draw = lambda: whole.append(draw())
    for entry in 0.5, 1.5, 2.5:
        before = shown(seen.explorer)
        seen.explorer.knobs["w"].value = [[entry, 0], [0, 1]]
        assert (shown(seen.explorer) != before).any()
    assert whole == []


def test_a_burst_of_changes_ends_on_the_last_value():
    seen = Seen(n=slider(0, 100, 0))
    for value in range(1, 21):
        seen.explorer.knobs["n"].value = value
    assert seen[-1] == {"n": 20} and seen.explorer.sentence == "20.00 from {'n': 20}"
    fresh = Seen(n=slider(0, 100, 20)).explorer
    assert (shown(seen.explorer) == shown(fresh)).all()


# --- When something goes wrong --------------------------------------------------------------


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
def test_an_error_is_told_in_words_and_the_next_good_value_recovers(generator):
    explorer = failing(generator)
    good, screen = shown(explorer), explorer.screen
    assert "n is 1" in screen.status and screen.alert == ""
    explorer.knobs["n"].value = 5
    assert explorer.error == "ValueError: <b>five</b> & more"
    assert "&lt;b&gt;five&lt;/b&gt; &amp; more" in screen.alert and "<b>" not in screen.alert
    assert "the picture is an earlier one" in screen.alert and "n is 1" in screen.status
    assert (shown(explorer) == good).all() and explorer.sentence == "n is 1"
    explorer.knobs["n"].value = 7
    assert explorer.error == screen.alert == "" and "n is 7" in screen.status
    assert (shown(explorer) != good).any()
    explorer.knobs["n"].value = 1
    assert (shown(explorer) == good).all()


@pytest.mark.parametrize("generator", [False, True])
def test_an_author_sees_an_error_of_the_first_picture_as_an_error(generator, refuses):
    refuses(ValueError, "<b>five</b> & more", failing, generator, [1])


@pytest.mark.parametrize("result, name", [
    (None, "NoneType"), (3, "int"), (["a"], "list"), ((n for n in ()), "NoneType"),
])  # fmt: skip
def test_show_must_give_a_sentence(result, name, refuses):
    picture, _ = plots.panels(1)
    refuses(TypeError, f"show must give one sentence, not {name}",
            Explorer, picture, lambda: result, goal="")  # fmt: skip


def test_an_error_while_drawing_keeps_the_old_sentence_with_the_old_picture():
    picture, axes = plots.panels(1)

    def show(n):
        axes.set_title("$" * n, parse_math=True)  # "$$" cannot be drawn
        return f"n is {n}"

    explorer = Explorer(picture, show, goal="", n=slider(0, 9, 1))
    before = shown(explorer)
    explorer.knobs["n"].value = 2
    assert explorer.error.startswith("ValueError") and explorer.sentence == "n is 1"
    assert (shown(explorer) == before).all()
    explorer.knobs["n"].value = 0
    assert explorer.error == "" and explorer.sentence == "n is 0"


def test_callouts_that_set_a_colour_set_the_background_too():
    explorer = failing(False)
    explorer.knobs["n"].value = 5
    for html in explorer.screen.status, explorer.screen.alert:
        style = html.split('style="')[1].split('"')[0]
        names = [rule.split(":")[0].strip() for rule in style.split(";")]
        assert {"color", "background"} <= set(names)


# --- Work in slices -------------------------------------------------------------------------


class Counter:
    """A generator ``show`` that counts up to n, and notes what it did.

    When it is stopped, it ends with a last frame if it ``listens``; else it goes on.
    """

    def __init__(self, fails_at=None, listens=False):
        self.log, self.fails_at, self.listens, self.ended = [], fails_at, listens, 0
        picture, axes = plots.panels(1)
        self.bars = plots.bars(axes, ["n"], limits=(0, 100))
        self.explorer = Explorer(picture, self.show, goal="", n=slider(0, 100, 3))
        self.images = []
        self.explorer.screen.observe(self.images.append, names="frame")

    def show(self, n):
        try:
            for i in range(n):
                if i == self.fails_at:
                    raise RuntimeError("lost")
                self.bars.update([i + 1])
                self.log.append((n, i))
                stopped = yield f"{i + 1} of {n}"
                if stopped and self.listens:
                    yield f"Stopped at {i + 1}."
                    break
        finally:
            self.ended += 1

    @property
    def stop(self):
        return find(self.explorer, widgets.Button)

    def run(self, script):
        asyncio.run(script())
        assert self.stop.disabled


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def rest():
    """Time in which work that was not ended would go on."""
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_without_an_event_loop_work_runs_to_its_end():
    counter = Counter()
    assert counter.explorer.sentence == "3 of 3"
    counter.explorer.knobs["n"].value = 20
    assert counter.explorer.sentence == "20 of 20" and "20 of 20" in counter.explorer.screen.status
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
        await rest()
        assert ticks > 10

    counter.run(page)
    assert counter.log[3:] == [(10, i) for i in range(10)]
    assert len(counter.images) == 10


def test_the_first_picture_is_complete_even_in_an_event_loop():
    async def page():
        return Counter().explorer.sentence

    assert asyncio.run(page()) == "3 of 3"


def test_a_new_change_drops_the_work_that_runs_and_the_last_value_wins():
    counter = Counter()
    knob = counter.explorer.knobs["n"]

    async def page():
        knob.value = 90
        await until(lambda: counter.explorer.sentence == "4 of 90")
        for value in range(50, 4, -1):
            knob.value = value
        assert counter.ended == 2  # of those that had begun; the rest never did
        await until(lambda: counter.explorer.sentence == "5 of 5")
        await rest()

    counter.run(page)
    assert counter.explorer.sentence == "5 of 5"
    after = counter.log[counter.log.index((90, 3)) + 1 :]
    assert after == [(5, i) for i in range(5)] and counter.explorer.error == ""


@pytest.mark.parametrize("press", [lambda c: c.stop.click(), lambda c: c.explorer.stop()],
                         ids=["button", "method"])  # fmt: skip
def test_stop_goes_back_to_the_last_complete_picture_and_says_so(press):
    counter = Counter()
    complete = shown(counter.explorer)

    async def page():
        counter.explorer.knobs["n"].value = 90
        await until(lambda: counter.explorer.sentence == "6 of 90")
        assert (shown(counter.explorer) != complete).any()
        press(counter)
        assert counter.ended == 2
        await rest()
        assert counter.explorer.sentence == "Stopped at: 6 of 90 The last complete result: 3 of 3"
        assert (shown(counter.explorer) == complete).all()
        assert counter.explorer.text.endswith("n: 3.00.")  # the data of that picture
        counter.explorer.knobs["n"].value = 2  # and it can be started again
        await until(lambda: counter.explorer.sentence == "2 of 2")
        await rest()

    counter.run(page)
    assert counter.explorer.error == ""


def test_work_that_listens_to_stop_shows_what_it_has():
    counter = Counter(listens=True)

    async def page():
        counter.explorer.knobs["n"].value = 90
        await until(lambda: counter.explorer.sentence == "6 of 90")
        picture = shown(counter.explorer)
        counter.stop.click()
        assert counter.explorer.sentence == "Stopped at 6." and counter.ended == 2
        assert (shown(counter.explorer) == picture).all()
        counter.explorer.knobs["n"].value = 80
        counter.stop.click()  # before its first slice: it has nothing to show
        sentence = counter.explorer.sentence
        assert sentence == "Stopped at: Stopped at 6. The last complete result: Stopped at 6."
        await rest()

    counter.run(page)


@pytest.mark.parametrize("where", ["in the middle", "when it is stopped"])
def test_an_error_in_the_work_is_told_and_the_last_complete_picture_is_back(where):
    counter = Counter(fails_at=7)
    complete = shown(counter.explorer)

    async def page():
        counter.explorer.knobs["n"].value = 90
        if where == "when it is stopped":
            await until(lambda: counter.explorer.sentence == "7 of 90")
            counter.stop.click()
        await until(lambda: counter.explorer.error)
        assert counter.explorer.error == "RuntimeError: lost"
        assert "lost" in counter.explorer.screen.alert
        assert counter.explorer.sentence == "3 of 3" and counter.stop.disabled
        assert (shown(counter.explorer) == complete).all()
        counter.explorer.knobs["n"].value = 4
        await until(lambda: counter.explorer.sentence == "4 of 4")
        await rest()

    counter.run(page)
    assert counter.explorer.error == counter.explorer.screen.alert == ""


def test_an_interrupt_during_a_slice_is_a_stop_and_no_end_of_the_event_loop():
    counter = Counter()
    draw = counter.explorer.picture.frame

    def interrupted():
        if counter.log[-1] == (90, 5):
            counter.explorer.picture.frame = draw
            raise KeyboardInterrupt
        return draw()

    async def page():
        counter.explorer.picture.frame = interrupted
        counter.explorer.knobs["n"].value = 90
        await until(lambda: counter.explorer.sentence.startswith("Stopped at: 5 of 90"))
        await rest()

    counter.run(page)


def test_stop_is_only_where_there_is_something_to_stop():
    stops = [b for b in walk(Seen(n=slider(0, 1, 0)).explorer) if isinstance(b, widgets.Button)]
    assert not stops
    counter = Counter()
    assert counter.stop.description == "Stop"
    counter.explorer.stop()  # nothing runs: nothing happens
    assert counter.explorer.sentence == "3 of 3"


# --- For a long lesson ----------------------------------------------------------------------


def test_three_hundred_moves_leave_nothing_behind():
    seen = Seen(w=matrix(2, 2), n=slider(0, 9, 1), real=slider(0.0, 1.0, 0.5), s=toggle(False),
                c=choice(["x", "yy"]), text=typed("a"), more=["s"], size=(3, 1.5))  # fmt: skip
    explorer, knobs = seen.explorer, seen.explorer.knobs
    chance = random.Random(0)
    moves = [
        lambda: setattr(knobs["w"], "value", [[chance.randint(-4, 4) for _ in "ab"] for _ in "ab"]),
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
    alive, objects = play(100)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    later, more_objects = play(200)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert later == alive
    assert more_objects < objects + 1000
    assert grown < 1_000_000
    assert threading.active_count() == threads
    assert ("matplotlib.pyplot" in sys.modules) == pyplot
