"""The teacher's page, the worksheet, the goals for a class: numbers and names are the course's."""

import json
import math
import re

import pytest
from support import NOTEBOOKS, ROOT

pytest.importorskip("segno")
import chapters  # noqa: E402
import play  # noqa: E402
import printed  # noqa: E402
import teaching  # noqa: E402

from attnlab import checks  # noqa: E402
from attnlab.step import AttentionStep  # noqa: E402

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
EXERCISES = [one for path in NOTEBOOKS for one in checks.exercises(path.stem[:2])]
each_goal = pytest.mark.parametrize("goal", play.GOALS, ids=lambda goal: goal.name)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


# --- Plans ----------------------------------------------------------------------------------------


@each
def test_a_plan_names_what_the_notebook_has(path):
    number = path.stem[:2]
    assert teaching.unknown(number, load(path)) == []
    assert set(teaching.LESSONS[number]) == {"45", "90"}
    for plan in teaching.LESSONS[number].values():
        assert len(set(plan["votes"])) == 3


def test_a_name_that_is_gone_is_found_out():
    notebook = load(NOTEBOOKS[3])
    for cell in notebook["cells"]:
        cell["metadata"].pop("title", None)
    missing = teaching.unknown("04", notebook)
    assert "45: Explorer: teach bank to look for money" in missing


@each
def test_every_section_of_the_core_has_its_minutes(path):
    table = teaching.minutes(path.with_suffix(".py"))
    totals = [int(row.split("|")[3]) for row in table.splitlines()[2:]]
    assert totals == sorted(totals) and 20 < totals[-1] < 100


@each
def test_every_vote_has_one_right_choice(path):
    notebook = load(path)
    asked = chapters.votes(notebook)
    revealed = [
        chapters.revealed(cell, asked)
        for cell in notebook["cells"]
        if "reveal" in chapters.tags(cell)
    ]
    assert sorted(found.question for found in revealed) == sorted(asked)
    for found in revealed:
        choices = asked[found.question]
        assert found.choices.count('class="right"') == (1 if choices else 0), found.question
        assert len(choices) <= 4, "the sheet of letters ends at D"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.number)
def test_every_exercise_catches_a_mistake(exercise):
    assert len(teaching.sentences(exercise)) >= 2


# --- Goals ----------------------------------------------------------------------------------------


@each_goal
def test_a_goal_is_reached_by_its_answer_and_not_before(goal):
    step = AttentionStep(**goal.traits)
    assert not step.reached
    for name, value in goal.answer.items():
        assert name in step.show, "a knob that is not on the page"
        setattr(step, name, value)
    assert step.reached


def test_there_is_a_goal_of_each_of_three_notebooks():
    assert [goal.notebook for goal in play.GOALS] == sorted(goal.notebook for goal in play.GOALS)
    assert {goal.notebook for goal in play.GOALS} == {2, 3, 4}


# --- Paper ----------------------------------------------------------------------------------------


def tables(page):
    """Caption -> the boxes of a table, of a page for paper."""
    return {
        caption.split(" =")[0]: re.findall(r'<td class="box">([^<]*)</td>', body)
        for caption, body in re.findall(r"<caption>(.*?)</caption>(.*?)</table>", page)
    }


def test_the_worksheet_and_its_key_differ_in_what_is_filled_in():
    sheet, key = (tables(printed.worksheet_page(key)) for key in (False, True))
    given = {"X", "W_Q", "W_K", "W_V"}
    assert set(sheet) == set(key) > given
    for name, boxes in key.items():
        assert len(boxes) == 4 and all(boxes)
        assert sheet[name] == (boxes if name in given else [""] * 4)


def test_the_key_is_what_somebody_works_out_with_a_pencil():
    key = tables(printed.worksheet_page(True))
    grids = {name: [float(x.replace("−∞", "-inf").replace("−", "-")) for x in boxes]
             for name, boxes in key.items()}  # fmt: skip

    def product(a, b):
        return [a[i] * b[j] + a[i + 1] * b[j + 2] for i in (0, 2) for j in (0, 1)]

    for name in "QKV":
        assert grids[name] == product(grids["X"], grids[f"W_{name}"])
    k = grids["K"]
    assert grids["scores"] == product(grids["Q"], [k[0], k[2], k[1], k[3]])
    assert grids["scaled"] == [round(x / 1.414, 2) for x in grids["scores"]]
    assert grids["masked"] == [grids["scaled"][0], -math.inf, *grids["scaled"][2:]]
    exps = [math.exp(x) for x in grids["masked"]]
    sums = [exps[0] + exps[1]] * 2 + [exps[2] + exps[3]] * 2
    weights = [round(e / total, 2) for e, total in zip(exps, sums, strict=True)]
    assert grids["attention weights"] == weights
    assert grids["output"] == pytest.approx(product(weights, grids["V"]), abs=0.005)


def test_the_answers_follow_from_the_numbers():
    first, second, third = printed.answers()
    assert first.startswith("money: 0.67 against 0.33.") and "0.33 for money" in first
    assert second.startswith("V and output.")
    assert "Its score is 0" in third


def test_a_qr_code_is_made_of_an_address_and_of_nothing_else():
    page = printed.qr_page("https://course.example")
    assert "https://course.example/play/" in page and "<svg" in page
    plain = printed.qr_page("")
    assert "<svg" not in plain and "make site SITE_URL=" in plain


def test_the_address_is_the_project_s():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "urls" not in project or set(project["urls"]) <= {"Site", "Repository", "Issues"}
