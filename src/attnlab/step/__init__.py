"""One step of attention that the page computes: a widget, and the same for pages without a kernel.

JavaScript (``step.js``) computes and draws. Python holds the state, says the same sentence and
draws a still picture, both computed by ``attnlab.attention``.
"""

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import torch
import traitlets as t
from torch import Tensor

from attnlab.core import attention, causal_mask
from attnlab.data import WORDS, embedding_table
from attnlab.lab import plots

_FOLDER = Path(__file__).parent
COLOURS: dict[str, list[str]] = json.loads((_FOLDER / "colours.json").read_text(encoding="utf-8"))
"""Colours of the example's words, on light and on dark; those of any other word under ``""``."""

STAGES = ("project", "score", "scale", "mask", "softmax", "mix", "add")
_PANELS = {  # title, kind of heat map
    "X": ("X", "values"), "Q": ("Q", "values"), "K": ("K", "values"), "V": ("V", "values"),
    "raw": ("Scores", "scores"), "scaled": ("Scaled", "scores"), "masked": ("Masked", "scores"),
    "weights": ("Attention weights", "weights"), "output": ("Output", "values"),
    "sum": ("X + output", "values"),
}  # fmt: skip
_PICTURES = {"words": "weights", "plane": "output"}  # drawn by the page, and the grid that says it
_KNOBS = ("W_Q", "W_K", "W_V", "temperature", "causal", "phrase", "query", "step")


class Steps(NamedTuple):
    """One phrase and every stage of attention on it, in float64; `sum` is X + output."""

    words: list[str]
    X: Tensor
    Q: Tensor
    K: Tensor
    V: Tensor
    raw: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    output: Tensor
    sum: Tensor


class AttentionStep(anywidget.AnyWidget):
    """Attention on one to four words of the plane, under the hands of a reader.

    Every argument is a trait: Python may set and read it at any time, and so does the page.

    Attributes:
        show: panels and knobs, in order: X, Q, K, V, raw, scaled, masked, weights, output, sum,
            words (lines as thick as the attention weights), plane (the mixture as a path), and
            W_Q, W_K, W_V, temperature, causal, phrase, query, step.
        phrase, phrases: the phrase now, and those to choose from.
        beside: another phrase to be shown below or beside it; none if empty.
        query: the word whose row is told; if it is not in the phrase, the last word's.
        embeddings: two numbers for each word.
        W_Q, W_K, W_V: 2 x 2, nested lists or tensors; entries are clamped to -3 to 3.
        temperature: 0.1 to 5; divides the scores together with the square root of d_k.
        causal: hide the future.
        step: one of project, score, scale, mask, softmax, mix, add: show the stages up to it;
            all of them if empty.
        goal: what to try, in one sentence.
        when: conditions that together say that the goal is reached, such as
            ``["weights", "bank", "money", ">", 0.95]``; entries by word or index; ``=`` is to 0.005.
    """

    _esm = _FOLDER / "step.js"
    _css = _FOLDER / "step.css"
    show = t.List(
        t.Enum([*_PANELS, *_PICTURES, *_KNOBS]), ["phrase", "W_Q", "W_K", "W_V", "words"]
    ).tag(sync=True)
    phrase = t.Unicode("river money bank").tag(sync=True)
    phrases = t.List(t.Unicode(), ["river money bank", "river bank", "money bank"]).tag(sync=True)
    beside = t.Unicode().tag(sync=True)
    query = t.Unicode("bank").tag(sync=True)
    embeddings = t.Dict(dict(zip(WORDS, embedding_table().tolist(), strict=True))).tag(sync=True)
    W_Q = t.Any([[1.0, 0.0], [0.0, 1.0]]).tag(sync=True)
    W_K = t.Any([[1.0, 0.0], [0.0, 1.0]]).tag(sync=True)
    W_V = t.Any([[1.0, 0.0], [0.0, 1.0]]).tag(sync=True)
    temperature = t.Float(1.0, min=0.1, max=5.0).tag(sync=True)
    causal = t.Bool(True).tag(sync=True)
    step = t.Enum(["", *STAGES], "").tag(sync=True)
    goal = t.Unicode().tag(sync=True)
    when = t.List().tag(sync=True)
    colours = t.Dict(COLOURS).tag(sync=True)
    start = t.Dict().tag(sync=True)  # where the page's "Start again" goes

    def __init__(self, **traits: Any):
        if "step" in traits.get("show", ()):
            traits.setdefault("step", STAGES[0])
        super().__init__(**traits)
        self.start = {name: getattr(self, name) for name in _KNOBS if name != "step"}

    @classmethod
    def options(cls) -> list[str]:
        """The names of the traits that say what it shows."""
        return [name for name in vars(cls) if name in cls.class_traits(sync=True) and name[0] != "_"]

    @t.validate("W_Q", "W_K", "W_V")
    def _check_matrix(self, proposal: Any) -> list[list[float]]:
        name, value = proposal["trait"].name, torch.as_tensor(proposal["value"]).double()
        if value.shape != (2, 2) or not value.isfinite().all():
            raise t.TraitError(f"{name} must be 2 x 2 and finite but is {proposal['value']}")
        return value.clamp(-3, 3).tolist()

    @t.validate("phrase", "beside")
    def _check_phrase(self, proposal: Any) -> str:
        words = proposal["value"].split()
        if len(words) > 4 or not words and proposal["trait"].name == "phrase":
            raise t.TraitError(f"a phrase has 1 to 4 words but {proposal['value']!r} {len(words)}")
        for word in words:
            if word not in self.embeddings:
                raise t.TraitError(f"{word!r} has no embedding: {', '.join(self.embeddings)} have")
        return " ".join(words)

    def steps(self, phrase: str) -> Steps:
        """Every stage for a phrase, computed by ``attnlab.attention``."""
        words = phrase.split()
        X = torch.tensor([self.embeddings[word] for word in words], dtype=torch.float64)  # (S, 2)
        Q, K, V = (X @ torch.tensor(W, dtype=X.dtype) for W in (self.W_Q, self.W_K, self.W_V))
        mask = causal_mask(len(words)) if self.causal else None
        steps = attention(Q, K, V, mask, 1 / (math.sqrt(2) * self.temperature))
        return Steps(words, X, Q, K, V, *steps, X + steps.output)

    @property
    def parts(self) -> list[Steps]:
        """The stages of each phrase shown."""
        return [self.steps(phrase) for phrase in (self.phrase, self.beside) if phrase]

    @property
    def reached(self) -> bool:
        """Whether the goal is reached: every condition holds."""
        return bool(self.when) and all(self._holds(*condition) for condition in self.when)

    def _holds(self, name: str, row: str, column: str | int, sign: str, value: float) -> bool:
        for part in self.parts:
            if row in part.words and (isinstance(column, int) or column in part.words):
                j = column if isinstance(column, int) else _last(part.words, column)
                difference = float(getattr(part, name)[_last(part.words, row), j]) - value
                near = abs(difference) < 0.005
                return near if sign == "=" else difference * (1 if sign == ">" else -1) > 0
        return False

    @property
    def sentence(self) -> str:
        """What it shows, in one sentence for each phrase; the page's is the same to the letter."""
        weighs = {"words", "weights"} & {*self.show}
        shown = {
            "project": not weighs and {"Q", "K", "V"} & {*self.show},
            "score": not weighs and "raw" in self.show,
            "softmax": weighs,
            "mix": {"output", "plane"} & {*self.show},
            "add": "sum" in self.show,
        }
        stages = [self.step] if self.step else [stage for stage in STAGES if shown.get(stage)]
        said = []
        for part in self.parts:
            clauses = "; ".join(self._clause(stage, part) for stage in stages)
            where = f"In “{' '.join(part.words)}”, " if self.beside else ""
            said.append(f"{where}{clauses}.")
        return " ".join(said) + (" Goal reached." if self.reached else "")

    def _clause(self, stage: str, part: Steps) -> str:
        words = part.words
        at = _last(words, self.query) if self.query in words else len(words) - 1

        def pairs(row: Tensor, digits: int) -> str:
            numbers = zip(words, row.tolist(), strict=True)
            return ", ".join(f"{word} {fixed(x, digits)}" for word, x in numbers)

        def vector(rows: Tensor, digits: int = 4) -> str:
            return f"[{', '.join(fixed(x, digits) for x in rows[at].tolist())}]"

        word, rows = words[at], [at] if self.step else range(len(words))
        weighs = {"words", "weights"} & {*self.show}
        whose = "" if weighs and not self.step else f"{word}’s "
        return {
            "project": f"{word} has query {vector(part.Q, 2)}, key {vector(part.K, 2)}, "
            f"value {vector(part.V, 2)}",
            "score": "; ".join(f"{words[i]} scores {pairs(part.raw[i], 2)}" for i in rows),
            "scale": f"{whose}scaled scores: {pairs(part.scaled[at], 4)}",
            "mask": f"{whose}masked scores: {pairs(part.masked[at], 4)}",
            "softmax": f"{word} gives {pairs(part.weights[at], 4)}",
            "mix": f"{whose}output {vector(part.output)}",
            "add": f"{whose}X + output {vector(part.sum)}",
        }[stage]

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        picture = self._still()._repr_mimebundle_()[0]["image/png"]
        live, metadata = super()._repr_mimebundle_(**options)  # text/plain is the repr
        return {**live, "image/png": picture}, {**metadata, "image/png": {"alt": self.sentence}}

    def __repr__(self) -> str:
        return self.sentence

    def _still(self) -> plots.Picture:
        """The grids shown, one row of them for each phrase, for places without a kernel."""
        names = [_PICTURES.get(name, name) for name in self.show if name not in _KNOBS]
        names, parts = list(dict.fromkeys(names)), self.parts
        picture, axes = plots.panels(len(names), height=2.6 * len(parts), rows=len(parts))
        panels = iter(axes if isinstance(axes, list) else [axes])
        for part in parts:
            for name in names:
                (title, kind), values = _PANELS[name], getattr(part, name)
                if name == "weights" and self.causal:
                    values = values.masked_fill(~causal_mask(len(part.words)), -torch.inf)
                across = ["0", "1"] if kind == "values" else part.words
                sides = ("", "") if kind == "values" else ("query", "key")
                plots.heatmap(
                    next(panels), part.words, across, values, kind, title=title, names=sides
                )
        return picture


def _last(words: list[str], word: str) -> int:
    return len(words) - 1 - words[::-1].index(word)


def fixed(x: float, digits: int) -> str:
    """A number as both languages write it: halves away from zero, no minus before a zero.

    1e-6 of the last digit is added, so that rounding errors of two ways to compute the same number
    cannot lead to different digits where the exact number ends in a half.
    """
    if math.isinf(x):
        return "−∞"
    size = f"{math.floor(abs(x) * 10**digits + 0.5 + 1e-6) / 10**digits:.{digits}f}"
    return ("−" if x < 0 and float(size) else "") + size


# --- Pages without a kernel -----------------------------------------------------------------


def script() -> str:
    """A classic script, since ``file://`` blocks modules: ``attentionStep.mount(element, options)``.

    It is ``step.js`` in a function, beside its style and the defaults of the traits.
    """
    source = re.sub(r"^export default[^;]*;(.|\n)*|^export ", "", _read("step.js"), flags=re.M)
    defaults = AttentionStep().get_state(AttentionStep.options())
    return f"""window.attentionStep = (() => {{
{source}
document.head.append(element("style", {{ textContent: {json.dumps(_read("step.css"))} }}));
const defaults = {json.dumps(defaults)};
return {{ attend, mount: (node, options = {{}}) => mount(node, {{ ...defaults, ...options }}) }};
}})();
"""


def page(*steps: AttentionStep, title: str = "One step of attention") -> str:
    """A page of its own with these steps, which needs neither a kernel nor a network."""
    parts = [step.get_state(AttentionStep.options()) for step in steps]
    mounts = "".join(
        f"attentionStep.mount(document.body.appendChild(document.createElement('div')), {state});\n"
        for state in map(json.dumps, parts)
    ).replace("</", "<\\/")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 1120px; margin: 16px auto; padding: 0 12px; font-family: system-ui, sans-serif; }}
body > div {{ margin-top: 16px; }}
</style>
<body>
<h1>{title}</h1>
<script>
{script()}{mounts}</script>
</body>
</html>
"""


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
