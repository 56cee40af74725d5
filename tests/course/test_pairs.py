"""The two files of a pair agree: cell by cell, their kind, their source and their tags."""

import jupytext
import pytest
from support import ROOT, each_source, load

differences = load(ROOT / ".jupyter/attnlab_notebooks.py").pair_differences


@each_source
def test_both_files_of_a_pair_agree(source):
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
    source.write_text(SCRIPT, encoding="utf-8")
    jupytext.write(jupytext.read(source), source.with_suffix(".ipynb"))
    assert differences(source) == []
    return source


@pytest.mark.parametrize(
    ("before", "after", "cell"),
    [
        ("Some words", "Other words", 1),
        ("x = 1", "x = 2", 2),
        ('["setup"]', '["check"]', 2),
        ("%% Two", '%% Two slideshow={"slide_type": "slide"}', 3),
        ("%% Two", '%% Two jupyter={"source_hidden": true}', 3),
        ("%% Two", "%% Three", 3),
        ("# %% [markdown]", "# %% Code", 1),
        ("\n# %% Two\nx\n", "", 3),
    ],
)
def test_one_changed_word_is_found_in_its_cell(pair, before, after, cell):
    pair.write_text(SCRIPT.replace(before, after), encoding="utf-8")
    found = differences(pair)
    assert len(found) == 1
    assert found[0].startswith(f"small, cell {cell}: ")
