"""The page's attention step without a page: its arithmetic, its words, its traits, its files.

What is written in JavaScript runs in Node.js here and in Chromium in tests/browser.
"""

import itertools
import json
import math
import random
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
import traitlets
from support import ROOT

from attnlab import attention, causal_mask
from attnlab.data import WORD_COLOURS
from attnlab.lab import plots
from attnlab.step import SENTENCES, AttentionStep, fixed, html, script

MODULE = ROOT / "src/attnlab/step/step.js"
GRIDS = ["X", "Q", "K", "V", "raw", "scaled", "masked", "weights", "output", "sum"]


@pytest.fixture
def javascript():
    """``javascript("names to import", "expression in data", data)``: its value, as JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js here; the browser tests run the same file")

    def run(names, expression, data):
        code = f"""
        import {{ {names} }} from {json.dumps(MODULE.as_uri())};
        import {{ readFileSync }} from "node:fs";
        const data = JSON.parse(readFileSync(0, "utf8"));
        console.log(JSON.stringify({expression}));
        """
        command = [node, "--input-type=module", "--eval", code]
        ran = subprocess.run(
            command, input=json.dumps(data), capture_output=True, encoding="utf-8", check=True
        )
        return json.loads(ran.stdout)

    return run


def random_state(chance):
    """Traits of a widget: any phrase, step and condition, entries as coarse as people type."""
    words = {"river": [2, 0], "money": [0, 2], "bank": [1, 0], "cat": [-1.5, 0.25]}
    phrases = [" ".join(chance.choices(list(words), k=chance.randint(1, 4))) for _ in range(3)]
    digits = chance.choice([0, 1, 2, 17])
    state = {
        name: [[round(chance.uniform(-3, 3), digits) for _ in "01"] for _ in "01"]
        for name in ("W_Q", "W_K", "W_V")
    }
    condition = chance.choice(
        [["weights", "bank", "money"], ["raw", "money", "bank"], ["output", "bank", 1]]
    )
    return {
        **state,
        "show": chance.sample(GRIDS + ["words", "plane"], 4),
        "phrase": phrases[0],
        "phrases": phrases,
        "beside": chance.choice(["", phrases[1]]),
        "query": chance.choice(list(words)),
        "embeddings": words,
        "temperature": round(chance.uniform(0.1, 5), 1),
        "causal": chance.random() < 0.7,
        "step": chance.choice(["", *SENTENCES]),
        "when": [[*condition, chance.choice("<>="), chance.choice([0, 0.25, 0.5, 1])]],
    }


def test_the_page_computes_what_the_package_computes(javascript, figure):
    cases, expected = [], []
    for _ in range(1000):
        words, width, d_k, d_v = (int(torch.randint(1, most, ())) for most in (6, 4, 8, 5))
        X = torch.randn(words, width, dtype=torch.float64)
        # One width for all, where X + output needs it; the page's own is always 2.
        W_Q, W_K = (3 * torch.randn(width, d_k, dtype=torch.float64) for _ in "qk")
        W_V = torch.randn(width, max(width, d_v), dtype=torch.float64)
        temperature = float(0.1 + 4.9 * torch.rand(()))
        causal = bool(torch.rand(()) < 0.7)
        matrices = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
        case = {name: matrix.tolist() for name, matrix in matrices.items()}
        cases.append({**case, "temperature": temperature, "causal": causal})
        mask = causal_mask(words) if causal else None
        Q, K, V = X @ W_Q, X @ W_K, X @ W_V
        steps = attention(Q, K, V, mask, 1 / (math.sqrt(d_k) * temperature))
        expected.append([Q, K, V, *steps])
    names = '["Q", "K", "V", "raw", "scaled", "masked", "weights", "output"]'
    each = f"data.map((case_) => {names}.map((name) => attend(case_)[name]))"
    computed = javascript("attend", each, cases)
    largest = 0.0
    for grids, tensors in zip(computed, expected, strict=True):
        for grid, tensor in zip(grids, tensors, strict=True):
            rows = [[-math.inf if x is None else x for x in row] for row in grid]  # JSON has none
            page_has = torch.tensor(rows, dtype=tensor.dtype)
            torch.testing.assert_close(page_has, tensor, atol=1e-10, rtol=1e-10)
            finite = tensor.isfinite()
            difference = (page_has[finite] - tensor[finite]).abs() / tensor[finite].abs().clamp(1)
            largest = max(largest, difference.max().item())
    figure(f"the page's attention on 1,000 cases: largest relative difference {largest:.1e}")


def test_the_page_and_python_say_the_same_sentence(javascript):
    chance = random.Random(0)
    widgets = [AttentionStep(**random_state(chance)) for _ in range(300)]
    said = javascript(
        "sentence", "data.map((state) => sentence(state))", [widget.state() for widget in widgets]
    )
    assert said == [widget.sentence for widget in widgets]
    assert 20 < sum(widget.reached for widget in widgets) < 200  # both cases of a goal


def test_numbers_are_rounded_alike(javascript):
    numbers = [0.125, -0.125, 2.675, 1.005, -0.001, 0.0, -0.0, 0.5, 287.99999, 12.345, 1 / 3]
    numbers += [sign * n / 32 for n in range(100) for sign in (1, -1)]
    pairs = [[x, digits] for x in numbers for digits in (0, 1, 2, 4)]
    assert javascript("fixed", "data.map(([x, digits]) => fixed(x, digits))", pairs) == [
        fixed(*pair) for pair in pairs
    ]
    assert fixed(0.125, 2) == "0.13" and fixed(-0.125, 2) == "−0.13"
    assert fixed(-0.001, 2) == "0.00" and fixed(-math.inf, 2) == "−∞"


TYPED = {
    "0,5": 0.5, "-1,5": -1.5, "−2": -2, " .25 ": 0.25, "1e9": 1e9, "+3.": 3,
    "": None, "abc": None, "1,2,3": None, "1.000,5": None, "1 2": None, "NaN": None,
}  # fmt: skip


def test_numbers_are_typed_with_a_point_or_a_comma(javascript):
    read = javascript("parse", "data.map((text) => parse(text) ?? null)", list(TYPED))
    assert read == list(TYPED.values())


def test_where_a_number_comes_from(javascript):
    state = AttentionStep(show=["raw"]).state()
    state["temperature"] = 2
    asked = [["Q", 2, 0], ["raw", 2, 0], ["scaled", 2, 0], ["masked", 0, 1], ["weights", 1, 0],
             ["output", 2, 1], ["sum", 2, 0]]  # fmt: skip
    told = javascript(
        "explain, parts",
        "data.asked.map((at) => explain(data.state, parts(data.state)[0], ...at))",
        {"state": state, "asked": asked},
    )
    assert [text for text, _ in told] == [
        "q_bank[0] = x_bank · column 0 of W_Q = 1 × 1 + 0 × 0 = 1",
        "score(bank, river) = q_bank · k_river = 1 × 2 + 0 × 0 = 2",
        "score / √d_k = 2 / (√2 × 2) = 0.7071",
        "money stands after river: masked, −∞, so its attention weight will be 0",
        "weight(money, river) = exp(0) / (exp(0) + exp(1.4142) + exp(−∞)) = 0.1956",
        "z_bank[1] = 0.4555 × 0 + 0.2246 × 2 + 0.3199 × 0 = 0.4492",
        "x_bank[0] + z_bank[0] = 1 + 1.2309 = 2.2309",
    ]
    assert [sources for _, sources in told] == [
        [["X", 2], ["W_Q", None, 0]],
        [["Q", 2], ["K", 0]],
        [["raw", 2, 0]],
        [["scaled", 0, 1]],
        [["masked", 1]],
        [["weights", 2], ["V", None, 1]],
        [["X", 2, 0], ["output", 2, 0]],
    ]


# --- The widget -------------------------------------------------------------------------------


def test_the_sentence_holds_the_numbers_of_the_course():
    widget = AttentionStep(show=["words", "plane"])
    assert repr(widget) == (
        "bank gives river 0.5760, money 0.1400, bank 0.2840; output [1.4359, 0.2801]."
    )
    widget.set_trait("phrase", "river bank")
    widget.set_trait("beside", "money bank")
    assert widget.sentence == (
        "In “river bank”, bank gives river 0.6698, bank 0.3302; output [1.6698, 0.0000]. "
        "In “money bank”, bank gives money 0.3302, bank 0.6698; output [0.6698, 0.6605]."
    )


def test_a_goal_is_reached_by_every_condition():
    widget = AttentionStep(
        show=["raw"], when=[["raw", "money", "bank", "=", 2], ["raw", "bank", "money", "=", 0]]
    )
    assert not widget.reached
    widget.W_Q = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert widget.reached and widget.sentence.endswith("bank 1.00. Goal reached.")
    widget.W_Q = [[1, 1], [1, 1]]
    assert not widget.reached


def test_entries_are_clamped_and_what_is_no_matrix_is_refused():
    widget = AttentionStep(W_Q=[[5, -7], [0, 0.5]])
    assert widget.W_Q == [[3.0, -3.0], [0.0, 0.5]]
    for bad in ([[1, 2]], [[math.nan, 0], [0, 0]], torch.eye(3)):
        with pytest.raises(traitlets.TraitError, match="W_Q must be 2 x 2 and finite but is"):
            widget.W_Q = bad
    with pytest.raises(traitlets.TraitError, match="'shore' has no embedding: river, money, bank"):
        widget.phrase = "river shore"
    with pytest.raises(traitlets.TraitError, match="a phrase has 1 to 4 words but '' has 0"):
        widget.phrase = ""
    assert widget.phrase == "river money bank" and widget.W_Q[0][0] == 3.0


@pytest.mark.parametrize("show", [["words"], ["phrase", *GRIDS], ["step", "plane", "weights"]])
def test_a_place_without_a_kernel_shows_a_picture_and_the_sentence(show):
    widget = AttentionStep(show=show, beside="river bank")
    bundle, metadata = widget._repr_mimebundle_()
    assert bundle["text/plain"] == widget.sentence == metadata["image/png"]["alt"]
    assert bundle["image/png"] and "application/vnd.jupyter.widget-view+json" in bundle


# --- Files --------------------------------------------------------------------------------------


def test_a_page_is_small_and_needs_no_network():
    page = f"<script>{script()}</script>{html(AttentionStep(goal='</script>'))}"
    assert len(page.encode()) < 60_000
    assert page.count("</script>") == 2
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"^\s*(import|export)\b", script(), flags=re.M)


# Machado, Oliveira and Fernandes 2009, severity 1: what linear RGB becomes.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def linear(colour):
    x = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Linear RGB in CIELAB, where a distance of 2 can just be seen."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = matrix @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


LIGHT, DARK = zip(*WORD_COLOURS.values(), strict=True)


def contrast(colour, paper):
    """As WCAG 2 defines it."""
    low, high = sorted((0.2126, 0.7152, 0.0722) @ linear(c) for c in (colour, paper))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "colours, paper",
    [(LIGHT, "#ffffff"), (DARK, "#181a1f"), (plots.CYCLE, "#ffffff")],
    ids=["words on light", "words on dark", "other things"],
)
def test_colours_can_be_read_and_told_apart(colours, paper):
    for colour in colours:
        assert contrast(colour, paper) >= 4.5, colour
    for vision in VISIONS.values():
        seen = [lab(np.array(vision) @ linear(colour)) for colour in colours]
        assert min(math.dist(a, b) for a, b in itertools.combinations(seen, 2)) > 15


def test_nothing_else_has_the_colour_of_a_word():
    words, others = ([lab(linear(c)) for c in colours] for colours in (LIGHT[:-1], plots.CYCLE))
    assert min(math.dist(a, b) for a in words for b in others) > 20
