"""Answers to the exercises of notebook 2."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from answers import Answers
from attnlab import attention

SECTION_2, SECTION_3 = " See section 2.", " See section 3."
EYE = torch.eye(2)


# --- Scores ---------------------------------------------------------------------------------


def scores_in_a_loop(X, W_Q, W_K):
    table = torch.zeros(len(X), len(X))
    for i in range(len(X)):
        for j in range(len(X)):
            table[i, j] = (X[i] @ W_Q) @ (X[j] @ W_K)
    return table


def scores_by_linear(X, W_Q, W_K):
    queries, keys = nn.Linear(*W_Q.shape, bias=False), nn.Linear(*W_K.shape, bias=False)
    queries.weight.data, keys.weight.data = W_Q.T, W_K.T
    return queries(X) @ keys(X).T


SWAPPED = "Queries are rows and keys are columns." + SECTION_2
TRANSPOSED = "Your W look transposed, as nn.Linear stores them." + SECTION_2
ONE_FOR_BOTH = "You used one matrix for both: queries and keys have one each." + SECTION_2
ONE_SIDE = "Only one side is projected: project both queries and keys." + SECTION_2
SCALED = "These scores are scaled: return the raw ones." + SECTION_2
WEIGHTS = "These are attention weights: scores come before the softmax." + SECTION_2

SCORES = Answers(
    right=[
        lambda X, W_Q, W_K: (X @ W_Q) @ (X @ W_K).T,
        scores_in_a_loop,
        lambda X, W_Q, W_K: torch.einsum("sd,de,fe,tf->st", X, W_Q, W_K, X),
        lambda X, W_Q, W_K: F.linear(X.double() @ W_Q.double(), X.double() @ W_K.double()),
        lambda X, W_Q, W_K: nn.Parameter(X @ W_Q) @ (X @ W_K).mT,
        scores_by_linear,
        lambda X, W_Q, W_K: attention(X @ W_Q, X @ W_K, X).raw,
    ],
    wrong=[
        (
            lambda X, W_Q, W_K: X @ W_Q @ W_K @ X.T,
            "Transposing a product reverses its order: (X W_K).T is W_K.T X.T. See section 2.",
        ),
        (lambda X, Q, K: (X @ K) @ (X @ Q).T, SWAPPED),
        (lambda X, Q, K: scores_in_a_loop(X, Q, K).T, SWAPPED),
        (
            lambda X, Q, K: X @ X.T,
            "The projections are missing: you compared X with itself." + SECTION_2,
        ),
        (lambda X, Q, K: X @ Q.T @ (X @ K.T).T, TRANSPOSED),
        (
            lambda X, Q, K: torch.einsum("sd,ed,te->st", X, Q, torch.einsum("td,ed->te", X, K)),
            TRANSPOSED,
        ),
        (lambda X, Q, K: F.linear(F.linear(X, Q), F.linear(X, K)), TRANSPOSED),
        (lambda X, Q, K: (X @ Q) @ (X @ Q).T, ONE_FOR_BOTH),
        (lambda X, Q, K: (X @ K) @ (X @ K).T, ONE_FOR_BOTH),
        (lambda X, Q, K: (X @ Q) @ X.T, ONE_SIDE),
        (lambda X, Q, K: X @ (X @ K).T, ONE_SIDE),
        (lambda X, Q, K: scores_in_a_loop(X, Q, K) / math.sqrt(Q.shape[-1]), SCALED),
        (lambda X, Q, K: F.softmax(X @ Q @ (X @ K).T, dim=1), WEIGHTS),
        (lambda X, Q, K: attention(X @ Q, X @ K, X).weights, WEIGHTS),
        (
            lambda X, Q, K: X @ Q @ (X @ K),
            "Every query is compared with every key: transpose the keys." + SECTION_2,
        ),
        (
            lambda X, Q, K: torch.einsum("sd,se->de", X @ Q, X @ K),
            "You compared columns with columns: words are rows." + SECTION_2,
        ),
        (
            lambda X, Q, K: Q @ K.T,
            "Those two matrices do not depend on the words: X is missing." + SECTION_2,
        ),
        (
            lambda X, Q, K: F.cosine_similarity((X @ Q)[:, None], (X @ K)[None], dim=-1),
            "These are cosines: raw scores keep the lengths." + SECTION_2,
        ),
    ],
)


# --- Bank asks for money --------------------------------------------------------------------


def two(*rows):
    return torch.tensor(rows, dtype=torch.float32)


BANK_ASKS_FOR_MONEY = Answers(
    right=[
        (two((0, 1), (0, 0)), EYE),
        (two((1, 3), (0, 1)).double(), nn.Parameter(EYE)),
        (EYE.bfloat16(), two((0, 1), (1, 0))),
        (two((-1, 0.5), (7, 7)), EYE),
        (EYE, two((-1, 0), (2, 0))),
    ],
    wrong=[
        (
            (torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 3.0]])),
            "You changed W_K, but nothing that meets the query of bank: "
            "bank scores river 2, money 0, bank 1." + SECTION_2,
        ),
        ((EYE, EYE), "Money does not lead yet: bank scores river 2, money 0, bank 1." + SECTION_2),
        (
            (torch.zeros(2, 2), EYE),
            "Money does not lead yet: bank scores river 0, money 0, bank 0." + SECTION_2,
        ),
        (
            (two((1, 1), (0, 1)), EYE),
            "Money does not lead yet: bank scores river 2, money 2, bank 1." + SECTION_2,
        ),
        (
            (two((1, 1.25), (0, 1)), EYE),
            "Money leads, but by less than 1: bank scores river 2, money 2.5, bank 1." + SECTION_2,
        ),
        (
            (two((1, 0), (0, 5)), EYE),
            "You changed what another word asks, not what bank asks: "
            "bank scores river 2, money 0, bank 1." + SECTION_2,
        ),
        (
            (two((1, 0), (3, 1)), EYE),
            "Queries are rows and keys are columns, and here money asks for bank: "
            "bank scores river 2, money 0, bank 1." + SECTION_2,
        ),
        (
            (EYE, two((1, 3), (0, 1))),
            "Queries are rows and keys are columns, and here money asks for bank: "
            "bank scores river 2, money 0, bank 1." + SECTION_2,
        ),
        (([[0.0, 1.0], [0.0, 0.0]], EYE), "Expected a torch.Tensor, got list."),
        ((EYE, np.eye(2)), "Expected a torch.Tensor, got ndarray."),
        ((EYE.long(), EYE), "my_W_Q holds int64, expected floats: use .float()."),
        ((EYE, torch.eye(3)), "my_W_K has shape (3, 3), expected (2, 2)."),
    ],
)


# --- What a word receives -------------------------------------------------------------------


def received_in_a_loop(shares, X, W_V):
    rows = []
    for row in shares:
        rows.append(sum(share * (x @ W_V) for share, x in zip(row, X, strict=True)))
    return torch.stack(rows)


def sent_in_a_loop(shares, X, W_V):
    received = torch.zeros(len(X), W_V.shape[1])
    for i in range(len(X)):
        for j in range(len(X)):
            received[j] += shares[i, j] * (X[i] @ W_V)
    return received


SENDS = "Rows are queries: in yours each word sends along its row instead of receiving." + SECTION_3
AVERAGED = "Every word receives the same: each has its own row of shares." + SECTION_3
PICKED = "Each word takes everything from one other: the shares are to be mixed." + SECTION_3
TOO_MUCH = "You added the word itself: return only the mixture." + SECTION_3

RECEIVE = Answers(
    right=[
        lambda shares, X, W_V: shares @ (X @ W_V),
        received_in_a_loop,
        lambda shares, X, W_V: torch.einsum("st,td,dv->sv", shares, X, W_V),
        lambda shares, X, W_V: shares.double() @ X.double() @ W_V.double(),
        lambda shares, X, W_V: F.linear(shares @ X, W_V.T),
        lambda shares, X, W_V: (shares[:, :, None] * (X @ W_V)).sum(dim=1),
    ],
    wrong=[
        (lambda s, X, W: s.T @ (X @ W), SENDS),
        (sent_in_a_loop, SENDS),
        (
            lambda s, X, W: s @ X,
            "You mixed the embeddings themselves: values are made with W_V." + SECTION_3,
        ),
        (lambda s, X, W: X @ W, "Nothing is mixed yet: those are the values." + SECTION_3),
        (
            lambda s, X, W: s @ F.linear(X, W),
            "W_V looks transposed, as nn.Linear stores it." + SECTION_3,
        ),
        (lambda s, X, W: torch.stack([X[row.argmax()] @ W for row in s]), PICKED),
        (lambda s, X, W: (F.one_hot(s.argmax(-1), len(X)).float() @ X) @ W, PICKED),
        (lambda s, X, W: (X @ W).mean(0, keepdim=True).repeat(len(X), 1), AVERAGED),
        (lambda s, X, W: s.mean(dim=0) @ (X @ W), AVERAGED),
        (
            lambda s, X, W: F.softmax(s, dim=1) @ X @ W,
            "The shares are weights already: no softmax is needed." + SECTION_3,
        ),
        (
            lambda s, X, W: attention(X, X, X @ W).output,
            "The shares are weights already: no softmax is needed." + SECTION_3,
        ),
        (
            lambda s, X, W: (X @ W) @ s,
            "The shares come first in the product: shares @ values." + SECTION_3,
        ),
        (
            lambda s, X, W: W.T @ X.T @ s.T,
            "Each word is a row of the result: yours are columns." + SECTION_3,
        ),
        (lambda s, X, W: X @ W + s @ X @ W, TOO_MUCH),
    ],
)


# --- What moves -----------------------------------------------------------------------------

STEERS = "W_V determines what is passed on, not where a word looks: no score changes."
TWO_SIDES = "A score has two sides, the query and the key: each has its matrix."
BOTH_SIDES = "Both sides of a score change the weights, and with them the output."
ALL = ["W_Q", "W_K", "W_V"]

WHAT_MOVES = Answers(
    right=[
        (["W_Q", "W_K"], ALL),
        (("W_K", "W_Q"), ("W_V", "W_K", "W_Q")),
        ({"W_Q", "W_K"}, set(ALL)),
        (["w_q", "w_k"], [" W_Q", "W_K ", "W_V", "W_V"]),
    ],
    wrong=[
        ((ALL, ALL), STEERS + SECTION_2),
        ((["W_V"], ALL), STEERS + SECTION_2),
        (("W_V", "W_V"), STEERS + SECTION_2),
        ((["W_Q"], ALL), TWO_SIDES + SECTION_2),
        ((["W_K"], ["W_K", "W_V"]), TWO_SIDES + SECTION_2),
        (
            ([], ALL),
            "Something changes the scores: change one number of each matrix and look again."
            + SECTION_2,
        ),
        (
            (["W_Q", "W_K"], []),
            "Something changes the output: change one number of each matrix and look again."
            + SECTION_2,
        ),
        (
            (["W_Q", "W_K"], ["W_V"]),
            "The weights of the mixture come from the scores: they matter too." + SECTION_2,
        ),
        (
            (["W_Q", "W_K"], ["W_Q", "W_K"]),
            "The output is a mixture of the values: it changes with W_V." + SECTION_2,
        ),
        ((["W_Q", "W_K"], ["W_Q", "W_V"]), BOTH_SIDES + SECTION_2),
        ((["W_Q", "W_K"], ["W_K", "W_V"]), BOTH_SIDES + SECTION_2),
        ((["Q", "K"], ALL), 'scores names something else: choose among "W_Q", "W_K" and "W_V".'),
        (
            (["W_Q", "W_K"], [EYE]),
            'output names something else: choose among "W_Q", "W_K" and "W_V".',
        ),
        ((2, 3), "Expected a list of names, got int."),
    ],
)


# --- Bank ignores money ---------------------------------------------------------------------

BANK_IGNORES_MONEY = Answers(
    right=[
        (two((1, -4), (0, 1)), EYE),
        (EYE, two((1, 0), (-4, 1))),
        (two((1, -9), (5, 5)).double(), nn.Parameter(EYE)),
        (two((0, -100), (0, 0)).bfloat16(), EYE),
        (two((0, 1), (0, 0)), two((0, 0), (0, -5))),
    ],
    wrong=[
        (
            (EYE, EYE),
            "A score of 0 does not mean ignored: the softmax still gives it a share "
            "(bank gives river 0.58, money 0.140, itself 0.28)." + SECTION_3,
        ),
        (
            (torch.zeros(2, 2), EYE),
            "A score of 0 does not mean ignored: the softmax still gives it a share "
            "(bank gives river 0.33, money 0.333, itself 0.33)." + SECTION_3,
        ),
        (
            (EYE, two((1, 0), (0, 0))),
            "A score of 0 does not mean ignored: the softmax still gives it a share "
            "(bank gives river 0.58, money 0.140, itself 0.28)." + SECTION_3,
        ),
        (
            (two((1, -1), (0, 1)), EYE),
            "The score is below 0, but not far enough below the others "
            "(bank gives river 0.64, money 0.038, itself 0.32)." + SECTION_3,
        ),
        (
            (two((1, 4), (0, 1)), EYE),
            "Bank looks for money: the score has the wrong sign "
            "(bank gives river 0.01, money 0.979, itself 0.01)." + SECTION_3,
        ),
        (
            (two((1, 0), (-9, 1)), EYE),
            "Queries are rows and keys are columns, and here money ignores bank "
            "(bank gives river 0.58, money 0.140, itself 0.28)." + SECTION_3,
        ),
        (
            (two((1, 0), (0, -1)), EYE),
            "You changed what another word asks, not what bank asks "
            "(bank gives river 0.58, money 0.140, itself 0.28)." + SECTION_3,
        ),
        (
            (two((9, 0), (0, 1)), EYE),
            "Money is ignored, but so is another word: both are to keep at least 0.1 "
            "(bank gives river 1.00, money 0.000, itself 0.00)." + SECTION_3,
        ),
        (([[1.0, -4.0], [0.0, 1.0]], EYE), "Expected a torch.Tensor, got list."),
        (
            (two((1, -4), (0, 1)).long(), EYE),
            "my_ignoring_W_Q holds int64, expected floats: use .float().",
        ),
        (
            (two((1, -math.inf), (0, 1)), EYE),
            "my_ignoring_W_Q is -inf at [0, 1], which is not right.",
        ),
        ((EYE, torch.zeros(2, 3)), "my_ignoring_W_K has shape (2, 3), expected (2, 2)."),
    ],
)


# --- The matrix that makes words look for others --------------------------------------------


def looked_for_in_a_loop(who):
    W_Q = torch.zeros(len(who), len(who))
    for i, j in enumerate(who.tolist()):
        W_Q[i, j] = 1
    return W_Q


ONE_WAY = "Looking goes one way: the word that is looked for need not look back." + SECTION_2
NAMES = "An id is a label, not an amount: the score is to be 1." + SECTION_2
ROWS = "Queries are rows: in yours who[i] looks for word i." + SECTION_2

LOOK_FOR = Answers(
    right=[
        lambda who: F.one_hot(who, len(who)).float(),
        looked_for_in_a_loop,
        lambda who: torch.eye(len(who), dtype=torch.float64)[who],
        lambda who: (who[:, None] == torch.arange(len(who))).bfloat16(),
        lambda who: torch.zeros(len(who), len(who)).scatter(1, who[:, None], 1.0),
        lambda who: torch.einsum("sv,vd->sd", torch.eye(len(who))[who], torch.eye(len(who))),
    ],
    wrong=[
        (lambda who: looked_for_in_a_loop(who).T, ROWS),
        (lambda who: torch.eye(len(who))[:, who], ROWS),
        (
            lambda who: torch.diag(torch.ones(len(who))),
            "In yours each word looks for itself: word i is to look for who[i]." + SECTION_2,
        ),
        (
            lambda who: F.one_hot(torch.arange(len(who))),
            "In yours each word looks for itself: word i is to look for who[i]." + SECTION_2,
        ),
        (lambda who: ((m := looked_for_in_a_loop(who)) + m.T).bool().float(), ONE_WAY),
        (lambda who: F.one_hot(who, len(who)) + F.one_hot(who, len(who)).T, ONE_WAY),
        (
            lambda who: F.one_hot(who).float(),
            "A row has an entry for every word, also for those that nobody looks for." + SECTION_2,
        ),
        (lambda who: torch.diag(who.float()), NAMES),
        (lambda who: looked_for_in_a_loop(who) * who[:, None], NAMES),
        (
            lambda who: torch.ones(len(who), len(who)),
            "In yours all words look for all: only one score in each row is 1." + SECTION_2,
        ),
        (
            lambda who: torch.eye(len(who)) + torch.eye(len(who))[who],
            "In yours a word also looks for itself." + SECTION_2,
        ),
        (
            lambda who: torch.eye(len(who))[who].softmax(dim=1),
            "These are attention weights: return the scores." + SECTION_2,
        ),
        (lambda who: who.float(), "Those are the ids: W_Q has a row for each query." + SECTION_2),
        (
            lambda who: torch.zeros(len(who), len(who)),
            "All scores are 0: no word looks for another yet." + SECTION_2,
        ),
    ],
)


# --- Other matrices, the same scores --------------------------------------------------------


def solved(W_K, A):
    return torch.linalg.solve(A, W_K.T).T


UNDONE = "A is not undone yet: the queries have changed, and these are the old keys." + SECTION_2
ONCE_MORE = "The inverse stands in W_K.T: transposed back, it is the inverse of A.T." + SECTION_2
EACH = "Each entry of A was inverted: a matrix is undone by torch.linalg.inv(A)." + SECTION_2
MAKES = "That is what undoes A: the new W_K is made of it and the old one." + SECTION_2

SAME_SCORES = Answers(
    right=[
        lambda W_K, A: W_K @ torch.linalg.inv(A).T,
        lambda W_K, A: W_K @ torch.linalg.inv(A.T),
        lambda W_K, A: (torch.linalg.inv(A) @ W_K.T).T,
        solved,
        lambda W_K, A: torch.stack([torch.linalg.inv(A) @ row for row in W_K]),
        lambda W_K, A: torch.einsum("ij,dj->di", torch.linalg.pinv(A.double()), W_K.double()),
    ],
    wrong=[
        (lambda W_K, A: W_K.clone(), UNDONE),
        (lambda W_K, A: W_K @ torch.eye(len(A)), UNDONE),
        (
            lambda W_K, A: torch.matmul(W_K, A),
            "Changed alike on both sides, A counts twice: it must be undone." + SECTION_2,
        ),
        (
            lambda W_K, A: (A @ W_K.T).T,
            "That brings A in once more: undo it with its inverse." + SECTION_2,
        ),
        (lambda W_K, A: W_K @ torch.linalg.inv(A), ONCE_MORE),
        (lambda W_K, A: (torch.linalg.inv(A).T @ W_K.T).T, ONCE_MORE),
        (
            lambda W_K, A: torch.linalg.inv(A) @ W_K.T,
            "That is W_K.T of the new keys: transpose it once more." + SECTION_2,
        ),
        (lambda W_K, A: W_K @ A.reciprocal().T, EACH),
        (lambda W_K, A: W_K @ (1 / A), EACH),
        (lambda W_K, A: A.inverse(), MAKES),
        (lambda W_K, A: A.T.inverse(), MAKES),
        (
            lambda W_K, A: torch.linalg.inv(A).T @ W_K,
            "With W_K (5, 3), A (3, 3) your function raised RuntimeError: mat1 and mat2 shapes "
            "cannot be multiplied (3x3 and 5x3). Does one need to be transposed, or is a row "
            "missing?",
        ),
    ],
)


# --- Parameters and scores ------------------------------------------------------------------

LONGER = "Parameters are learned once: how long a phrase is does not change them." + SECTION_2
PAIRS = "Each of the 10 words gives a score to every word, itself included." + SECTION_2
ONE_NUMBER = "A score is one number, whatever the width of queries and keys." + SECTION_2
COMPUTED = "Those are parameters: scores are computed, one for each pair of words." + SECTION_2

PARAMETERS_AND_SCORES = Answers(
    right=[(66, 100), (66.0, 100.0), (torch.tensor(66), 10**2), (np.int64(66), np.float64(100))],
    wrong=[
        ((660, 100), LONGER),
        ((6600, 100), LONGER),
        ((42, 100), "W_K has parameters, too: as many as W_Q." + SECTION_2),
        ((48, 100), "W_V has parameters, too: D · d_v." + SECTION_2),
        ((72, 100), "d_v is the width of the values: W_V has D · d_v numbers." + SECTION_2),
        ((77, 100), "W_Q, W_K and W_V have no biases here." + SECTION_2),
        ((11, 100), "Each matrix has D rows: multiply by D, do not add." + SECTION_2),
        ((66, 66), COMPUTED),
        ((66, 45), PAIRS),
        ((66, 90), PAIRS),
        ((66, 10), PAIRS),
        ((66, 400), ONE_NUMBER),
        ((67, 100), "The number of parameters is 67, which is not right." + SECTION_2),
    ],
)


ANSWERS = {
    "scores": SCORES,
    "bank_asks_for_money": BANK_ASKS_FOR_MONEY,
    "receive": RECEIVE,
    "what_moves": WHAT_MOVES,
    "bank_ignores_money": BANK_IGNORES_MONEY,
    "look_for": LOOK_FOR,
    "same_scores": SAME_SCORES,
    "parameters_and_scores": PARAMETERS_AND_SCORES,
}
