"""The minutes that a notebook promises are those of the committed model of reading time."""

import jupytext
import pytest
from support import ROOT, SOURCES, each_source, load

reading_time = load(ROOT / "tests/course/reading_time.py")

LONGEST_CORE, LONGEST_STRETCH, FIRST_THING_TO_DO = 60, 25, 3


@each_source
def test_header_and_stopping_points_say_the_computed_minutes(source, figure):
    sections = reading_time.sections(source)
    total = sections[-1].total
    assert abs(reading_time.promised(source) - total) <= 3, f"the model says {total:.0f}"
    stops = [stop for section in sections for stop in section.stops]
    wrong = [
        (promised, round(minutes)) for promised, minutes in stops if abs(promised - minutes) > 2
    ]
    assert not wrong, f"promised and computed: {wrong}"
    figure(f"{source.stem}: {total:.0f} minutes, stops at {[round(m) for _, m in stops]}")


@each_source
def test_a_core_and_its_stretches_are_short_enough(source):
    sections = reading_time.sections(source)
    marks = [0.0, *(m for section in sections for _, m in section.stops), sections[-1].total]
    stretches = [round(b - a, 1) for a, b in zip(marks, marks[1:], strict=False)]
    assert len(marks) >= 4, "two stopping points at least"
    assert marks[-1] <= LONGEST_CORE and max(stretches) <= LONGEST_STRETCH, (marks[-1], stretches)


@each_source
def test_there_is_something_to_do_within_three_minutes(source):
    minutes = 0.0
    for cell in jupytext.read(source).cells:
        if cell.cell_type == "code" and "setup" not in cell.metadata.get("tags", []):
            break
        minutes += reading_time.NEW_TO_PYTORCH * reading_time.minutes_of(cell)
    assert minutes <= FIRST_THING_TO_DO


def test_what_is_folded_or_proves_takes_no_time_and_an_exercise_takes_its_solution(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "# %% [markdown]\n# **Takes** about 7 minutes\n#\n# " + "word " * 396 + "\n\n"
        '# %% a proof tags=["proof"]\nassert True\n\n'
        '# %% folded jupyter={"source_hidden": true}\nx = 1\n\n'
        '# %% task tags=["exercise"]\nx = ...\n\n'
        '# %% answer tags=["solution"]\nx = 1\ny = 2\n',
        encoding="utf-8",
    )
    (section,) = reading_time.sections(path)
    assert reading_time.promised(path) == 7
    assert section.total == pytest.approx(1.3 * (400 / 200 + 2 + 2 * 0.5))
    assert len(SOURCES) == 6
