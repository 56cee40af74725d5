"""Every control of every explorer of the course, moved without a browser.

Each notebook runs in this process, to its end, as with Run All. Then each control goes to its
least, middle and greatest setting and to two at random, and back. Nothing may fail; every control
(each entry of a matrix, too) must change the picture, every knob must change the sentence as well,
and back must be back.
"""

import fnmatch
import random
import time
from collections import Counter
from pathlib import Path

import ipywidgets as widgets
import pytest

from attnlab.explorers import Explorer, Matrix

COURSE = Path(__file__).parent.parent / "course"
NOTEBOOKS = sorted(COURSE.glob("0*.py"))

# What rightly changes nothing: (notebook, control, "sentence" or "picture"): reason.
NOTHING_TO_SEE = {}


@pytest.fixture(scope="module")
def totals(request):
    counts = Counter()
    yield counts
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\nin all: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def explorers_of(notebook, monkeypatch):
    """The explorers that a notebook makes, in order."""
    made, init = [], Explorer.__init__

    def record(self, *arguments, **options):
        init(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(Explorer, "__init__", record)
    monkeypatch.chdir(COURSE)
    names = {"__name__": "__main__", "display": lambda *_, **__: None}
    exec(compile(notebook.read_text(encoding="utf-8"), str(notebook), "exec"), names)
    return made


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


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
    if hasattr(control, "min"):
        steps = round((control.max - control.min) / control.step)
        some = [0, steps // 2, steps, chance.randint(0, steps), chance.randint(0, steps)]
        kind = int if isinstance(control.value, int) else float
        values = [kind(control.min + k * control.step) for k in some]
        log = isinstance(control, widgets.FloatLogSlider)
        return [control.base**v for v in values] if log else values
    raise TypeError(f"this test does not know how to move a {type(control).__name__}")


def controls(explorer):
    """Name, control, and the knob it belongs to (a matrix has many)."""
    for name, knob in explorer.knobs.items():
        if not isinstance(knob, Matrix):
            yield name, knob, knob
            continue
        entries = [w for w in walk(knob) if isinstance(w, widgets.FloatSlider)]
        for entry in entries:
            yield f"{name}[{entry.description}]", entry, knob
        for menu in walk(knob):
            if isinstance(menu, widgets.Dropdown):
                yield f"{name} presets", menu, knob


def shown(explorer):
    image = next(w for w in walk(explorer) if isinstance(w, widgets.Image))
    return {"sentence": explorer.sentence, "picture": bytes(image.value)}


def move_all(explorer, chance, counts):
    """What went wrong when every control was moved, and what never changed."""
    wrong, start = [], shown(explorer)
    still = {(name, "sentence") for name in explorer.knobs}
    for name, control, knob in controls(explorer):
        counts["controls"] += 1
        still.add((name, "picture"))
        home, knob_name = knob.value, next(n for n, k in explorer.knobs.items() if k is knob)
        for setting in settings(control, chance):
            counts["settings"] += 1
            control.value = setting
            now = shown(explorer)
            if explorer.error:
                wrong.append(f"{name} = {setting!r}: {explorer.error}")
            if now["sentence"] != start["sentence"]:
                still.discard((knob_name, "sentence"))
            if now["picture"] != start["picture"]:
                still.discard((name, "picture"))
        knob.value = home
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
    for n, explorer in enumerate(explorers, 1):
        problems, still = move_all(explorer, chance, counts)
        for control, what in still:
            match = {key for key in declared if fnmatch.fnmatchcase(control, key[1])
                     and key[2] == what}  # fmt: skip
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
