"""Every control of every explorer of the course, moved without a browser.

Each notebook runs in this process, to its end, as with Run All. Then each control goes to its
least, middle and greatest setting and to two at random, and back. Nothing may fail; every control
(each entry of a matrix, too) must change the picture, every knob must change the sentence as well,
and back must be back.
"""

import fnmatch
import random
import re
import time
from collections import Counter

import ipywidgets as widgets
import pytest
import torch
from support import COURSE

from attnlab.data import WORD_COLOURS
from attnlab.lab import plots
from attnlab.lab.explorers import Explorer
from attnlab.lab.knobs import Matrix, Slider

NOTEBOOKS = sorted(COURSE.glob("0*.py"))

# What rightly changes nothing: (notebook, control, "sentence" or "picture"): reason. The controls
# move one by one from where they stand at the start; patterns as of file names.
NOTHING_TO_SEE = {
    ("03_scaling_and_masking", "padding", "*"):
        "at the start there is no padding to mask",
    ("03_scaling_and_masking", "last_word", "sentence"):
        "the lesson: under the causal mask a later word changes nothing before it",
    ("04_softmax_and_values", "W_Q?1, *", "picture"):
        "bank has a 0 in its second coordinate, so the second row makes nothing of its query",
    ("04_softmax_and_values", "W_K?*, 1?", "picture"):
        "bank's query has a 0 in its second coordinate, so that of a key does not count",
    ("04_softmax_and_values", "W_V", "sentence"):
        "the lesson: values have no part in the weights",
    ("06_tiny_trainer_and_kv_cache", "seed", "picture"):
        "it changes what is written, not what is probable",
    ("06_tiny_trainer_and_kv_cache", "top_k", "picture"):
        "it changes what is written, not what is probable",
}  # fmt: skip


# Goals that no program can judge: (notebook, how the goal begins): reason.
ONLY_SEEN = {
    ("06_tiny_trainer_and_kv_cache", "Measure it here."):
        "the answer is a sentence of the reader's",
}  # fmt: skip


@pytest.fixture(scope="module")
def totals(request):
    counts = Counter()
    yield counts
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\nin all: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def explorers_of(notebook, monkeypatch):
    """The explorers that a notebook makes, in order, and whether each was reached in its stills."""
    made, init, stills = {}, Explorer.__init__, Explorer.stills

    def record(self, *arguments, **options):
        init(self, *arguments, **options)
        made[self] = False

    def record_stills(self, *settings):
        shown = stills(self, *settings)
        made[self] |= shown.reached
        return shown

    def record_colours(labels, colours=None):
        plain = WORD_COLOURS.keys() & set(map(str, labels)) and colours is not WORD_COLOURS
        assert not plain, f"the words {labels} are drawn without their colours"
        return label_colours(labels, colours)

    label_colours = plots.label_colours
    monkeypatch.setattr(plots, "label_colours", record_colours)
    monkeypatch.setattr(Explorer, "__init__", record)
    monkeypatch.setattr(Explorer, "stills", record_stills)
    monkeypatch.chdir(COURSE)
    names = {"__name__": "__main__", "display": lambda *_, **__: None}
    exec(compile(notebook.read_text(encoding="utf-8"), str(notebook), "exec"), names)
    # Later cells may assign to every name; an explorer must not notice.
    names.update(dict.fromkeys(names, "another value"))
    return made


def settings(control, chance):
    """Least, middle, greatest, and two at random."""
    if isinstance(control, widgets.Checkbox | widgets.ToggleButton):
        return [False, True]
    if isinstance(control, widgets.Text | widgets.Textarea | widgets.Combobox):
        words = control.value.split()
        return ["", " ".join(reversed(words)), " ".join(words[:1]), "<unk> $$ 猫"]
    if hasattr(control, "options"):  # as (words, value), whatever was given
        options = [value for _, value in control._options_full]
        some = [options[0], options[len(options) // 2], options[-1]]
        return options if len(options) <= 8 else [*some, *chance.sample(options, 2)]
    if isinstance(control, Slider | Matrix):
        steps = round((control.high - control.low) / control.step)
        some = [0, steps // 2, steps, chance.randint(0, steps), chance.randint(0, steps)]
        return [control.low + k * control.step for k in some]
    raise TypeError(f"this test does not know how to move a {type(control).__name__}")


def controls(explorer, chance):
    """Name, knob, and the values to give the knob, of every control (a matrix has many)."""
    for name, knob in explorer.knobs.items():
        if not isinstance(knob, Matrix):
            yield name, knob, settings(knob, chance)
            continue
        start = torch.tensor(knob.value, dtype=torch.float64)
        for i, j in torch.cartesian_prod(*map(torch.arange, start.shape)).tolist():
            values = [start.clone() for _ in range(5)]
            for value, number in zip(values, settings(knob, chance), strict=True):
                value[i, j] = number
            yield f"{name}[{i}, {j}]", knob, values
        if knob.presets:
            probe = Matrix(2, 2, knob.value, low=knob.low, high=knob.high)
            values = []
            for preset in knob.presets:
                probe.preset(preset, 2)
                values.append(probe.value)
            yield f"{name} presets", knob, values


def shown(explorer):
    return {"sentence": explorer.sentence, "picture": explorer.screen.frame}


def unfounded(explorer):
    """Numbers of the sentence, such as 0.67, that the description of the picture does not hold."""
    described = re.findall(r"-?\d+\.\d+", explorer.screen.alt)  # each to its own digits
    numbers = re.findall(r"-?\d+\.\d{2,}", explorer.sentence)
    return [
        number for number in numbers
        if not any(abs(float(number) - float(d)) <= 0.51 * 10.0 ** -len(d.split(".")[1])
                   for d in described)
    ]  # fmt: skip


def move_all(explorer, chance, counts):
    """What went wrong when every control was moved, and what never changed."""
    wrong, start = [], shown(explorer)
    still = {(name, "sentence") for name in explorer.knobs}
    for name, knob, values in controls(explorer, chance):
        counts["controls"] += 1
        still.add((name, "picture"))
        pictures = {}  # picture -> its description
        at_rest, knob_name = knob.value, next(n for n, k in explorer.knobs.items() if k is knob)
        for setting in values:
            counts["settings"] += 1
            knob.value = setting
            now = shown(explorer)
            # An empty phrase, and a setting that does not go with another knob, is told in words;
            # the settings that follow show that it recovers.
            names = "|".join(explorer.knobs)
            told = isinstance(knob, widgets.Text) and setting == "" and explorer.error
            told = told or re.match(rf"ValueError: ({names}) = ", explorer.error)
            if explorer.error and not told:
                wrong.append(f"{name} = {setting!r}: {explorer.error}")
            if pictures.setdefault(now["picture"], explorer.screen.alt) != explorer.screen.alt:
                wrong.append(f"{name} = {setting!r}: other numbers, but the same picture")
            measured = knob_name == "timing"  # in full; its curve is described roughly
            if not explorer.error and not measured and unfounded(explorer):
                wrong.append(f"{name} = {setting!r}: says {unfounded(explorer)}, drawn nowhere")
            if now["sentence"] != start["sentence"]:
                still.discard((knob_name, "sentence"))
            if now["picture"] != start["picture"]:
                still.discard((name, "picture"))
        knob.value = at_rest
        wrong += [f"{name}: another {what} after moving it and back"
                  for what, value in shown(explorer).items() if value != start[what]]  # fmt: skip
    return wrong, sorted(still)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_control_of_every_explorer(notebook, totals, monkeypatch, capsys):
    started = time.perf_counter()
    explorers = explorers_of(notebook, monkeypatch)
    ran = time.perf_counter()
    counts, chance = Counter(explorers=len(explorers)), random.Random(notebook.stem)
    wrong, declared = [], {key for key in NOTHING_TO_SEE if key[0] == notebook.stem}
    unused = set(declared)
    for n, (explorer, solved) in enumerate(explorers.items(), 1):
        seen = any(explorer.goal.startswith(g) for name, g in ONLY_SEEN if name == notebook.stem)
        if explorer.reached:
            wrong.append(f"explorer {n}: its goal is reached before anything was moved")
        if solved == seen:
            wrong.append(f"explorer {n}: its stills {'do not ' * (not seen)}reach the goal")
        counts["goals that are noticed"] += solved
        problems, still = move_all(explorer, chance, counts)
        for control, what in still:
            match = {
                key for key in declared
                if fnmatch.fnmatchcase(control, key[1]) and fnmatch.fnmatchcase(what, key[2])
            }  # fmt: skip
            unused -= match
            if not match:
                problems.append(f"{control}: never changes the {what}")
        wrong += [f"explorer {n}: {problem}" for problem in problems]
    wrong += [f"declared to change nothing, but it does: {key}" for key in unused]
    if not explorers:
        wrong.append("there is no explorer in this notebook")
    counts["failures"] = len(wrong)
    totals.update(counts)
    with capsys.disabled():
        numbers = ", ".join(f"{n} {what}" for what, n in counts.items())
        print(f"\n{notebook.stem}: {numbers} ({ran - started:.1f} s to run the notebook, "
              f"{time.perf_counter() - ran:.1f} s to move)", end=" ")  # fmt: skip
    assert not wrong, "\n".join(["", *wrong])
