"""Predictions wait for a vote and disturb nobody; answers survive a restart of the kernel."""

import json
import linecache
import re
import subprocess
import time
from pathlib import Path

import nbformat
import pytest
import torch
from jupyter_client.manager import start_new_kernel
from support import ROOT

from attnlab.lab import predictions
from attnlab.lab.predictions import predict, progress

WIDGET = "application/vnd.jupyter.widget-view+json"
CHOICES = {"about 1": "A person would look there; the model need not.", "about 0": ""}


@pytest.fixture(autouse=True)
def nobody_has_voted(monkeypatch, tmp_path):
    monkeypatch.setattr(predictions, "_votes", {})
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shown(monkeypatch):
    """What the cells display."""
    seen = []
    monkeypatch.setattr(
        predictions, "display", lambda data, raw, metadata: seen.append((data, metadata))
    )
    return seen


def page(thing):
    """Its widgets, by kind, once it is displayed."""
    assert WIDGET in thing._repr_mimebundle_()
    found, todo = {}, [thing._page]
    while todo:
        widget = todo.pop(0)
        found.setdefault(type(widget).__name__, []).append(widget)
        todo.extend(getattr(widget, "children", ()))
    return found


# --- Predictions ----------------------------------------------------------------------------


def test_without_a_person_nothing_is_said(shown, capsys):
    vote = predict("How large is it?", CHOICES)
    assert repr(vote) == "How large is it?\n( ) about 1\n( ) about 0"
    assert vote._repr_mimebundle_()["text/plain"] == repr(vote)
    assert vote.answer("about 0") is None
    number = predict("How many?")
    assert repr(number) == "How many?\n[ a number ]"
    number.answer(3)
    assert shown == [] and capsys.readouterr() == ("", "")


def test_a_wrong_choice_is_explained(shown):
    vote = predict("How large is it?", CHOICES)
    page(vote)["ToggleButtons"][0].value = "about 1"
    vote.answer("about 0")
    [(data, metadata)] = shown
    said = "You said “about 1”, it is “about 0”. A person would look there; the model need not."
    assert data["text/plain"] == said
    assert said in data["text/html"] and 'role="status"' in data["text/html"]
    assert metadata == {"attnlab": "vote"}


def test_a_right_choice_is_told_so(shown):
    vote = predict("How large is it?", CHOICES)
    vote.vote = "about 0"
    vote.answer("about 0")
    assert shown[0][0]["text/plain"] == "You said “about 0”: right."
    assert repr(vote) == "How large is it?\n( ) about 1\n( ) about 0"  # stored: the same


def test_feedback_sets_text_and_background(shown):
    for choice in CHOICES:
        vote = predict("How large is it?", CHOICES)
        vote.vote = choice
        vote.answer("about 0")
    for data, _ in shown:
        assert re.search(r'[" ;]color:#[0-9a-f]{6}; background:#[0-9a-f]{6}', data["text/html"])


def test_a_vote_that_comes_after_the_answer_is_answered_in_its_box(shown):
    vote = predict("How large is it?", CHOICES)
    widgets_ = page(vote)
    vote.answer("about 0")  # Run All
    words = widgets_["HTML"][-1]
    assert words.value == ""
    widgets_["ToggleButtons"][0].value = "about 1"
    assert "A person would look there" in words.value
    widgets_["ToggleButtons"][0].value = "about 0"
    assert "right." in words.value
    assert shown == []


def test_running_all_again_does_not_forget_the_vote(shown):
    predict("How large is it?", CHOICES).vote = "about 1"
    again = predict("How large is it?", CHOICES)
    assert page(again)["ToggleButtons"][0].value == "about 1"
    again.answer("about 0")
    assert len(shown) == 1
    assert predict("How large is it?", {"2": "", "3": ""}).vote is None  # another question


def test_a_number_can_be_typed_in_any_common_way(shown):
    vote = predict("What is the cosine?")
    field, words = page(vote)["Text"][0], page(vote)["HTML"][-1]
    for typed, number in [("0.5", 0.5), ("0,5", 0.5), (" 1/2 ", 0.5), ("−3", -3.0), ("2e3", 2000)]:
        field.value = typed
        assert vote.vote == number and words.value == ""
    for typed in ("half", "1/0", ""):
        field.value = typed
        assert "is no number" in words.value
        assert vote.vote == 2000


@pytest.mark.parametrize(
    ("said", "truth", "sentence"),
    [
        (1, torch.tensor(1.0), "You said 1, computed is 1: right."),
        (0.66, 0.6698, "You said 0.66, computed is 0.6698: right."),
        (0.5, 0.67, "You said 0.5, computed is 0.67: not this time."),
        (0, 0.0, "You said 0, computed is 0: right."),
        (1, 0.0, "You said 1, computed is 0: not this time."),
        (-2, 2, "You said -2, computed is 2: not this time."),
    ],
)
def test_a_number_that_is_near_is_right(shown, said, truth, sentence):
    vote = predict("What is it?")
    vote.vote = said
    vote.answer(truth)
    assert shown[0][0]["text/plain"] == sentence


def test_a_stale_answer_is_an_error_also_when_nobody_votes():
    vote = predict("How large is it?", CHOICES)
    with pytest.raises(ValueError, match=r"one of \['about 1', 'about 0'\] but is 'about 2'"):
        vote.answer("about 2")
    with pytest.raises(TypeError, match="must be a number, not str"):
        predict("How many?").answer("3")
    with pytest.raises(TypeError, match="must be a number, not bool"):
        predict("How many?").answer(True)
    with pytest.raises(ValueError, match="two choices at least but has 1"):
        predict("How many?", ["3"])
    with pytest.raises(ValueError, match="the vote must be one of"):
        vote.vote = "about 2"


def test_words_are_shown_as_they_are(shown):
    vote = predict("Is a < b & c?", {"a < b": "<b>bold</b>", "no": ""})
    assert "a &lt; b &amp; c" in page(vote)["HTML"][0].value
    vote.vote = "a < b"
    vote.answer("no")
    assert "&lt;b&gt;bold" in shown[0][0]["text/html"]


def test_the_hook_takes_feedback_out_of_a_saved_notebook(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".jupyter"))
    import hooks

    said = nbformat.v4.new_output("display_data", {"text/plain": "You said"})
    said.metadata = {"attnlab": "vote"}
    kept = nbformat.v4.new_output("stream", text="printed")
    cell = nbformat.v4.new_code_cell("1", outputs=[said, kept])
    hooks.clean(nbformat.v4.new_notebook(cells=[cell]))
    assert cell.outputs == [kept]


# --- Progress -------------------------------------------------------------------------------

LOOKUP = "def my_lookup(ids, E):\n    return E[ids]\n"
COSINE = "def my_cosine(a, b):\n    return a @ b\n"
MATRICES = """W_Q = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
W_K = torch.eye(2, dtype=torch.float64)
"""
UNDONE = """def my_lookup(ids, E):
    return ...
def my_cosine(a, b):
    return ...
W_Q = W_K = my_scale = ...
"""
SHOW = """shown = progress(
    "01",
    lookup=my_lookup,
    cosine=my_cosine,
    bank_asks_for_money=(W_Q, W_K),
    head_scale=my_scale,
)"""


class Kernel:
    """Cells that share names; a new one is a restarted kernel."""

    def __init__(self, *cells):
        self.names, self.count = {"__name__": "__main__"}, 0
        self.run("import torch\nfrom attnlab.lab.predictions import progress", *cells)

    def run(self, *cells):
        for source in cells:
            self.count += 1
            file = f"<cell {id(self)} {self.count}>"
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            exec(compile(source, file, "exec"), self.names)
        return self.names.get("shown")


def test_a_notebook_that_nobody_has_touched_says_so():
    shown = Kernel(UNDONE).run(SHOW)
    text = "Notebook 01: 0 of 4 exercises done.\n… 1.1 lookup\n… 1.2 cosine"
    assert repr(shown) == text + "\n… 1.3 bank_asks_for_money\n… 1.4 head_scale"
    assert shown._repr_mimebundle_()["text/plain"] == repr(shown)
    assert shown.save() == "Nothing is saved yet: no exercise is done."
    assert "There is no my_answers_01.json" in shown.load()
    assert list(Path.cwd().iterdir()) == []


def test_what_is_done_and_what_is_wrong_stand_side_by_side():
    shown = Kernel(UNDONE, LOOKUP, COSINE, MATRICES).run(SHOW)
    done, *lines = repr(shown).split("\n")
    assert done == "Notebook 01: 2 of 4 exercises done."
    assert lines[0] == "✓ 1.1 lookup"
    assert lines[2:] == ["✓ 1.3 bank_asks_for_money", "… 1.4 head_scale"]
    assert lines[1].startswith("✗ 1.2 cosine: That is the dot product")
    assert "That is the dot product" in page(shown)["HTML"][0].value


def test_answers_survive_a_restart():
    first = Kernel(UNDONE, LOOKUP, COSINE, MATRICES, "my_scale = 0.125").run(SHOW)
    assert first.save() == "Saved 4 answers to my_answers_01.json."
    restarted = Kernel(UNDONE)
    shown = restarted.run(SHOW)
    buttons = page(shown)["Button"]
    assert [button.description for button in buttons] == ["Save my answers", "Load my answers"]
    buttons[1].click()
    assert "Loaded 4 answers into this kernel" in page(shown)["HTML"][-1].value
    assert repr(shown) == repr(first) and "3 of 4" in page(shown)["HTML"][0].value
    restarted.run("assert my_lookup(1, [3, 4]) == 4 and my_scale == 0.125")
    restarted.run("assert W_K.dtype == torch.float64 and W_Q[0].tolist() == [0, 1]")
    # What was loaded can be saved again, from its own text.
    Path("my_answers_01.json").unlink()
    assert shown.save() == "Saved 4 answers to my_answers_01.json."
    assert restarted.run(SHOW).load().startswith("Loaded 4 answers")


def test_what_is_not_done_now_keeps_what_was_saved_before():
    Kernel(UNDONE, LOOKUP, COSINE).run(SHOW).save()
    better = COSINE.replace("a @ b", "a @ b / a.norm() / b.norm()")
    shown = Kernel(UNDONE, better).run(SHOW)  # lookup is undone in this kernel
    assert shown.save() == "Saved 1 answer to my_answers_01.json."
    assert Kernel(UNDONE).run(SHOW).load().startswith("Loaded 2 answers")
    loaded = Kernel(UNDONE).run(SHOW)
    loaded.load()
    assert "2 of 4" in repr(loaded)


def test_each_notebook_has_a_file_of_its_own():
    kernel = Kernel(UNDONE, LOOKUP)
    kernel.run(SHOW).save()
    before = Path("my_answers_01.json").read_text()
    kernel.run(SHOW.replace('"01"', '"02"'), COSINE).save()
    assert Path("my_answers_01.json").read_text() == before
    assert sorted(path.name for path in Path.cwd().iterdir()) == [
        "my_answers_01.json",
        "my_answers_02.json",
    ]


def test_a_function_takes_along_what_the_learner_wrote_for_it():
    helper = "def dot(a, b):\n    return twice(a @ b) / 2\ndef twice(x):\n    return 2 * x\n"
    cosine = COSINE.replace("a @ b", "dot(a, b) / dot(a, a) ** 0.5 / dot(b, b) ** 0.5")
    assert "Saved 1 answer" in Kernel(UNDONE, helper, cosine).run(SHOW).save()
    bare = Kernel(UNDONE).run(SHOW)
    bare.load()
    assert "✓ 1.2 cosine" in repr(bare)
    own = Kernel(UNDONE, "def dot(a, b):\n    return 5 * (a @ b)\n")
    own.run(SHOW).load()  # what the notebook defines itself stays
    assert own.names["dot"](torch.ones(1), torch.ones(1)) == 5


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("my_lookup = lambda ids, E: E[ids]", "a lambda has no text of its own"),
        ("my_lookup = len", "builtin_function_or_method is neither a function nor"),
        ("my_lookup = torch.nn.Linear(2, 2)", "a Linear is neither a function nor plain numbers"),
        ("exec('def my_lookup(ids, E): return E[ids]')", "the text of my_lookup cannot be found"),
        ("def outer(n):\n    def inner(ids, E):\n        return E[ids] + n\n    return inner\n"
         "my_lookup = outer(0)", "inner uses names of a function around it"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_says_why_and_the_rest_is_saved(cell, reason):
    message = Kernel(UNDONE, cell, COSINE).run(SHOW).save()
    assert message.startswith("Saved 1 answer to my_answers_01.json. Not saved: lookup, because")
    assert reason in message
    assert json.loads(Path("my_answers_01.json").read_text())["answers"].keys() == {"cosine"}


def test_a_function_under_another_name_is_restored_under_both():
    Kernel(UNDONE, "def mine(ids, E):\n    return E[ids]\nmy_lookup = mine").run(SHOW).save()
    kernel = Kernel(UNDONE)
    kernel.run(SHOW).load()
    assert kernel.names["my_lookup"] is kernel.names["mine"]


@pytest.mark.parametrize(
    "text", ["", "{", '{"answers": {"lookup": {"na', "[]", "5", '{"answers": 5}', "{}", "\x00\xff"]
)
def test_a_damaged_file_is_named_and_kept(text):
    file = Path("my_answers_01.json")
    file.write_bytes(text.encode("latin-1"))
    shown = Kernel(UNDONE, LOOKUP).run(SHOW)
    message = shown.load()
    assert message == "Nothing was loaded: my_answers_01.json is damaged. The file is as it was."
    assert file.read_bytes() == text.encode("latin-1")
    assert shown.save().endswith(
        "The file that was there could not be read; it is now my_answers_01.damaged.json."
    )
    assert Path("my_answers_01.damaged.json").read_bytes() == text.encode("latin-1")
    assert shown.load().startswith("Loaded 1 answer into")


def test_an_entry_that_makes_no_sense_does_not_stop_the_others():
    Kernel(UNDONE, LOOKUP, COSINE).run(SHOW).save()
    file = Path("my_answers_01.json")
    saved = json.loads(file.read_text())
    saved["answers"]["cosine"]["values"][0]["source"] = "def my_cosine(a, b:"
    saved["answers"]["head_scale"] = 5
    saved["answers"]["flying"] = saved["answers"]["lookup"]
    file.write_text(json.dumps(saved))
    shown = Kernel(UNDONE).run(SHOW)
    message = shown.load()
    assert message.startswith("Loaded 1 answer into this kernel")
    assert "Not loaded: cosine (SyntaxError: " in message
    assert "Not loaded: head_scale (TypeError: " in message
    assert "Left in the file: flying, which is no exercise of this notebook." in message
    assert "1 of 4" in repr(shown)
    shown.save()
    assert "flying" in json.loads(file.read_text())["answers"]  # nothing is lost


def test_a_save_that_breaks_off_leaves_the_old_file(monkeypatch):
    kernel = Kernel(UNDONE, LOOKUP)
    kernel.run(SHOW).save()
    before = Path("my_answers_01.json").read_text()

    def full(self, text, encoding):
        with open(self, "w") as half:
            half.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    shown = kernel.run(COSINE, SHOW)
    assert shown.save().startswith("Nothing was saved: No space left on device, ")
    assert Path("my_answers_01.json").read_text() == before
    assert shown.load().startswith("Loaded 1 answer into")


def test_the_file_is_plain_json_and_says_what_is_in_it():
    Kernel(UNDONE, LOOKUP, MATRICES).run(SHOW).save()
    saved = json.loads(Path("my_answers_01.json").read_text(encoding="utf-8"))
    assert saved["notebook"] == "01"
    assert saved["answers"]["lookup"]["values"] == [{"source": LOOKUP, "name": "my_lookup"}]
    assert saved["answers"]["bank_asks_for_money"]["names"] == ["W_Q", "W_K"]


def test_a_button_swallows_no_error():
    shown = Kernel(UNDONE, LOOKUP).run(SHOW)
    shown._answers["lookup"] = endless = []
    endless.append(endless)
    found = page(shown)
    found["Button"][0].click()
    assert "That did not work: RecursionError" in found["HTML"][-1].value


def test_git_ignores_the_answers_and_make_clean_leaves_them():
    for name in ("my_answers_01.json", "my_answers_01.damaged.json", "my_answers_01.77.part"):
        command = ["git", "check-ignore", "--quiet", f"course/{name}"]
        assert subprocess.run(command, cwd=ROOT).returncode == 0, name
    clean = (ROOT / "Makefile").read_text().partition("\nclean:")[2].split("\n\n")[0]
    assert "course" not in clean and "git clean" not in clean


def test_an_unknown_exercise_is_the_authors_mistake():
    with pytest.raises(ValueError, match="no check is called 'flying'"):
        progress("01", flying=...)


def test_without_the_text_of_the_cell_values_are_not_saved_and_say_so():
    names = {"progress": progress, "my_scale": 0.125}
    shown = eval('progress("03", head_scale=my_scale)', names)
    assert shown.save().endswith("head_scale, because its name in the notebook cannot be found.")


# --- In a real kernel ------------------------------------------------------------------------


def test_in_a_real_kernel_answers_survive_a_restart_and_nothing_waits(tmp_path):
    def executed(client, source):
        outputs = []
        client.execute_interactive(source, timeout=60, output_hook=outputs.append)
        by_type = {}
        for message in outputs:
            by_type.setdefault(message["msg_type"], []).append(message["content"])
        assert "error" not in by_type, by_type["error"]
        shown = by_type.get("execute_result", []) + by_type.get("display_data", [])
        return [c["data"] for c in shown], [c["text"] for c in by_type.get("stream", [])]

    start = "import torch\nfrom attnlab.lab.predictions import predict, progress\n" + UNDONE
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        executed(client, start)
        vote = 'vote = predict("How large?", {"1": "", "0": "Why not."})'
        [data], _ = executed(client, f"{vote}\nvote")
        assert data["text/plain"] == "How large?\n( ) 1\n( ) 0" and WIDGET in data
        assert executed(client, "vote.answer('1')") == ([], [])
        [data], _ = executed(client, "vote.vote = '0'\nvote.answer('1')")
        assert data["text/plain"] == "You said “0”, it is “1”. Why not."
        executed(client, LOOKUP)
        executed(client, MATRICES)
        [data], printed = executed(client, SHOW + "\nprint(shown.save())\nshown")
        assert data["text/plain"].startswith("Notebook 01: 2 of 4") and WIDGET in data
        assert printed == ["Saved 2 answers to my_answers_01.json.\n"]
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=60)
        executed(client, start)
        [data], _ = executed(client, SHOW + "\nshown.load()\nshown")
        assert data["text/plain"].startswith("Notebook 01: 2 of 4")
        # What an answer prints in its thread arrives in the cell, in a few lines.
        _, printed = executed(
            client,
            "from attnlab import checks\n"
            "def noisy(ids, E):\n    print('x\\n' * 1000000)\n    return E[ids]\n"
            "print(checks.lookup(noisy))",
        )
        assert "".join(printed).endswith("✓ Right, on 2 inputs of different sizes.\n")
        assert len("".join(printed)) < 300
        # Stop ends an answer that never ends, and the kernel goes on.
        executed(client, "checks.guard.LIMIT = 500\ndef endless(ids, E):\n    while True: pass")
        # stop_on_error would drop what is sent within the next moment.
        begun = "print('begun', flush=True)\nchecks.lookup(endless)"
        client.execute(begun, stop_on_error=False)
        said = []
        while "error" not in said:
            message = client.get_iopub_msg(timeout=60)
            said.append(message["msg_type"])
            if said[-1] == "stream":
                time.sleep(0.5)
                manager.interrupt_kernel()
        assert message["content"]["ename"] == "KeyboardInterrupt"
        _, printed = executed(client, "print(checks.lookup(my_lookup))")
        assert printed[0].startswith("✓")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_keyboard_reaches_every_control():
    # Buttons and text fields: no key of the learner's reaches an Accordion's title, and the arrow
    # keys that radio buttons need belong to Lab's cells.
    shown = [page(predict("?", CHOICES)), page(predict("?")), page(Kernel(UNDONE).run(SHOW))]
    kinds = {kind for found in shown for kind in found}
    assert kinds == {"VBox", "HBox", "HTML", "ToggleButtons", "Text", "Button"}
