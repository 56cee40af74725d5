"""An update of the course and a learner's work become one notebook, cell by cell.

Three notebooks meet: what was handed out last, what the learner has made of it, and the new
edition. Whatever the learner typed stays; whatever the course has added or changed comes in.
"""

import difflib
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attnlab.editions.notebooks import Cell, Notebook, tags

# In the metadata of a cell that holds the course's new version: the id of the cell it belongs to.
BELONGS_TO = "attnlab_new_version_of"
ALIKE = 0.5  # the share of words in common from which two cells are versions of one

# --- Which cell is which ----------------------------------------------------------------------


def _exercise(cell: Cell) -> Any:
    """An exercise goes by the name of its check, which stays when exercises are renumbered."""
    kind = tags(cell) & {"exercise", "solution"}
    called = re.search(r"\bchecks\.(\w+)\(", cell["source"])
    return (min(kind), called[1]) if kind and called else None


def _title(cell: Cell) -> Any:
    return cell["metadata"].get("title")


def _id(cell: Cell) -> Any:
    return cell.get("id")


def _text(cell: Cell) -> Any:
    """What a cell says, whatever an editor does to the spaces at the ends of lines."""
    lines = (line.rstrip() for line in cell["source"].strip().splitlines())
    return cell["cell_type"], "\n".join(lines)


def _exact(cell: Cell) -> Any:
    return _id(cell) and (_id(cell), _text(cell))


def _titled(name: Callable[[Cell], Any]) -> Callable[[Cell], Any]:
    """A name together with the id, which tells a cell from a copy that the learner made of it."""
    return lambda cell: name(cell) and _id(cell) and (name(cell), _id(cell))


NAMES = (_exact, _titled(_exercise), _exercise, _titled(_title), _title, _id, _text)


def _match(
    cells: Sequence[Cell],
    others: Sequence[Cell],
    names: Iterable[Callable[[Cell], Any]] = NAMES,
    alike: bool = True,
) -> dict[int, int]:
    """Index of a cell -> index of the other cell that is a version of it, one to one."""
    found: dict[int, int] = {}
    free = dict(enumerate(others))
    for name in names:
        called: dict[Any, int] = {}
        for j, other in free.items():
            called.setdefault(name(other), j)
        for i, cell in enumerate(cells):
            if i not in found and name(cell) and name(cell) in called:
                found[i] = called.pop(name(cell))
                del free[found[i]]
    rest = [i for i in range(len(cells)) if i not in found] if alike else []
    close = [(_likeness(cells[i], other), i, j) for i in rest for j, other in free.items()]
    for likeness, i, j in sorted(close, key=lambda pair: -pair[0]):
        if likeness >= ALIKE and i not in found and j in free:
            found[i] = j
            del free[j]
    return found


def _likeness(one: Cell, other: Cell) -> float:
    if one["cell_type"] != other["cell_type"]:
        return 0.0
    matcher = difflib.SequenceMatcher(None, one["source"].split(), other["source"].split(), False)
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE else 0.0


# --- What becomes of a cell -------------------------------------------------------------------


def _name(cell: Cell) -> str:
    """What a sentence calls a cell: its title, or how it begins."""
    begins = cell["source"].strip().split("\n")[0].strip("#>* ")
    return _title(cell) or (begins if len(begins) <= 40 else begins[:40].rstrip() + " ...")


def new_version(cell: Cell, below: str) -> Cell:
    """A folded cell with the course's new version. It is text, so it runs nothing again."""
    body = cell["source"]
    if cell["cell_type"] == "code":
        fence = "`" * (1 + max(map(len, re.findall("`+", body)), default=2))
        body = f"{fence}python\n{body}\n{fence}"
    summary = "The course has a new version of the cell above. Yours stays as it is."
    text = f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
    return {"cell_type": "markdown", "metadata": {BELONGS_TO: below}, "source": text}


def _with_lines_added(was: Cell, own: Cell, new: Cell) -> Cell | None:
    """The new cell with the lines that the learner has added, if nothing else was changed."""
    for start, result in ((new, ""), (was, new["source"].rstrip() + "\n")):
        lines = list(difflib.ndiff(start["source"].splitlines(), own["source"].splitlines()))
        if not any(line.startswith("- ") for line in lines):
            added = "\n".join(line[2:] for line in lines if line.startswith("+ "))
            return new | {"source": result + added if result else own["source"]}
    return None


class _Merge:
    """The merge of one notebook: its cells, and what there is to say about it."""

    def __init__(self, pending: set[str]):
        self.pending = pending
        self.notes: list[str] = []
        self.arrived = self.changed = 0

    def cell(self, was: Cell | None, own: Cell | None, new: Cell | None) -> list[Cell]:
        """What becomes of a cell, given those of its three versions that there are."""
        if own is None:
            waits = was is not None and was["id"] in self.pending
            if new is None or (was is not None and _text(was) == _text(new) and not waits):
                return []  # the learner deleted it, and the course has nothing new to say
            if was is None:
                self.arrived += 1
            else:
                self.notes.append(f"You deleted {_name(new)!r}. It has changed, so it is back.")
            return [new]
        untouched = was is not None and _text(own) == _text(was)
        if new is None:
            if was is None:
                return [own]
            if not untouched:
                self.notes.append(f"{_name(own)!r} is no longer in the course. Yours is kept.")
            return [] if untouched else [own]
        ours = own["metadata"] | {k: new["metadata"].get(k) for k in ("title", "tags")}
        ours = {key: value for key, value in ours.items() if value is not None}
        kept = own | {"id": new["id"], "metadata": ours}
        if _text(own) == _text(new):
            return [kept]
        if untouched:
            self.changed += 1
            return [new]
        if was is not None and _text(was) == _text(new) and own.get("id") not in self.pending:
            return [kept]
        if was is not None and "setup" in tags(new):
            if (joined := _with_lines_added(was, own, new)) is not None:
                self.changed += 1
                return [joined]
        if was is None or _text(was) != _text(new):
            self.notes.append(f"{_name(new)!r} has a new version. It is folded below yours.")
        return [kept, new_version(new, new["id"])]


# --- The whole notebook -----------------------------------------------------------------------


def merge(base: Notebook | None, mine: Notebook, new: Notebook) -> tuple[Notebook, list[str]]:
    """Bring a new edition into a learner's notebook.

    Args:
        base: what was handed out last; None if that is not known.
        mine: the learner's notebook.
        new: the new edition.

    Returns:
        The merged notebook, and one sentence for each thing the learner should know.
    """
    handed_out: list[Cell] = base["cells"] if base else []
    # New versions that an earlier update has put in come and go with the cell they belong to.
    versions = {new_version(cell, "")["source"] for cell in handed_out + new["cells"]}
    ours = [cell for cell in mine["cells"] if BELONGS_TO in cell["metadata"]]
    ours = [cell for cell in ours if cell["source"] in versions]
    work = _Merge(pending={cell["metadata"][BELONGS_TO] for cell in ours})
    own_cells = [cell for cell in mine["cells"] if not any(cell is one for one in ours)]

    of_new = _match(new["cells"], handed_out)
    of_own = _match(own_cells, handed_out)
    # What an interrupted update has brought in already is in both, and was not handed out yet.
    rest_new = [j for j in range(len(new["cells"])) if j not in of_new]
    rest_own = [i for i in range(len(own_cells)) if i not in of_own]
    direct = _match(
        [own_cells[i] for i in rest_own],
        [new["cells"][j] for j in rest_new],
        NAMES if base is None else (_exact, _id, _text),
        alike=base is None,
    )
    same = {rest_own[i]: rest_new[j] for i, j in direct.items()}

    def key_of_own(i: int) -> tuple[str, int]:
        if i in of_own:
            return "handed out", of_own[i]
        return ("new", same[i]) if i in same else ("own", i)

    was = {("handed out", k): cell for k, cell in enumerate(handed_out)}
    own = {key_of_own(i): cell for i, cell in enumerate(own_cells)}
    fresh = {
        ("handed out", of_new[j]) if j in of_new else ("new", j): cell
        for j, cell in enumerate(new["cells"])
    }
    # The order is the course's if the course has moved cells, else the learner's.
    common = [key for key in fresh if key in was]
    order = _woven(own, fresh) if common == sorted(common) else _woven(fresh, own)
    cells = [c for key in order for c in work.cell(was.get(key), own.get(key), fresh.get(key))]

    changes = [f"{work.changed} changed"] * bool(work.changed)
    changes = [f"{work.arrived} new"] * bool(work.arrived) + changes
    counted = [f"Cells of the course: {', '.join(changes)}."] if changes else []
    merged = new | {
        "cells": _with_ids(cells),
        "metadata": new["metadata"] | mine["metadata"],
        "nbformat_minor": max(new["nbformat_minor"], mine.get("nbformat_minor", 0)),
    }
    return merged, counted + work.notes


def _woven(order: Iterable[Any], other: Iterable[Any]) -> list[Any]:
    """The first order, with what only the other has put after what stands before it there."""
    result = list(order)
    at = 0
    for key in other:
        if key in result:
            at = result.index(key) + 1
        else:
            result.insert(at, key)
            at += 1
    return result


def _with_ids(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, each with an id of its own."""
    taken: set[str] = set()
    result = []
    for cell in cells:
        name = cell.get("id")
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
            name = hashlib.sha256(ascii(cell["source"]).encode()).hexdigest()[:8]
        while name in taken:
            name = hashlib.sha256(name.encode()).hexdigest()[:8]
        taken.add(name)
        result.append(cell | {"id": name})
    return result
