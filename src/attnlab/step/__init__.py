"""One step of attention that the page computes: a widget, and the same for pages without a kernel.

JavaScript (``step.js``) computes and draws. Python holds the state, says the same sentence and
draws a still picture, both from ``attnlab.attention``.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import torch
import traitlets as t

from attnlab.core import attention, causal_mask
from attnlab.data import WORD_COLOURS, WORDS, embedding_table
from attnlab.lab import cells, plots
from attnlab.lab.page import OnPage

Steps = dict[str, Any]


def _read(*names: str) -> str:
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


SENTENCES = {  # what each stage says; the page fills the same templates
    "project": "{word} has query {Q}, key {K}, value {V}",
    "score": "{word} scores {raw}",
    "scale": "{whose}scaled scores: {scaled}",
    "mask": "{whose}masked scores: {masked}",
    "softmax": "{word} gives {weights}",
    "mix": "{whose}output {output}",
    "add": "{whose}X + output {sum}",
}
_GRIDS = {  # title and kind of heat map
    "X": ("X", "values"), "Q": ("Q", "values"), "K": ("K", "values"), "V": ("V", "values"),
    "raw": ("Scores", "scores"), "scaled": ("Scaled", "scores"), "masked": ("Masked", "scores"),
    "weights": ("Attention weights", "weights"), "output": ("Output", "values"),
    "sum": ("X + output", "values"),
}  # fmt: skip
_PICTURES = {"words": "weights", "plane": "output"}  # drawn by the page; the grid with its numbers
_KNOBS = ("phrase", "query", "W_Q", "W_K", "W_V", "temperature", "causal")
_SHOW = [*_GRIDS, *_PICTURES, *_KNOBS, "step"]


class AttentionStep(OnPage):
    """Attention on one to four words of the plane, under the hands of a reader.

    Every argument is a trait: Python may set and read it at any time, and so does the page.

    Attributes:
        show: panels and knobs, in order: X, Q, K, V, raw, scaled, masked, weights, output, sum,
            words (lines as thick as the attention weights), plane (the output as a sum of steps),
            and W_Q, W_K, W_V, temperature, causal, phrase, query, step.
        phrase, phrases: the phrase now, and those to choose from.
        beside: a second phrase to compare with; none if empty.
        query: the word whose row the sentence tells; the last one if the phrase does not have it.
        embeddings: two numbers for each word.
        W_Q, W_K, W_V: 2 x 2, nested lists or tensors; entries are clamped to -3 to 3.
        temperature: 0.1 to 5; the scores are divided by it and by the square root of d_k.
        causal: whether the future is masked.
        step: project, score, scale, mask, softmax, mix or add: the stages up to this one are
            shown; all of them if empty.
        goal: what to try, in one sentence.
        when: the goal is reached when all of these hold: ``[stage, word, word or index, "<", ">"
            or "=", number]``, such as ``["weights", "bank", "money", ">", 0.95]``; equal means
            within 0.005.
    """

    _esm = _read("../lab/page.js", "step.js")
    _css = _read("../lab/lab.css", "step.css")
    show = t.List(t.Enum(_SHOW), [*_KNOBS[:5], "words"]).tag(sync=True)
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
    step = t.Enum(["", *SENTENCES], "").tag(sync=True)
    goal = t.Unicode().tag(sync=True)
    when = t.List(t.List()).tag(sync=True)
    colours = t.Dict(WORD_COLOURS).tag(sync=True)
    sentences = t.Dict(SENTENCES).tag(sync=True)
    start = t.Dict().tag(sync=True)  # where "Start again" goes

    def __init__(self, **traits: Any):
        if "step" in traits.get("show", ()):
            traits.setdefault("step", "project")
        super().__init__(**traits)
        self.start = {name: getattr(self, name) for name in (*_KNOBS, "beside")}
        cells.register(self)

    def retire(self) -> None:
        """Close the widget: its cell has run again."""
        cells.close(self)

    def state(self) -> dict[str, Any]:
        """Every trait of the list above, as plain data for a page."""
        own = vars(AttentionStep).items()
        return {name: getattr(self, name) for name, x in own if isinstance(x, t.TraitType)}

    @t.validate("W_Q", "W_K", "W_V")
    def _check_matrix(self, proposal: Any) -> list[list[float]]:
        value = torch.as_tensor(proposal["value"], dtype=torch.float64)
        if value.shape != (2, 2) or not value.isfinite().all():
            name, given = proposal["trait"].name, proposal["value"]
            raise t.TraitError(f"{name} must be 2 x 2 and finite but is {given}")
        return value.clamp(-3, 3).tolist()

    @t.validate("phrase", "beside")
    def _check_phrase(self, proposal: Any) -> str:
        words, phrase = proposal["value"].split(), proposal["trait"].name == "phrase"
        if not phrase <= len(words) <= 4:
            raise t.TraitError(
                f"a phrase has 1 to 4 words but {proposal['value']!r} has {len(words)}"
            )
        for word in words:
            if word not in self.embeddings:
                raise t.TraitError(f"{word!r} has no embedding: {', '.join(self.embeddings)} have")
        return " ".join(words)

    @property
    def parts(self) -> list[Steps]:
        """Of each phrase its ``words``, and every stage by name, in float64."""
        return [self._steps(phrase.split()) for phrase in (self.phrase, self.beside) if phrase]

    def _steps(self, words: list[str]) -> Steps:
        X = torch.tensor([self.embeddings[word] for word in words], dtype=torch.float64)  # (S, 2)
        Q, K, V = (X @ torch.tensor(W, dtype=X.dtype) for W in (self.W_Q, self.W_K, self.W_V))
        mask = causal_mask(len(words)) if self.causal else None
        steps = attention(Q, K, V, mask, 1 / (math.sqrt(2) * self.temperature))
        stages = {"X": X, "Q": Q, "K": K, "V": V, **steps._asdict(), "sum": X + steps.output}
        return {"words": words, **stages}

    @property
    def reached(self) -> bool:
        """Whether the goal is reached: every condition holds."""
        parts = self.parts
        return bool(self.when) and all(_holds(parts, *condition) for condition in self.when)

    @property
    def sentence(self) -> str:
        """What it shows, in one sentence for each phrase; the page's is the same to the letter."""
        show = {*self.show}
        weighs = bool(show & {"words", "weights"})
        told = {
            "project": not weighs and show & {"Q", "K", "V"}, "score": not weighs and "raw" in show,
            "softmax": weighs, "mix": show & {"output", "plane"}, "add": "sum" in show,
        }  # fmt: skip
        stages = [self.step] if self.step else [stage for stage in SENTENCES if told.get(stage)]
        said = []
        for part in self.parts:
            words, clauses = part["words"], []
            query = _last(words, self.query) if self.query in words else len(words) - 1
            for stage in stages:
                rows = range(len(words)) if stage == "score" and not self.step else [query]
                clauses += [_clause(stage, part, i, weighs and not self.step) for i in rows]
            where = f"In “{' '.join(words)}”, " if self.beside else ""
            said.append(f"{where}{'; '.join(clauses)}.")
        return " ".join(said) + (" Goal reached." if self.reached else "")

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, metadata = super()._repr_mimebundle_(**options) or ({}, {})  # with the repr
        alt = {"image/png": {"alt": self.sentence}}
        return {**live, "image/png": self._still().still()}, {**metadata, **alt}

    def _still(self) -> plots.Picture:
        """The grids shown, at most four in a row, for places without a kernel."""
        names = {_PICTURES.get(name, name) for name in self.show}
        grids = [(part, name) for part in self.parts for name in _GRIDS if name in names]
        columns = min(len(grids) // len(self.parts), 4) or 1
        rows = max(math.ceil(len(grids) / columns), 1)
        picture, axes = plots.panels(columns, height=2.4 * rows, rows=rows)
        panels = list(axes) if isinstance(axes, list) else [axes]
        for empty in panels[len(grids) :]:
            empty.set_visible(False)
        for panel, (part, name) in zip(panels, grids, strict=False):
            (title, kind), words, values = _GRIDS[name], part["words"], part[name]
            if name == "weights":
                values = values.masked_fill(part["masked"].isinf(), -torch.inf)
            square = kind != "values"
            across, sides = (words, ("query", "key")) if square else (["0", "1"], ("", ""))
            plots.heatmap(panel, words, across, values, kind, title, sides)
        return picture


def _last(words: list[str], word: str) -> int:
    return len(words) - 1 - words[::-1].index(word)


def _holds(parts: list[Steps], name: str, row: str, key: str | int, sign: str, x: float) -> bool:
    for part in parts:
        words = part["words"]
        if row in words and (isinstance(key, int) or key in words):
            j = key if isinstance(key, int) else _last(words, key)
            difference = float(part[name][_last(words, row), j]) - x
            return {"=": abs(difference) < 0.005, ">": difference > 0, "<": difference < 0}[sign]
    return False


def _clause(stage: str, part: Steps, i: int, told: bool) -> str:
    words, values = part["words"], {}
    for name in _GRIDS:
        digits = 2 if name in ("Q", "K", "V", "raw") else 4
        numbers = [fixed(x, digits) for x in part[name][i].tolist()]
        pairs = ", ".join(f"{word} {x}" for word, x in zip(words, numbers, strict=False))
        values[name] = f"[{', '.join(numbers)}]" if _GRIDS[name][1] == "values" else pairs
    return SENTENCES[stage].format(word=words[i], whose="" if told else f"{words[i]}’s ", **values)


def fixed(x: float, digits: int) -> str:
    """A number as both languages write it: halves away from zero, no minus before a zero.

    1e-6 of the last digit is added, so that rounding errors of two ways to compute the same number
    cannot lead to different digits where the exact number ends in a half.
    """
    if math.isinf(x):
        return "−∞"
    size = f"{math.floor(abs(x) * 10**digits + 0.5 + 1e-6) / 10**digits:.{digits}f}"
    return ("−" if x < 0 and float(size) else "") + size


def script() -> str:
    """A classic script, as ``file://`` blocks modules: ``attentionStep.mount(node, options)``.

    It is the widget's JavaScript in a function, with its style and the defaults of the traits.
    """
    source = re.sub(r"^export default(.|\n)*|^export ", "", AttentionStep._esm, flags=re.M)
    defaults = json.dumps(AttentionStep().state())
    return f"""window.attentionStep = (() => {{
{source}
document.head.append(element("style", {{ textContent: {json.dumps(AttentionStep._css)} }}));
const defaults = {defaults};
return {{ attend, mount: (node, options) => mount(node, {{ ...defaults, ...options }}) }};
}})();
"""


def html(step: AttentionStep) -> str:
    """An element of a page that has `script`: the step as it is now, alive without a kernel."""
    state = json.dumps(step.state()).replace("</", "<\\/")
    mount = f"attentionStep.mount(document.currentScript.parentNode, {state});"
    return f"<div><noscript>{step.sentence}</noscript><script>{mount}</script></div>"
