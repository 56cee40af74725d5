"""A learner's folder: updates in every situation that may be, and nothing typed is ever lost.

The tests' lines in the summary are the table of these situations: what happened, what was kept.
"""

import copy
import os
import random
import shutil
import subprocess

import nbformat
import pytest
from support import COURSE, NOTEBOOKS

from attnlab.editions import notebooks
from attnlab.editions.copies import KEPT_UPDATES, LearnersCopy, make

ONE, TWO, THREE = "01_a.ipynb", "02_b.ipynb", "03_c.ipynb"
HEADING = "What this printed is the numbers of the rows."
ANSWER = "my_rows = 3 + 4  # in my own words\n\nchecks.rows_1(my_rows)"


@pytest.fixture
def table(figure):
    """``table("situation", "what happened", "what was kept")``."""
    return lambda *cells: figure("update | " + " | ".join(cells))


# --- Without updates ----------------------------------------------------------------------------


def test_the_first_time_there_are_the_courses_notebooks_and_nothing_else_to_see(tmp_path, table):
    learner = LearnersCopy(tmp_path / "my course")
    said = learner.update(make(COURSE, notebooks.learners))
    assert said == [f"{path.name} is new." for path in NOTEBOOKS]
    seen = [path.name for path in learner.folder.iterdir() if path.name[0] != "."]
    assert sorted(seen) == [path.name for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        nbformat.validate(notebooks.parse((learner.folder / path.name).read_bytes()))
    assert learner.last_worked_in().name == NOTEBOOKS[0].name
    table("first time", f"{len(said)} new notebooks", "-")


def test_a_copy_that_is_up_to_date_is_not_touched(learner):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    before = {path: path.stat().st_mtime_ns for path in learner.path.rglob("*")}
    assert learner.update() == f"{learner.path} is up to date.\n"
    assert {path: path.stat().st_mtime_ns for path in learner.path.rglob("*")} == before


def test_the_notebook_that_was_saved_last_is_the_one_to_open(learner, course):
    opened = LearnersCopy(learner.path).last_worked_in
    assert opened().name == ONE
    learner.change(TWO, "Exercise 2.1", "my_rows = 2")
    assert opened().name == TWO
    learner.change(ONE, "Exercise 1.1", ANSWER)
    os.utime(learner.path / TWO, (1, 1))
    for name in learner.names:  # an update is not the learner's work
        course.add(name, HEADING, "New.")
    learner.update()
    assert opened().name == ONE
    (learner.path / ONE).unlink()
    assert opened().name == TWO


# --- Cells ----------------------------------------------------------------------------------------


def test_a_notebook_that_was_not_touched_is_replaced(learner, course, table):
    course.change(ONE, "Exercise 1.1", "new = 1")
    assert learner.update() == f"{ONE} is updated. You had changed nothing in it.\n"
    assert learner.read(ONE) == notebooks.learners(course.read(ONE))
    table("notebook not touched", "replaced", "-")


def test_an_answer_stays_when_its_statement_and_its_cell_change(learner, course, table):
    statement, stub = "**Exercise 1.1.** Count all of them.", "my_rows = 0  # to be corrected"
    old = next(text for text in course.sources(ONE) if text.startswith("**Exercise 1.1.**"))
    learner.change(ONE, "Exercise 1.1", ANSWER)
    course.change(ONE, old, statement)
    course.change(ONE, "Exercise 1.1", stub)
    assert learner.update().startswith(
        f"{ONE} is updated. What you typed is still there.\n"
        "    Cells of the course: 1 changed.\n"
        "    'Exercise 1.1' has a new version. It is folded below yours.\n"
        "Your notebooks as they were before are in "
    )
    texts, cells = learner.sources(ONE), learner.read(ONE)["cells"]
    at = texts.index(ANSWER)
    assert texts[at - 1] == statement
    # The new version is text: Run All does not undo the answer.
    assert cells[at + 1]["cell_type"] == "markdown" and stub in texts[at + 1]
    assert texts[at + 1].startswith("<details><summary>")
    # It waits there, and makes room for a newer one, until the learner deletes it.
    course.add(ONE, HEADING, "New.")
    learner.update()
    assert [text for text in learner.sources(ONE) if stub in text] == [texts[at + 1]]
    course.change(ONE, "Exercise 1.1", stub + ", again")
    learner.update()
    assert [text for text in learner.sources(ONE) if "to be corrected" in text] == [
        texts[at + 1].replace(stub, stub + ", again")
    ]
    learner.edit(ONE, lambda cells: cells.pop(at + 1))
    course.add(ONE, HEADING, "And new.")
    learner.update()
    assert ANSWER in learner.sources(ONE) and stub not in "".join(learner.sources(ONE))
    table("answered, then statement and cell changed", "new cell folded below", "the answer")


def test_a_new_version_that_the_learner_has_written_in_is_the_learners(learner, course):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    course.change(ONE, "Exercise 1.1", "my_rows = 0")
    learner.update()
    at = learner.sources(ONE).index(ANSWER) + 1
    learner.edit(ONE, lambda cells: cells[at].update(source=cells[at]["source"] + "my notes"))
    noted = learner.sources(ONE)[at]
    course.change(ONE, "Exercise 1.1", "my_rows = 1")
    learner.update()
    assert noted in learner.sources(ONE)


def test_an_answer_is_found_again_when_exercises_are_renumbered_and_have_new_ids(learner, course):
    learner.change(ONE, "Exercise 1.2", "def my_row(n):\n    return n\n\n\nchecks.row_1(my_row)")

    def renumber(cells):
        for cell in cells:
            cell["id"] = f"{random.getrandbits(32):08x}"
            cell["source"] = cell["source"].replace("Exercise 1.2", "Exercise 1.3")
            if "title" in cell["metadata"]:
                title = cell["metadata"]["title"].replace("Exercise 1.2", "Exercise 1.3")
                cell["metadata"]["title"] = title
        at = next(i for i, cell in enumerate(cells) if "Exercise 1.3" in cell["source"])
        metadata = {"title": "Exercise 1.2", "tags": ["exercise"]}
        new = {
            "id": "new",
            "metadata": metadata,
            "source": "checks.other(...)",
            "cell_type": "code",
        }
        cells.insert(at, new | {"outputs": [], "execution_count": None})

    course.edit(ONE, renumber)
    assert "folded below" not in learner.update()
    found = {c["metadata"].get("title"): c["source"] for c in learner.read(ONE)["cells"]}
    assert "return n\n" in found["Exercise 1.3"]
    assert found["Exercise 1.2"] == "checks.other(...)"
    assert len(learner.sources(ONE)) == len(course.sources(ONE)) - 1  # without its proof


def test_cells_that_the_learner_deleted_moved_doubled_and_added(learner, course, table):
    before = learner.sources(ONE)
    doubled, own = before[3] + "\n# and more", "my own words"

    def work(cells):
        cells.insert(4, copy.deepcopy(cells[3]) | {"id": "double", "source": doubled})
        cells.insert(7, {"cell_type": "raw", "id": "own", "metadata": {}, "source": own})
        cells.append(cells.pop(2))
        del cells[0]

    learner.edit(ONE, work)
    mine = learner.sources(ONE)
    course.add(ONE, "Columns", "print('new')")
    assert "'Columns'" not in learner.update()
    (at,) = [i for i, text in enumerate(mine) if text.startswith("print('columns'")]
    mine[at] += "\nprint('new')"
    assert learner.sources(ONE) == mine
    # What the learner deleted comes back when the course has something new to say in it.
    course.change(ONE, before[0], before[0] + " New.")
    back = "You deleted '1 · Rows and columns'. It has changed, so it is back."
    assert back in learner.update()
    assert learner.sources(ONE) == [before[0] + " New.", *mine]
    table("cells deleted, moved, doubled, added", "stay so; changed ones come in", "all")


def test_cells_that_the_course_has_moved_added_and_dropped(learner, course, table):
    mine = learner.sources(ONE)[3] + "\n# my words"
    learner.change(ONE, "Rows", mine)

    def rearrange(cells):
        del cells[4], cells[3]
        cells.insert(2, cells.pop(8))
        new = {"cell_type": "markdown", "id": "new", "metadata": {}, "source": "Another paragraph."}
        cells.insert(4, new)

    course.edit(ONE, rearrange)
    said = learner.update()
    assert "Cells of the course: 1 new." in said
    assert "'Rows' is no longer in the course. Yours is kept." in said
    texts = learner.sources(ONE)
    texts.remove(mine)
    edition = notebooks.learners(course.read(ONE))
    assert texts == [cell["source"] for cell in edition["cells"]]
    table("course adds, moves and drops cells", "its order; a dropped one stays if changed", "all")


@pytest.mark.parametrize("ids", ["renewed", "absent", "all the same"])
def test_ids_are_not_needed(learner, course, ids, table):
    learner.change(ONE, "Exercise 1.1", ANSWER)

    def lose_ids(cells):
        for number, cell in enumerate(cells):
            cell["id"] = {"renewed": f"cell-{number}"}.get(ids, "x")
            if ids == "absent":
                del cell["id"]

    learner.edit(ONE, lose_ids)
    mine = learner.sources(ONE)
    course.change(ONE, HEADING, HEADING + " New.")
    learner.update()
    assert learner.sources(ONE) == [t.replace(HEADING, HEADING + " New.") for t in mine]
    nbformat.validate(learner.read(ONE))
    table(f"ids {ids}", "cells found by exercise, title and text", "all")


def test_outputs_stay_where_the_course_has_not_changed(learner, course):
    printed = [{"output_type": "stream", "name": "stdout", "text": "mine"}]
    learner.edit(ONE, lambda cells: [c.update(outputs=printed) for c in cells if "outputs" in c])
    course.change(ONE, "Columns", "print('new')")
    learner.update()
    outputs = {c["source"]: c["outputs"] for c in learner.read(ONE)["cells"] if "outputs" in c}
    assert outputs.pop("print('new')") == []
    assert all(one == printed for one in outputs.values())


def test_a_line_added_to_the_setup_cell_stays_in_the_new_one(learner, course):
    learner.change(ONE, "Setup", "import math\n\nimport numpy as np\nimport torch")
    course.change(ONE, "Setup", "import math\n\nimport torch  # newer")
    learner.update()
    joined = "import math\n\nimport torch  # newer\nimport numpy as np"
    assert joined in learner.sources(ONE)
    course.change(ONE, "Setup", "import torch  # newest")
    learner.update()
    assert "import torch  # newest\nimport numpy as np" in learner.sources(ONE)


# --- Files ----------------------------------------------------------------------------------------


def test_a_notebook_that_was_deleted_emptied_or_renamed_comes_back(learner, course, table):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    (learner.path / ONE).rename(learner.path / "mine.ipynb")
    mine = (learner.path / "mine.ipynb").read_bytes()
    (learner.path / TWO).unlink()
    (learner.path / THREE).write_bytes(b"")
    assert learner.update() == "".join(f"{n} was gone. It is new.\n" for n in (ONE, TWO, THREE))
    assert (learner.path / "mine.ipynb").read_bytes() == mine
    for name in course.names:
        assert learner.read(name) == notebooks.learners(course.read(name))
    table("notebook deleted or empty", "comes back as new", "-")
    table("notebook renamed by the learner", "comes back as new", "the renamed one")


@pytest.mark.parametrize("how", ["half", "not UTF-8", "no notebook", "a list", "conflict", "deep"])
def test_a_damaged_notebook_is_kept_under_another_name(learner, course, how, table):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    whole = (learner.path / ONE).read_bytes()
    data = {
        "half": whole[: len(whole) // 2],
        "not UTF-8": whole.replace(b"own words", b"\xff\xfe"),
        "no notebook": b"my answers\n",
        "a list": b'[{"cells": 3}]',
        "conflict": b"<<<<<<< HEAD\n" + whole,
        "deep": b"[" * 100_000,
    }[how]
    for number in ("", "_2"):
        aside = f"01_a_damaged{number}.ipynb"
        (learner.path / ONE).write_bytes(data)
        assert (
            learner.update()
            == f"{ONE} could not be read. It is kept as {aside}, beside a new one.\n"
        )
        assert (learner.path / aside).read_bytes() == data
        assert learner.read(ONE) == notebooks.learners(course.read(ONE))
    table(f"notebook damaged ({how})", "kept under another name, and a new one", "the file")


def test_a_notebook_that_the_course_renames_goes_on_under_its_new_name(learner, course, table):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    course.change(ONE, HEADING, HEADING + " New.")
    (course.path / ONE).rename(course.path / "01_vectors.ipynb")
    said = learner.update()
    assert said.startswith(f"{ONE} is called 01_vectors.ipynb now.\n01_vectors.ipynb is updated.")
    assert learner.names == course.names
    assert {ANSWER, HEADING + " New."} <= set(learner.sources("01_vectors.ipynb"))
    table("notebook renamed by the course", "the learner's is renamed and updated", "all")


def test_a_learner_who_skipped_three_versions(learner, course, table):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    course.change(ONE, "Exercise 1.1", "version = 2")
    course.change(ONE, "Exercise 1.1", "version = 3\n\nchecks.rows_1(version)")
    course.change(ONE, HEADING, HEADING + " New in 3.")
    course.edit(ONE, lambda cells: cells.insert(3, copy.deepcopy(cells[4]) | {"id": "four"}))
    course.edit(ONE, lambda cells: cells[3].update(source="New in 4."))
    learner.update()
    texts = learner.sources(ONE)
    assert {ANSWER, HEADING + " New in 3.", "New in 4."} <= set(texts)
    assert [text for text in texts if "version = " in text] == [texts[texts.index(ANSWER) + 1]]
    table("three versions skipped", "as one update", "all")


def test_without_the_record_of_what_was_handed_out_both_versions_stand_there(
    learner, course, table
):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    learner.edit(ONE, lambda cells: [cell.pop("id") for cell in cells])
    course.change(ONE, HEADING, HEADING + " New.")
    shutil.rmtree(learner.path / ".attnlab")
    learner.update()
    texts = learner.sources(ONE)
    live = [text for text in texts if not text.startswith("<details>")]
    # Nothing twice: what runs is the answer, not the exercise that it answers.
    edition = notebooks.learners(course.read(ONE))
    assert len(live) == len(edition["cells"]) and {ANSWER, HEADING} <= set(live)
    assert any(HEADING + " New." in text for text in texts)
    table(".attnlab deleted", "the course's version folded below where it differs", "all")


def test_when_the_learner_deletes_the_own_cell_the_waiting_new_version_takes_its_place(
    learner, course
):
    learner.change(ONE, "Exercise 1.1", ANSWER)
    course.change(ONE, "Exercise 1.1", "my_rows = 0")
    learner.update()
    at = learner.sources(ONE).index(ANSWER)
    learner.edit(ONE, lambda cells: cells.pop(at))
    course.change(ONE, HEADING, HEADING + " New.")
    learner.update()
    assert learner.sources(ONE)[at] == "my_rows = 0"
    assert not any(text.startswith("<details>") for text in learner.sources(ONE))


def test_the_state_before_an_update_is_kept_and_old_ones_go(learner, course, table):
    earlier = learner.path / ".attnlab/earlier"
    count = KEPT_UPDATES + 3
    for number in range(count):
        learner.change(ONE, "Exercise 1.1", f"my_rows = {number}")
        before = (learner.path / ONE).read_bytes()
        course.add(ONE, HEADING, "New.")
        said = learner.update()
        (kept,) = [path for path in earlier.iterdir() if f"are in {path}." in said]
        assert [path.read_bytes() for path in kept.iterdir()] == [before]
    assert len(list(earlier.iterdir())) == count, "all of them are from today"
    for path in earlier.iterdir():
        os.utime(path, (1, 1))
    course.add(ONE, HEADING, "New.")
    learner.update()
    assert len(list(earlier.iterdir())) == KEPT_UPDATES
    table("the state before", f"{KEPT_UPDATES} updates and 30 days are kept", "all")


# --- Trouble --------------------------------------------------------------------------------------


@pytest.fixture
def news(learner, course):
    """Answers in all notebooks and a new version of each: notebook -> cells before, cells after."""
    for name in learner.names:
        for folder, line in [(learner, "# mine"), (course, "# new")]:
            folder.add(name, "Rows", line)
        course.add(name, HEADING, "New.")
    done = type(learner)(learner.path.with_name("done"), course)
    done.capture = learner.capture
    shutil.copytree(learner.path, done.path)
    done.update()
    return {name: (learner.sources(name), done.sources(name)) for name in learner.names}


def after(news):
    return {name: new for name, (_, new) in news.items()}


def test_an_update_that_was_killed_is_completed_by_the_next(learner, news, table):
    before = learner.path.with_name("before")
    shutil.copytree(learner.path, before)
    done = set()
    for name in [*learner.names, *learner.names]:
        shutil.rmtree(learner.path)
        shutil.copytree(before, learner.path)
        process, file = learner.process(), learner.path / name
        number = file.stat().st_ino
        while file.stat().st_ino == number and process.poll() is None:
            pass
        process.kill()  # as soon as this notebook is the new one
        process.communicate()
        for other in learner.names:
            assert learner.sources(other) in news[other], "each is the old one or the new one"
        done.add(sum(learner.sources(other) == new for other, (_, new) in news.items()))
        learner.update()
        assert {name: learner.sources(name) for name in learner.names} == after(news)
        assert not list(learner.path.rglob(".*.part"))
    moments = f"killed after {', '.join(map(str, sorted(done)))} of {len(news)} notebooks"
    table(moments, "the next one completes it", "all")


def test_an_update_that_ended_between_a_notebook_and_its_record_is_completed(learner, news):
    record = learner.path / ".attnlab/handed_out" / TWO
    old = record.read_bytes()
    learner.update()
    record.write_bytes(old)
    learner.update()
    assert {name: learner.sources(name) for name in learner.names} == after(news)


def test_several_updates_at_once(learner, news, table):
    running = [learner.process() for _ in range(4)]
    said = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4, said
    assert {name: learner.sources(name) for name in learner.names} == after(news)
    assert sum("is updated" in text for text in said) == 1
    table("four at once", "one does it, the others wait and find it done", "all")


@pytest.mark.skipif(os.name == "nt", reason="permission bits do not hold here")
def test_without_permission_to_write_nothing_changes(learner, news, table):
    # Root may write everywhere, unless this right is taken from it.
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv")
    files = learner.everything()
    folders = [learner.path, *(path for path in learner.path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    process = learner.process(*drop if os.geteuid() == 0 else [])
    said = process.communicate(timeout=60)[0]
    for folder in folders:
        folder.chmod(0o755)
    assert process.returncode == 1 and learner.everything() == files
    assert said.startswith("Permission denied: ") and "Traceback" not in said
    assert "Nothing that you typed was lost." in said
    table("no write permission", "says so, changes nothing", "all")


FULL_DISK = """
set -e
mount -t tmpfs -o size=4m none disk
cp -a "$1/." disk/
cat /dev/zero > disk/filled 2> /dev/null || true
truncate -s "-$2" disk/filled
shift 2
status=0; "$@" > said 2>&1 || status=$?
rm disk/filled
cp -a disk/. after/
exit $status
"""


@pytest.mark.parametrize("room", [0, 4, 8], ids="{} KB left".format)
def test_on_a_full_disk_nothing_is_lost(learner, news, table, room, tmp_path):
    alone = ["unshare", "--map-root-user", "--mount"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*alone, "true"], capture_output=True).returncode
    ):
        pytest.skip("no file system of one's own here: unshare is not there, or not allowed")
    (tmp_path / "disk").mkdir(), (tmp_path / "after").mkdir()
    script = [*alone, "sh", "-c", FULL_DISK, "sh", str(learner.path), f"{room}K"]
    full = type(learner)(tmp_path / "disk", learner.course)
    process = full.process(*script, cwd=tmp_path)
    process.communicate(timeout=60)
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert process.returncode == 1, said
    assert said.startswith("No space left on device: ") and "Traceback" not in said
    assert said.endswith(". Nothing that you typed was lost. Put this right, then try again.\n")
    left = type(learner)(tmp_path / "after", learner.course)
    left.capture = learner.capture
    assert not list(left.path.rglob(".*.part"))
    for name in news:
        assert left.sources(name) in news[name], "each is the old one or the new one"
    done = sum(left.sources(name) == new for name, (_, new) in news.items())
    left.update()
    assert {name: left.sources(name) for name in news} == after(news)
    table(f"full disk, {room} KB left", f"says so after {done} of {len(news)} notebooks", "all")
