"""The exercises of notebook 1."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from attnlab.checks.exercise import Judge, exercise
from attnlab.checks.judging import Comparison, Verdict, done, normal_source, values


@exercise("1.1", "my_lookup", section="section 1")
def lookup() -> Comparison:
    """Write ``fn(ids, E)``: the row of ``E`` (V, D) for each of ``ids`` (S,), as (S, D)."""
    draw = normal_source()
    mistakes = {
        "Each word is a row of the result: yours are columns.": lambda i, E: E[i].T,
        "You averaged the words: each keeps its own row.": lambda i, E: E[i].mean(0),
        "A word is a row of E: you looked up columns.": (lambda i, E: E[:, i], lambda i, E: E.T[i]),
        "Those are the one-hot rows: multiply them by E.": lambda i, E: one_hot(i, len(E)),
        "A one-hot row is as long as the vocabulary, whichever ids occur.": (
            lambda i, E: one_hot(i).float() @ E,
            lambda i, E: one_hot(i, len(i)).float() @ E,
            lambda i, E: one_hot(i, E.shape[1]).float() @ E,
            lambda i, E: one_hot(i, 3).float() @ E,
        ),
        "One-hot rows start as integers: use .float() before the product.": (
            lambda i, E: one_hot(i, len(E)) @ E
        ),
    }
    inputs = [(torch.tensor([3, 0, 1]), draw(5, 11)), (torch.tensor([1, 2, 1, 0, 2]), draw(4, 7))]
    return Comparison(lambda ids, E: E[ids], inputs, mistakes)


@exercise("1.2", "my_cosine", section="section 2")
def cosine() -> Comparison:
    """Write ``fn(a, b)``: the cosine of the angle between ``a`` (D,) and ``b`` (D,), a number."""
    draw = normal_source()

    def right(a: Tensor, b: Tensor) -> Tensor:
        return a @ b / (a.norm() * b.norm())

    mistakes = {
        "That is the dot product: it still grows with the lengths of the vectors.": lambda a, b: (
            a @ b
        ),
        "You divided by one length only: both vectors have one.": (
            lambda a, b: a @ b / a.norm(),
            lambda a, b: a @ b / b.norm(),
        ),
        "Without brackets you divide by one length and multiply by the other.": (
            lambda a, b: a @ b / a.norm() * b.norm()
        ),
        "You divided by the squared lengths.": lambda a, b: a @ b / ((a @ a) * (b @ b)),
        "That is a distance: it grows as two vectors move apart.": lambda a, b: (a - b).norm(),
        "That is the angle itself.": lambda a, b: right(a, b).acos(),
        "A cosine is one number: add up the products.": (
            lambda a, b: a * b / (a.norm() * b.norm()),
            lambda a, b: a * b,
        ),
        "A length is the root of the sum of squares, a.norm().": (
            lambda a, b: a @ b / (len(a) * len(b)),
            lambda a, b: a @ b / len(a),
            lambda a, b: a @ b / len(a) ** 0.5,
            lambda a, b: a @ b / (a.sum() * b.sum()),
            lambda a, b: a @ b / (a.abs().sum() * b.abs().sum()),
        ),
        "The two lengths are multiplied, not added.": lambda a, b: a @ b / (a.norm() + b.norm()),
        "A cosine has a sign: vectors may point in opposite directions.": lambda a, b: right(
            a, b
        ).abs(),
    }
    pairs = [(3 * draw(n), 2 * draw(n)) for n in (5, 2, 3)]
    inputs = [(a, -b if a @ b > 0 else b) for a, b in pairs]
    return Comparison(right, inputs, mistakes)


@exercise("1.3", "my_average_row", section="section 3")
def average_row() -> Comparison:
    """Write ``fn(ids, n_words)``: the row (V,) whose product with the table averages ``ids``."""

    def right(ids: Tensor, n_words: int) -> Tensor:
        return one_hot(ids, n_words).float().mean(0)

    def distinct(ids: Tensor, n_words: int) -> Tensor:
        return (right(ids, n_words) > 0).float()

    mistakes = {
        "Those are counts: an average counts every token as 1/S, so the row sums to 1.": (
            lambda ids, n: right(ids, n) * len(ids)
        ),
        "A word that occurs twice counts twice.": (
            distinct,
            lambda ids, n: distinct(ids, n) / len(ids),
            lambda ids, n: distinct(ids, n) / distinct(ids, n).sum(),
        ),
        "You divided by the size of the table: the average is over the phrase.": (
            lambda ids, n: right(ids, n) * len(ids) / n
        ),
        "Those are the one-hot rows: average them into one row.": (
            one_hot,
            lambda ids, n: one_hot(ids, n) / len(ids),
        ),
        "That row has S entries, but the table has V rows: mind the axis.": (
            lambda ids, n: torch.ones(len(ids)) / len(ids)
        ),
        "You summed within each token: sum over the tokens, for each word.": (
            lambda ids, n: one_hot(ids, n).sum(1),
            lambda ids, n: one_hot(ids, n).float().mean(1),
        ),
        "That averages the whole table: words that do not occur count 0.": (
            lambda ids, n: torch.full((n,), 1 / n)
        ),
        "The row is as long as the vocabulary, whichever ids occur.": (
            lambda ids, n: ids.bincount() / len(ids),
            lambda ids, n: ids.bincount(),
        ),
        "An id is a label, not an amount: id 4 is not more than id 2.": (
            lambda ids, n: ids / ids.sum(),
            lambda ids, n: ids / len(ids),
            lambda ids, n: ids.float().mean(),
            lambda ids, n: (one_hot(ids, n) * ids[:, None]).float().mean(0),
        ),
        "You filled the first entries: the ids say which words count.": (
            lambda ids, n: (torch.arange(n) < len(ids)) / len(ids)
        ),
    }
    inputs = [
        (torch.tensor(ids), n)
        for ids, n in (([2, 0, 2], 5), ([1, 4, 1, 1, 3], 7), ([5, 0, 5, 5], 8))
    ]
    return Comparison(right, inputs, mistakes)


@exercise("1.4", "my_money", section="section 2")
def long_not_near() -> Judge:
    """Choose ``money`` (2,): a larger dot product with *bank* than *river* has, but less alike.

    *river* is [2, 0], *bank* [1, 0]; less alike is a cosine of at most 0.9.
    """

    def judge(money: Tensor) -> Verdict | str:
        x, length = money[0].item(), money.norm().item()
        cosine = x / length if length else 0.0
        facts = f" (bank · money = {x:.3g}, cosine {cosine:.2f})."
        if x > 2 and cosine <= 0.9:
            return done("Right" + facts)
        if not length:
            text = "A vector of length 0 has no direction"
        elif x < 0:
            text = "It points away from bank: the dot product is negative"
        elif abs(cosine) < 1e-6:
            text = "At a right angle no length helps: the dot product stays 0"
        elif x > 2:
            text = "Long enough, but it still points almost the same way as bank"
        elif x == 2:
            text = "As large as river's, not larger"
        elif cosine > 0.9:
            text = "It points the same way as bank and is short: the opposite of what is asked"
        else:
            text = "The angle is large enough, but the vector is too short: make it longer"
        return text + facts

    return values(judge, money=(2,))


@exercise("1.5", "my_nearest", section="section 2")
def nearest() -> Comparison:
    """Write ``fn(i, E)``: the id of the other row of ``E`` (V, D) with the largest cosine."""

    def cosines(i: int, E: Tensor) -> Tensor:
        return E @ E[i] / (E.norm(dim=1) * E[i].norm())

    def without(i: int, values: Tensor) -> Tensor:
        return values.index_fill(0, torch.tensor(i), -torch.inf)

    def right(i: int, E: Tensor) -> Tensor:
        return without(i, cosines(i, E)).argmax()

    mistakes = {
        "A long vector wins every dot product: the cosine ignores lengths.": (
            lambda i, E: without(i, E @ E[i]).argmax()
        ),
        "Every word is most similar to itself: leave it out.": lambda i, E: torch.tensor(i),
        "It points the other way: find the largest cosine, sign included.": (
            lambda i, E: cosines(i, E).argmin()
        ),
        "The id is off by one: leaving out a row shifts those after it.": (
            lambda i, E: right(i, E) - 1
        ),
        "You compared distances: similar words point the same way, however long they are.": (
            lambda i, E: without(i, -(E - E[i]).norm(dim=1)).argmax()
        ),
        "That is the vector: return its id.": lambda i, E: E[right(i, E)],
        "That is the cosine: return the id that it belongs to.": (
            lambda i, E: without(i, cosines(i, E)).amax(),
            cosines,
        ),
    }
    # In each table the mistakes lead to different words.
    tables = [
        (2, [[0, 5], [4, -4], [3, 0], [-5, 3], [4, -5], [4, 3], [1, -1]]),
        (
            3,
            [[-3, 3, 5, 0], [-1, 4, -1, -3], [-3, 1, 2, -2], [2, -1, 0, -5]]
            + [[6, 5, 2, -5], [0, 5, -4, 3], [0, -2, 6, -6], [-1, -1, 5, 6]],
        ),
    ]
    inputs = [(i, torch.tensor(rows, dtype=torch.float32)) for i, rows in tables]
    return Comparison(right, inputs, mistakes)


@exercise("1.6", "my_mix", section="section 3")
def mix_in_average() -> Comparison:
    """Write ``fn(ids, E, keep)``: ``keep`` times each word's own row plus the rest of the average.

    The average is that of the phrase; the result is (S, D).
    """
    draw = normal_source()

    def right(ids: Tensor, E: Tensor, keep: float) -> Tensor:
        return keep * E[ids] + (1 - keep) * E[ids].mean(0)

    mistakes = {
        "Every word got the same vector: each keeps a part of its own row.": (
            lambda ids, E, keep: E[ids].mean(0).expand(len(ids), -1),
            lambda ids, E, keep: E[ids].mean(0),
        ),
        "The average is not mixed in yet.": (
            lambda ids, E, keep: E[ids],
            lambda ids, E, keep: keep * E[ids],
        ),
        "keep is the weight of the word itself: you gave it to the average.": (
            lambda ids, E, keep: right(ids, E, 1 - keep)
        ),
        "The weights do not add up to 1: the average gets 1 - keep.": (
            lambda ids, E, keep: keep * E[ids] + E[ids].mean(0),
            lambda ids, E, keep: E[ids] + (1 - keep) * E[ids].mean(0),
            lambda ids, E, keep: E[ids] + keep * E[ids].mean(0),
            lambda ids, E, keep: E[ids] + E[ids].mean(0),
            lambda ids, E, keep: keep * (E[ids] + E[ids].mean(0)),
        ),
        "You averaged the whole table: only the words of the phrase count.": (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E.mean(0),
            lambda ids, E, keep: keep * E + (1 - keep) * E.mean(0),
        ),
        "keep is not used: it is the weight of the word itself.": (
            lambda ids, E, keep: (E[ids] + E[ids].mean(0)) / 2
        ),
        "You averaged over the width: average over the words.": (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].mean(1, keepdim=True),
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].mean(),
        ),
        "You summed the words: an average also divides by their number.": (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].sum(0)
        ),
        "You left the word itself out of the average: it belongs to the phrase.": (
            lambda ids, E, keep: (
                keep * E[ids] + (1 - keep) * (E[ids].sum(0) - E[ids]) / (len(ids) - 1)
            )
        ),
        "1 - keep needs brackets: multiplication comes before subtraction.": (
            lambda ids, E, keep: keep * E[ids] + 1 - keep * E[ids].mean(0)
        ),
        "You averaged after scaling: average the original rows.": (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * (keep * E[ids]).mean(0)
        ),
        "You averaged with the previous word: average over the whole phrase.": (
            lambda ids, E, keep: keep * E[ids] + (1 - keep) * E[ids].roll(1, 0)
        ),
    }
    inputs = [
        (torch.tensor([3, 0, 1]), draw(5, 7), 0.75),
        (torch.tensor([1, 2, 1, 0, 4]), draw(6, 3), 0.3),
        (torch.tensor([0, 3]), draw(4, 5), 0.6),
    ]
    return Comparison(right, inputs, mistakes)
