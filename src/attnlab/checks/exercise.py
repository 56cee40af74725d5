"""One exercise is one object, found by its name or its notebook."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnlab.checks import sandbox
from attnlab.checks.judging import Status, Verdict, Wrong, describe, not_yet, undone

Judge = Callable[..., Verdict | str]  # a str is a sentence about a mistake
Build = Callable[[], Judge]

REGISTRY: dict[str, "Exercise"] = {}


@dataclass(frozen=True)
class Exercise:
    """One exercise of a notebook; called with the learner's answers it gives a verdict.

    It never raises, whatever the answers do, except for Ctrl-C.

    Attributes:
        name: what it is called in ``attnlab.checks``.
        number: notebook and place in it, such as ``"1.1"``.
        variables: the names of the learner's variables, one for each answer.
        section: where to read on, such as ``"section 1"``; ends a sentence about a mistake.
        build: makes what judges the answers, such as a ``Comparison``; its docstring is the task.
    """

    name: str
    number: str
    variables: tuple[str, ...]
    section: str
    build: Build

    def __post_init__(self) -> None:
        kind = inspect.Parameter.POSITIONAL_ONLY
        signature = inspect.Signature([inspect.Parameter(x, kind) for x in self.variables])
        self.__dict__.update(__doc__=inspect.getdoc(self.build), __signature__=signature)

    def __repr__(self) -> str:
        return f"<Exercise {self.number}: {self.name}({', '.join(self.variables)})>"

    def __call__(self, *answers: Any) -> Verdict:
        """The verdict on the answers."""
        try:
            return sandbox.run(lambda: self._verdict(answers))
        except sandbox.Timeout as late:
            return Verdict(Status.LATE, str(late))

    def _verdict(self, answers: tuple) -> Verdict:
        try:
            inspect.signature(self).bind(*answers)
            if undone(answers):
                return not_yet("put your answer in place of the dots and run again.")
            found = self.build()(*answers)
        except KeyboardInterrupt:
            raise
        except Wrong as problem:
            return Verdict(Status.WRONG, str(problem))
        except BaseException as error:
            return Verdict(Status.WRONG, f"Your answer could not be checked: {describe(error)}.")
        if isinstance(found, str):
            return Verdict(Status.WRONG, f"{found} See {self.section}.")
        return found


def exercise(number: str, *variables: str, section: str) -> Callable[[Build], Exercise]:
    """Decorator: registers an exercise with the name and the docstring of the function.

    The function takes no arguments and returns what is called with the answers.
    """

    def register(build: Build) -> Exercise:
        REGISTRY[build.__name__] = Exercise(build.__name__, number, variables, section, build)
        return REGISTRY[build.__name__]

    return register


def exercises(notebook: str) -> tuple[Exercise, ...]:
    """The exercises of a notebook, in its order.

    Raises:
        ValueError: if no exercise belongs to that notebook.

    >>> exercises("01")[:2]
    (<Exercise 1.1: lookup(my_lookup)>, <Exercise 1.2: cosine(my_cosine)>)
    """
    numbered = {tuple(map(int, found.number.split("."))): found for found in REGISTRY.values()}
    chosen = [numbered[place] for place in sorted(numbered) if f"{place[0]:02}" == notebook]
    if not chosen:
        raise ValueError(f"notebook must be one such as '01' but is {notebook!r}")
    return tuple(chosen)
