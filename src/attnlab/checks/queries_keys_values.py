"""The exercises of notebook 2."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from attnlab.checks.judging import UNDONE, Verdict, drawer, judge, never_raising, pointing, undone
from attnlab.checks.typed import typed
from attnlab.core import attention

# "river money bank"
X = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]], dtype=torch.float64)


def scores(fn: Any) -> Verdict:
    """Write ``fn(X, W_Q, W_K)``: raw scores (S, S) from ``X`` (S, D) and two matrices (D, d)."""
    draw = drawer()

    def right(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
        return (X @ W_Q) @ (X @ W_K).T

    wrong = {
        "Queries are rows and keys are columns.": lambda X, Q, K: right(X, K, Q),
        "The projections are missing: you compared X with itself.": lambda X, Q, K: X @ X.T,
        "Your W look transposed, as nn.Linear stores them.": lambda X, Q, K: right(X, Q.T, K.T),
        "One matrix does both jobs: asking and being asked need one each.": (
            lambda X, Q, K: right(X, Q, Q),
            lambda X, Q, K: right(X, K, K),
        ),
        "Only one side is projected: queries and keys both are.": (
            lambda X, Q, K: X @ Q @ X.T,
            lambda X, Q, K: X @ (X @ K).T,
        ),
        "Transposed, X W_K is W_K transposed as well, and comes first.": (
            lambda X, Q, K: X @ Q @ K @ X.T
        ),
        "Every query meets every key: for that the keys have to be columns.": (
            lambda X, Q, K: (X @ Q) @ (X @ K)
        ),
        "You compared columns with columns: words are rows.": lambda X, Q, K: (X @ Q).T @ (X @ K),
        "Those two matrices know no word: X is missing.": lambda X, Q, K: Q @ K.T,
        "These are cosines: raw scores keep the lengths.": (
            lambda X, Q, K: normalize(X @ Q) @ normalize(X @ K).T
        ),
        "These scores are scaled already: the raw ones are asked for.": (
            lambda X, Q, K: right(X, Q, K) / Q.shape[1] ** 0.5,
            lambda X, Q, K: right(X, Q, K) / Q.shape[1],
        ),
        "These are attention weights: scores come before the softmax.": (
            lambda X, Q, K: right(X, Q, K).softmax(-1),
            lambda X, Q, K: (right(X, Q, K) / Q.shape[1] ** 0.5).softmax(-1),
        ),
    }
    # In the first W is square: transposed it still gives numbers.
    sizes = ((5, 3, 3), (7, 5, 2), (2, 3, 5))
    cases = [(draw(s, D), draw(D, d), draw(D, d)) for s, D, d in sizes]
    return judge(fn, right, cases, wrong, see="section 2")


@never_raising
def bank_asks_for_money(w_q: Any, w_k: Any) -> Verdict:
    """Choose ``w_q`` and ``w_k`` (2, 2) so that *bank* scores money at least 1 above the rest.

    The phrase is "river money bank", rows [2, 0], [0, 2], [1, 0]; the scores are raw.
    """
    read = typed(w_q=(w_q, (2, 2)), w_k=(w_k, (2, 2)))
    if isinstance(read, Verdict):
        return read
    before, after = X @ X.T, (X @ read[0]) @ (X @ read[1]).T
    same = torch.eye(2, dtype=torch.float64)
    keys_alone = read[0].equal(same) and not read[1].equal(same)
    others = read[1].equal(same) and (X[2] @ read[0]).equal(X[2]) and not read[0].equal(same)

    def lead(by_word: Tensor) -> float:
        return float(by_word[1] - max(by_word[0], by_word[2]))

    won = lead(after[2]) > 1 - 1e-6
    if won:
        text = "Right"
    elif lead(after[:, 2]) > 1 - 1e-6:
        text = "Queries are rows and keys are columns, and here money asks for bank"
    elif others:
        text = "You changed what another word asks, not what bank asks"
    elif keys_alone and torch.equal(after[2], before[2]):
        text = "You changed W_K, but nothing that meets the query of bank"
    elif lead(after[2]) > 0:
        text = "Money leads, but by less than 1"
    else:
        text = "Money does not lead yet"
    river, money, bank = after[2].tolist()
    text += f": bank scores river {river:.3g}, money {money:.3g}, bank {bank:.3g}."
    return Verdict(won, text if won else pointing(text, "section 2"))


@never_raising
def bank_ignores_money(w_q: Any, w_k: Any) -> Verdict:
    """Choose ``w_q`` and ``w_k`` (2, 2) so that *bank* gives money an attention weight below 0.01.

    The phrase is "river money bank"; *river* and *bank* keep at least 0.1 each.
    """
    read = typed(w_q=(w_q, (2, 2)), w_k=(w_k, (2, 2)))
    if isinstance(read, Verdict):
        return read
    same = torch.eye(2, dtype=torch.float64)
    asks_as_before = read[1].equal(same) and (X[2] @ read[0]).equal(X[2])
    steps = attention(X @ read[0], X @ read[1], X)
    score, weights = steps.raw[2, 1].item(), steps.weights
    river, money, bank = weights[2].tolist()
    won = money < 0.01 and min(river, bank) >= 0.1
    if won:
        text = "Right"
    elif weights[1, 2] < 0.01 <= money and steps.raw[1, 2] < 0:
        text = "Queries are rows and keys are columns, and here money ignores bank"
    elif asks_as_before and not read[0].equal(same):
        text = "You changed what another word asks, not what bank asks"
    elif money < 0.01:
        text = "Money is ignored, but so is another: both keep at least 0.1"
    elif abs(score) < 1e-6:
        text = "A score of 0 is not ignored: the softmax gives it a share"
    elif score < 0:
        text = "A score below 0, but not far enough below the others"
    else:
        text = "Bank looks for money: the score has the wrong sign"
    text += f" (bank gives river {river:.2f}, money {money:.3f}, itself {bank:.2f})."
    return Verdict(won, text if won else pointing(text, "section 3"))


@never_raising
def what_moves(scores: Any, output: Any) -> Verdict:
    """Give the names of the matrices that can change the scores, and the output.

    Each is a list of some of ``"W_Q"``, ``"W_K"`` and ``"W_V"``.
    """
    if undone((scores, output)):
        return Verdict(False, UNDONE + "put your names in place of the dots and run again.")
    given = []
    for name, value in (("scores", scores), ("output", output)):
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple | set | frozenset):
            return Verdict(False, f"Expected a list of names, got {type(names).__name__}.")
        found = {n.strip().upper() if isinstance(n, str) else repr(n) for n in names}
        if found - {"W_Q", "W_K", "W_V"}:
            text = f'{name} names something else: choose among "W_Q", "W_K" and "W_V".'
            return Verdict(False, text)
        given.append(found)
    moves_scores, moves_output = given
    if "W_V" in moves_scores:
        text = "W_V steers what is handed over, not where a word looks: no score moves with it."
    elif not moves_scores:
        text = "Something moves the scores: change one number of each matrix and look again."
    elif len(moves_scores) == 1:
        text = "A score has two sides, who asks and who is asked: each has its matrix."
    elif not moves_output:
        text = "Something moves the output: change one number of each matrix and look again."
    elif "W_V" not in moves_output:
        text = "The output is a mixture of the values: what they are matters too."
    elif len(moves_output) == 1:
        text = "The output is mixed in shares that follow the scores: they matter too."
    elif len(moves_output) == 2:
        text = "Both sides of a score move the shares, and with them the output."
    else:
        return Verdict(True, "Right: W_V moves what is received, never where a word looks.")
    return Verdict(False, pointing(text, "section 2"))


def receive(fn: Any) -> Verdict:
    """Write ``fn(shares, X, W_V)``: what each word receives, (S, d_v).

    Row i of ``shares`` (S, S) says how much word i takes from each; ``X`` (S, D), ``W_V`` (D, d_v).
    """
    draw = drawer()

    def right(shares: Tensor, X: Tensor, W_V: Tensor) -> Tensor:
        return shares @ (X @ W_V)

    wrong = {
        "Rows are queries: in yours each word sends along its row, instead of receiving.": (
            lambda s, X, W: right(s.T, X, W)
        ),
        "The words themselves are handed over: values are made with W_V.": lambda s, X, W: s @ X,
        "Nothing is mixed yet: those are the values.": lambda s, X, W: X @ W,
        "W_V looks transposed, as nn.Linear stores it.": lambda s, X, W: right(s, X, W.T),
        "Each word takes everything from one other: shares blend, they do not pick.": (
            lambda s, X, W: (X @ W)[s.argmax(1)]
        ),
        "Every word receives the same: each has its own row of shares.": (
            lambda s, X, W: right(s.mean(0).expand_as(s), X, W),
            lambda s, X, W: (X @ W).mean(0).expand(len(X), -1),
            lambda s, X, W: s.mean(0) @ X @ W,
        ),
        "These shares are made already: no softmax is due.": (
            lambda s, X, W: right(s.softmax(-1), X, W),
            lambda s, X, W: attention(X, X, X @ W).output,
        ),
        "A row of shares times the values: the shares stand on the left.": (
            lambda s, X, W: (X @ W) @ s,
            lambda s, X, W: X @ s @ W,
        ),
        "Each word is a row of the result: yours are columns.": lambda s, X, W: right(s, X, W).T,
        "You added the word itself: here only the mixture is asked for.": (
            lambda s, X, W: right(s, X, W) + X @ W,
            lambda s, X, W: right(s, X, W) + X,
        ),
    }
    # In the first W_V is square: transposed it still gives numbers.
    sizes = ((5, 3, 3), (4, 2, 7), (3, 5, 2))
    cases = [((2 * draw(s, s)).softmax(-1), draw(s, D), draw(D, d)) for s, D, d in sizes]
    return judge(fn, right, cases, wrong, see="section 3")


def look_for(fn: Any) -> Verdict:
    """Write ``fn(who)``: W_Q (V, V) with which word i gives word ``who[i]`` 1 and all others 0.

    The embeddings are the V one-hot rows, and W_K is the identity; ``who`` is (V,).
    """

    def right(who: Tensor) -> Tensor:
        return one_hot(who, len(who)).float()

    wrong = {
        "Queries are rows: in yours word i is looked for by who[i].": lambda who: right(who).T,
        "There each word looks for itself: attention need not be likeness.": (
            lambda who: torch.eye(len(who))
        ),
        "Looking is one way: who is looked for need not look back.": (
            lambda who: (right(who) + right(who).T).clamp(max=1),
            lambda who: right(who) + right(who).T,
        ),
        "A row reaches all words, also those nobody looks for.": (one_hot,),
        "An id is a name, not an amount: the score asked for is 1.": (
            lambda who: right(who) * who[:, None],
            lambda who: who.float().diag(),
            lambda who: who.float().expand(len(who), -1),
        ),
        "All look for all: only one score of each row is 1.": (
            lambda who: torch.ones(len(who), len(who))
        ),
        "Besides the one it looks for, a word still looks for itself.": (
            lambda who: (right(who) + torch.eye(len(who))).clamp(max=1),
            lambda who: right(who) + torch.eye(len(who)),
        ),
        "These are shares: the scores are asked for.": (
            lambda who: right(who).softmax(-1),
            lambda who: (right(who) / len(who) ** 0.5).softmax(-1),
        ),
        "Those are the ids: W_Q has a row for each word that asks.": (lambda who: who,),
        "Nobody looks for anybody yet.": lambda who: torch.zeros(len(who), len(who)),
    }
    cases = [(torch.tensor(who),) for who in ([2, 0, 3, 2, 1], [1, 2, 0, 0], [4, 3, 4, 1, 2, 0, 0])]
    return judge(fn, right, cases, wrong, see="section 2")
