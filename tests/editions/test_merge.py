"""What a learner typed and what the course has changed are both there after an update."""

import copy
import random

import nbformat
import pytest
from support import NOTEBOOKS

from attnlab.editions import notebooks
from attnlab.editions.merge import merge

HANDED_OUT = [notebooks.learners(notebooks.parse(path.read_bytes())) for path in NOTEBOOKS]


def sources(notebook):
    return [cell["source"] for cell in notebook["cells"]]


def code(source, title=None, tags=(), **more):
    metadata = {"title": title, "tags": list(tags)} if title else {}
    cell = {"cell_type": "code", "source": source, "metadata": metadata}
    return cell | {"outputs": [], "execution_count": None} | more


def prose(source, **more):
    return {"cell_type": "markdown", "source": source, "metadata": {}} | more


def notebook(*cells):
    cells = [{"id": f"cell-{n}"} | copy.deepcopy(cell) for n, cell in enumerate(cells)]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


# --- Any edits on both sides ------------------------------------------------------------------


def random_id(rng):
    return f"{rng.getrandbits(32):08x}"


def change(cell, rng, who):
    """Change a line of a cell, add one, or write it anew."""
    lines, word = cell["source"].split("\n"), f"{who}{rng.getrandbits(24)}"
    match rng.randrange(4):
        case 0:
            lines[rng.randrange(len(lines))] += f" # {word}"
        case 1:
            lines.insert(rng.randrange(len(lines) + 1), word)
        case 2:
            lines[0] = word
        case 3:
            lines = [word, f"written anew by {who}"]
    cell["source"] = "\n".join(lines)


def edited_by_course(base, rng):
    """A later version of the course: cells changed, added, dropped and moved; others renumbered."""
    new = copy.deepcopy(base)
    cells = new["cells"]
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(cells))
        match rng.randrange(6):
            case 0 | 1 | 2:
                change(cells[at], rng, "course")
                if rng.random() < 0.5:  # jupytext gives a changed cell a new id
                    cells[at]["id"] = random_id(rng)
            case 3:
                cell = rng.choice([code, prose])(f"new in the course {rng.getrandbits(24)}")
                cells.insert(at, cell | {"id": random_id(rng)})
            case 4:
                del cells[at]
            case 5:
                cells.insert(rng.randrange(len(cells)), cells.pop(at))
    return new


def edited_by_learner(base, rng):
    """A learner's notebook: answers, own cells, deleted, moved, doubled and split ones."""
    mine = copy.deepcopy(base)
    cells = mine["cells"]
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(cells))
        match rng.randrange(8):
            case 0 | 1 | 2:
                change(cells[at], rng, "learner")
            case 3:
                cell = rng.choice([code, prose])(f"the learner's own {rng.getrandbits(24)}")
                cells.insert(at, cell | {"id": random_id(rng)})
            case 4:
                del cells[at]
            case 5:
                cells.insert(rng.randrange(len(cells)), cells.pop(at))
            case 6:
                double = copy.deepcopy(cells[at]) | {"id": random_id(rng)}
                if rng.random() < 0.5:
                    change(double, rng, "learner")
                cells.insert(at + rng.randrange(2), double)
            case 7:
                lines = cells[at]["source"].split("\n")
                cells[at]["source"] = "\n".join(lines[: len(lines) // 2])
                rest = copy.deepcopy(cells[at]) | {"id": random_id(rng)}
                cells.insert(at + 1, rest | {"source": "\n".join(lines[len(lines) // 2 :])})
    for cell in cells:
        if cell["cell_type"] == "code" and rng.random() < 0.3:
            text = {"output_type": "stream", "name": "stdout", "text": "printed"}
            cell |= {"outputs": [text], "execution_count": rng.randrange(1, 100)}
    match rng.randrange(6):
        case 0:  # an editor that renews the ids
            for cell in cells:
                cell["id"] = random_id(rng)
        case 1:  # and an older one that drops them
            for cell in cells:
                del cell["id"]
            mine["nbformat_minor"] = 4
    return mine


def trial(seed):
    """What was handed out, what the learner made of it, what the course made of it."""
    rng = random.Random(seed)
    base = HANDED_OUT[seed % len(HANDED_OUT)]
    return base, edited_by_learner(base, rng), edited_by_course(base, rng)


def lost(base, mine, new, merged):
    """What the learner typed and is gone, and what the course has changed and is gone."""
    texts = sources(merged)
    learners = [text for text in sources(mine) if text not in sources(base) + texts]
    folded = "\n".join(text for text in texts if text.startswith("<details>"))
    courses = [text for text in sources(new) if text not in sources(base) + texts]
    return learners, [text for text in courses if text not in folded]


@pytest.mark.parametrize("seeds", [range(n, n + 20) for n in range(0, 120, 20)], ids=str)
def test_whatever_both_sides_edit_nothing_is_lost(seeds):
    for seed in seeds:
        base, mine, new = trial(seed)
        before = copy.deepcopy((base, mine, new))
        merged, _ = merge(base, mine, new)
        assert (base, mine, new) == before, "the merge changes its arguments"
        nbformat.validate(merged)
        assert lost(base, mine, new, merged) == ([], [])
        ids = [cell["id"] for cell in merged["cells"]]
        assert len(set(ids)) == len(ids)
        # Neither what nobody touched ...
        kept = set(sources(base)) & set(sources(mine)) & set(sources(new))
        assert kept <= set(sources(merged))
        # ... nor does anything come twice that was there once.
        for text in sources(merged):
            most = max(sources(mine).count(text), sources(new).count(text))
            assert sources(merged).count(text) <= max(most, 1), text
        # Once more, as after an interrupted update, and once more with no further news.
        assert lost(base, mine, new, merge(base, merged, new)[0]) == ([], [])
        assert sources(merge(new, merged, new)[0]) == sources(merged)


def test_spaces_at_the_ends_of_lines_are_no_edit_and_the_kernel_is_the_learners():
    base = notebook(code("a = 1  \nb = 2"))
    mine = notebook(code("a = 1\nb = 2\n")) | {"metadata": {"kernelspec": {"name": "mine"}}}
    new = notebook(code("a = 3")) | {"metadata": {"kernelspec": {"name": "python3"}}}
    merged, notes = merge(base, mine, new)
    assert sources(merged) == ["a = 3"] and notes == ["Cells of the course: 1 changed."]
    assert merged["metadata"] == mine["metadata"]


@pytest.mark.parametrize(
    "found_by, mine, new",
    [
        ("title", code("x = 5", "Rows"), code("nothing = alike", "Rows")),
        ("likeness", code("one two three four"), code("one two three 4")),
    ],
)
def test_without_ids_a_changed_cell_is_found_by(found_by, mine, new):
    base = notebook(new | {"source": "one two three", "id": "old"})
    mine, new = (notebook(cell | {"id": name}) for cell, name in [(mine, "a"), (new, "b")])
    merged, _ = merge(base, mine, new)
    assert [source[:9] for source in sources(merged)] == [
        mine["cells"][0]["source"][:9],
        "<details>",
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"metadata": {"tags": None, "title": None}},
        {"metadata": {"tags": "exercise", "title": ["a list"]}},
        {"metadata": {"tags": [3, {}], "attnlab_new_version_of": ["x"]}},
        {"metadata": None},
        {"id": ["a list"]},
        {"id": "ein ß, that no id may have"},
        {"source": ["two\n", "lines \ud800"]},
        {"source": ""},
        {"cell_type": "raw"},
    ],
    ids=str,
)
def test_what_other_programs_may_write_into_a_cell_stops_nothing(odd):
    base, mine, new = trial(5)
    data = copy.deepcopy(mine)
    data["cells"].insert(3, code("own") | odd)
    data["cells"][8] |= odd
    mine = notebooks.parse(notebooks.serialize(data))
    merged, _ = merge(base, mine, new)
    assert lost(base, mine, new, merged) == ([], [])
    assert notebooks.parse(notebooks.serialize(merged)) == merged
