"""The editions: what a learner and a class get of the committed notebooks."""

import copy
import re

import nbformat
import pytest
from nbconvert.preprocessors import ClearOutputPreprocessor, TagRemovePreprocessor
from support import COURSE, NOTEBOOKS

from attnlab.editions import command, nbgrader, notebooks

COMMITTED = [notebooks.parse(path.read_bytes()) for path in NOTEBOOKS]
each_committed = pytest.mark.parametrize(
    "committed", COMMITTED, ids=lambda nb: nb["cells"][0]["id"]
)


@pytest.fixture
def committed_copy():
    return copy.deepcopy(COMMITTED[0])


def titles(notebook, tag=None):
    cells = [cell for cell in notebook["cells"] if tag is None or tag in notebooks.tags(cell)]
    return [cell["metadata"].get("title") for cell in cells]


@each_committed
def test_the_learners_edition_is_a_valid_plain_notebook(committed):
    before = copy.deepcopy(committed)
    edition = notebooks.learners(committed)
    assert committed == before, "the course's notebook was changed"
    nbformat.validate(edition)
    assert set(edition["metadata"]) == {"kernelspec", "language_info"}, "no pairing"
    assert edition["metadata"]["kernelspec"]["name"] == "python3"


@each_committed
def test_its_cells_are_those_that_nbconvert_makes(committed):
    node = nbformat.from_dict(committed)
    node, _ = TagRemovePreprocessor(remove_cell_tags={"proof"}).preprocess(node, {})
    node, _ = ClearOutputPreprocessor().preprocess(node, {})
    cells = notebooks.learners(committed)["cells"]
    assert [c | {"metadata": 0} for c in cells] == [c | {"metadata": 0} for c in node.cells]


def test_no_output_no_count_and_no_proof_is_handed_out(course):
    edition = notebooks.learners(course.read("01_a.ipynb"))
    assert "spoiler" not in str(edition)
    assert "A proof" in titles(course.read("01_a.ipynb")) and "A proof" not in titles(edition)
    assert {cell.get("execution_count") for cell in edition["cells"]} == {None}


@pytest.mark.parametrize("tag", ["setup", "predict", "reveal", "solution"])
def test_plumbing_and_what_answers_are_folded(course, tag):
    course.edit("01_a.ipynb", lambda cells: cells[3]["metadata"].update(tags=["further", tag]))
    (cell,) = [
        cell
        for cell in notebooks.learners(course.read("01_a.ipynb"))["cells"]
        if cell["metadata"].get("title") == "Rows"
    ]
    hidden = {"source_hidden": True} | ({"outputs_hidden": True} if tag == "solution" else {})
    assert cell["metadata"]["jupyter"] == hidden


def test_every_link_in_the_course_leads_to_another_notebook_of_the_copy():
    links = [
        link
        for notebook in COMMITTED
        for cell in notebook["cells"]
        for link in re.findall(r"\]\(([^)#\s]+)", cell["source"])
        if cell["cell_type"] == "markdown" and "://" not in link
    ]
    assert set(links) <= {path.name for path in NOTEBOOKS} and links


@each_committed
def test_a_class_gets_no_solutions_and_no_hints(committed):
    learners, edition = notebooks.learners(committed), notebooks.for_class(committed)
    nbformat.validate(edition)
    assert titles(learners, "solution") and not titles(edition, "solution")
    assert titles(learners, "exercise") == titles(edition, "exercise") != []
    prose = "\n".join(c["source"] for c in edition["cells"] if c["cell_type"] == "markdown")
    before = "\n".join(c["source"] for c in learners["cells"] if c["cell_type"] == "markdown")
    assert "<summary>Hint" in before and not re.search(r"Hint \d", prose)
    assert prose.count("<details>") == before.count("<details>") - before.count("<summary>Hint")
    assert prose.count("**Exercise ") == before.count("**Exercise ")
    assert prose.count("</details>") == prose.count("<details>")


def test_the_text_around_a_hint_stays(course):
    course.edit(
        "01_a.ipynb", lambda cells: cells[7].update(source=cells[7]["source"] + "\n\nGo on.")
    )
    edition = notebooks.for_class(course.read("01_a.ipynb"))
    assert "**Exercise 1.1.** Count them.\n\nGo on." in [c["source"] for c in edition["cells"]]


@each_committed
def test_nbgrader_gets_two_cells_an_exercise_and_the_class_its_edition(committed):
    edition, plain = nbgrader.for_nbgrader(committed), notebooks.for_class(committed)
    nbformat.validate(edition)
    marks = [c["metadata"]["nbgrader"] for c in edition["cells"] if "nbgrader" in c["metadata"]]
    exercises = titles(plain, "exercise")
    assert len(marks) == 2 * len(exercises) == len({mark["grade_id"] for mark in marks})
    assert sum(mark.get("points", 0) for mark in marks) == len(exercises)
    others = [c for c in edition["cells"] if "nbgrader" not in c["metadata"]]
    assert others == [c for c in plain["cells"] if "exercise" not in notebooks.tags(c)]


@pytest.mark.parametrize(
    ("source", "message"),
    [("x = 1", "does not end in its check"), ("checks.x", "does not end in its check")],
)
def test_an_exercise_that_nbgrader_could_not_grade_is_refused(committed_copy, source, message):
    for cell in committed_copy["cells"]:
        if "exercise" in notebooks.tags(cell):
            cell["source"] = source
    with pytest.raises(ValueError, match=message):
        nbgrader.for_nbgrader(committed_copy)


def test_an_exercise_without_a_solution_or_a_number_is_refused(committed_copy):
    without = {**committed_copy}
    without["cells"] = [c for c in committed_copy["cells"] if "solution" not in notebooks.tags(c)]
    with pytest.raises(ValueError, match=r"exercise 1\.1 has no solution"):
        nbgrader.for_nbgrader(without)
    for cell in committed_copy["cells"]:
        if "exercise" in notebooks.tags(cell):
            cell["metadata"]["title"] = "Try"
    with pytest.raises(ValueError, match="no number in the title 'Try'"):
        nbgrader.for_nbgrader(committed_copy)


def test_handing_out_for_nbgrader_writes_its_course(course, tmp_path, capsys):
    words = ["handout", str(tmp_path / "class"), "--for=nbgrader", f"--course={COURSE}"]
    assert command.main(words) == command.main(words) == 0
    assert "6 assignments for nbgrader are in" in capsys.readouterr().out
    files = {str(p.relative_to(tmp_path / "class")) for p in (tmp_path / "class").rglob("*.*")}
    assert files == {f"source/{p.stem}/{p.name}" for p in NOTEBOOKS} | {"nbgrader_config.py"}


def test_handing_out_twice_overwrites_nothing_that_was_changed(course, tmp_path, capsys):
    words = ["handout", str(tmp_path / "class"), f"--course={course.path}"]
    assert command.main(words) == command.main(words) == 0
    assert "3 notebooks without solutions and hints are in" in capsys.readouterr().out
    before = (tmp_path / "class/01_a.ipynb").read_bytes()
    (tmp_path / "class/02_b.ipynb").write_text("a teacher's notes", encoding="utf-8")
    course.add("01_a.ipynb", "Rows", "# new")
    assert command.main(words) == 1
    said = capsys.readouterr().err
    assert "01_a.ipynb is there already, and it is different." in said
    assert "Nothing was written." in said
    assert (tmp_path / "class/01_a.ipynb").read_bytes() == before
    assert (tmp_path / "class/02_b.ipynb").read_text(encoding="utf-8") == "a teacher's notes"


def test_in_a_clone_the_course_is_the_one_beside_the_package():
    assert command.default_course() == COURSE
