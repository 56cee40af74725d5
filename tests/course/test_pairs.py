"""The two files of a pair tell the same: cell by cell, their kind, their source and their tags."""

from itertools import zip_longest

import jupytext
import pytest
from support import SOURCES


def told(cell):
    """What both files must agree on, in lines."""
    if cell is None:
        return ["no such cell"]
    metadata = cell.metadata
    return [
        f"{cell.cell_type} cell titled {metadata.get('title')}",
        f"tags {metadata.get('tags', [])}, {dict(metadata.get('jupyter', {}))}",
        *cell.source.splitlines(),
    ]


def differences(source):
    """Where the .ipynb beside a .py differs from it: file, cell, and the first line that does."""
    script = jupytext.read(source).cells
    notebook = jupytext.read(source.with_suffix(".ipynb")).cells
    found = []
    for number, pair in enumerate(zip_longest(script, notebook), start=1):
        lines = zip_longest(*map(told, pair), fillvalue="nothing")
        for here, there in lines:
            if here != there:
                found.append(f"{source.stem}, cell {number}: {here} (.py), {there} (.ipynb)")
                break
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_both_files_of_a_pair_tell_the_same(source):
    if found := differences(source):
        pytest.fail("\n".join(["`make notebooks` writes the .ipynb from the .py.", *found]))


SCRIPT = """\
# %% [markdown]
# Some words.

# %% One tags=["setup"]
x = 1

# %% Two
x
"""


@pytest.fixture
def pair(tmp_path):
    """A small pair that agrees."""
    source = tmp_path / "small.py"
    source.write_text(SCRIPT)
    jupytext.write(jupytext.read(source), source.with_suffix(".ipynb"))
    assert differences(source) == []
    return source


@pytest.mark.parametrize(
    ("before", "after", "cell"),
    [
        ("Some words", "Other words", 1),
        ("x = 1", "x = 2", 2),
        ('["setup"]', '["check"]', 2),
        ("%% Two", "%% Three", 3),
        ("# %% [markdown]", "# %% Code", 1),
        ("\n# %% Two\nx\n", "", 3),
    ],
)
def test_one_changed_word_is_found_in_its_cell(pair, before, after, cell):
    pair.write_text(SCRIPT.replace(before, after))
    found = differences(pair)
    assert len(found) == 1
    assert found[0].startswith(f"small, cell {cell}: ")
