"""An update of the course and a learner's work become one notebook, cell by cell.

Three notebooks meet: what was handed out last, what the learner has made of it, and the new
edition. Whatever the learner typed stays; whatever the course has added or changed comes in.
"""

import difflib
import hashlib
import re
from collections.abc import Callable, Container, Iterable
from typing import Any

from attnlab.editions.notebooks import Cell, Notebook, tags

# In the metadata of a cell that holds the course's new version: the id of the cell it belongs to.
BELONGS_TO = "attnlab_new_version_of"
ALIKE = 0.5  # the share of words in common from which two cells are versions of one
NEW, CHANGED = "new", "changed"  # notes on cells of the course that are only counted

Key = tuple[str, int]
Cells = dict[Key, Cell]

# --- Which cell is which ----------------------------------------------------------------------


def _exercise(cell: Cell) -> Any:
    """An exercise goes by the name of its check, which stays when exercises are renumbered."""
    kind = tags(cell) & {"exercise", "solution"}
    called = re.search(r"\bchecks\.(\w+)\(", cell["source"])
    return (min(kind), called[1]) if kind and called else None


def _title(cell: Cell) -> Any:
    return str(cell["metadata"].get("title") or "")


def _id(cell: Cell) -> Any:
    return str(cell.get("id") or "")


def _text(cell: Cell) -> Any:
    """What a cell says, whatever an editor does to the spaces at the ends of lines."""
    lines = (line.rstrip() for line in cell["source"].strip().splitlines())
    return cell["cell_type"], "\n".join(lines)


def _with_id(name: Callable[[Cell], Any]) -> Callable[[Cell], Any]:
    """A name together with the id, which tells a cell from a copy that the learner made of it."""
    return lambda cell: name(cell) and _id(cell) and (name(cell), _id(cell))


EXACT = (_with_id(_text), _id, _text)
NAMES = (_with_id(_text), _with_id(_exercise), _exercise, _with_id(_title), _title, _id, _text)


def _versions(cells: Cells, others: Cells, exact: bool = False) -> dict[Key, Key]:
    """Which cell is a version of which other one, one to one."""
    found: dict[Key, Key] = {}
    for name in EXACT if exact else NAMES:
        called = {name(others[key]): key for key in reversed(others) if key not in found.values()}
        for key, cell in cells.items():
            if key not in found and name(cell) and name(cell) in called:
                found[key] = called.pop(name(cell))
    rest = _without(others, found.values()) if not exact else {}
    close = [
        (_likeness(cell, other), one, key)
        for one, cell in _without(cells, found).items()
        for key, other in rest.items()
    ]
    for likeness, one, key in sorted(close, key=lambda pair: -pair[0]):
        if likeness >= ALIKE and one not in found and key not in found.values():
            found[one] = key
    return found


def _likeness(one: Cell, other: Cell) -> float:
    if one["cell_type"] != other["cell_type"]:
        return 0.0
    matcher = difflib.SequenceMatcher(None, one["source"].split(), other["source"].split(), False)
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE else 0.0


def _without(cells: Cells, keys: Container[Key]) -> Cells:
    return {key: cell for key, cell in cells.items() if key not in keys}


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


def _outcome(
    was: Cell | None, own: Cell | None, new: Cell | None, waits: bool
) -> tuple[list[Cell], str]:
    """What becomes of a cell, given those of its versions that there are; and a note on it.

    ``waits`` says that a new version of it, which an earlier update brought, still stands below.
    """
    same = was is not None and new is not None and _text(was) == _text(new)
    if own is None:
        if new is None or (same and not waits):
            return [], ""  # the learner deleted it, and the course has nothing new to say
        back = f"You deleted {_name(new)!r}. It has changed, so it is back."
        return [new], NEW if was is None else back
    untouched = was is not None and _text(own) == _text(was)
    if new is None:
        dropped = f"{_name(own)!r} is no longer in the course. Yours is kept."
        return ([], "") if untouched else ([own], dropped if was is not None else "")
    metadata = dict(own["metadata"])
    for key in {"title", "tags"} & set(new["metadata"]):
        if was is None or metadata.get(key) == was["metadata"].get(key):
            metadata[key] = new["metadata"][key]
    kept = own | {"id": new["id"], "metadata": metadata}
    if _text(own) == _text(new) or (same and not waits):
        return [kept], ""
    if untouched:
        return [new], CHANGED
    if was and "setup" in tags(new) and (joined := _with_lines_added(was, own, new)):
        return [joined], CHANGED
    told = f"{_name(new)!r} has a new version. It is folded below yours."
    return [kept, new_version(new, new["id"])], "" if same else told


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
    was = {("was", n): cell for n, cell in enumerate(base["cells"] if base else [])}
    fresh = {("new", n): cell for n, cell in enumerate(new["cells"])}
    own = {("own", n): cell for n, cell in enumerate(mine["cells"])}
    # New versions that an earlier update has put in come and go with the cell they belong to.
    versions = {new_version(cell, "")["source"] for cell in [*was.values(), *fresh.values()]}
    marked = [key for key, cell in own.items() if BELONGS_TO in cell["metadata"]]
    put_in = [key for key in marked if own[key]["source"] in versions]
    waiting = {str(own[key]["metadata"][BELONGS_TO]) for key in put_in}
    own = _without(own, put_in)

    of_new, of_own = _versions(fresh, was), _versions(own, was)
    # What an interrupted update has brought in already is in both, and was not handed out yet.
    rest = _without(own, of_own), _without(fresh, of_new)
    of_own |= _versions(*rest, exact=base is not None)
    fresh = {of_new.get(key, key): cell for key, cell in fresh.items()}
    own = {of_own.get(key, key): cell for key, cell in own.items()}
    # The order is the course's if the course has moved cells, else the learner's.
    common = [key for key in fresh if key in was]
    order = _woven(own, fresh) if common == sorted(common) else _woven(fresh, own)
    cells, notes = [], []
    for key in order:
        ids = {_id(cell) for cell in (own.get(key), was.get(key)) if cell}
        became, note = _outcome(was.get(key), own.get(key), fresh.get(key), bool(ids & waiting))
        cells += became
        notes += [note] if note else []

    counts = [f"{notes.count(kind)} {kind}" for kind in (NEW, CHANGED) if kind in notes]
    counted = [f"Cells of the course: {', '.join(counts)}."] if counts else []
    merged = new | {
        "cells": _with_ids(cells),
        "metadata": new["metadata"] | mine["metadata"],
        "nbformat_minor": max(new["nbformat_minor"], mine.get("nbformat_minor", 0)),
    }
    return merged, counted + [note for note in notes if note not in (NEW, CHANGED)]


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
        name = str(cell.get("id") or "")
        while name in taken or not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
            name = hashlib.sha256(ascii(name + cell["source"]).encode()).hexdigest()[:8]
        taken.add(name)
        result.append(cell | {"id": name})
    return result
