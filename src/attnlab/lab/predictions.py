"""What the learner says: predictions that wait for an answer, and the exercises done so far.

Nothing here prints, waits or changes in a notebook that runs without a person.
"""

import ast
import inspect
import json
import linecache
import math
import os
import sys
import textwrap
import types
import zlib
from collections.abc import Callable, Iterable
from fractions import Fraction
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import torch
from IPython.display import display
from torch import Tensor

from attnlab import checks
from attnlab.checks import Status, Verdict
from attnlab.lab.explorers import box

_votes: dict[tuple, Any] = {}  # question and options -> vote: Run All must not forget it


class _Shown:
    """Shows as a widget where there is a page for it, and as its ``repr`` elsewhere."""

    _page: widgets.Widget | None = None

    def _build(self) -> widgets.Widget:
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        if self._page is None:
            self._page = self._build()
        return {**self._page._repr_mimebundle_(**options), "text/plain": repr(self)}


# --- Predictions ----------------------------------------------------------------------------


class Prediction(_Shown):
    """A question that takes a vote and, when the answer is computed, says what is behind it."""

    def __init__(self, question: str, choices: dict[str, str] | None, near: float):
        self.question, self.choices, self.near = question, choices, near
        self._key = (question, *(choices or ()))
        self._truth: Any = None
        self._words: widgets.HTML | None = None

    @property
    def vote(self) -> Any:
        """What the learner said, if anything."""
        return _votes.get(self._key)

    @vote.setter
    def vote(self, value: Any) -> None:
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"the vote must be one of {list(self.choices)} but is {value!r}")
        _votes[self._key] = value
        if self._words is not None:
            late = self._truth is not None  # Run All came first: the answer is known already
            self._words.value = self._feedback() if late else ""

    def answer(self, truth: Any) -> None:
        """Say what the computation found; silent unless somebody has voted.

        Args:
            truth: one of the choices, or a number; best computed in the same cell.

        Raises:
            ValueError: if ``truth`` is none of the choices: the question has become stale.
            TypeError: if a number is asked for and ``truth`` is none.
        """
        if self.choices is not None:
            if truth not in self.choices:
                raise ValueError(f"the answer must be one of {list(self.choices)} but is {truth!r}")
        else:
            if isinstance(truth, Tensor):
                truth = truth.item()
            if isinstance(truth, bool) or not isinstance(truth, Real):
                raise TypeError(f"the answer must be a number, not {type(truth).__name__}")
        self._truth = truth
        if self.vote is not None:
            words = {"text/html": self._feedback(), "text/plain": self._sentence()[0]}
            # The mark lets the hook that cleans a saved notebook take it out again.
            display(words, raw=True, metadata={"attnlab": "vote"})

    def _sentence(self) -> tuple[str, bool]:
        vote, truth = self.vote, self._truth
        if self.choices is None:
            right = math.isclose(vote, truth, rel_tol=self.near, abs_tol=self.near / 10)
            end = "right" if right else "not this time"
            return f"You said {vote:.4g}, computed is {truth:.4g}: {end}.", right
        reason = f" {self.choices[vote]}" if self.choices[vote] else ""
        if vote == truth:
            return f"You said “{vote}”: right.{reason}", True
        return f"You said “{vote}”, it is “{truth}”.{reason}", False

    def _feedback(self) -> str:
        said, right = self._sentence()
        return box(escape(said), "good" if right else "bad")

    def __repr__(self) -> str:
        lines = ["[ a number ]"] if self.choices is None else [f"( ) {c}" for c in self.choices]
        return "\n".join([self.question, *lines])

    def _build(self) -> widgets.Widget:
        self._words = widgets.HTML()
        if self.choices is None:
            said = "" if self.vote is None else f"{self.vote:g}"
            field = widgets.Text(said, placeholder="a number, then Enter", continuous_update=False)
        else:
            # Not RadioButtons: the arrow keys that move between them belong to Lab's cells.
            field = widgets.ToggleButtons(
                options=list(self.choices), value=self.vote, style={"button_width": "initial"}
            )
        field.observe(lambda change: self._from_page(change["new"]), names="value")
        question = widgets.HTML(f"<b>Predict:</b> {escape(self.question)}")
        return widgets.VBox([question, field, self._words])

    def _from_page(self, value: Any) -> None:
        if self.choices is None:
            try:
                value = float(Fraction(value.strip().replace(",", ".").replace("−", "-")))
            except (ValueError, ZeroDivisionError, OverflowError):
                said = f"“{value}” is no number: write it as 0.5, 1/2 or -3."
                self._words.value = box(escape(said))
                return
        self.vote = value


def predict(
    question: str, choices: dict[str, str] | Iterable[str] | None = None, near: float = 0.05
) -> Prediction:
    """Ask before it is computed; ``answer``, in a later cell, says what is behind each choice.

    Args:
        question: one sentence with a definite answer.
        choices: each with the reason why somebody would say so, shown to who chose it (may be
            empty). Without choices, a number is asked for.
        near: how far off, relatively, a number still counts as right.

    >>> vote = predict("What is 2 + 2?", {"4": "", "22": "Those are letters, not numbers."})
    >>> vote
    What is 2 + 2?
    ( ) 4
    ( ) 22
    >>> vote.answer(str(2 + 2))  # nobody voted, so nobody hears anything
    """
    if choices is not None:
        choices = dict(choices) if isinstance(choices, dict) else dict.fromkeys(choices, "")
        if len(choices) < 2:
            raise ValueError(f"a prediction needs two choices at least but has {len(choices)}")
    return Prediction(question, choices, near)


# --- Progress -------------------------------------------------------------------------------


class _Unsaved(Exception):
    """Why an answer cannot be kept, in words."""


class Progress(_Shown):
    """The exercises of one notebook, checked now; their answers can be saved and loaded again.

    The answers go as plain JSON into a file beside the notebook. Loading defines them again, and
    so runs what the file says, as running the notebook would.

    Attributes:
        verdicts: check's name -> its verdict.
        file: where the answers of this notebook are kept.
    """

    def __init__(self, notebook: str, answers: dict[str, Any], names: dict, namespace: dict):
        self._answers, self._names, self._namespace = answers, names, namespace
        self.notebook, self.file = notebook, Path.cwd() / f"my_answers_{notebook}.json"
        self._table = self._words = None
        self.check()

    def check(self) -> None:
        """Check every answer again."""
        self.verdicts = {name: _verdict(name, value) for name, value in self._answers.items()}
        if self._table is not None:
            self._table.value = self._rows()

    def __repr__(self) -> str:
        lines = (
            _line(f"{int(self.notebook)}.{n} {name}", verdict)
            for n, (name, verdict) in enumerate(self.verdicts.items(), 1)
        )
        return "\n".join([self._title(), *lines])

    def _title(self) -> str:
        passed = sum(verdict.passed for verdict in self.verdicts.values())
        return f"Notebook {self.notebook}: {passed} of {len(self.verdicts)} exercises done."

    def _rows(self) -> str:
        title, *lines = repr(self).split("\n")
        rows = "".join(f"<li>{escape(line)}</li>" for line in lines)
        rows = f'<ul style="list-style:none; padding:0; margin:.3em 0 0">{rows}</ul>'
        return box(f"<b>{escape(title)}</b>{rows}")

    def _build(self) -> widgets.Widget:
        self._table, self._words = widgets.HTML(self._rows()), widgets.HTML()
        buttons = []
        for words, icon, action in [
            ("Save my answers", "save", self.save),
            ("Load my answers", "folder-open", self.load),
        ]:
            layout = widgets.Layout(width="auto")
            button = widgets.Button(description=words, icon=icon, layout=layout)
            button.on_click(lambda _, action=action: self._press(action))
            buttons.append(button)
        return widgets.VBox([self._table, widgets.HBox(buttons), self._words])

    def _press(self, action: Callable[[], str]) -> None:
        try:
            words = action()
        except Exception as problem:  # which a button would swallow
            words = f"That did not work: {type(problem).__name__}: {problem}."
        self._words.value = box(escape(words))

    # Saving and loading return what happened, in one or two sentences.

    def save(self) -> str:
        """Write the answers to ``file``; those that are not done keep what was saved before."""
        try:
            kept, spoilt = self._read(), ""
        except _Unsaved:
            kept = {}
            spoilt = self.file.with_suffix(".damaged.json")
        reasons, saved = [], 0
        for name, value in self._answers.items():
            if self.verdicts[name].status is Status.NOT_YET:
                continue  # and what was saved of it before stays
            try:
                kept[name] = self._packed(name, value)
                saved += 1
            except _Unsaved as reason:
                reasons.append(f" Not saved: {name}, because {reason}.")
        if not saved:
            return "".join(["Nothing is saved yet: no exercise is done.", *reasons])
        try:
            if spoilt:
                os.replace(self.file, spoilt)
            text = json.dumps({"notebook": self.notebook, "answers": kept}, indent=1)
            half = self.file.with_suffix(f".{os.getpid()}.part")
            half.write_text(text + "\n", encoding="utf-8")
            os.replace(half, self.file)  # whole or not at all
        except OSError as problem:
            return f"Nothing was saved: {problem.strerror}, {self.file}."
        words = f"Saved {_answers(saved)} to {self.file.name}."
        if spoilt:
            words += f" The file that was there could not be read; it is now {spoilt.name}."
        return words + "".join(reasons)

    def load(self) -> str:
        """Define the saved answers again in the notebook, and check them."""
        try:
            saved = self._read()
        except _Unsaved as reason:
            return f"Nothing was loaded: {reason}. The file is as it was."
        if not saved:
            return f"There is no {self.file.name} with answers yet: save some first."
        reasons, loaded = [], 0
        for name, value in saved.items():
            if name not in self._answers:
                reasons.append(f" Left in the file: {name}, which is no exercise of this notebook.")
                continue
            try:
                self._answers[name] = self._unpacked(name, value)
                loaded += 1
            except Exception as problem:
                reasons.append(f" Not loaded: {name} ({type(problem).__name__}: {problem}).")
        self.check()
        words = f"Loaded {_answers(loaded)} into this kernel from {self.file.name}."
        return "".join([words, " The cells above keep their text." if loaded else "", *reasons])

    def _read(self) -> dict[str, Any]:
        try:
            answers = json.loads(self.file.read_text(encoding="utf-8"))["answers"]
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise _Unsaved(f"{self.file.name} cannot be opened ({problem.strerror})") from None
        except (ValueError, KeyError, TypeError):
            raise _Unsaved(f"{self.file.name} is damaged") from None
        if not isinstance(answers, dict):
            raise _Unsaved(f"{self.file.name} is damaged")
        return answers

    def _packed(self, name: str, value: Any) -> dict[str, Any]:
        names = self._names.get(name)
        if names is None:
            raise _Unsaved("its name in the notebook cannot be found")
        values, helpers = (value,) if len(names) == 1 else value, {}
        packed = [_pack(value, self._namespace, helpers) for value in values]
        return {"names": names, "values": packed, "helpers": helpers}

    def _unpacked(self, name: str, saved: dict[str, Any]) -> Any:
        for helper, source in saved["helpers"].items():
            if helper not in self._namespace:
                _define(source, helper, self._namespace)
        values = [_unpack(value, self._namespace) for value in saved["values"]]
        names = self._names.get(name) or saved["names"]
        self._namespace.update(zip(names, values, strict=True))
        return values[0] if len(values) == 1 else tuple(values)


def progress(notebook: str, **answers: Any) -> Progress:
    """Show which exercises pass in this kernel; as widgets with buttons to save and load them.

    Args:
        notebook: its number, such as ``"01"``.
        answers: check's name -> the learner's answer (a tuple for checks of several arguments), in
            the order of the exercises.

    >>> progress("01", lookup=lambda ids, E: E[ids], cosine=...)
    Notebook 01: 1 of 2 exercises done.
    ✓ 1.1 lookup
    … 1.2 cosine
    """
    unknown = [
        name for name in answers if not isinstance(getattr(checks, name, None), checks.Exercise)
    ]
    if unknown:
        raise ValueError(f"no check is called {unknown[0]!r}")
    caller = sys._getframe(1)
    return Progress(notebook, answers, _names_in_call(caller, answers), caller.f_globals)


def _verdict(name: str, value: Any) -> Verdict:
    check = getattr(checks, name)
    several = len(inspect.signature(check).parameters) > 1
    return check(*value) if several and isinstance(value, tuple) else check(value)


def _line(name: str, verdict: Verdict) -> str:
    mark = repr(verdict)[0]
    return f"{mark} {name}: {verdict.message}" if mark == "✗" else f"{mark} {name}"


def _answers(n: int) -> str:
    return f"{n} answer" if n == 1 else f"{n} answers"


def _names_in_call(frame: types.FrameType, answers: dict[str, Any]) -> dict[str, list[str]]:
    """The variables that stand in a cell's ``progress(..., lookup=my_lookup)``."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return {}
    found, here = {}, frame.f_lineno
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and node.lineno <= here <= node.end_lineno
        if is_call and ast.unparse(node.func).split(".")[-1] == "progress":
            for keyword in node.keywords:
                value = keyword.value
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                if keyword.arg in answers and all(isinstance(part, ast.Name) for part in parts):
                    found[keyword.arg] = [part.id for part in parts]
    return found


# --- Answers as text ------------------------------------------------------------------------


def _pack(value: Any, namespace: dict[str, Any], helpers: dict[str, str]) -> dict[str, Any]:
    """A function by its source, a value by its numbers."""
    if isinstance(value, bool | str):
        return {"value": value}
    if isinstance(value, Real):
        return {"value": int(value) if isinstance(value, Integral) else float(value)}
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return {"tensor": value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, list | tuple):
        parts = [_pack(part, namespace, helpers) for part in value]
        return {type(value).__name__: parts}
    if isinstance(value, types.FunctionType):
        source = _source(value)
        for name in _globals_of(value.__code__):  # what else the learner wrote for it
            other = namespace.get(name)
            if isinstance(other, types.FunctionType) and name not in helpers:
                if other.__module__ == value.__module__ and other is not value:
                    helpers[name] = ""  # in work: two may call each other
                    helpers[name] = _source(other)
                    _pack(other, namespace, helpers)
        return {"source": source, "name": value.__name__}
    raise _Unsaved(f"a {type(value).__name__} is neither a function nor plain numbers")


def _unpack(saved: dict[str, Any], namespace: dict[str, Any]) -> Any:
    if "value" in saved:
        return saved["value"]
    if "tensor" in saved:
        return torch.tensor(saved["tensor"], dtype=getattr(torch, saved["dtype"]))
    for kind in (list, tuple):
        if kind.__name__ in saved:
            return kind(_unpack(part, namespace) for part in saved[kind.__name__])
    return _define(saved["source"], saved["name"], namespace)


def _source(function: types.FunctionType) -> str:
    """The text of a function that could be run again; else says why not."""
    if function.__name__ == "<lambda>":
        raise _Unsaved("a lambda has no text of its own: write it with def")
    if function.__closure__:
        raise _Unsaved(f"{function.__name__} uses names of a function around it")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        body = ast.parse(source).body
    except (OSError, TypeError, SyntaxError):
        body = []
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise _Unsaved(f"the text of {function.__name__} cannot be found")
    return source


def _globals_of(code: types.CodeType) -> set[str]:
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return {*code.co_names}.union(*map(_globals_of, inner))


def _define(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run a definition in the notebook's namespace; its text can be found again."""
    file = f"<answer {name} {zlib.crc32(source.encode()):08x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]
