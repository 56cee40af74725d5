"""The exercises of notebook 2."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, Verdict, Wrong, done, normal_source, numbers, values
from attnlab.core import attention
from attnlab.data import embedding_table

X = embedding_table().double()  # "river money bank"
IDENTITY = torch.eye(2, dtype=torch.float64)


@exercise("2.1", "my_scores", section="section 2")
def scores() -> Comparison:
    """Write ``fn(X, W_Q, W_K)``: raw scores (S, S) from ``X`` (S, D) and two matrices (D, d)."""
    draw = normal_source()

    def right(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
        return (X @ W_Q) @ (X @ W_K).T

    mistakes = {
        "Queries are rows and keys are columns.": lambda X, Q, K: right(X, K, Q),
        "The projections are missing: you compared X with itself.": lambda X, Q, K: X @ X.T,
        "Your W look transposed, as nn.Linear stores them.": lambda X, Q, K: right(X, Q.T, K.T),
        "You used one matrix for both: queries and keys have one each.": (
            lambda X, Q, K: right(X, Q, Q),
            lambda X, Q, K: right(X, K, K),
        ),
        "Only one side is projected: project both queries and keys.": (
            lambda X, Q, K: X @ Q @ X.T,
            lambda X, Q, K: X @ (X @ K).T,
        ),
        "Transposing a product reverses its order: (X W_K).T is W_K.T X.T.": (
            lambda X, Q, K: X @ Q @ K @ X.T
        ),
        "Every query is compared with every key: transpose the keys.": (
            lambda X, Q, K: (X @ Q) @ (X @ K)
        ),
        "You compared columns with columns: words are rows.": lambda X, Q, K: (X @ Q).T @ (X @ K),
        "Those two matrices do not depend on the words: X is missing.": lambda X, Q, K: Q @ K.T,
        "These are cosines: raw scores keep the lengths.": (
            lambda X, Q, K: normalize(X @ Q) @ normalize(X @ K).T
        ),
        "These scores are scaled: return the raw ones.": (
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
    inputs = [(draw(s, D), draw(D, d), draw(D, d)) for s, D, d in sizes]
    return Comparison(right, inputs, mistakes)


@exercise("2.2", "my_W_Q", "my_W_K", section="section 2")
def bank_asks_for_money() -> Judge:
    """Choose ``W_Q`` and ``W_K`` (2, 2) so that *bank* scores money at least 1 above the rest.

    The phrase is "river money bank", rows [2, 0], [0, 2], [1, 0]; the scores are raw.
    """

    def lead(by_word: Tensor) -> float:
        return float(by_word[1] - max(by_word[0], by_word[2]))

    def judge(W_Q: Tensor, W_K: Tensor) -> Verdict | str:
        before, after = X @ X.T, (X @ W_Q) @ (X @ W_K).T
        river, money, bank = after[2].tolist()
        facts = f": bank scores river {river:.3g}, money {money:.3g}, bank {bank:.3g}."
        if lead(after[2]) > 1 - 1e-6:
            return done("Right" + facts)
        if lead(after[:, 2]) > 1 - 1e-6:
            text = "Queries are rows and keys are columns, and here money asks for bank"
        elif W_K.equal(IDENTITY) and (X[2] @ W_Q).equal(X[2]) and not W_Q.equal(IDENTITY):
            text = "You changed what another word asks, not what bank asks"
        elif W_Q.equal(IDENTITY) and not W_K.equal(IDENTITY) and after[2].equal(before[2]):
            text = "You changed W_K, but nothing that meets the query of bank"
        elif lead(after[2]) > 0:
            text = "Money leads, but by less than 1"
        else:
            text = "Money does not lead yet"
        return text + facts

    return values(judge, my_W_Q=(2, 2), my_W_K=(2, 2))


@exercise("2.3", "my_receive", section="section 3")
def receive() -> Comparison:
    """Write ``fn(shares, X, W_V)``: what each word receives, (S, d_v).

    Row i of ``shares`` (S, S) says how much word i takes from each; ``X`` (S, D), ``W_V`` (D, d_v).
    """
    draw = normal_source()

    def right(shares: Tensor, X: Tensor, W_V: Tensor) -> Tensor:
        return shares @ (X @ W_V)

    mistakes = {
        "Rows are queries: in yours each word sends along its row instead of receiving.": (
            lambda s, X, W: right(s.T, X, W)
        ),
        "You mixed the embeddings themselves: values are made with W_V.": lambda s, X, W: s @ X,
        "Nothing is mixed yet: those are the values.": lambda s, X, W: X @ W,
        "W_V looks transposed, as nn.Linear stores it.": lambda s, X, W: right(s, X, W.T),
        "Each word takes everything from one other: the shares are to be mixed.": (
            lambda s, X, W: (X @ W)[s.argmax(1)]
        ),
        "Every word receives the same: each has its own row of shares.": (
            lambda s, X, W: right(s.mean(0).expand_as(s), X, W),
            lambda s, X, W: (X @ W).mean(0).expand(len(X), -1),
            lambda s, X, W: s.mean(0) @ X @ W,
        ),
        "The shares are weights already: no softmax is needed.": (
            lambda s, X, W: right(s.softmax(-1), X, W),
            lambda s, X, W: attention(X, X, X @ W).output,
        ),
        "The shares come first in the product: shares @ values.": (
            lambda s, X, W: (X @ W) @ s,
            lambda s, X, W: X @ s @ W,
        ),
        "Each word is a row of the result: yours are columns.": lambda s, X, W: right(s, X, W).T,
        "You added the word itself: return only the mixture.": (
            lambda s, X, W: right(s, X, W) + X @ W,
            lambda s, X, W: right(s, X, W) + X,
        ),
    }
    # In the first W_V is square: transposed it still gives numbers.
    sizes = ((5, 3, 3), (4, 2, 7), (3, 5, 2))
    inputs = [((2 * draw(s, s)).softmax(-1), draw(s, D), draw(D, d)) for s, D, d in sizes]
    return Comparison(right, inputs, mistakes)


@exercise("2.4", "my_score_movers", "my_output_movers", section="section 2")
def what_moves() -> Judge:
    """Give the names of the matrices that can change the scores, and the output.

    Each is a list of some of ``"W_Q"``, ``"W_K"`` and ``"W_V"``.
    """

    def judge(scores: Any, output: Any) -> Verdict | str:
        moves_scores, moves_output = names("scores", scores), names("output", output)
        if "W_V" in moves_scores:
            return "W_V determines what is passed on, not where a word looks: no score changes."
        if not moves_scores:
            return "Something changes the scores: change one number of each matrix and look again."
        if len(moves_scores) == 1:
            return "A score has two sides, the query and the key: each has its matrix."
        if not moves_output:
            return "Something changes the output: change one number of each matrix and look again."
        if "W_V" not in moves_output:
            return "The output is a mixture of the values: it changes with W_V."
        if len(moves_output) == 1:
            return "The weights of the mixture come from the scores: they matter too."
        if len(moves_output) == 2:
            return "Both sides of a score change the weights, and with them the output."
        return done("Right: W_V changes what is received, never where a word looks.")

    def names(part: str, value: Any) -> set[str]:
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple | set | frozenset):
            raise Wrong(f"Expected a list of names, got {type(given).__name__}.")
        found = {n.strip().upper() if isinstance(n, str) else repr(n) for n in given}
        if found - {"W_Q", "W_K", "W_V"}:
            text = f'{part} names something else: choose among "W_Q", "W_K" and "W_V".'
            raise Wrong(text)
        return found

    return judge


@exercise("2.5", "my_ignoring_W_Q", "my_ignoring_W_K", section="section 3")
def bank_ignores_money() -> Judge:
    """Choose ``W_Q`` and ``W_K`` (2, 2) so that *bank* gives money an attention weight below 0.01.

    The phrase is "river money bank"; *river* and *bank* keep at least 0.1 each.
    """

    def judge(W_Q: Tensor, W_K: Tensor) -> Verdict | str:
        asks_as_before = W_K.equal(IDENTITY) and (X[2] @ W_Q).equal(X[2])
        steps = attention(X @ W_Q, X @ W_K, X)
        score, weights = steps.raw[2, 1].item(), steps.weights
        river, money, bank = weights[2].tolist()
        facts = f" (bank gives river {river:.2f}, money {money:.3f}, itself {bank:.2f})."
        if money < 0.01 and min(river, bank) >= 0.1:
            return done("Right" + facts)
        if weights[1, 2] < 0.01 <= money and steps.raw[1, 2] < 0:
            text = "Queries are rows and keys are columns, and here money ignores bank"
        elif asks_as_before and not W_Q.equal(IDENTITY):
            text = "You changed what another word asks, not what bank asks"
        elif money < 0.01:
            text = "Money is ignored, but so is another word: both are to keep at least 0.1"
        elif abs(score) < 1e-6:
            text = "A score of 0 does not mean ignored: the softmax still gives it a share"
        elif score < 0:
            text = "The score is below 0, but not far enough below the others"
        else:
            text = "Bank looks for money: the score has the wrong sign"
        return text + facts

    return values(judge, my_ignoring_W_Q=(2, 2), my_ignoring_W_K=(2, 2))


@exercise("2.6", "my_look_for", section="section 2")
def look_for() -> Comparison:
    """Write ``fn(who)``: W_Q (V, V) with which word i gives word ``who[i]`` 1 and all others 0.

    The embeddings are the V one-hot rows, and W_K is the identity; ``who`` is (V,).
    """

    def right(who: Tensor) -> Tensor:
        return one_hot(who, len(who)).float()

    mistakes = {
        "Queries are rows: in yours who[i] looks for word i.": lambda who: right(who).T,
        "In yours each word looks for itself: word i is to look for who[i].": (
            lambda who: torch.eye(len(who))
        ),
        "Looking goes one way: the word that is looked for need not look back.": (
            lambda who: (right(who) + right(who).T).clamp(max=1),
            lambda who: right(who) + right(who).T,
        ),
        "A row has an entry for every word, also for those that nobody looks for.": (one_hot,),
        "An id is a label, not an amount: the score is to be 1.": (
            lambda who: right(who) * who[:, None],
            lambda who: who.float().diag(),
            lambda who: who.float().expand(len(who), -1),
        ),
        "In yours all words look for all: only one score in each row is 1.": (
            lambda who: torch.ones(len(who), len(who))
        ),
        "In yours a word also looks for itself.": (
            lambda who: (right(who) + torch.eye(len(who))).clamp(max=1),
            lambda who: right(who) + torch.eye(len(who)),
        ),
        "These are attention weights: return the scores.": (
            lambda who: right(who).softmax(-1),
            lambda who: (right(who) / len(who) ** 0.5).softmax(-1),
        ),
        "Those are the ids: W_Q has a row for each query.": (lambda who: who,),
        "All scores are 0: no word looks for another yet.": lambda who: torch.zeros(
            len(who), len(who)
        ),
    }
    inputs = [
        (torch.tensor(who),) for who in ([2, 0, 3, 2, 1], [1, 2, 0, 0], [4, 3, 4, 1, 2, 0, 0])
    ]
    return Comparison(right, inputs, mistakes)


@exercise("2.7", "my_other_W_K", section="section 2")
def same_scores() -> Comparison:
    """Write ``fn(W_K, A)``: the W_K (D, d) with which ``W_Q @ A`` gives the scores as before.

    ``A`` (d, d) can be inverted; the scores are ``(X @ W_Q) @ (X @ W_K).T`` for every X.
    """
    draw = normal_source()

    def right(W_K: Tensor, A: Tensor) -> Tensor:
        return W_K @ torch.linalg.inv(A).T

    mistakes = {
        "A is not undone yet: the queries have changed, and these are the old keys.": (
            lambda W_K, A: W_K
        ),
        "Changed alike on both sides, A counts twice: it must be undone.": lambda W_K, A: W_K @ A,
        "That brings A in once more: undo it with its inverse.": lambda W_K, A: W_K @ A.T,
        "The inverse stands in W_K.T: transposed back, it is the inverse of A.T.": (
            lambda W_K, A: W_K @ torch.linalg.inv(A)
        ),
        "That is W_K.T of the new keys: transpose it once more.": lambda W_K, A: right(W_K, A).T,
        "Each entry of A was inverted: a matrix is undone by torch.linalg.inv(A).": (
            lambda W_K, A: W_K @ (1 / A).T,
            lambda W_K, A: W_K @ (1 / A),
        ),
        "That is what undoes A: the new W_K is made of it and the old one.": (
            lambda W_K, A: torch.linalg.inv(A),
            lambda W_K, A: torch.linalg.inv(A).T,
        ),
    }
    sizes = ((5, 3), (7, 2), (4, 4))
    inputs = [(draw(D, d), draw(d, d) + 3 * torch.eye(d)) for D, d in sizes]
    return Comparison(right, inputs, mistakes)


@exercise("2.8", "my_n_parameters", "my_n_scores", section="section 2")
def parameters_and_scores() -> Judge:
    """Give how many parameters W_Q, W_K, W_V have, and how many scores a phrase of 10 words has.

    D = 6, d_k = 4, d_v = 3, no biases.
    """
    parameters = {
        "Parameters are learned once: how long a phrase is does not change them.": (660, 6600),
        "W_K has parameters, too: as many as W_Q.": 42,
        "W_V has parameters, too: D · d_v.": 48,
        "d_v is the width of the values: W_V has D · d_v numbers.": (72, 54),
        "W_Q, W_K and W_V have no biases here.": 77,
        "Each matrix has D rows: multiply by D, do not add.": (29, 11),
    }
    scores = {
        "Those are parameters: scores are computed, one for each pair of words.": (66, 24, 48),
        "Each of the 10 words gives a score to every word, itself included.": (90, 45, 55, 10, 20),
        "A score is one number, whatever the width of queries and keys.": (400, 40, 600, 300),
    }
    return numbers(
        ("the number of parameters", 66, parameters),
        ("the number of scores", 100, scores),
        message="Right: parameters do not grow with the phrase, scores do.",
    )
