"""What the curriculum promises: figures, misconceptions that are hunted, sources, worked hints.

Every figure is printed or asserted in the notebook it belongs to.
"""

import re

import jupytext
import pytest
from answers import bank
from support import COURSE, NOTEBOOKS, call, code_cells, each_notebook, read

from attnlab import checks

# As printed, or as it stands in an assertion.
FIGURES = {
    "01_static_embeddings": """
        river bank [0, 2] -> [[2.0, 0.0], [1.0, 0.0]]
        money bank [1, 2] -> [[0.0, 2.0], [1.0, 0.0]]
        X: (2, 2)
        a batch of two phrases: (2, 2, 2)
        (2048, 4096)
        mole has the same row in both: True
        river @ bank == 2 and bank @ bank == 1 and bank @ money == 0
        min(river_side, money_side) > across + 0.1
        bank  and money 0.64
        bank  and loan  0.68
        bank  and river 0.41
        river and shore 0.77
        [[1.5, 0.0], [1.5, 0.0]]
        [[0.5, 1.0], [0.5, 1.0]]
        queen 0.86
        unit river bank: share of itself 0.64; cosine with river 0.73, money 0.63
        unit money bank: share of itself 0.59; cosine with river 0.43, money 0.87
        min(pulled["raw", neighbour][3] for neighbour in expected) > 0.996
    """,
    "02_queries_keys_values": """
        bank . river = 2.0
        bank . bank  = 1.0
        [[4.0, 2.0], [2.0, 1.0]]
        bank gives money: 2.0   money gives bank: 0.0
        score 0, share 0.3302
        shares tensor([0.6667, 0.3333])
        output tensor([1.6667, 0.0000])
        shares of [1, -1]: [inf, -inf]
    """,
    "03_scaling_and_masking": """
        tensor([[2.8284, 1.4142], [1.4142, 0.7071]])
        tensor([[2.8284, -inf], [1.4142, 0.7071]])
        abs(unscaled[0][0] - 0.38) < 0.05 and abs(unscaled[-1][0] - 0.95) < 0.02
        abs(largest - 0.36) < 0.04
        abs(max(s for _, s in unscaled) - 1) < 0.1 and unscaled[-1][1] < 0.006
        abs(s - 0.37) < 0.07
        abs(by_width[-1][0] - 0.13) < 0.01 and abs(by_width[-1][1] - 0.015) < 0.001
        with the mask    [tensor([2., 0.]), tensor([2., 0.])]
        without the mask [tensor([1.8044, 0.0000]), tensor([1.8884, 0.1116])]
        fill with -inf: [nan, nan, nan]
        fill with -1e9: tensor([0.3333, 0.3333, 0.3333])
        this course:    [0.0, 0.0, 0.0]
        4,194,304
        65,504
        masked_fill(-1e9): an error
        adding -1e9: [-inf, -inf]
        {'q': True, 'k': True, 'v': True}
        {'q': False, 'k': False, 'v': True}
    """,
    "04_softmax_and_values": """
        shares tensor([0.6698, 0.3302])
        had we not scaled: tensor([0.7311, 0.2689])
        tensor([[1.0000, 0.0000], [0.6698, 0.3302]])
        softmax gives tensor([0.5744, 0.4256, 0.0000, 0.0000])
        0.8 / 1.3 and 0.5 / 1.3 are 0.62 and 0.38
        [1.3396, 0] + [0.3302, 0]
        tensor([[2.0000, 0.0000], [1.6698, 0.0000]])
        money bank: weights tensor([0.3302, 0.6698]), output tensor([0.6698, 0.6605])
        [0.5, 0.5] -> [1.5, 0.5]
        [0.5, 0.5] -> [0.5, 1.5]
        V = tensor([[1.0000, 0.4000], [0.5000, 0.2000]])
        tensor([0.8349, 0.3340])
        W_Q[0, 1] = 0: bank gives money 0.3302, and in the other phrase river 0.6698
        W_Q[0, 1] = 1: bank gives money 0.6698, and in the other phrase river 0.6698
        W_Q[0, 1] = 3: bank gives money 0.9717, and in the other phrase river 0.6698
        river 0.5760, money 0.1400, bank 0.2840; output [1.4359, 0.2801]
    """,
    "05_heads_and_positions": """
        X, Q, K, V (2,3,8)  scores, weights (2,3,3)
        q (2,2,3,4)
        (2,5,12) -> Q, K, V in heads (2,3,5,4)
        scores, weights (2,3,5,5) -> output per head (2,3,5,4)
        merged, times W_O (2,5,12)
        head 0, right: [[0.0, 1.0], [4.0, 5.0], [8.0, 9.0]]
        head 0, wrong: [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        the same three vectors, reordered: True
        with a causal mask still the same: False
        same_sense[0] == 0 and same_sense[3:6] == [12, 12, 12]
        interleaved tensor([-1.1426, 1.9221, 2.9599, 4.0298])
        half        tensor([-1.9841, 1.9599, 2.4624, 4.0198])
        mean weight on the token before: 1.00
        animal 0.68
    """,
    "06_tiny_trainer_and_kv_cache": """
        loss at the start 2.0212; below 0.01 from step 14 on
        abs(losses[-1] - 6e-5) < 2e-5
        W_V = 0: ends at 0.6932; p(shore) 0.50, p(loan) 0.50
        river bank: weight on river 0.00, on itself 1.00; p(shore) > 0.99: True
        money bank: weight on money 1.00, on itself 0.00; p(loan) > 0.99: True
        W_Q = 0: weights of bank [0.5, 0.5]
        abs(even_losses[-1] - 7e-5) < 2e-5
        15 of 20 look at the context word in both phrases, 5 do not
        ln 5 = 1.6094, among two ln 2 = 0.6931
        largest difference of any logit below 0.00001: True
        2048 MiB = 2.0 GiB
        512 MiB
        64 MiB
    """,
}


def printed_or_asserted(notebook):
    lines = []
    for cell in code_cells(notebook):
        lines += [line for line in cell.source.splitlines() if line.startswith("assert")]
        for output in cell.outputs:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            lines += text.splitlines()
    return "\n".join(lines)


@each_notebook
def test_the_figures_of_the_curriculum_are_printed_or_asserted(path):
    """A missing one is named."""
    text = " ".join(printed_or_asserted(read(path)).split())  # a matrix is printed on several lines
    figures = [" ".join(line.split()) for line in FIGURES[path.stem].strip().splitlines()]
    assert not [figure for figure in figures if figure not in text]


@pytest.mark.parametrize("seed", range(4))
def test_bank_ends_between_its_senses_whatever_the_seed(seed):
    """Notebook 1's own skip-gram, from other random numbers."""
    cells = jupytext.read(COURSE / "01_static_embeddings.py").cells
    by_title = {cell.metadata.get("title", ""): cell.source for cell in cells}
    (setup,) = (source for title, source in by_title.items() if title.startswith("Setup"))
    (skip_gram,) = (source for title, source in by_title.items() if title.startswith("Skip-gram"))
    learning = skip_gram[: skip_gram.index("picture, axes")]
    assert learning.count("manual_seed(0)") == 2
    names = {}
    exec(setup + "\n" + learning.replace("manual_seed(0)", f"manual_seed({seed})"), names)
    learned = names["learned"]  # cosines of shore flood crumble, bank, loan fail lend
    river_side, money_side = learned[3, :3].mean(), learned[3, 4:].mean()
    across = learned[:3, 4:].mean()
    for side in (river_side, money_side):
        assert 0.5 < side < 0.95 and side > across + 0.1
    assert across < 0.55


# --- Misconceptions ---------------------------------------------------------------------------

# Misconception -> its vote (notebook, variable, the choice of who has it) and its exercise
# (the check, and what it says to an answer that comes of it).
HUNTED = {
    "a large attention weight explains the prediction": (
        *("06", "weight_vote", "about 1", "what_shore_needs"),
        "River has the weight 0.00: without its value the model still says shore.",
    ),
    "a score of 0 means no attention": (
        *("02", "zero_vote", "none: 0 means no attention", "causal_scores"),
        "A score of 0 hides nothing: after the softmax it still has a share.",
    ),
    "softmax divides by the sum": (
        *("04", "twice_vote", "yes, twice as much both times", "masked_softmax"),
        "You divided by the sum of the scores: softmax takes exponentials first.",
    ),
    "attention is similarity": (
        *("02", "likeness_vote", "no, a score measures likeness", "scores"),
        "The projections are missing: you compared X with itself.",
    ),
    "who attends to whom, rows or columns": (
        *("03", "crossed_vote", "row bank, column river", "receive"),
        "Rows are queries: in yours each word sends along its row instead of receiving.",
    ),
    "W_V steers where to look": (
        *("02", "values_vote", "where the words look: the scores", "what_moves"),
        "W_V determines what is passed on, not where a word looks: no score changes.",
    ),
    "attention picks one token": (
        *("04", "place_vote", "the place of one of them", "receive"),
        "Each word takes everything from one other: the shares are to be mixed.",
    ),
    "attention weights are the parameters": (
        *("04", "row_vote", "the parameters W_Q, W_K and W_V", "parameters_and_scores"),
        "Those are parameters: scores are computed, one for each pair of words.",
    ),
    "the causal mask matters only when generating": (
        *("03", "leak_vote", "none: a mask is for writing", "leaks"),
        "Not always 0: in training the whole text is in the input.",
    ),
    "causal and padding masks are the same": (
        *("03", "batch_vote", "neither: one mask serves the whole batch", "filler_for_multihead"),
        "That is a causal mask, which hides the future: hide the padding.",
    ),
    "True means the same everywhere": (
        *("03", "module_vote", "itself alone, as here", "filler_for_multihead"),
        "In this module True means ignore: yours hides the words and shows the padding.",
    ),
    "masking after softmax": (
        *("03", "block_vote", "softmax, then make the share 0", "sturdy_weights"),
        "You masked after the softmax: the rows no longer sum to 1.",
    ),
    "masking with 0": (
        *("03", "block_vote", "make it 0, then softmax", "sturdy_weights"),
        "A score of 0 still gets a share: hidden keys get none.",
    ),
    "sqrt of the wrong width": (
        *("03", "width_vote", "6, the root of 36", "head_scale"),
        "You used the width of the model: use the width of one head.",
    ),
    'scaling "against small gradients" alone': (
        *("03", "divisor_vote", "more: small scores react more strongly", "head_scale"),
        "You divided by the width of a head, not by its square root.",
    ),
    "heads split the sentence": (
        *("05", "shared_vote", "the words: each sees half of the sentence", "split"),
        "Heads split the width, not the sentence: each sees every token.",
    ),
    "more heads cost more parameters": (
        *("05", "shared_vote", "nothing: each has D columns, and parameters double"),
        *("parameters_of_heads", "Twice the heads are half as wide each: nothing is added."),
    ),
    "attention knows word order": (
        *("05", "order_vote", "yes, it bites in one and is bitten in the other"),
        *("rope_attention", "Nothing is rotated: this attention ignores the order."),
    ),
    "RoPE scores depend on distance alone": (
        *("05", "shift_vote", "another key, still at 1", "far_key"),
        "Distance is not all, the near key leads",
    ),
    "the cache approximates": (
        *("06", "cache_vote", "a little, and it grows with each word", "write_with_cache"),
        "The words are right, but the cache is exact: compute no old position again.",
    ),
    "the cache holds queries": (
        *("06", "cache_vote", "a little, since old queries were dropped", "cache_bytes"),
        "A cache holds no queries: old ones are not needed again.",
    ),
    "the cache goes stale when a token is appended": (
        *("06", "cache_vote", "far: each new word changes the old keys", "stale_columns"),
        "Appending makes nothing stale: old words cannot see the new one.",
    ),
}
BANK = bank()


@pytest.mark.parametrize("misconception", HUNTED)
def test_a_misconception_has_a_wrong_choice_with_its_reason_and_is_named_by_an_exercise(
    misconception,
):
    number, vote, choice, exercise, sentence = HUNTED[misconception]
    [path] = [path for path in NOTEBOOKS if path.stem.startswith(number)]
    cells = code_cells(read(path))
    assert [1 for cell in cells if (call(cell.source, "predict") or ("",))[0] == vote] == [1]
    [reveal] = [cell for cell in cells if f"{vote}.reveal(" in cell.source]
    said = "".join(output.data["text/plain"] for output in reveal.outputs)
    assert re.search(rf"^· {re.escape(choice)}: \S", said, re.MULTILINE), said  # not ✓, and why
    assert exercise in {each.name for at in NOTEBOOKS for each in checks.exercises(at.stem[:2])}
    wrong = [answer for answer, message in BANK[exercise].wrong if message.startswith(sentence)]
    several = len(getattr(checks, exercise).variables) > 1
    verdicts = [getattr(checks, exercise)(*(w if several else [w])) for w in wrong]
    assert verdicts and all(verdict.message.startswith(sentence) for verdict in verdicts)


def test_the_eight_questions_hunt_misconceptions_of_this_table():
    for question in checks.eight_questions.QUESTIONS:
        for hunted in re.split(r"[;,] ", question.hunts):
            assert any(hunted.removeprefix("or ") in known for known in HUNTED), hunted


# --- Sources, pictures, hints -------------------------------------------------------------------

CITED = re.compile(r"\b([A-Z]\w+)((?: et al\.|,? (?:and )?[A-Z]\w+)*) ((?:19|20)\d\d)\b")
SOURCES_TO_CREDIT = """
    Bahdanau 2015, Vaswani 2017, Ba 2016, Zhang 2019, Shazeer 2020, Kingma 2015, Xiao 2023,
    Mikolov 2013, Pennington 2014, Su 2021, Shazeer 2019, Ainslie 2023, Haviv 2022, Jain 2019,
    Wiegreffe 2019, 3Blue1Brown, Arpit Bhayani
"""


def prose(path):
    """What a learner reads: the text cells and the reveals."""
    cells = read(path).cells
    return "\n".join(
        cell.source
        for cell in cells
        if cell.cell_type == "markdown" or "reveal" in cell.metadata.get("tags", [])
    )


def linked(text):
    """(first author, year) of each work whose link stands right behind it."""
    behind = re.compile(CITED.pattern + r"(?:\]|, \[[^\]]*\])\(https?://")
    return {(found[1], found[3]) for found in behind.finditer(text)}


@each_notebook
def test_every_work_that_is_cited_has_a_link_in_the_same_notebook(path):
    cited = {(found[1], found[3]) for found in CITED.finditer(prose(path))}
    assert cited and cited <= linked(prose(path)), cited - linked(prose(path))


def test_every_source_of_the_curriculum_is_credited_with_a_link():
    text = "\n".join(prose(path) for path in NOTEBOOKS)
    works = {f"{author} {year}" for author, year in linked(text)}
    works |= {name for name in ("3Blue1Brown", "Arpit Bhayani") if f"{name}, [*" in text}
    assert {work.strip() for work in SOURCES_TO_CREDIT.split(",")} <= works


@each_notebook
def test_the_weighted_sum_is_drawn_in_every_notebook(path):
    drawn = [cell for cell in code_cells(read(path)) if "WeightedSum(" in cell.source]
    assert any("image/png" in output.get("data", {}) for cell in drawn for output in cell.outputs)


@each_notebook
def test_every_exercise_has_one_worked_hint_with_numbers(path):
    text = prose(path)
    for exercise in checks.exercises(path.stem[:2]):
        task = text.partition(f"**Exercise {exercise.number}")[2].partition("**Exercise ")[0]
        hints = re.findall(r"<summary>(Hint \d: [^<]*)</summary>(.*?)</details>", task, re.DOTALL)
        worked = [body for title, body in hints if "a similar case, worked" in title]
        values = r"\d|True|False|\b(?:one|two|three)\b"
        assert len(worked) == 1 and len(re.findall(values, worked[0])) >= 4, exercise.number
