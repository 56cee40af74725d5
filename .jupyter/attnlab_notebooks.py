"""What is stored of a notebook, so that `git diff` shows what somebody changed and nothing else.

JupyterLab (attnlab_contents.py), `make notebooks` (jupyter_nbconvert_config.py) and the tests use
these same functions.
"""

import base64
import binascii
import io
import re
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# Between processors a picture of trained numbers differs in a few pixels, by up to 16 of 255. A
# real change is small in area, too, but not in height: hence no share of pixels.
TOLERANCE = 32


def clean(notebook, stored=None):
    """Drop from a notebook, in place, what differs from run to run and from machine to machine.

    A widget is dropped, because its id is new at every run; its still picture and its sentence
    stay, and so do all other outputs, except what was said to one person about a prediction. A
    picture that differs from the stored one within the tolerance is replaced by the stored one.

    Args:
        notebook: a dict or nbformat's node.
        stored: the same notebook as it is on disk, if it is.
    """
    # The version of Python, and the widgets' state, which is of no use without their ids.
    for key in ("language_info", "widgets"):
        notebook["metadata"].pop(key, None)

    before = {cell.get("id"): cell.get("outputs", []) for cell in stored["cells"]} if stored else {}
    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code_cells:
        cell["metadata"].pop("execution", None)  # when it ran
        cell["outputs"] = [
            output
            for output in cell["outputs"]
            if output.get("metadata", {}).get("attnlab") != "vote"
        ]
        for output in cell["outputs"]:
            output.get("data", {}).pop(WIDGET_VIEW, None)
            output.get("metadata", {}).pop(WIDGET_VIEW, None)
        for new, old in zip(cell["outputs"], before.get(cell.get("id"), []), strict=False):
            keep_pictures(new.get("data", {}), old.get("data", {}))

    # A second Run All counts on from n + 1. What ran from top to bottom is numbered from 1, so that
    # it is no change; any other order is kept, for the tests to refuse.
    counts = [cell["execution_count"] for cell in code_cells]
    if None not in counts and counts == sorted(set(counts)):
        for number, cell in enumerate(code_cells, start=1):
            cell["execution_count"] = number
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = number


def read(path):
    """Read a notebook; None if there is none or if it is damaged."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError):
        return None


def after_executing(notebook, resources):
    """Clean what nbconvert has executed and is about to write over the stored notebook."""
    place = resources.get("metadata", {})
    clean(notebook, read(Path(place.get("path", ""), f"{place.get('name')}.ipynb")))
    return notebook, resources


# --- Pictures -----------------------------------------------------------------------------------

# A PNG inside HTML is compared as a picture, too.
EMBEDDED = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=\s]+")


class Difference(NamedTuple):
    """How far two pictures of one size are apart."""

    largest: int  # difference of any channel of any pixel, of 255
    pixels: int  # that differ at all
    over: int  # pixels that differ by more than the tolerance

    @property
    def tolerated(self):
        """Whether another processor may have drawn the same picture."""
        return not self.over

    def __str__(self):
        return (
            f"{self.pixels} pixels differ, the largest difference is {self.largest} of 255, "
            f"{self.over} pixels are over the tolerance of {TOLERANCE}"
        )


def picture_difference(stored, new):
    """Compare two PNGs, given in base64.

    Returns:
        A `Difference`, or a sentence where the two cannot be compared pixel by pixel.
    """
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    if "".join(stored.split()) == "".join(new.split()):
        return Difference(0, 0, 0)
    try:
        one, other = (
            Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA") for png in (stored, new)
        )
    except (UnidentifiedImageError, binascii.Error) as error:
        return f"not a PNG: {error}"
    if one.size != other.size:
        return "the stored one has {} x {} pixels, the new one {} x {}".format(
            *one.size, *other.size
        )
    apart = abs(np.asarray(one, dtype=np.int16) - np.asarray(other, dtype=np.int16)).max(axis=-1)
    return Difference(int(apart.max()), int((apart > 0).sum()), int((apart > TOLERANCE).sum()))


def alike(stored, new):
    """Whether two PNGs differ within the tolerance."""
    difference = picture_difference(stored, new)
    return isinstance(difference, Difference) and difference.tolerated


def keep_pictures(new, stored):
    """Put the stored pictures of an output's data in place of those that are like them."""
    for mime in new.keys() & stored.keys() & {"image/png", "text/html"}:
        if new[mime] == stored[mime]:
            continue
        if mime == "image/png":
            new[mime] = stored[mime] if alike(stored[mime], new[mime]) else new[mime]
        else:
            old, text = EMBEDDED.findall(stored[mime]), new[mime]
            if len(old) == len(EMBEDDED.findall(text)):
                pngs = iter(old)
                new[mime] = EMBEDDED.sub(
                    lambda png: kept if alike(kept := next(pngs), png[0]) else png[0],  # noqa: B023
                    text,
                )


# --- Pairs --------------------------------------------------------------------------------------


def is_pair(path):
    """Whether a file is one of two of the same name, an .ipynb and its source, the .py."""
    path = Path(path)
    return path.suffix in {".ipynb", ".py"} and all(
        path.with_suffix(ending).is_file() for ending in (".ipynb", ".py")
    )


def pair_differences(script):
    """Where the .ipynb beside a .py differs from it: file, cell, and the first line that does.

    Compared are the cells: kind, source, title, tags, folding and slide type. The kernel isn't, nor
    an empty list of tags, which other editors add.
    """
    import jupytext

    def lines(cell):
        if cell is None:
            return ["no such cell"]
        metadata = cell.metadata
        return [
            f"{cell.cell_type} cell titled {metadata.get('title')}",
            f"tags {metadata.get('tags', [])}, {dict(metadata.get('jupyter', {}))}, "
            f"{dict(metadata.get('slideshow', {}))}",
            *cell.source.splitlines(),
        ]

    found = []
    cells = (jupytext.read(script.with_suffix(ending)).cells for ending in (".py", ".ipynb"))
    for number, pair in enumerate(zip_longest(*cells), start=1):
        for here, there in zip_longest(*map(lines, pair), fillvalue="nothing"):
            if here != there:
                found.append(f"{script.stem}, cell {number}: {here} (.py), {there} (.ipynb)")
                break
    return found


def holds_edits(script):
    """Whether the .ipynb of a pair holds what neither its .py nor git's last commit does."""
    if read(script.with_suffix(".ipynb")) and not pair_differences(script):
        return False
    command = ["git", "status", "--porcelain", "--ignored", "--", f"{script.stem}.ipynb"]
    try:
        said = subprocess.run(command, cwd=script.parent, capture_output=True)
    except OSError:  # no git
        return True
    return said.returncode != 0 or said.stdout != b""


def keep_copy(path):
    """Copy a file that is about to be overwritten; return the copy's path."""
    folder = path.parent / ".ipynb_checkpoints"  # Jupyter's own place for earlier versions
    folder.mkdir(exist_ok=True)
    checksum = binascii.crc32(path.read_bytes())
    return Path(shutil.copy2(path, folder / f"{path.stem}-{checksum:08x}{path.suffix}"))


def write_script(script):
    """Write a .py from its .ipynb. It keeps its own kernel."""
    import jupytext
    from jupytext.config import load_jupytext_config

    notebook = jupytext.read(script.with_suffix(".ipynb"))
    notebook.metadata["kernelspec"] = jupytext.read(script).metadata.get("kernelspec")
    config = load_jupytext_config(str(script))
    jupytext.write(notebook, script, fmt="py:percent", config=config)


def write_notebook(script):
    """Write an .ipynb from its .py. It keeps the outputs of all cells that stay as they are."""
    from jupytext.cli import jupytext

    update = ["--update"] if read(script.with_suffix(".ipynb")) else []
    jupytext(["--quiet", "--to", "ipynb", *update, str(script)])


def main(scripts):
    """Keep a copy of every notebook that was edited after its .py, before it is rebuilt."""
    for script in map(Path, scripts):
        notebook = script.with_suffix(".ipynb")
        if (
            notebook.exists()
            and notebook.stat().st_mtime > script.stat().st_mtime
            and holds_edits(script)
        ):
            print(f"{notebook} was edited and its .py was not. A copy: {keep_copy(notebook)}")


if __name__ == "__main__":
    main(sys.argv[1:])
