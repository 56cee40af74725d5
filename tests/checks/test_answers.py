"""Every check meets its bank of answers, and mutants of its own solution made by machine."""

import ast
import contextlib
import copy
import inspect
from pathlib import Path

import jupytext
import nbformat
import pytest
import torch
from answers import bank
from support import ROOT

from attnlab import checks
from attnlab.checks import guard, judging
from attnlab.checks.judging import UNDONE

BANK = bank()

SOURCES = sorted((ROOT / "course").glob("0*.py"))
NOTEBOOKS = [source.with_suffix(".ipynb") for source in SOURCES]
RIGHT = [(name, i) for name in BANK for i in range(len(BANK[name].right))]
WRONG = [(name, i) for name in BANK for i in range(len(BANK[name].wrong))]


def arguments(name, answer):
    """What the check of that name is called with."""
    several = len(inspect.signature(getattr(checks, name)).parameters) > 1
    return answer if several else (answer,)


def verdict_on(name, answer):
    return getattr(checks, name)(*arguments(name, answer))


# --- The bank -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "i"), RIGHT, ids=lambda x: str(x))
def test_a_right_answer_is_accepted_in_any_form(name, i):
    verdict = verdict_on(name, BANK[name].right[i])
    assert verdict.passed, verdict
    assert verdict.message.startswith("Right")


@pytest.mark.parametrize(("name", "i"), WRONG, ids=lambda x: str(x))
def test_a_wrong_answer_hears_what_it_did(name, i):
    answer, message = BANK[name].wrong[i]
    verdict = verdict_on(name, answer)
    assert (verdict.passed, verdict.message) == (False, message)
    assert verdict_on(name, answer) == verdict  # the same every time


def test_the_bank_is_large(figure):
    judges = {"Verdict", "assert_close"}
    assert BANK.keys() == set(checks.__all__) - judges
    assert {name: len(a.right) for name, a in BANK.items() if len(a.right) < 4} == {}
    assert {name: len(a.wrong) for name, a in BANK.items() if len(a.wrong) < 6} == {}
    assert len(WRONG) >= 150
    said = {message for name in BANK for _, message in BANK[name].wrong}
    figure(
        f"{len(BANK)} exercises: {len(RIGHT)} right answers accepted, "
        f"{len(WRONG)} wrong ones rejected with the message meant for each ({len(said)} messages)"
    )


def sentences():
    """The sentences that stand beside a mistake in the checks."""
    for room in Path(checks.__file__).parent.glob("*.py"):
        for table in ast.walk(ast.parse(room.read_text(encoding="utf-8"))):
            for key in table.keys if isinstance(table, ast.Dict) else []:
                if isinstance(key, ast.Constant) and " " in str(key.value):
                    yield key.value


def test_every_sentence_about_a_mistake_is_earned_by_somebody():
    said = [message for name in BANK for _, message in BANK[name].wrong]
    unheard = [s for s in sentences() if not any(message.startswith(s) for message in said)]
    assert unheard == []


def test_sentences_are_short_and_name_one_thing():
    assert [s for s in sentences() if len(s) >= 90 or not s.endswith(".")] == []


# --- What the checks call an answer with -----------------------------------------------------


FUNCTIONS = [name for name in BANK if callable(BANK[name].right[0])]


def inputs_of(name):
    """The arguments of every call that a check makes."""
    seen = []

    def spy(*args):
        seen.append(args)
        return BANK[name].right[0](*args)

    assert getattr(checks, name)(spy), name
    return seen


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inputs_differ_in_size_and_are_the_same_every_time(name):
    inputs = inputs_of(name)
    assert len(inputs) >= 2
    sizes = [[n for x in args for n in (x.shape if torch.is_tensor(x) else [x])] for args in inputs]
    assert len({str(s) for s in sizes}) == len(sizes)
    assert repr(inputs_of(name)) == repr(inputs)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "cache_bytes"])  # numbers
def test_inputs_are_copies(name):
    def spoil(*args):
        result = BANK[name].right[0](*args)
        for x in args:
            if torch.is_tensor(x):
                x.zero_()
        return result

    assert not getattr(checks, name)(spoil)
    assert getattr(checks, name)(BANK[name].right[0])


# Mistakes that are not in the numbers, or that most inputs hide by their nature.
RARE = [
    "exp(1000) overflows",
    "One maximum for the whole table",
    "That hides nothing",
    "The numbers are right, but",
    "The words are right, but",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_no_input_does_a_mistake_look_right(name):
    inputs = inputs_of(name)
    wanted = [outcome(BANK[name].right[0], args) for args in inputs]
    hidden = []
    for answer, message in BANK[name].wrong:
        got = [outcome(answer, args) for args in inputs]
        looks_right = [i for i, pair in enumerate(zip(got, wanted, strict=True)) if alike(*pair)]
        if looks_right and not message.startswith(tuple(RARE)):
            hidden.append((message, looks_right))
    assert hidden == []


# --- Mutants of the solutions ----------------------------------------------------------------


def notebook_functions(path):
    """A notebook's imports and functions, and [(check, solution's syntax tree)].

    What the notebook computes between is left out: a solution needs only its arguments.
    """
    names, solutions, trees = {"__name__": "solutions"}, [], {}
    for cell in jupytext.read(path).cells:
        if cell.cell_type != "code":
            continue
        body = ast.parse(cell.source).body
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                trees[node.name] = node
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                with contextlib.suppress(NameError):  # a default that the notebook computes
                    run(node, names)
        if "solution" not in cell.metadata.get("tags", []):
            continue
        for node in ast.walk(ast.Module(body, [])):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("checks."):
                check = ast.unparse(node.func).removeprefix("checks.")
                solutions += [(check, trees.get(ast.unparse(part), part)) for part in node.args]
    return names, solutions


def run(node, names):
    tree = ast.fix_missing_locations(ast.Module([copy.deepcopy(node)], []))
    exec(compile(tree, "<solution>", "exec"), names)
    return names.get(getattr(node, "name", None))


SWAPS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.MatMult: [ast.Mult], ast.Pow: [ast.Mult], ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult],
    ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq],
}  # fmt: skip


def instead_of(node, parameters):
    """What a slip of the pen may put in a node's place, each with its kind."""
    match node:
        case ast.Constant(value=bool(x)):
            yield "flip", ast.Constant(not x)
        case ast.Constant(value=int(x)):
            for other in {x + 1, x - 1, -x} - {x}:
                yield "off by one", ast.Constant(other)
        case ast.Constant(value=float(x)):
            for other in {2 * x, x / 2, -x, 0.0} - {x}:
                yield "constant", ast.Constant(other)
        case ast.BinOp(left, op, right):
            for other in SWAPS.get(type(op), []):
                yield "operator", ast.BinOp(left, other(), right)
            yield "swap", ast.BinOp(right, op, left)
            yield "drop a term", left
            yield "drop a term", right
        case ast.Compare(left, [op], rest):
            for other in SWAPS.get(type(op), []):
                yield "comparison", ast.Compare(left, [other()], rest)
        case ast.UnaryOp(operand=operand):
            yield "drop a sign", operand
        case ast.Attribute(value=value, attr="T" | "mT"):
            yield "transpose", value
        case ast.Call(func, args, keywords):
            if isinstance(func, ast.Attribute):
                yield "drop a call", func.value
            elif len(args) == 1:
                yield "drop a call", args[0]
            for i in range(len(args) - 1):
                swapped = [*args[:i], args[i + 1], args[i], *args[i + 2 :]]
                yield "swap", ast.Call(func, swapped, keywords)
            for i in range(len(keywords)):
                yield "drop an option", ast.Call(func, args, keywords[:i] + keywords[i + 1 :])
            for i in range(len(args) if len(args) > 1 else 0):
                yield "drop an argument", ast.Call(func, args[:i] + args[i + 1 :], keywords)
        case ast.Name(id=name, ctx=ast.Load()) if name in parameters:
            for other in parameters:
                if other != name:
                    yield "another argument", ast.Name(other, ast.Load())
            yield "flip", ast.UnaryOp(ast.Invert(), node)
            yield "transpose", ast.Attribute(node, "mT", ast.Load())
        case ast.Tuple(elts=[first, second, *rest], ctx=ast.Load()):
            yield "swap", ast.Tuple([second, first, *rest], ast.Load())


class Put(ast.NodeTransformer):
    """Puts one node in the place of another, found by counting."""

    def __init__(self, at, new):
        self.at, self.new, self.count = at, new, -1

    def visit(self, node):
        self.count += 1
        return self.new if self.count == self.at else self.generic_visit(node)


def mutants(function):
    """Copies of a function's tree with one thing wrong, each with the kind of mistake."""
    head = copy.deepcopy(function)
    parameters = [a.arg for a in head.args.args]
    body = ast.Module(head.body, [])
    at, todo = -1, []

    def count(node):
        nonlocal at
        at += 1
        todo.append((at, node))
        for child in ast.iter_child_nodes(node):
            count(child)

    count(body)
    for place, node in todo:
        for kind, new in instead_of(node, parameters):
            yield kind, with_body(head, Put(place, new).visit(copy.deepcopy(body)).body)
    for i, line in enumerate(head.body):
        if not isinstance(line, ast.Return) and len(head.body) > 1:
            yield "drop a line", with_body(head, head.body[:i] + head.body[i + 1 :])
    for i in range(len(parameters)):
        for j in range(i):
            swapped = copy.deepcopy(head)
            swapped.args.args[i], swapped.args.args[j] = swapped.args.args[j], swapped.args.args[i]
            yield "swap", swapped


def with_body(function, body):
    changed = copy.deepcopy(function)
    changed.body = body
    return changed


def other_numbers(args, seed):
    """Arguments of the same kinds and sizes, with other numbers."""
    generator = torch.Generator().manual_seed(seed)

    def other(x):
        if not torch.is_tensor(x) or not x.is_floating_point():
            return x.clone() if torch.is_tensor(x) else x
        new = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype)
        return torch.where(x.isfinite(), new, x)

    return [other(x) for x in args]


def outcome(function, args):
    """What a function gives, as a list of float64 tensors, or the kind of its error."""
    try:
        result = function(*[x.clone() if torch.is_tensor(x) else x for x in args])
        parts = result if isinstance(result, tuple | list) else [result]
        return [torch.as_tensor(part).double() for part in parts]
    except Exception as error:
        return type(error)


def alike(a, b):
    if isinstance(a, type) or isinstance(b, type):
        return a == b
    if len(a) != len(b):  # what is asked for stands last
        a, b = a[-1:], b[-1:]
    return all(
        x.shape == y.shape and torch.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def bounded(work):
    try:
        return guard.bounded(work)
    except guard.Late:
        return TimeoutError


def survivors(check, function, names):
    """(kind, text) of mutants that change the result and pass; and how many changed it."""
    inputs = inputs_of(check)
    inputs += [other_numbers(args, seed) for seed, args in enumerate(inputs)]
    right = run(function, dict(names))
    wanted = [outcome(right, args) for args in inputs]
    passed, changed, ran, texts = [], 0, 0, {ast.unparse(function)}
    for kind, tree in mutants(function):
        text = ast.unparse(tree)
        if text in texts:
            continue
        texts.add(text)
        try:
            mutant = run(tree, dict(names))
        except (SyntaxError, ValueError, TypeError):  # such as an assignment to a number
            continue
        got = bounded(lambda f=mutant: [outcome(f, args) for args in inputs])
        if got is not TimeoutError and all(map(alike, got, wanted)):
            continue
        changed += 1
        ran += got is not TimeoutError and not all(isinstance(x, type) for x in got)
        verdict = getattr(checks, check)(mutant)
        assert not verdict.message.startswith(UNDONE + "put"), text
        if verdict:
            passed.append((kind, text))
    return passed, changed, ran


COUNTS = {}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_mutant_that_changes_the_result_is_rejected(path, monkeypatch):
    monkeypatch.setattr(guard, "LIMIT", 0.5)
    names, solutions = notebook_functions(path)
    functions = [(check, tree) for check, tree in solutions if isinstance(tree, ast.FunctionDef)]
    assert functions
    for check, tree in functions:
        passed, changed, ran = survivors(check, tree, names)
        assert passed == [], check
        assert changed >= 3, check
        COUNTS[check] = changed, ran


def test_a_check_that_looks_at_shapes_only_lets_mutants_pass(monkeypatch):
    monkeypatch.setattr(judging, "_close", lambda x, y, rtol: torch.ones_like(x).bool())
    names, solutions = notebook_functions(SOURCES[1])
    passed, *_ = survivors("scores", dict(solutions)["scores"], names)
    assert {"another argument", "swap"} <= {kind for kind, _ in passed}


def is_number(x):
    return isinstance(x, int | float) and not isinstance(x, bool)


def numbers_of(name):
    """The numbers of an exercise whose answer is one or several numbers, else nothing."""
    answer = BANK[name].right[0]
    parts = answer if isinstance(answer, tuple) else (answer,)
    return parts if all(map(is_number, parts)) else ()


NUMBERS = [name for name in BANK if numbers_of(name)]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_other_number_is_rejected(name):
    parts = numbers_of(name)
    for i, x in enumerate(parts):
        for other in {x + 1, x - 1, 2 * x, x / 2, x**2, -x, 1.1 * x, 0} - {x}:
            changed = (*parts[:i], other, *parts[i + 1 :])
            answer = changed if isinstance(BANK[name].right[0], tuple) else other
            assert not verdict_on(name, answer), answer


def test_mutants_are_many(figure):
    if not COUNTS:
        pytest.skip("counts what the test before has found")
    changed, ran = (sum(column) for column in zip(*COUNTS.values(), strict=True))
    figure(
        f"{changed} mutants of {len(COUNTS)} solutions change the result "
        f"({ran} of them without an error): all are rejected"
    )
    assert changed > 300 or len(COUNTS) < len(FUNCTIONS)


def test_a_mutant_that_looks_right_would_be_found():
    def careless(fn):  # one input, on which two things coincide
        result = outcome(fn, [torch.eye(2)])
        return alike(result, [torch.eye(2).double()])

    tree = ast.parse("def f(x):\n    return x @ x.T").body[0]
    kinds = [kind for kind, mutant in mutants(tree) if careless(run(mutant, {}))]
    assert "transpose" in kinds and "drop a term" in kinds


# --- The exercises of the notebooks ----------------------------------------------------------


def checked(path, tag):
    """(check, cell) of the cells with that tag."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and tag in cell.metadata.get("tags", []):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("checks."):
                    found.append((ast.unparse(node.func).removeprefix("checks."), cell))
    return found


def result(cell):
    """What the last line of a cell shows."""
    return [o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result"][0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_run_all_leaves_every_exercise_undone_and_every_solution_right(path):
    asked, solved = checked(path, "exercise"), checked(path, "solution")
    assert [name for name, _ in asked] == [name for name, _ in solved]
    assert {result(cell)[:12] for _, cell in asked} == {"… Not done y"}
    assert {result(cell)[:7] for _, cell in solved} == {"✓ Right"}
    core = [name for name, cell in asked if "further" not in cell.metadata.tags]
    assert len(asked) >= 5 and len(core) >= 2
    progress = nbformat.read(path, as_version=4).cells[-1]
    assert "progress" in progress.metadata.tags
    title, *lines = result(progress).split("\n")
    assert title == f"Notebook {path.stem[:2]}: 0 of {len(asked)} exercises done."
    number = int(path.stem[:2])
    assert lines == [f"… {number}.{n} {name}" for n, (name, _) in enumerate(asked, 1)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_exercise_is_asked_and_has_three_hints(path):
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    titles = [cell.metadata.title for _, cell in checked(path, "exercise")]
    for title, solution in zip(titles, checked(path, "solution"), strict=True):
        task = prose.partition(f"**{title}")[2].partition("**Exercise")[0]
        assert len(task) > 100, title
        assert "Hint 1: nudge" in task and "Hint 2: method" in task, title
        assert solution[1].metadata.title == f"{title}, a solution"
        assert solution[1].metadata.jupyter.source_hidden


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_three_predictions_wait_for_a_vote_and_are_answered_in_a_later_cell(path):
    asked, answered = {}, {}
    for n, cell in enumerate(nbformat.read(path, as_version=4).cells):
        for node in ast.walk(ast.parse(cell.source)) if cell.cell_type == "code" else []:
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("predict("):
                asked[node.targets[0].id] = n
                assert cell.source.rstrip().endswith(f"\n{node.targets[0].id}")  # it is shown
                reasons = any(isinstance(part, ast.Dict) for part in ast.walk(node))
                assert not reasons or cell.metadata.jupyter.source_hidden  # they would tell
            elif isinstance(node, ast.Attribute) and node.attr == "answer":
                answered[ast.unparse(node.value)] = n
    assert len(asked) >= 3
    assert asked.keys() == answered.keys()
    assert all(asked[vote] < answered[vote] for vote in asked)


def test_every_check_belongs_to_one_notebook():
    asked = [name for path in NOTEBOOKS for name, _ in checked(path, "exercise")]
    assert sorted(asked) == sorted(BANK)
