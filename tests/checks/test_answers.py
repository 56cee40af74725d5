"""Every check meets its bank of answers, and mutants of its own solution made by machine."""

import ast
import contextlib
import copy

import jupytext
import pytest
import torch
from answers import bank
from support import SOURCES

from attnlab import checks
from attnlab.checks import Status, judging, sandbox

BANK = bank()
EXERCISES = {e.name: e for path in SOURCES for e in checks.exercises(path.stem[:2])}
CLASSES = [name for name in BANK if isinstance(BANK[name].right[0], type)]
FUNCTIONS = [name for name in BANK if callable(BANK[name].right[0]) and name not in CLASSES]


def verdict_on(name, answer):
    exercise = EXERCISES[name]
    return exercise(*answer) if len(exercise.variables) > 1 else exercise(answer)


# --- The bank -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BANK)
def test_a_right_answer_is_accepted_in_any_form(name):
    verdicts = [verdict_on(name, answer) for answer in BANK[name].right]
    assert [v for v in verdicts if v.status is not Status.DONE] == []
    assert {verdict.message[:5] for verdict in verdicts} == {"Right"}


@pytest.mark.parametrize("name", BANK)
def test_a_wrong_answer_is_rejected_with_the_message_meant_for_it(name):
    for answer, message in BANK[name].wrong:
        verdict = verdict_on(name, answer)
        assert (verdict.status, verdict.message) == (Status.WRONG, message)
        assert verdict_on(name, answer) == verdict  # the same every time


def test_the_bank_is_large(figure):
    assert BANK.keys() == EXERCISES.keys()
    assert {name: len(a.right) for name, a in BANK.items() if len(a.right) < 4} == {}
    assert {name: len(a.wrong) for name, a in BANK.items() if len(a.wrong) < 6} == {}
    right = [answer for answers in BANK.values() for answer in answers.right]
    wrong = [pair for answers in BANK.values() for pair in answers.wrong]
    assert len(right) >= 200 and len(wrong) >= 500
    figure(
        f"{len(BANK)} exercises: {len(right)} right answers accepted, {len(wrong)} wrong ones "
        f"rejected with the message meant for each ({len({m for _, m in wrong})} messages)"
    )


def sentences(value):
    """The sentences about mistakes in whatever an exercise's judge is made of."""
    match value:
        case judging.Comparison(mistakes=mistakes):
            yield from mistakes
        case dict():
            yield from (key for key in value if isinstance(key, str) and " " in key)
        case tuple() | list():
            for part in value:
                yield from sentences(part)
        case _ if callable(value):
            for cell in getattr(value, "__closure__", None) or ():
                yield from sentences(cell.cell_contents)


def test_each_sentence_about_a_mistake_is_short_and_said_to_somebody():
    heard = [message for answers in BANK.values() for _, message in answers.wrong]
    said = {s for exercise in EXERCISES.values() for s in sentences(exercise.build())}
    assert len(said) > 250
    assert [s for s in said if len(s) >= 90 or not s.endswith(".")] == []
    assert [s for s in said if not any(message.startswith(s) for message in heard)] == []


# --- What the checks call an answer with -----------------------------------------------------


def inputs_of(name):
    """The arguments of every call that a check makes."""
    if name in CLASSES:  # the sizes it is built with, then the arguments of forward
        return EXERCISES[name].build().inputs
    seen = []

    def spy(*args):
        seen.append(args)
        return BANK[name].right[0](*args)

    assert EXERCISES[name](spy), name
    return seen


def test_inputs_differ_in_size_and_are_the_same_every_time():
    for name in FUNCTIONS:
        inputs = inputs_of(name)
        sizes = {str([getattr(x, "shape", x) for x in args]) for args in inputs}
        assert len(sizes) == len(inputs) >= 2, name
        assert repr(inputs_of(name)) == repr(inputs), name


def test_inputs_are_copies():
    for name in FUNCTIONS:

        def overwrite(*args, name=name):
            result = BANK[name].right[0](*args)
            for x in args:
                if torch.is_tensor(x):
                    x.zero_()
            return result

        if name != "cache_bytes":  # which takes numbers
            assert not EXERCISES[name](overwrite), name
        assert EXERCISES[name](BANK[name].right[0]), name


# Mistakes that are not in the numbers, or that most inputs hide by their nature.
RARE = (
    "exp(1000) overflows",
    "One maximum for the whole table",
    "That hides nothing",
    "The numbers are right, but",
    "The words are right, but",
    "The output is right, but",
    "The logits are right, but",
    "A width that the heads do not divide",
    "MyMultiHeadAttention(14, 4) raised",
    "In MyBlock(12, 3), mlp_norm is not learned",
    # Without a mask, or with a causal one:
    "The mask is not",
    "True means may attend",
    "You masked after the softmax",
    "You added a causal mask",
)


def test_on_no_input_does_a_mistake_look_right():
    for name in [*FUNCTIONS, *CLASSES]:
        inputs = inputs_of(name)
        wanted = [outcome(calling(name, BANK[name].right[0]), args) for args in inputs]
        for answer, message in BANK[name].wrong:
            got = [outcome(calling(name, answer), args) for args in inputs]
            looks_right = [
                i for i, pair in enumerate(zip(got, wanted, strict=True)) if alike(*pair)
            ]
            assert looks_right == [] or message.startswith(RARE), (name, message)


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
            lent = isinstance(node, ast.Assign) and "checks.stand_in(" in ast.unparse(node)
            defining = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
            if lent or isinstance(node, defining):
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
    """Copies of the tree of a function or a class with one thing wrong, each with what it is."""
    if isinstance(function, ast.ClassDef):
        for i, method in enumerate(function.body):
            for kind, mutant in mutants(method) if isinstance(method, ast.FunctionDef) else ():
                yield (
                    kind,
                    with_body(function, [*function.body[:i], mutant, *function.body[i + 1 :]]),
                )
        return
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


def calling(check, answer):
    """A function of the check's inputs: a class is built, and its forward called."""
    return EXERCISES[check].build().calling(answer) if check in CLASSES else answer


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
        return sandbox.run(work)
    except sandbox.Timeout:
        return TimeoutError


def survivors(check, function, names):
    """(kind, text) of mutants that change the result and pass; and how many changed it."""
    inputs = inputs_of(check)
    inputs += [other_numbers(args, seed) for seed, args in enumerate(inputs)]
    right = calling(check, run(function, dict(names)))
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
        called = calling(check, mutant)
        got = bounded(lambda f=called: [outcome(f, args) for args in inputs])
        if got is not TimeoutError and all(map(alike, got, wanted)):
            continue
        changed += 1
        ran += got is not TimeoutError and not all(isinstance(x, type) for x in got)
        verdict = EXERCISES[check](mutant)
        if verdict:
            passed.append((kind, text))
    return passed, changed, ran


def test_every_mutant_that_changes_the_result_is_rejected(figure):
    counts = {}
    for path in SOURCES:
        names, solutions = notebook_functions(path)
        for check, tree in solutions:
            if isinstance(tree, ast.FunctionDef | ast.ClassDef):
                passed, changed, ran = survivors(check, tree, names)
                assert passed == [], check
                assert changed >= 3, check
                counts[check] = changed, ran
    assert counts.keys() == {*FUNCTIONS, *CLASSES}
    changed, ran = (sum(column) for column in zip(*counts.values(), strict=True))
    assert changed > 1000
    figure(
        f"{changed} mutants of {len(counts)} solutions change the result "
        f"({ran} of them without an error): all are rejected"
    )


def test_a_check_that_looks_at_shapes_only_lets_mutants_pass(monkeypatch):
    monkeypatch.setattr(judging, "_close", lambda x, y, rtol: torch.ones_like(x).bool())
    names, solutions = notebook_functions(SOURCES[1])
    passed, *_ = survivors("scores", dict(solutions)["scores"], names)
    assert {"another argument", "swap"} <= {kind for kind, _ in passed}


def test_a_mutant_that_looks_right_would_be_found():
    def careless(fn):  # one input, on which two things coincide
        result = outcome(fn, [torch.eye(2)])
        return alike(result, [torch.eye(2).double()])

    tree = ast.parse("def f(x):\n    return x @ x.T").body[0]
    kinds = [kind for kind, mutant in mutants(tree) if careless(run(mutant, {}))]
    assert "transpose" in kinds and "drop a term" in kinds


def numbers_of(name):
    """The numbers of an exercise whose answer is one or several numbers, else nothing."""
    answer = BANK[name].right[0]
    parts = answer if isinstance(answer, tuple) else (answer,)
    return parts if all(type(x) in (int, float) for x in parts) else ()


@pytest.mark.parametrize("name", [name for name in BANK if numbers_of(name)])
def test_every_other_number_is_rejected(name):
    parts = numbers_of(name)
    for i, x in enumerate(parts):
        for other in {x + 1, x - 1, 2 * x, x / 2, x**2, -x, 1.1 * x, 0} - {x}:
            assert not EXERCISES[name](*parts[:i], other, *parts[i + 1 :]), (i, other)
