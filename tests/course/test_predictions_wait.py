"""Nothing answers a question on the screen that asks it; each is revealed once."""

import ast
import re

import jupytext
import pytest
from support import SOURCES, call, gives_away

# Question -> why its key may be seen before the reveal. Three at most.
EXCEPTIONS: dict[str, str] = {}

HEADING = re.compile(r"^#{1,4} ", re.MULTILINE)


def tags(cell):
    return cell.metadata.get("tags", [])


def predictions(path):
    """Every prediction: (variable, question, key, what is visible after it, reveals)."""
    cells = jupytext.read(path).cells
    for number, cell in enumerate(cells):
        if cell.cell_type != "code" or not (found := call(cell.source, "predict")):
            continue
        variable, made = found
        question = ast.literal_eval(made.args[0])
        [key] = [ast.literal_eval(k.value) for k in made.keywords if k.arg == "key"]
        visible, revealed = [], 0
        for later in cells[number + 1 :]:
            folded = later.metadata.get("jupyter", {}).get("source_hidden")
            if later.cell_type == "markdown":
                start = HEADING.search(later.source)
                visible.append(later.source[: start.start()] if start else later.source)
                if start:
                    break
            elif "proof" not in tags(later) and not folded:
                visible.append(later.source)
        for later in cells[number + 1 :]:
            revealed += later.cell_type == "code" and f"{variable}.reveal(" in later.source
        yield variable, question, key, "\n".join(visible), revealed


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_nothing_visible_after_a_question_holds_its_answer(path, figure):
    found = list(predictions(path))
    spoiled = [
        f"{question} -> {key!r}"
        for _, question, key, visible, _ in found
        if gives_away(key, visible) and question not in EXCEPTIONS
    ]
    assert len(found) >= 3
    assert not spoiled, "\n".join(spoiled)
    figure(f"{path.stem}: {len(found)} predictions, none spoiled")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_prediction_is_revealed_once_in_a_folded_cell(path):
    cells = jupytext.read(path).cells
    for variable, question, key, _, revealed in predictions(path):
        assert key and revealed == 1, f"{question}: key {key!r}, revealed {revealed} times"
        [cell] = [c for c in cells if c.cell_type == "code" and f"{variable}.reveal(" in c.source]
        assert "reveal" in tags(cell) and cell.metadata["jupyter"]["source_hidden"], question
    asked = [c for c in cells if "predict" in tags(c)]
    assert all(c.cell_type == "code" and call(c.source, "predict") for c in asked)
    assert all(c.metadata["jupyter"]["source_hidden"] for c in asked), "the reasons stand in there"


def test_variables_of_predictions_are_unique():
    for path in SOURCES:
        names = [variable for variable, *_ in predictions(path)]
        assert len(names) == len(set(names))


def test_at_most_three_exceptions():
    questions = {question for path in SOURCES for _, question, *_ in predictions(path)}
    assert len(EXCEPTIONS) <= 3 and questions >= EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("key", "text", "found"),
    [
        ("0.33", "it gets 0.33 of it", True),
        ("0.33", "it gets 0.3302", False),
        ("the output", "W_V moves **the output**.", True),
        ("-3", "it is −3.", True),
        ("8", "8.5 or 18", False),
    ],
)
def test_a_key_is_found_as_a_word_of_its_own(key, text, found):
    assert gives_away(key, text) is found
