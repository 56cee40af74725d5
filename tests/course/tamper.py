"""Tamper with every stored output of the course and count what is noticed.

    python tests/course/tamper.py            each change against the comparison of the nbval run
    python tests/course/tamper.py --nbval    then one change of each kind in each cell in real runs

A change is one character of a text, a picture replaced by any other of the course, an alt text, an
output's kind, its place, its absence. Every notebook is executed once, and its new outputs are
compared with each changed copy of the stored ones. The exit status is 0 if every change is noticed.
"""

import argparse
import collections
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import nbformat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stored_outputs import differences, normal  # noqa: E402
from support import IGNORED, NOTEBOOKS, ROOT, code_cells, read, run  # noqa: E402

# What nbval is told in `make test`, in one process and for these notebooks only.
NBVAL = [sys.executable, "-m", "pytest", "--nbval", "--tb=no", "-p", "no:cacheprovider"]


def pictures(notebooks):
    """All stored pictures, in base64."""
    return [
        output.data["image/png"]
        for notebook in notebooks
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]


def changed_texts(text):
    """The text with one digit, one letter or one other character changed: each of them once."""
    for found in re.finditer(r"\S", text):
        old = found[0]
        new = str((int(old) + 1) % 10) if old in "0123456789" else "x" if old != "x" else "y"
        yield text[: found.start()] + new + text[found.end() :]


def changed_copies(outputs, others):
    """Each way to tamper with the outputs of a cell: (kind of change, changed copy).

    Args:
        outputs: of one cell.
        others: pictures to put in the place of its own.
    """

    def put(number, part, key, value):
        copy = deepcopy(outputs)
        (copy[number][part] if part else copy[number])[key] = value
        return copy

    for number, output in enumerate(outputs):
        if output.output_type == "stream":
            texts = [("", "text", output.text)]
            yield "kind", put(number, "", "name", "stderr" if output.name == "stdout" else "stdout")
        else:
            texts = [
                ("data", mime, text) for mime, text in output.data.items() if "/png" not in mime
            ]
            display = output.output_type == "display_data"
            other = "execute_result" if display else "display_data"
            yield "kind", put(number, "", "output_type", other)
            for mime in output.data:
                rest = {key: value for key, value in output.data.items() if key != mime}
                yield "absence", put(number, "", "data", rest)
        for part, key, text in texts:
            for changed in changed_texts(text):
                yield "text", put(number, part, key, changed)
        if png := output.get("data", {}).get("image/png"):
            for other in others:
                if other != png:
                    yield "picture", put(number, "data", "image/png", other)
            for changed in changed_texts(output.metadata["image/png"]["alt"]):
                yield "alt text", put(number, "metadata", "image/png", {"alt": changed})
            yield "alt text", put(number, "", "metadata", {})
        yield "absence", outputs[:number] + outputs[number + 1 :]
        yield "kind", [*outputs[: number + 1], deepcopy(output), *outputs[number + 1 :]]
        after = outputs[number + 1 : number + 2]
        if after and normal(after[0]) != normal(output):
            yield "order", [*outputs[:number], *after, output, *outputs[number + 2 :]]


def compared_cells(notebook):
    """(number as nbval counts, cell) of those whose outputs nbval compares."""
    return [
        (number, cell)
        for number, cell in enumerate(code_cells(notebook))
        if IGNORED not in cell.metadata.get("tags", []) and cell.outputs
    ]


def count(stored, computed, others, sample=None):
    """How many changes of each kind there are, and which of them go unnoticed.

    Args:
        stored: a notebook.
        computed: the same after execution.
        others: pictures of the course.
        sample: at most this many changes of each kind in each cell, drawn by chance.
    """
    made, missed = collections.Counter(), []
    now = [cell.outputs for cell in code_cells(computed)]
    for number, cell in compared_cells(stored):
        changes = collections.defaultdict(list)
        for kind, outputs in changed_copies(cell.outputs, others):
            changes[kind].append(outputs)
        for kind, copies in changes.items():
            if sample:
                copies = random.Random(number).sample(copies, min(sample, len(copies)))
            for outputs in copies:
                made[kind] += 1
                if not differences(outputs, now[number])[0]:
                    missed.append((kind, number, outputs))
    return made, missed


def execute(notebook):
    """The notebook as it comes out of a new kernel."""
    from nbclient import NotebookClient

    notebook = deepcopy(notebook)
    for cell in code_cells(notebook):
        cell.outputs = []
    NotebookClient(notebook, resources={"metadata": {"path": str(ROOT / "course")}}).execute()
    return notebook


def red_cells(path):
    """Numbers of the cells that fail when nbval runs as in `make test`."""
    said = run(*NBVAL, ROOT / "tests/conftest.py", path, cwd=ROOT, ok=(0, 1))
    return {int(number) for number in re.findall(r"^FAILED .*::Cell (\d+)", said, re.M)}


def real_run(path, kind, others):
    """Change each cell in a way of that kind; return how many there are and how many went red."""
    notebook, expected = read(path), set()
    for number, cell in compared_cells(notebook):
        copies = [copy for name, copy in changed_copies(cell.outputs, others) if name == kind]
        if copies:
            cell.outputs = random.Random(number).choice(copies)
            expected.add(number)
    if not expected:
        return 0, 0
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(notebook, Path(folder, path.name))
        red = red_cells(Path(folder, path.name))
    assert red <= expected, f"{path.stem}, {kind}: {red - expected} failed without a change"
    return len(expected), len(red)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nbval", action="store_true", help="in real runs of nbval as well")
    chosen = parser.parse_args()
    course = [read(path) for path in NOTEBOOKS]
    others = sorted(set(pictures(course)))
    made, missed = collections.Counter(), []
    for notebook, computed in zip(course, map(execute, course), strict=True):
        more, unnoticed = count(notebook, computed, others)
        made, missed = made + more, missed + unnoticed
    unnoticed = collections.Counter(kind for kind, *_ in missed)
    for kind, number in made.items():
        print(f"{kind}: {number - unnoticed[kind]} of {number} changes noticed", flush=True)
    if chosen.nbval:
        with ThreadPoolExecutor(2) as pool:
            for kind in made:
                runs = pool.map(lambda path: real_run(path, kind, others), NOTEBOOKS)  # noqa: B023
                cells, red = map(sum, zip(*runs, strict=True))
                print(f"{kind}: {red} of {cells} cells red in real runs of nbval", flush=True)
                missed += [kind] * (cells - red)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
