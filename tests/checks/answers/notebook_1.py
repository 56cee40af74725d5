"""Answers to the exercises of notebook 1."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from answers import Answers

SECTION_1, SECTION_2, SECTION_3 = (f" See section {n}." for n in (1, 2, 3))


# --- Lookup ---------------------------------------------------------------------------------


COLUMNS = "A word is a row of E: you looked up columns." + SECTION_1
SHORT = "A one-hot row is as long as the vocabulary, whichever ids occur." + SECTION_1
STILL_ONE_HOT = "Those are the one-hot rows: multiply them by E." + SECTION_1

LOOKUP = Answers(
    right=[
        lambda ids, E: F.one_hot(ids, len(E)).float() @ E,
        lambda ids, E: E[ids],
        lambda ids, E: nn.Embedding.from_pretrained(E.double())(ids),
        lambda ids, E: torch.stack([E[i] for i in ids.tolist()]),
        lambda ids, E: torch.einsum("sv,vd->sd", torch.eye(len(E))[ids], E),
        lambda ids, E: E[ids].bfloat16(),
    ],
    wrong=[
        (
            lambda ids, E: torch.nn.functional.one_hot(ids, 3).float() @ E,
            "A one-hot row is as long as the vocabulary, whichever ids occur. See section 1.",
        ),
        (
            lambda ids, E: (F.one_hot(ids, len(E)).float() @ E).T,
            "Each word is a row of the result: yours are columns." + SECTION_1,
        ),
        (
            lambda ids, E: sum(E[j] for j in ids) / len(ids),
            "You averaged the words: each keeps its own row." + SECTION_1,
        ),
        (lambda ids, E: E[:, ids], COLUMNS),
        (lambda ids, E: torch.stack([E[:, j] for j in ids]), COLUMNS),
        (lambda ids, E: F.one_hot(ids, len(E)), STILL_ONE_HOT),
        (lambda ids, E: torch.eye(len(E))[ids], STILL_ONE_HOT),
        (lambda ids, E: F.one_hot(ids).float() @ E, SHORT),
        (lambda ids, E: F.one_hot(ids, num_classes=len(ids)).float() @ E, SHORT),
        (lambda ids, E: torch.eye(E.shape[1])[ids] @ E, SHORT),
        (
            lambda ids, E: F.one_hot(ids, E.shape[0]) @ E,
            "One-hot rows start as integers: use .float() before the product." + SECTION_1,
        ),
    ],
)


# --- Cosine ---------------------------------------------------------------------------------


ONE_LENGTH = "You divided by one length only: both vectors have one." + SECTION_2
LENGTH = "A length is the root of the sum of squares, a.norm()." + SECTION_2

COSINE = Answers(
    right=[
        lambda a, b: a @ b / (a.norm() * b.norm()),
        lambda a, b: float(F.cosine_similarity(a.double(), b.double(), dim=0)),
        lambda a, b: (a * b).sum() / torch.sqrt((a**2).sum() * (b**2).sum()),
        lambda a, b: (a.numpy() @ b.numpy()) / np.linalg.norm(a) / np.linalg.norm(b),
        lambda a, b: sum((a / a.norm()) * (b / b.norm())),
    ],
    wrong=[
        (
            lambda a, b: a @ b / a.norm() * b.norm(),
            "Without brackets you divide by one length and multiply by the other. See section 2.",
        ),
        (
            lambda a, b: (a * b).sum(),
            "That is the dot product: it still grows with the lengths of the vectors." + SECTION_2,
        ),
        (lambda a, b: float(a @ b) / float(a.norm()), ONE_LENGTH),
        (lambda a, b: a @ (b / b.norm()), ONE_LENGTH),
        (
            lambda a, b: a @ b / (sum(a**2) * sum(b**2)),
            "You divided by the squared lengths." + SECTION_2,
        ),
        (
            lambda a, b: math.dist(a.tolist(), b.tolist()),
            "That is a distance: it grows as two vectors move apart." + SECTION_2,
        ),
        (
            lambda a, b: math.acos(F.cosine_similarity(a, b, dim=0)),
            "That is the angle itself." + SECTION_2,
        ),
        (
            lambda a, b: (a / a.norm()) * (b / b.norm()),
            "A cosine is one number: add up the products." + SECTION_2,
        ),
        (lambda a, b: a @ b / len(a), LENGTH),
        (lambda a, b: sum(a * b) / math.sqrt(len(a)), LENGTH),
        (lambda a, b: a @ b / a.sum() / b.sum(), LENGTH),
        (
            lambda a, b: a @ b / (a.norm() + b.norm()),
            "The two lengths are multiplied, not added." + SECTION_2,
        ),
        (
            lambda a, b: abs(a @ b) / (a.norm() * b.norm()),
            "A cosine has a sign: vectors may point in opposite directions." + SECTION_2,
        ),
    ],
)


# --- The row that averages ------------------------------------------------------------------


def counted_in_a_loop(ids, n_words):
    row = [0.0] * n_words
    for i in ids.tolist():
        row[i] += 1 / len(ids)
    return torch.tensor(row)


def scattered(ids, n_words):
    row = torch.zeros(n_words)
    row[ids] = 1.0
    return row / row.sum()


TWICE = "A word that occurs twice counts twice." + SECTION_3
COUNTS = "Those are counts: an average counts every token as 1/S, so the row sums to 1." + SECTION_3
WITHIN = "You summed within each token: sum over the tokens, for each word." + SECTION_3

AVERAGE_ROW = Answers(
    right=[
        lambda ids, n: F.one_hot(ids, n).float().mean(dim=0),
        counted_in_a_loop,
        lambda ids, n: ids.bincount(minlength=n).double() / ids.numel(),
        lambda ids, n: torch.full((1, len(ids)), 1 / len(ids))[0] @ torch.eye(n)[ids],
        lambda ids, n: torch.zeros(n).index_add(0, ids, torch.ones(len(ids)) / len(ids)),
        lambda ids, n: torch.einsum("sv->v", F.one_hot(ids, n).bfloat16()) / len(ids),
    ],
    wrong=[
        (lambda ids, n: F.one_hot(ids, n).sum(0), COUNTS),
        (lambda ids, n: ids.bincount(minlength=n).float(), COUNTS),
        (scattered, TWICE),
        (lambda ids, n: torch.zeros(n).index_fill(0, ids, 1 / len(ids)), TWICE),
        (
            lambda ids, n: ids.bincount(minlength=n) / n,
            "You divided by the size of the table: the average is over the phrase." + SECTION_3,
        ),
        (
            lambda ids, n: torch.eye(n)[ids],
            "Those are the one-hot rows: average them into one row." + SECTION_3,
        ),
        (lambda ids, n: F.one_hot(ids, n).float().mean(dim=1), WITHIN),
        (lambda ids, n: torch.ones(len(ids)) / n, WITHIN),
        (
            lambda ids, n: torch.full((len(ids),), 1 / len(ids)),
            "That row has S entries, but the table has V rows: mind the axis." + SECTION_3,
        ),
        (
            lambda ids, n: torch.ones(n) / n,
            "That averages the whole table: words that do not occur count 0." + SECTION_3,
        ),
        (
            lambda ids, n: F.one_hot(ids).float().mean(dim=0),
            "The row is as long as the vocabulary, whichever ids occur." + SECTION_3,
        ),
        (
            lambda ids, n: sum(ids) / len(ids),
            "An id is a label, not an amount: id 4 is not more than id 2." + SECTION_3,
        ),
        (
            lambda ids, n: torch.cat((torch.ones(len(ids)), torch.zeros(n - len(ids)))) / len(ids),
            "You filled the first entries: the ids say which words count." + SECTION_3,
        ),
    ],
)


# --- Long, but not near ---------------------------------------------------------------------


LONG_NOT_NEAR = Answers(
    right=[
        torch.tensor([3.0, 3.0]),
        torch.tensor([3.0, -4.0], dtype=torch.float64),
        torch.tensor([8.0, 8.0], dtype=torch.bfloat16),
        nn.Parameter(torch.tensor([2.5, 10.0])),
    ],
    wrong=[
        (
            torch.tensor([0.0, 2.0]),
            "At a right angle no length helps: the dot product stays 0 "
            "(bank · money = 0, cosine 0.00)." + SECTION_2,
        ),
        (
            torch.tensor([0.0, 50.0]),
            "At a right angle no length helps: the dot product stays 0 "
            "(bank · money = 0, cosine 0.00)." + SECTION_2,
        ),
        (
            torch.tensor([9.0, 0.0]),
            "Long enough, but it still points almost the same way as bank "
            "(bank · money = 9, cosine 1.00)." + SECTION_2,
        ),
        (
            torch.tensor([3.0, 1.0]),
            "Long enough, but it still points almost the same way as bank "
            "(bank · money = 3, cosine 0.95)." + SECTION_2,
        ),
        (
            torch.tensor([-3.0, 3.0]),
            "It points away from bank: the dot product is negative "
            "(bank · money = -3, cosine -0.71)." + SECTION_2,
        ),
        (
            torch.tensor([1.0, 1.0]),
            "The angle is large enough, but the vector is too short: make it longer "
            "(bank · money = 1, cosine 0.71)." + SECTION_2,
        ),
        (
            torch.tensor([2.0, 2.0]),
            "As large as river's, not larger (bank · money = 2, cosine 0.71)." + SECTION_2,
        ),
        (
            torch.tensor([1.0, 0.1]),
            "It points the same way as bank and is short: the opposite of what is asked "
            "(bank · money = 1, cosine 1.00)." + SECTION_2,
        ),
        (
            torch.zeros(2),
            "A vector of length 0 has no direction (bank · money = 0, cosine 0.00)." + SECTION_2,
        ),
        (torch.tensor([3, 3]), "money holds int64, expected floats: use .float()."),
        (torch.tensor([[3.0, 3.0]]), "money has shape (1, 2), expected (2,)."),
        ([3.0, 3.0], "Expected a torch.Tensor, got list."),
        (torch.tensor([math.nan, 3.0]), "money is NaN at [0], which is not right."),
    ],
)


# --- The nearest word -----------------------------------------------------------------------


def looked_for_in_a_loop(i, E):
    best, where = -2.0, None
    for j, row in enumerate(E):
        alike = F.cosine_similarity(row, E[i], dim=0).item()
        if j != i and alike > best:
            best, where = alike, j
    return where


def with_own_place_filled(i, E):
    unit = F.normalize(E.double(), dim=1)
    alike = unit @ unit[i]
    alike[i] = -1
    return int(alike.argmax())


def left_out_by_cutting(i, E):
    others = torch.cat((E[:i], E[i + 1 :]))
    return F.cosine_similarity(others, E[i], dim=1).argmax()


def cut_and_put_back(i, E):
    j = left_out_by_cutting(i, E).item()
    return j if j < i else j + 1


def by_distance(i, E):
    far = torch.cdist(E, E)[i]
    far[i] = torch.inf
    return far.argmin()


def by_dot_product(i, E):
    dots = E @ E[i]
    dots[i] = -torch.inf
    return dots.argmax()


LENGTHS = "A long vector wins every dot product: the cosine ignores lengths." + SECTION_2
AWAY = "It points the other way: find the largest cosine, sign included." + SECTION_2

NEAREST = Answers(
    right=[
        lambda i, E: F.cosine_similarity(E, E[i], dim=1).topk(2).indices[1],
        looked_for_in_a_loop,
        with_own_place_filled,
        cut_and_put_back,
        lambda i, E: np.argsort(F.cosine_similarity(E, E[i][None]).numpy())[-2].item(),
    ],
    wrong=[
        (lambda i, E: (E @ E[i]).argmax(), LENGTHS),
        (by_dot_product, LENGTHS),
        (lambda i, E: (E @ F.normalize(E[i], dim=0)).argmax(), LENGTHS),
        (
            lambda i, E: F.cosine_similarity(E, E[i], dim=1).argmax(),
            "Every word is most similar to itself: leave it out." + SECTION_2,
        ),
        (
            lambda i, E: torch.cdist(E, E)[i].argmin(),
            "Every word is most similar to itself: leave it out." + SECTION_2,
        ),
        (lambda i, E: F.cosine_similarity(E, E[i], dim=1).argmin(), AWAY),
        (lambda i, E: F.cosine_similarity(E, E[i], dim=1).abs().topk(2).indices[1], AWAY),
        (
            left_out_by_cutting,
            "The id is off by one: leaving out a row shifts those after it." + SECTION_2,
        ),
        (
            by_distance,
            "You compared distances: similar words point the same way, however long they are."
            + SECTION_2,
        ),
        (
            lambda i, E: E[looked_for_in_a_loop(i, E)],
            "That is the vector: return its id." + SECTION_2,
        ),
        (
            lambda i, E: F.cosine_similarity(E, E[i], dim=1).topk(2).values[1],
            "That is the cosine: return the id that it belongs to." + SECTION_2,
        ),
        (
            lambda i, E: (i + 1) % len(E),
            "With i 2, E (7, 2) the result is 3, expected 5." + SECTION_2,
        ),
        (
            lambda i, E: F.cosine_similarity(E, E[i], dim=1),
            "That is the cosine: return the id that it belongs to." + SECTION_2,
        ),
    ],
)


# --- A part of one's own --------------------------------------------------------------------


def mixed_in_a_loop(ids, E, keep):
    average = sum(E[j] for j in ids) / len(ids)
    return torch.stack([keep * E[i] + (1 - keep) * average for i in ids])


def mixed_by_a_matrix(ids, E, keep):
    n = len(ids)
    return (keep * torch.eye(n) + (1 - keep) / n * torch.ones(n, n)) @ E[ids]


def mixed_with_the_others(ids, E, keep):
    X, n = E[ids], len(ids)
    others = torch.stack([torch.cat((X[:i], X[i + 1 :])).mean(0) for i in range(n)])
    return keep * X + (1 - keep) * others


SAME = "Every word got the same vector: each keeps a part of its own row." + SECTION_3
PARTS = "The weights do not add up to 1: the average gets 1 - keep." + SECTION_3

MIX_IN_AVERAGE = Answers(
    right=[
        lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].mean(dim=0),
        mixed_in_a_loop,
        mixed_by_a_matrix,
        lambda ids, E, keep: torch.lerp(E[ids].mean(0, keepdim=True), E[ids], keep),
        lambda ids, E, keep: (
            E[ids].double() + (1 - keep) * (E[ids].double().mean(0) - E[ids].double())
        ),
        lambda ids, E, keep: torch.einsum(
            "st,td->sd", keep * torch.eye(len(ids)) + (1 - keep) / len(ids), E[ids]
        ),
    ],
    wrong=[
        (
            lambda ids, E, keep: keep * E[ids] + 1 - keep * E[ids].mean(0),
            "1 - keep needs brackets: multiplication comes before subtraction. See section 3.",
        ),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * (keep * E[ids]).mean(0),
            "You averaged after scaling: average the original rows. See section 3.",
        ),
        (lambda ids, E, keep: E[ids].mean(0).repeat(len(ids), 1), SAME),
        (lambda ids, E, keep: E[ids].mean(0), SAME),
        (lambda ids, E, keep: E[ids], "The average is not mixed in yet." + SECTION_3),
        (
            lambda ids, E, keep: (1 - keep) * E[ids] + keep * E[ids].mean(0),
            "keep is the weight of the word itself: you gave it to the average." + SECTION_3,
        ),
        (lambda ids, E, keep: keep * E[ids] + E[ids].mean(0), PARTS),
        (lambda ids, E, keep: E[ids] + keep * E[ids].mean(0), PARTS),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E.mean(0),
            "You averaged the whole table: only the words of the phrase count." + SECTION_3,
        ),
        (
            lambda ids, E, keep: 0.5 * E[ids] + 0.5 * E[ids].mean(0),
            "keep is not used: it is the weight of the word itself." + SECTION_3,
        ),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].mean(),
            "You averaged over the width: average over the words." + SECTION_3,
        ),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].mean(1)[:, None],
            "You averaged over the width: average over the words." + SECTION_3,
        ),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].sum(0),
            "You summed the words: an average also divides by their number." + SECTION_3,
        ),
        (
            mixed_with_the_others,
            "You left the word itself out of the average: it belongs to the phrase." + SECTION_3,
        ),
        (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids.roll(1)],
            "You averaged with the previous word: average over the whole phrase." + SECTION_3,
        ),
    ],
)


ANSWERS = {
    "lookup": LOOKUP,
    "cosine": COSINE,
    "average_row": AVERAGE_ROW,
    "long_not_near": LONG_NOT_NEAR,
    "nearest": NEAREST,
    "mix_in_average": MIX_IN_AVERAGE,
}
