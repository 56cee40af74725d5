"""One source, several editions: what a learner or a class gets of a committed notebook."""

import json
import platform
import re
from typing import Any

Cell = dict[str, Any]
Notebook = dict[str, Any]

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # What the kernel says of itself: JupyterLab would add it on opening and then ask to save it.
    "language_info": {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"}
    | {"nbconvert_exporter": "python", "pygments_lexer": "ipython3"}
    | {"codemirror_mode": {"name": "ipython", "version": 3}, "version": platform.python_version()},
}
FOLDED = {"setup", "predict", "reveal", "solution"}
# The hints, which unfold, and the sentence that says where the last one is.
HINT = re.compile(r"<details><summary>\s*Hint\b.*?</details>\s*", re.DOTALL)
HINT_IS_BELOW = re.compile(r"^Hint \d+ is .*\n*", re.MULTILINE)


def parse(data: bytes) -> Notebook:
    """A notebook from its bytes, with the source of each cell as one string.

    Raises:
        ValueError: if this is not a notebook with cells (format 4).
    """
    try:
        notebook = json.loads(data)
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
            cell["metadata"] = dict(cell.get("metadata") or {})
            cell["cell_type"] = str(cell["cell_type"])
        notebook["metadata"] = dict(notebook.get("metadata") or {})
    except (TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise ValueError("not a notebook") from problem
    return notebook


def serialize(notebook: Notebook) -> bytes:
    """The bytes of a notebook's file."""
    return (json.dumps(notebook, indent=1) + "\n").encode("ascii")


def tags(cell: Cell) -> set[str]:
    """The tags of a cell."""
    return set(map(str, cell["metadata"].get("tags") or []))


def learners(notebook: Notebook) -> Notebook:
    """The learner's edition: no outputs, no ``proof`` cells; plumbing and solutions are folded.

    It is a plain notebook: saving it writes no second file beside it.
    """
    cells = []
    for cell in notebook["cells"]:
        if "proof" in tags(cell):
            continue
        cell = cell | {"metadata": dict(cell["metadata"])}
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
            if tags(cell) & FOLDED:
                cell["metadata"]["jupyter"] = {"source_hidden": True}
            if "solution" in tags(cell):  # its verdict would pass for the learner's own
                cell["metadata"]["jupyter"]["outputs_hidden"] = True
        cells.append(cell)
    return notebook | {"cells": cells, "metadata": METADATA}


def for_class(notebook: Notebook) -> Notebook:
    """The edition for a class: the learner's, without solutions and hints."""
    edition = learners(notebook)
    edition["cells"] = [cell for cell in edition["cells"] if "solution" not in tags(cell)]
    for cell in edition["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = HINT_IS_BELOW.sub("", HINT.sub("", cell["source"])).strip()
    return edition
