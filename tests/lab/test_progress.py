"""Progress asks the exercises it is handed, and reads the status of their verdicts."""

from dataclasses import dataclass
from enum import Enum

import pytest

from attnlab.lab.progress import progress

WIDGET = "application/vnd.jupyter.widget-view+json"


class Status(str, Enum):  # noqa: UP042  as the checks have it: equal to its text
    DONE, WRONG, NOT_YET, LATE = "done", "wrong", "not yet", "late"


@dataclass(frozen=True)
class Verdict:
    status: Status
    message: str


@dataclass(frozen=True)
class Exercise:
    """Done if what is answered adds up to 5."""

    number: str
    name: str
    variables: tuple[str, ...]

    def __call__(self, *answers):
        total = sum(answers)
        if total == 99:
            return Verdict(Status.LATE, "5 seconds were not enough.")
        if total == 0:
            return Verdict(Status.NOT_YET, "Replace the dots inside.")
        right = total == 5
        return Verdict(Status.DONE if right else Status.WRONG, f"✓ <b>{total}</b> & more")


EXERCISES = (
    Exercise("3.1", "one", ("a",)),
    Exercise("3.2", "several", ("b", "c")),
    Exercise("3.3", "three", ("d",)),
)


def page(shown):
    """Its screen and its button, once it is displayed."""
    assert WIDGET in shown._repr_mimebundle_()
    return shown._page.children


@pytest.mark.parametrize("namespace", [
    {},
    {"a": ..., "b": ..., "c": ..., "d": ...},
    {"b": 5, "c": ...},
    {"a": 0, "d": 0},
], ids=["missing", "dots", "one of two", "by its verdict"])  # fmt: skip
def test_what_is_missing_or_dots_is_not_done_yet(namespace):
    shown = progress(EXERCISES, namespace)
    text = "Notebook 03: 0 of 3 exercises done.\n… 3.1 one\n… 3.2 several\n… 3.3 three"
    assert repr(shown) == shown._repr_mimebundle_()["text/plain"] == text


def test_done_wrong_and_late_stand_side_by_side_and_no_message_is_read():
    shown = progress(EXERCISES, {"a": 7, "b": 2, "c": 3, "d": 99})
    assert repr(shown).split("\n") == [
        "Notebook 03: 1 of 3 exercises done.",
        "✗ 3.1 one: ✓ <b>7</b> & more",
        "✓ 3.2 several",
        "✗ 3.3 three: 5 seconds were not enough.",
    ]
    assert "✓ &lt;b&gt;7&lt;/b&gt; &amp; more" in page(shown)[0].status


def test_check_again_looks_at_the_answers_anew():
    namespace = {"a": 7}
    shown = progress(EXERCISES, namespace)
    screen, button = page(shown)
    assert button.description == "Check again" and "0 of 3" in screen.status
    namespace.update(a=5, d=5)
    button.click()
    assert "2 of 3" in screen.status and "✓ 3.3 three" in screen.status
    assert repr(shown).startswith("Notebook 03: 2 of 3")


def test_an_exercise_that_fails_after_a_click_says_so_and_the_next_click_recovers():
    namespace = {"a": 5}
    shown = progress(EXERCISES, namespace)
    screen, button = page(shown)
    namespace["a"] = "<b>"
    button.click()
    assert "TypeError: unsupported operand" in screen.alert and "1 of 3" in screen.status
    namespace["a"] = 5
    button.click()
    assert screen.alert == "" and "1 of 3" in screen.status


def test_without_exercises_there_is_nothing_to_show(refuses):
    refuses(ValueError, "there are no exercises to show", progress, (), {})
