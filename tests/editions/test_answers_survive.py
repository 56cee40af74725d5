"""Exercises answered in an earlier version of the course still pass after the update."""

import ast

import pytest
from support import COURSE, NOTEBOOKS

from attnlab.editions import notebooks
from attnlab.editions.copies import LearnersCopy, make

EARLIER = "226d1ca"


def check_in(tree):
    """The statement of a cell that is the check of an exercise."""
    (call,) = [node for node in tree.body if ast.unparse(node).startswith("checks.")]
    return call


def answered(exercise, solution):
    """What a learner might have written: the solution below what the exercise gives."""
    (asked, own), (given, solved) = (without_check(cell) for cell in (exercise, solution))
    pairs = zip(asked.value.args, given.value.args, strict=True)
    results = [f"{ast.unparse(mine)} = {ast.unparse(theirs)}" for mine, theirs in pairs]
    return "\n".join([*own, *solved, *results, "", ast.unparse(asked)])


def without_check(cell):
    """The check in a cell, and the lines of the cell without it."""
    check, lines = check_in(ast.parse(cell["source"])), cell["source"].split("\n")
    return check, lines[: check.lineno - 1] + lines[check.end_lineno :]


def names(source):
    """The names that a cell defines and those it reads."""
    nodes = list(ast.walk(ast.parse(source)))
    defined = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    defined |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    aliases = [n for n in nodes if isinstance(n, ast.alias)]
    defined |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
    return defined, {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def verdicts(cells):
    """The check of each exercise and what it says, when the cells that they need have run."""
    needed, wanted = [], set()
    for cell in reversed([cell for cell in cells if cell["cell_type"] == "code"]):
        defined, read = names(cell["source"])
        is_exercise = "exercise" in notebooks.tags(cell)
        skipped = notebooks.tags(cell) & {"solution", "explorer"}
        if is_exercise or (defined & wanted and not skipped):
            needed.insert(0, cell)
            wanted = wanted - defined | read
    namespace, found = {}, []
    for cell in needed:
        tree = ast.parse(cell["source"])
        if "exercise" in notebooks.tags(cell):
            call = check_in(tree)
            tree.body.remove(call)
            exec(compile(tree, cell["id"], "exec"), namespace)
            found.append((ast.unparse(call.value.func), eval(ast.unparse(call), namespace)))
        else:
            exec(compile(tree, cell["id"], "exec"), namespace)
    return found


@pytest.mark.filterwarnings("default")  # an old cell may call what has another name by now
def test_exercises_answered_before_an_update_still_pass_after_it(tmp_path, git_show, figure):
    before = tmp_path / "before"
    before.mkdir()
    for path in NOTEBOOKS:
        (before / path.name).write_bytes(git_show(EARLIER, f"course/{path.name}"))
    learner = LearnersCopy(tmp_path / "mine")
    learner.update(make(before, notebooks.learners))
    answers = {}
    for path in NOTEBOOKS:
        file = learner.folder / path.name
        notebook = notebooks.parse(file.read_bytes())
        tagged = {
            tag: [cell for cell in notebook["cells"] if tag in notebooks.tags(cell)]
            for tag in ("exercise", "solution")
        }
        for exercise, solution in zip(*tagged.values(), strict=True):
            exercise["source"] = answered(exercise, solution)
        answers[path.name] = {
            ast.unparse(check_in(ast.parse(cell["source"])).value.func): cell["source"]
            for cell in tagged["exercise"]
        }
        file.write_bytes(notebooks.serialize(notebook))

    learner.update(make(COURSE, notebooks.learners))
    passed, failed = 0, []
    for name, given in answers.items():
        cells = notebooks.parse((learner.folder / name).read_bytes())["cells"]
        there = [cell["source"] for cell in cells]
        assert [answer for answer in given.values() if answer not in there] == []
        found = dict(verdicts(cells))  # with what is new since then, and not answered
        assert found.keys() >= given.keys()
        failed += [f"{name}: {found[check]!r}" for check in given if not found[check].passed]
        passed += sum(found[check].passed for check in given)
    assert failed == []
    figure(f"update | {passed} exercises answered at {EARLIER} | all checks pass after it | all")
