"""A number in the prose is one that the same notebook prints or asserts.

Bound are numbers with a decimal point or with three or more digits, and whole numbers that stand
alone in bold, as in **15**: that is how an author binds a small one.
"""

import ast
import copy
import re

import nbformat
import pytest
from support import NOTEBOOKS, code_cells, each_notebook, read

# Numbers that no computation could give, and why: the short list of exceptions.
PATTERNS = {
    r"(?i:\bexercises? \d\.\d\b)": "the name of an exercise",
    r"\b[Ss]ections? \d+(\.\d+)+": "a place in a paper",
    r"(et al\.|[A-Z]\w+) (19|20)\d\d\b": "the year of a paper, behind its author",
    r"\]\([^)]*\)": "the address of a link",
    r"<[^<>]*>": "a tag of HTML",
}
EXCEPTIONS = {}

NUMBER = re.compile(
    r"(?P<bold>\*\*)?(?P<sign>(?<![\w)\].])[-−])?"
    r"(?P<digits>(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
    r"(?P<power>e[-−+]?\d+)?(?P<end>\*\*)?(?![\w])"
)


def numbers(text):
    """(as written, value, decimals, whether it stands alone in bold) of every number."""
    for found in NUMBER.finditer(text):
        digits = found["digits"].replace(",", "")
        power = (found["power"] or "").replace("−", "-")
        value = float(digits + power) * (-1 if found["sign"] else 1)
        decimals = len(digits.partition(".")[2]) - int(power[1:] or 0)
        bold = bool(found["bold"] and found["end"])
        yield found[0].strip("*"), value, decimals, bold


def revealed(cell):
    """What a cell says of what there was to see: the second argument of ``reveal``."""
    calls = [
        node
        for node in ast.walk(ast.parse(cell.source if cell.cell_type == "code" else ""))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".reveal")
    ]
    texts = [part for call in calls for seen in call.args[1:] for part in ast.walk(seen)]
    return " ".join(
        part.value
        for part in texts
        if isinstance(part, ast.Constant) and part.value == f"{part.value}"
    )


def claims(notebook):
    """(as written, value, decimals) of the numbers in the prose that must be bound."""
    for cell in notebook.cells:
        if text := cell.source if cell.cell_type == "markdown" else revealed(cell):
            for pattern in PATTERNS:
                text = re.sub(pattern, " ", text)
            for written, value, decimals, bold in numbers(text):
                if bold or decimals > 0 or len(re.findall(r"\d", written)) >= 3:
                    yield written, value, decimals


def constants(tree):
    """The value of every expression that is made of numbers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp):
            try:
                value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
            except Exception:  # a name is in it
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield float(value)


def facts(notebook):
    """Every number that the notebook prints, and every number that it asserts."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            words = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            words = "" if revealed(cell) and "data" in output else words  # that is the claim
            yield from ((value, decimals) for _, value, decimals, _ in numbers(words))
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Assert):
                yield from ((value, 17) for value in constants(node))
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("assert_close"):
                yield from ((value, 17) for value in constants(node))


def borne_out(value, decimals, known):
    """Whether a fact says so, at least as exactly: 0.67 by 0.6698, but not by 0.7."""
    half = 0.5000001 * 10.0**-decimals
    return any(
        fact == value or (abs(fact - value) <= half and exact >= decimals) for fact, exact in known
    )


def unbound(notebook):
    """The claims that nothing in the notebook bears out."""
    known = list(facts(notebook))
    return [written for written, *number in claims(notebook) if not borne_out(*number, known)]


@each_notebook
def test_every_number_in_the_prose_is_printed_or_asserted(path):
    assert [n for n in unbound(read(path)) if n not in EXCEPTIONS.get(path.stem, {})] == []


def test_the_exceptions_are_few_and_needed():
    assert sum(map(len, EXCEPTIONS.values())) <= 12
    for path in NOTEBOOKS:
        assert set(EXCEPTIONS.get(path.stem, {})) <= set(unbound(read(path))), path.stem


# --- It would be noticed ---------------------------------------------------------------------


def test_how_many_are_bound_and_how_many_changes_are_noticed(figure):
    found = changed = noticed = 0
    for path in NOTEBOOKS:
        notebook = read(path)
        known = list(facts(notebook))
        missing = unbound(notebook)
        for written, value, decimals in claims(notebook):
            found += 1
            if written in missing:
                continue
            for step in (1, 2, 3, -1, -2):  # the last digit, changed
                changed += 1
                noticed += not borne_out(value + step * 10.0**-decimals, decimals, known)
    excepted = sum(map(len, EXCEPTIONS.values()))
    figure(
        f"{found} numbers in the prose: {found - excepted} are printed or asserted by their "
        f"notebook, {excepted} are exceptions; {noticed / changed:.0%} of {changed} changes of a "
        "last digit would be noticed"
    )
    assert noticed / changed > 0.5  # 0.5 instead of 0.4 may be true of something else


def small_notebook():
    prose = "*bank* gives **0.67** to *river*, of 2,048 numbers; **3** heads and 5 words."
    output = nbformat.v4.new_output("stream", text="weights tensor([0.6698, 0.3302])\n")
    return nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(prose),
            nbformat.v4.new_code_cell("print(w)", outputs=[output]),
            nbformat.v4.new_code_cell("assert n == 2 * 1024\nassert_close(heads, 3)"),
        ]
    )


def test_prose_that_is_true_is_accepted():
    assert unbound(small_notebook()) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.67", "0.66", ["0.66"]),
        ("0.67", "0.6699", ["0.6699"]),
        ("0.67", ".67", []),
        ("0.67", "−0.67", ["−0.67"]),
        ("2,048", "2,049", ["2,049"]),
        ("2,048", "2048", []),
        ("**3**", "**4**", ["4"]),
        ("**3**", "4", []),  # small whole numbers are bound where they are marked
        ("5 words", "5 words, as in Vaswani et al. 2017, section 3.2.1; exercise 3.1", []),
        ("5 words", "5 words in [a link](https://example.org/0.123)", []),
        ("5 words", "[1.5, 0]", ["1.5"]),
        ("5 words", "e^0.3302, f(0.3302)−0.6698", []),
        ("5 words", "x1.23 v1.2.3", []),  # no numbers but names
    ],
)
def test_a_changed_number_in_the_prose_is_noticed(old, new, said):
    notebook = small_notebook()
    notebook.cells[0].source = notebook.cells[0].source.replace(old, new)
    assert unbound(notebook) == said


@pytest.mark.parametrize(
    ("cell", "old", "new", "said"),
    [
        (1, "0.6698", "0.6749", []),  # it still rounds to what is written
        (1, "0.6698", "0.6751", ["0.67"]),
        (1, "0.6698", "0.7", ["0.67"]),
        (2, "1024", "512", ["2,048"]),
        (2, "3", "4", ["3"]),
        (2, "assert n ==", "n =", ["2,048"]),  # neither printed nor asserted
    ],
)
def test_a_changed_computation_is_noticed(cell, old, new, said):
    notebook = small_notebook()
    changed = notebook.cells[cell]
    changed.source = changed.source.replace(old, new)
    for output in changed.outputs:
        output.text = output.text.replace(old, new)
    assert unbound(notebook) == said


def test_other_outputs_make_the_prose_of_the_course_stale():
    stale = 0
    for notebook in map(read, NOTEBOOKS):
        silent = copy.deepcopy(notebook)
        for cell in code_cells(silent):
            cell.outputs = []
        stale += len(unbound(silent)) - len(unbound(notebook))
    assert stale > 20
