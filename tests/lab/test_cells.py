"""Running a cell again closes what it made before, in a real kernel."""

import pytest
from jupyter_client.manager import start_new_kernel

WIDGET = "application/vnd.jupyter.widget-view+json"

SETUP = """
import gc, weakref
from ipywidgets.widgets.widget import _instances
from attnlab.lab import Explorer, choice, matrix, typed, plots, predict, progress, slider, toggle

class Large:
    def __init__(self):
        large.append(weakref.ref(self))

class Exercise:
    number, name, variables = "1.1", "lookup", ("my_lookup",)

large, pictures, held = [], [], []

def explorer(**knobs):
    picture, axes = plots.panels(1, 2, 2)
    pictures.append(weakref.ref(picture))
    bars, used = plots.bars(axes, ["n"], limits=(0, 10)), Large()
    def show(n, **others):
        bars.update([n])
        return f"{used.__class__.__name__} {n}"
    if "n" not in knobs:
        knobs["n"] = slider(0, 9, 3)
    return Explorer(picture, show, goal="", **knobs)

def alive(things):
    gc.collect()
    return sum(thing() is not None for thing in things)
"""
EVERYTHING = """explorer(w=matrix(), s=toggle(True), c=choice("xyz"), p=typed("it"), more=["s"])"""
COUNT = "print(len(_instances), alive(pictures), alive(large))"


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel()
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def run(client):
    """Runs a cell as JupyterLab does, or as nbclient does, without an id; what it shows."""

    def run(code, cell=None):
        outputs, content = [], {"code": code, "silent": False, "store_history": True,
                                "user_expressions": {}, "allow_stdin": False}  # fmt: skip
        message = client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": cell} if cell else {}
        client.shell_channel.send(message)
        while True:
            answer = client.get_iopub_msg(timeout=60)
            if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, about = answer["msg_type"], answer["content"]
            assert kind != "error", "\n".join(about["traceback"])
            if kind == "status" and about["execution_state"] == "idle":
                client.get_shell_msg(timeout=60)
                return outputs
            if kind in ("execute_result", "display_data"):
                outputs.append(about["data"])
            if kind == "stream":  # under load, one print may come as several messages
                joined = outputs.pop() if outputs and isinstance(outputs[-1], str) else ""
                outputs.append(joined + about["text"])

    run(SETUP)
    yield run
    run("for widget in list(_instances.values()): widget.close()\n%reset -f")


def counted(run):
    return tuple(map(int, run(COUNT)[-1].split()))


@pytest.mark.parametrize("cell", ["an id", None], ids=["known by its id", "known by its text"])
def test_a_cell_that_runs_again_leaves_nothing_of_its_runs_before(run, cell):
    run(EVERYTHING, cell)
    first = counted(run)
    assert first[0] > 20 and first[1:] == (1, 1)
    for _ in range(3):
        [data] = run(EVERYTHING, cell)
        assert WIDGET in data
    assert counted(run) == first


def test_a_cell_is_the_same_after_an_edit_if_it_has_an_id(run):
    run("explorer()", "an id")
    first = counted(run)
    run("explorer()  # edited", "an id")
    assert counted(run) == first
    run("explorer()", "another id")  # the same text is another cell
    assert counted(run) == tuple(2 * n for n in first)


def test_all_that_one_run_makes_stays(run):
    cell = """
shared = slider(0, 9, 3)
made = [explorer(n=shared, other=slider(0, 5, 1)) for _ in range(3)]
display(*made)"""
    run(cell, "a")
    first = counted(run)
    assert first[1] == 3
    assert run("made[0].knobs['n'].value = 7\nprint(*made, [m.error for m in made])", "b") == [
        "Large 7\nn: 7.00. Large 7\nn: 7.00. Large 7\nn: 7.00. ['', '', '']\n"
    ]
    run(cell, "a")
    assert counted(run) == first
    assert run("shared.value = 5\nprint(made[2].sentence)", "b") == ["Large 5\n"]


def test_an_explorer_can_be_shown_again_by_another_cell(run):
    run("first = explorer()", "a")
    [one] = run("first", "b")
    [two] = run("first", "b")  # running that cell again closes nothing
    assert one[WIDGET] == two[WIDGET]
    run("first = explorer(); first", "a")
    [three] = run("first", "b")
    assert WIDGET in three and three[WIDGET] != one[WIDGET]


def test_what_was_closed_is_still_text(run):
    run("held.append(explorer())", "a")
    run("held.append(explorer())", "a")
    [data] = run("held[0]", "b")
    assert data == {"text/plain": "Large 3\nn: 3.00."}
    [data] = run("held[1]", "b")
    assert WIDGET in data


def test_a_knob_that_another_cell_made_is_not_closed(run):
    run("knob, theirs = slider(0, 9, 3), __import__('ipywidgets').IntSlider(2)", "a")
    for _ in range(2):
        run("made = explorer(n=knob, m=theirs)", "b")
    run("knob.value = 8", "c")
    assert run("print(made.sentence, len(knob._trait_notifiers['value']['change']))", "d") == [
        "Large 8 1\n"  # and the old explorer no longer listens to it
    ]
    assert run("print(knob.comm is None, theirs.comm is None)") == ["False False\n"]


def test_work_under_way_ends_when_its_cell_runs_again(run):
    cell = """
picture, axes = plots.panels(1, 2, 2)
steps = []
def show(n):
    yield "at rest"
    while n:
        steps.append(n)
        yield "at work"
made = Explorer(picture, show, goal="", n=slider(0, 9, 0))"""
    run(cell, "a")
    run("import asyncio\nold, old_steps = made, steps\nmade.knobs['n'].value = 1", "b")
    run("while len(old_steps) < 3: await asyncio.sleep(0.01)", "c")
    run(cell, "a")
    run("now = len(old_steps)\nfor _ in range(20): await asyncio.sleep(0.005)", "c")
    assert run("print(len(old_steps) - now)") == ["0\n"]


def test_what_a_widget_says_in_another_thread_is_answered_in_that_of_the_cells(run):
    """JupyterLab sends messages of widgets to a subshell, which is a thread beside the cells'."""
    cell = """
import threading, time
picture, axes = plots.panels(1, 2, 2)
threads, ended = set(), []
def show(n):
    try:
        for step in range(1 + n):
            threads.add(threading.current_thread().name)
            time.sleep(0.02)
            yield f"step {step} of {n}"
    finally:
        ended.append(n)
made = Explorer(picture, show, goal="", n=slider(0, 9000, 0))
def elsewhere(*actions):
    thread = threading.Thread(target=lambda: [action() for action in actions])
    thread.start()
    thread.join()
def move(n):
    made.knobs["n"].value = n
"""
    run(cell, "a")
    run("elsewhere(*[lambda n=n: move(n) for n in range(8000, 8005)])", "b")
    run("import asyncio\nwhile 'step 3' not in made.sentence: await asyncio.sleep(0.001)", "c")
    assert run("print(made.sentence.split(' of ')[1], ended)", "d") == ["8004 [0]\n"]
    run("elsewhere(made.children[1].children[-1].click)\nawait asyncio.sleep(0.1)", "e")
    told = "[True, '', {'MainThread'}, [0, 8004]]\n"
    parts = "made.sentence.startswith('Stopped at: step'), made.error, threads, ended"
    assert run(f"print([{parts}])", "f") == [told]
    # What is said to an explorer that has been closed meanwhile is not answered.
    run("elsewhere(lambda: move(5))\nold = made\n" + cell, "a")
    assert run("await asyncio.sleep(0.1)\nprint([old.error, ended])", "f") == ["['', [0]]\n"]


def test_an_explorer_whose_first_picture_fails_leaves_nothing_either(run):
    cell = """
picture, axes = plots.panels(1, 2, 2)
def show(n, w):
    raise ValueError("no")
try:
    Explorer(picture, show, goal="", n=slider(0, 9, 0), w=matrix(), more=["w"])
except ValueError as error:
    print(error)"""
    assert run(cell, "a") == ["no\n"]
    first = counted(run)
    run(cell, "a")
    assert counted(run) == first


@pytest.mark.parametrize("cell", [
    "vote = predict('How large?', {'1': '', '0': 'Why not.'}, key='1')\nvote",
    "number = predict('How many?', key='3')\nnumber.reveal(3)",
    "progress([Exercise()], globals())",
])  # fmt: skip
def test_votes_and_progress_leave_nothing_either(run, cell):
    run(cell, "a")
    first = counted(run)
    for _ in range(2):
        [data] = run(cell, "a")
        assert WIDGET in data
    assert counted(run) == first


def test_a_reveal_in_another_cell_follows_the_vote(run):
    make = "vote = predict('How large?', {'1': '', '0': 'Why not.'}, key='1')\nvote"
    run(make, "a")
    [data] = run("shown = vote.reveal('1')\nshown", "b")
    assert data["text/plain"] == "How large?\n✓ 1\n· 0: Why not."
    assert run("print(shown.revealed); vote.vote = '0'; print(shown.revealed)") == ["False\nTrue\n"]
    run(make, "a")  # the question runs again: its vote is still there
    assert run("print(vote.vote)") == ["0\n"]
