"""The notebooks as files: what they may hold, so that nbval compares all of it on any machine.

nbval never compares a cell without an execution count, an image or a widget, and it accepts any
tag that it does not know. These tests refuse what would pass it unseen.
"""

import re
import tomllib

import jupytext
import nbformat
import pytest
from support import (
    COURSE,
    IGNORED,
    NOTEBOOKS,
    ROOT,
    SOURCES,
    code_cells,
    each_notebook,
    each_source,
    read,
)

NAMES = [
    "01_static_embeddings",
    "02_queries_keys_values",
    "03_scaling_and_masking",
    "04_softmax_and_values",
    "05_heads_and_positions",
    "06_tiny_trainer_and_kv_cache",
]
TAGS = {"explorer", "exercise", "solution", "predict", "further", "setup", "check", "progress"}
TAGS |= {"proof", "reveal"}


def faults(notebook):
    """What is wrong with a stored notebook, one sentence each."""
    found = []
    extra = set(notebook.metadata) - {"kernelspec", "jupytext"}
    if extra:
        found.append(f"the notebook's metadata holds {sorted(extra)}")
    if notebook.metadata.get("kernelspec") != {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }:
        found.append("the kernel is not the python3 that everybody has")
    for number, cell in enumerate(code_cells(notebook), start=1):
        where = f"code cell {number} ({cell.metadata.get('title', 'no title')})"
        if cell.execution_count != number:
            found.append(f"{where} ran as number {cell.execution_count}")
        if "execution" in cell.metadata:
            found.append(f"{where} stores when it ran")
        mimes = [mime for output in cell.outputs for mime in output.get("data", {})]
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"{where} stores an error or a warning")
        if "image/svg+xml" in mimes:
            found.append(f"{where} stores an SVG, whose ids differ from run to run")
        if "application/vnd.jupyter.widget-view+json" in mimes:
            found.append(f"{where} stores a widget, whose id differs from run to run")
        for output in cell.outputs:
            if "image/png" not in output.get("data", {}):
                continue
            if not output.metadata.get("image/png", {}).get("alt") or not output.data["text/plain"]:
                found.append(f"{where} stores a picture without words")
        if sum(mime.startswith("image/") for mime in mimes) > 1:
            found.append(f"{where} stores more than one picture")
    return found


def test_the_course_is_these_six_pairs():
    assert [source.stem for source in SOURCES] == NAMES
    assert sorted(path.name for path in COURSE.glob("[!._]*")) == sorted(
        name + ending for name in NAMES for ending in (".py", ".ipynb")
    )


@each_notebook
def test_every_cell_was_run_in_order_and_stores_only_what_stays_the_same(path):
    assert faults(read(path)) == []


def spoilt(notebook, what):
    """A notebook with one thing wrong with it."""
    cell = code_cells(notebook)[1]
    png = nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": "a map"})
    png.metadata = {"image/png": {"alt": "a map"}}
    match what:
        case "never run":
            cell.execution_count = None
        case "run twice":
            cell.execution_count = 99
        case "timing":
            cell.metadata.execution = {"iopub.execute_input": "2026-01-01"}
        case "warning":
            cell.outputs.append(nbformat.v4.new_output("stream", name="stderr", text="careful"))
        case "error":
            cell.outputs.append(nbformat.v4.new_output("error", ename="E", evalue="e"))
        case "SVG":
            cell.outputs.append(nbformat.v4.new_output("display_data", {"image/svg+xml": ""}))
        case "widget":
            mime = "application/vnd.jupyter.widget-view+json"
            cell.outputs.append(nbformat.v4.new_output("display_data", {mime: {}}))
        case "two pictures":
            cell.outputs = [png, png]
        case "no alt text":
            cell.outputs = [nbformat.from_dict(png | {"metadata": {}})]
        case "no words":
            cell.outputs = [nbformat.from_dict(png | {"data": {"image/png": "", "text/plain": ""}})]
        case "widget state":
            notebook.metadata.widgets = {}
        case "language_info":
            notebook.metadata.language_info = {"name": "python", "version": "3.11.0"}
        case "kernel":
            notebook.metadata.kernelspec.name = "conda-env-mine-py"
    return notebook


@pytest.mark.parametrize(
    "what",
    ["never run", "run twice", "timing", "warning", "error", "SVG", "widget", "two pictures"]
    + ["no alt text", "no words", "widget state", "language_info", "kernel"],
)
def test_a_notebook_with_one_thing_wrong_is_refused(what):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1", execution_count=number) for number in (1, 2)],
        metadata={
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            }
        },
    )
    assert faults(notebook) == []
    assert len(faults(spoilt(notebook, what))) == 1


@each_notebook
def test_jupytexts_settings_in_a_notebook_are_the_projects(path):
    # Where they differ, JupyterLab refuses to open the pair; `make notebooks` mends it.
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "jupytext"
    ]
    filters = {key: value for key, value in settings.items() if key.endswith("_filter")}
    assert read(path).metadata.jupytext == filters


@each_source
def test_the_header_of_a_source_is_the_kernel_and_nothing_else(source):
    assert source.read_text(encoding="utf-8").split("\n")[:7] == [
        "# ---",
        "# jupyter:",
        "#   kernelspec:",
        "#     display_name: Python 3 (ipykernel)",
        "#     language: python",
        "#     name: python3",
        "# ---",
    ]


# What a code cell must not say, and why.
BANNED = {
    r";\s*$": "a semicolon at the end hides nothing under nbval",
    r"^\s*[%!]": "magics and shell commands pass a lax check even when they fail",
    r"clear_output": "nbval sees the outputs that were cleared",
    r"\binteract\w*\(": "nbval takes what is printed inside for the cell's own output",
    r"\b(Out|In)\[": "nbval keeps no history",
    r"\btqdm\b": "a progress bar never looks the same twice",
    r"#\s*(NBVAL|PYTEST_VALIDATE)_": "an exception is made by a tag, where it can be counted",
}


@each_source
def test_a_cell_says_nothing_that_nbval_cannot_check(source):
    found = [
        f"{cell.metadata.get('title')}: {line.strip()!r}: {why}"
        for cell in code_cells(jupytext.read(source))
        for line in cell.source.splitlines()
        for pattern, why in BANNED.items()
        if re.search(pattern, line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ["x;", "%timeit x", "  !ls", "clear_output()", "interact(f)", "Out[3]", "tqdm(x)"]
    + ["interactive_output(f, {})", "x  # NBVAL_SKIP"],
)
def test_each_banned_line_is_found(line):
    assert any(re.search(pattern, line) for pattern in BANNED)


@each_source
def test_every_code_cell_has_a_title_and_only_known_tags(source):
    cells = code_cells(jupytext.read(source))
    assert [cell.source for cell in cells if not cell.metadata.get("title")] == []
    known = {"title", "tags", "jupyter", "slideshow", "lines_to_next_cell"}
    unknown = {cell.metadata["title"]: set(cell.metadata) - known for cell in cells}
    assert not any(unknown.values()), f"jupytext takes a title's = for a setting: {unknown}"
    titles = [cell.metadata["title"] for cell in cells]
    assert sorted(titles) == sorted(set(titles)), "two cells have the same title"
    tags = {tag for cell in cells for tag in cell.metadata.get("tags", [])}
    assert tags <= TAGS | {IGNORED}


@each_source
def test_every_cell_has_a_slide_type(source):
    """``python .slides mark`` gives one to a new cell."""
    types = {"slide", "subslide", "fragment", "notes", "skip"}
    cells = jupytext.read(source).cells
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type") for cell in cells]
    assert [c.source for c, kind in zip(cells, kinds, strict=True) if kind not in types] == []


def test_nbval_ignores_at_most_one_cell_and_it_says_why():
    ignored = [
        (source.stem, cell)
        for source in SOURCES
        for cell in code_cells(jupytext.read(source))
        if IGNORED in cell.metadata.get("tags", [])
    ]
    assert len(ignored) <= 1
    silent = [(name, cell.metadata.title) for name, cell in ignored if "#" not in cell.source]
    assert silent == [], "a comment in the cell tells why its output is not compared"


def test_no_printed_claim_came_out_false_but_those_meant_to():
    """Claims are printed as "what is claimed: True". On a rebuild one could turn, and be stored."""
    outputs = (o for path in NOTEBOOKS for c in code_cells(read(path)) for o in c.outputs)
    lines = (line for o in outputs for line in o.get("text", "").splitlines())
    assert [line for line in lines if line.endswith(": False")] == [
        "with a causal mask still the same: False",
        "with positions still the same: False",
        "causal model: old positions move: False",
    ]
