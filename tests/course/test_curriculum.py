"""Every figure of the curriculum is printed or asserted in the notebook it belongs to."""

import jupytext
import pytest
from support import COURSE, code_cells, each_notebook, read

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
