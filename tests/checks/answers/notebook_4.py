"""Answers to the exercises of notebook 4."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from answers import Answers
from attnlab import attention, causal_mask

SECTION_1, SECTION_3 = " See section 1.", " See section 3."
SECTIONS = " See sections 2 and 3."


def pointing(where, wrong):
    return [(answer, message + where) for answer, message in wrong]


# --- Masked softmax, and attention ----------------------------------------------------------


def stable_softmax(scores, mask):
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    exp = shifted.exp() * mask
    return exp / exp.sum(-1, keepdim=True)


def loop_softmax(scores, mask):
    rows = []
    for row, allowed in zip(scores.double(), mask, strict=True):
        top = max(x.item() for x in row)
        exp = [math.exp(x - top) if ok else 0.0 for x, ok in zip(row, allowed, strict=True)]
        rows.append([e / sum(exp) for e in exp])
    return torch.tensor(rows)


def loop_attention(q, k, v, mask):
    rows = []
    for i in range(len(q)):
        seen = [j for j in range(len(k)) if mask[i, j]]
        exp = [math.exp(q[i] @ k[j] / math.sqrt(len(q[i]))) for j in seen]
        rows.append(sum(e * v[j] for e, j in zip(exp, seen, strict=True)) / sum(exp))
    return torch.stack(rows)


def sdpa_and_weights(q, k, v, mask):
    return torch.zeros(()), F.scaled_dot_product_attention(q[None], k[None], v[None], mask)[0]


def softmaxed_without_max(scores, mask):
    exp = torch.where(mask, scores.exp(), 0.0)
    return exp / exp.sum(dim=1)[:, None]


def softmaxed_with_two_mistakes(scores, mask):  # it overflows as well
    return scores.exp() / scores.exp().sum(-1, keepdim=True) * mask


def divided_by_sum(scores, mask):
    kept = scores.masked_fill(~mask, 0.0)
    return kept / kept.sum(1)[:, None]


def attend(scale=None, mask=lambda m: m, axis=-1):
    def answer(q, k, v, m):
        factor = q.shape[-1] ** -0.5 if scale is None else scale(q, k)
        return (q @ k.T * factor).masked_fill(~mask(m), -math.inf).softmax(axis) @ v

    return answer


SUM = "You divided by the sum of the scores: softmax takes exponentials first."
WHOLE_TABLE = "You divided by the sum of the whole table: each row has its own."
QUERIES = "Your softmax runs over the queries: let it run over the keys."
AFTER = "You masked after the softmax: the rows no longer sum to 1."
INVERTED = "True means may attend: you hid those."
ZEROS = "A score of 0 still gets a share: hidden keys get none."
UNUSED = "The mask is not used yet."
NO_SOFTMAX = "The scores are masked, but the softmax is missing."
OVERFLOW = "exp(1000) overflows: subtract the row's maximum first."
ONE_MAXIMUM = "One maximum for the whole table is not enough: each row has its own."
UNSCALED = "The scores are not scaled."
TIMES = "0 times infinity is NaN: use masked_fill or where instead of a product."

MASKED_SOFTMAX = Answers(
    right=[
        lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1),
        stable_softmax,
        loop_softmax,
        lambda s, m: s.masked_fill(~m, -1e9).softmax(-1),  # no row is empty, so this is equal
        lambda s, m: (s.double() + torch.zeros(m.shape).masked_fill(~m, -math.inf)).softmax(1),
        lambda s, m: s.softmax(-1) * m / (s.softmax(-1) * m).sum(-1, keepdim=True),
    ],
    wrong=pointing(
        SECTION_1,
        [
            (lambda s, m: (s + ~m * -math.inf).softmax(-1), TIMES),
            (
                lambda s, m: (s - s.masked_fill(~m, -math.inf).amax(-1, keepdim=True)).exp() * m,
                "Divide by the sum of the row: the weights of a row sum to 1.",
            ),
            (divided_by_sum, SUM),
            (lambda s, m: s / s.sum(1)[:, None] * m, SUM),
            (lambda s, m: s / s.sum(1, keepdim=True), SUM),
            (lambda s, m: s.exp() / s.exp().sum(), WHOLE_TABLE),
            (lambda s, m: s.exp().where(m, 0) / s.exp().where(m, 0).sum(), WHOLE_TABLE),
            (lambda s, m: s.masked_fill(~m, -math.inf).softmax(0), QUERIES),
            (lambda s, m: s.softmax(1).masked_fill(~m, 0), AFTER),
            (softmaxed_with_two_mistakes, AFTER),
            (lambda s, m: s.masked_fill(m, -math.inf).softmax(-1), INVERTED),
            (softmaxed_without_max, OVERFLOW),
            (lambda s, m: softmaxed_without_max(s.masked_fill(~m, -math.inf), m | True), OVERFLOW),
            (lambda s, m: softmaxed_without_max(s - s.max(), m), ONE_MAXIMUM),
            (lambda s, m: s.masked_fill(~m, 0).softmax(-1), ZEROS),
            (lambda s, m: (s * m.float()).softmax(-1), ZEROS),
            (lambda s, m: s.softmax(-1), UNUSED),
            (lambda s, m: s.masked_fill(~m, -math.inf), NO_SOFTMAX),
        ],
    ),
)

ATTENTION_FUNCTION = Answers(
    right=[
        attention,
        F.scaled_dot_product_attention,
        loop_attention,
        sdpa_and_weights,
        lambda q, k, v, m: (q @ k.T * q.shape[1] ** -0.5).masked_fill(~m, -1e9).softmax(1) @ v,
    ],
    wrong=pointing(
        SECTION_3,
        [
            (
                attend(lambda q, k: len(q) ** -0.5),
                "You scaled by a number of words, not by a width.",
            ),
            (
                lambda q, k, v, m: (
                    tuple(attention(q, k, v, m))[:3:-1] + (attention(q, k, v, m).weights,)
                ),
                "Those are the attention weights: return the output alone, weights times values.",
            ),
            (attend(lambda q, k: 1), UNSCALED),
            (attend(lambda q, k: 1 / k.shape[1]), "You divided by d_k, not by its square root."),
            (
                attend(lambda q, k: 1 / math.sqrt(k.shape[0])),
                "You scaled by a number of words, not by a width.",
            ),
            (attend(lambda q, k: math.sqrt(k.shape[1])), "Your scale makes the scores larger."),
            (attend(axis=0), QUERIES),
            (lambda q, k, v, m: attention(q, k, v), UNUSED),
            (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v), UNUSED),
            (attend(mask=lambda m: ~m), INVERTED),
            (lambda q, k, v, m: attention(q, k, v).weights * m @ v, AFTER),
            (lambda q, k, v, m: ((q @ k.T) * m / q.shape[1] ** 0.5).softmax(-1) @ v, ZEROS),
            (lambda q, k, v, m: divided_by_sum(attention(q, k, v).scaled, m) @ v, SUM),
            (lambda q, k, v, m: attend()(k, q, v, m), "q and k are swapped: queries are rows."),
            (
                lambda q, k, v, m: loop_attention(q, k, torch.eye(len(k)), m),
                "Those are the attention weights: return the output alone, weights times values.",
            ),
            (
                lambda q, k, v, m: attention(q, k, v, m)[:4],
                "Those are the attention weights: return the output alone, weights times values.",
            ),
        ],
    ),
)


# --- What an author did ---------------------------------------------------------------------


def divided_in_a_loop(scores, allowed):
    total = sum(s.item() for s, ok in zip(scores, allowed, strict=True) if ok)
    return torch.tensor([s / total if ok else 0.0 for s, ok in zip(scores, allowed, strict=True)])


def divided_in_place_of_a_copy(scores, allowed):
    row = scores.clone()
    row[~allowed] = 0
    return row / row.sum()


ARTICLE_ROW = Answers(
    right=[
        lambda s, m: s * m / (s * m).sum(),
        divided_in_a_loop,
        divided_in_place_of_a_copy,
        lambda s, m: F.normalize(s.double() * m, p=1, dim=0),
        lambda s, m: torch.where(m, s, 0) / s[m].sum(),
        lambda s, m: torch.einsum("k,k->k", s, m.float()) / (s @ m.float()),
    ],
    wrong=[
        (
            lambda s, m: s * m / m.sum(),
            "You divided by the number of visible scores, not by their sum. See section 1.",
        ),
        (
            lambda s, m: (s * m / (s * m).sum()).round(decimals=2),
            "The recipe is right: do not round the result. See section 1.",
        ),
        (
            lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1),
            "That is a correct softmax, but it gives 0.57 and 0.43, not what was printed."
            + SECTION_1,
        ),
        (
            lambda s, m: torch.where(m, s.exp(), 0) / s.exp()[m].sum(),
            "That is a correct softmax, but it gives 0.57 and 0.43, not what was printed."
            + SECTION_1,
        ),
        (
            lambda s, m: s.exp() / s.exp().sum() * m,
            "That masks after the softmax: the printed row sums to 1." + SECTION_1,
        ),
        (
            lambda s, m: (s * m.float()).exp() / (s * m.float()).exp().sum(),
            "Softmax with scores of 0 leaves the hidden ones a share: the printed row has none."
            + SECTION_1,
        ),
        (
            lambda s, m: s / sum(s) * m,
            "The hidden scores are still in your sum: the printed row sums to 1." + SECTION_1,
        ),
        (
            lambda s, m: s / sum(s),
            "The hidden ones still have a share: the printed row has 0 there." + SECTION_1,
        ),
        (
            lambda s, m: s / s[m].sum(),
            "The hidden ones still have a share: the printed row has 0 there." + SECTION_1,
        ),
        (
            lambda s, m: s.masked_fill(~m, 0),
            "Those are the visible scores: the printed row sums to 1." + SECTION_1,
        ),
        (
            lambda s, m: s * m / max(s[m]),
            "You divided by the largest: the printed row sums to 1." + SECTION_1,
        ),
        (
            lambda s, m: torch.tensor([0.62, 0.38, 0, 0]),
            "Those are the printed numbers: the recipe has to work for other scores too."
            + SECTION_1,
        ),
    ],
)

# --- The temperature ------------------------------------------------------------------------

SHARP_TEMPERATURE = Answers(
    right=[
        0.154,
        0.15,
        1 / 6.5,
        0.7071 / math.log(99),
        torch.tensor(0.16),
        np.float32(0.14),
        torch.tensor(0.5, dtype=torch.float64).sqrt() / torch.tensor(0.99).logit(),
    ],
    wrong=[
        (6.5, "You multiplied the scores: a temperature divides them." + SECTION_1),
        (
            math.log(99) / 0.7071,
            "You multiplied the scores: a temperature divides them." + SECTION_1,
        ),
        (
            math.log(99),
            "That is the difference the scores need: the temperature has to produce it."
            + SECTION_1,
        ),
        (
            0,
            "A temperature of 0 divides by 0: softmax never gives one word everything." + SECTION_1,
        ),
        (
            -0.15,
            "A temperature is positive: a negative one lets the smaller score win." + SECTION_1,
        ),
        (1.0, "Too soft: with that temperature river gets 0.670." + SECTION_1),
        (0.99, "Too soft: with that temperature river gets 0.671." + SECTION_1),
        (10, "Too soft: with that temperature river gets 0.518." + SECTION_1),
        (torch.tensor(0.2), "Too soft: with that temperature river gets 0.972." + SECTION_1),
        (0.1, "Too sharp: with that temperature river gets 0.999." + SECTION_1),
        (1e-300, "Too sharp: with that temperature river gets 1.000." + SECTION_1),
        (torch.tensor([0.154]), "temperature has shape (1,), expected ()."),
        ("0.154", "Expected a number, got str."),
    ],
)

# --- A share above 1 ------------------------------------------------------------------------

SHARE_ABOVE_ONE = Answers(
    right=[
        torch.tensor([3.0, -1.0]),
        torch.tensor([-1.0, 3.0]),
        torch.tensor([0.5, -4.0]),
        torch.tensor([-2.0, 7.0], dtype=torch.float64),
        torch.tensor([100.0, -1.0]),
    ],
    wrong=[
        *pointing(
            SECTION_1,
            [
                (
                    torch.tensor([1.0, 2.0]),
                    "Both are above 0, so each is a part of the sum: the shares are 0.333, 0.667.",
                ),
                (
                    torch.tensor([0.8, 0.5]),
                    "Both are above 0, so each is a part of the sum: the shares are 0.615, 0.385.",
                ),
                (
                    torch.tensor([-1.0, -3.0]),
                    "Both are below 0, the minus signs cancel, and the shares are 0.25, 0.75.",
                ),
                (
                    torch.tensor([2.0, -2.0]),
                    "They cancel: the sum is 0, and the recipe divides by it.",
                ),
                (
                    torch.tensor([0.0, 0.0]),
                    "Both are 0, and so is their sum: the recipe divides by 0.",
                ),
                (
                    torch.tensor([0.0, 5.0]),
                    "One of them is 0, so the other is the whole sum: the shares are 0, 1.",
                ),
                (
                    torch.tensor([-5.0, 0.0]),
                    "One of them is 0, so the other is the whole sum: the shares are 1, 0.",
                ),
            ],
        ),
        (torch.tensor([3.0, -1.0, 2.0]), "scores has shape (3,), expected (2,)."),
        ([3.0, -1.0], "Expected a torch.Tensor, got list."),
    ],
)

# --- Look, and carry nothing ----------------------------------------------------------------

EYE = torch.eye(2)
ASKING = torch.tensor([[1.0, 3.0], [0.0, 1.0]])  # money gets 0.93
DEAF = torch.tensor([[1.0, 0.0], [0.0, 0.0]])  # money's value is zero

LOOK_AND_CARRY_NOTHING = Answers(
    right=[
        (ASKING, DEAF),
        (torch.tensor([[0.0, 5.0], [0.0, 0.0]]), torch.tensor([[0.3, -2.0], [0.0, 0.0]])),
        (ASKING.double(), DEAF.bfloat16()),
        (torch.tensor([[-4.0, 2.0], [7.0, 7.0]]), DEAF),
        (torch.nn.Parameter(ASKING), torch.diag(torch.tensor([1.0, 0.0]))),
    ],
    wrong=[
        ((EYE, DEAF), "W_V does not say where bank looks: money still has the weight 0.14."),
        ((EYE, 5 * EYE), "W_V does not say where bank looks: money still has the weight 0.14."),
        (
            (torch.tensor([[1.0, 0.0], [3.0, 1.0]]), DEAF),
            "That is not yet what bank asks: money still has the weight 0.14.",
        ),
        ((EYE, EYE), "That is not yet what bank asks: money still has the weight 0.14."),
        (
            (torch.tensor([[1.0, 1.0], [0.0, 1.0]]), DEAF),
            "Bank gives money 0.40: make it more than 0.9.",
        ),
        (
            (torch.tensor([[1.0, -3.0], [0.0, 1.0]]), DEAF),
            "Bank gives money 0.00: make it more than 0.9.",
        ),
        ((ASKING, EYE), "Bank gives money 0.92, and money's value [0, 2] comes along."),
        (
            (ASKING, torch.tensor([[1.0, 0.0], [1.0, 0.0]])),
            "Bank gives money 0.92, and money's value [2, 0] comes along.",
        ),
        (
            (ASKING, torch.diag(torch.tensor([0.0, 1.0]))),
            "You zeroed the values of river and bank: zero that of money.",
        ),
        ((ASKING, torch.zeros(2, 2)), "Now all values are zero: river must keep its value."),
    ],
)
LOOK_AND_CARRY_NOTHING = Answers(
    LOOK_AND_CARRY_NOTHING.right,
    [(answer, message + SECTION_3) for answer, message in LOOK_AND_CARRY_NOTHING.wrong]
    + [
        ((ASKING, [[1.0, 0.0], [0.0, 0.0]]), "Expected a torch.Tensor, got list."),
        ((ASKING.long(), DEAF), "w_q holds int64, expected floats: use .float()."),
        ((ASKING, DEAF[0]), "w_v has shape (2,), expected (2, 2)."),
    ],
)

# --- The sublayer ---------------------------------------------------------------------------


def sublayer(
    x,
    W_Q,
    W_K,
    W_V,
    scale=None,
    mask=True,
    weights=lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1),
    residual=1.0,
):
    allowed = torch.ones(len(x), len(x)).tril().bool() if mask else torch.ones(1).bool()
    scores = (x @ W_Q) @ (x @ W_K).T * (W_Q.shape[1] ** -0.5 if scale is None else scale)
    return residual * x + weights(scores, allowed) @ (x @ W_V)


def one_word_at_a_time(x, W_Q, W_K, W_V):
    new = []
    for i in range(len(x)):
        exps = [math.exp((x[i] @ W_Q) @ (x[j] @ W_K) / W_K.shape[1] ** 0.5) for j in range(i + 1)]
        delta = sum(e * (x[j] @ W_V) for j, e in enumerate(exps)) / sum(exps)
        new.append(x[i] + delta)
    return torch.stack(new)


def by_pytorch(x, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, x @ W_K, x @ W_V
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0] + x


def by_einsum(x, W_Q, W_K, W_V):
    x, W_Q, W_K, W_V = (a.double() for a in (x, W_Q, W_K, W_V))
    scores = torch.einsum("sd,de,tf,fe->st", x, W_Q, x, W_K) / math.sqrt(W_Q.shape[1])
    weights = (scores + torch.full_like(scores, -math.inf).triu(1)).softmax(1)
    return x + torch.einsum("st,td,de->se", weights, x, W_V)


def overwriting(x, W_Q, W_K, W_V):
    x += sublayer(x, W_Q, W_K, W_V, residual=0)
    return x


ATTENTION_SUBLAYER = Answers(
    right=[
        sublayer,
        one_word_at_a_time,
        by_pytorch,
        by_einsum,
        lambda x, Q, K, V: x + attention(x @ Q, x @ K, x @ V, causal_mask(len(x))).output,
        lambda x, Q, K, V: sublayer(x, Q, K, V, weights=lambda s, m: (s - 1e9 * ~m).softmax(-1)),
    ],
    wrong=[
        (
            lambda x, W_Q, W_K, W_V: (
                x + attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(len(x)), len(x) ** -0.5).output
            ),
            "You scaled by a number of words, not by a width. See sections 2 and 3.",
        ),
        (
            lambda *a: sublayer(*a, residual=0),
            "The residual is missing: the output is added to x, it does not replace it." + SECTIONS,
        ),
        (
            lambda *a: sublayer(*a, mask=False),
            "The future is not hidden: the mask is missing." + SECTIONS,
        ),
        (
            lambda *a: sublayer(
                *a, weights=lambda s, m: s.masked_fill(~m.T, -math.inf).softmax(-1)
            ),
            "You hid the past: the mask is reversed." + SECTIONS,
        ),
        (
            lambda x, Q, K, V: (
                x + attention(x @ Q, x @ K, x @ V, torch.ones(len(x), len(x)).triu(1).bool()).output
            ),
            "You hid the past: the mask is reversed." + SECTIONS,
        ),
        (lambda *a: sublayer(*a, scale=1), "The scores are not scaled." + SECTIONS),
        (
            lambda x, Q, K, V: sublayer(x, Q, K, V, scale=1 / math.sqrt(x.shape[1])),
            "You scaled by the width of the model: d_k is the width of a query." + SECTIONS,
        ),
        (
            lambda x, Q, K, V: sublayer(x, Q, K, V, scale=1 / Q.shape[1]),
            "You divided by d_k, not by its square root." + SECTIONS,
        ),
        (
            lambda x, Q, K, V: sublayer(x, K, Q, V),
            "Queries are rows and keys are columns: yours are swapped." + SECTIONS,
        ),
        (
            lambda x, Q, K, V: x + attention(x @ Q, x @ K, x, causal_mask(len(x))).output,
            "W_V is not used: attention mixes values, not embeddings." + SECTIONS,
        ),
        (
            lambda x, Q, K, V: x + x @ V,
            "Each word only adds its own value: nothing comes from the others." + SECTIONS,
        ),
        (
            lambda *a: sublayer(*a, weights=lambda s, m: s.masked_fill(~m, -math.inf).softmax(0)),
            "Your softmax runs over the queries: let it run over the keys." + SECTIONS,
        ),
        (
            lambda *a: sublayer(*a, weights=lambda s, m: s.masked_fill(~m, 0)),
            "The softmax is missing: scores are not weights." + SECTIONS,
        ),
        (
            lambda *a: sublayer(*a, weights=lambda s, m: s.softmax(1).tril()),
            "You masked after the softmax: the rows no longer sum to 1." + SECTIONS,
        ),
        (
            lambda *a: sublayer(*a, residual=2),
            "With x (5, 3), W_Q (3, 2), W_K (3, 2), W_V (3, 3) the result is 0.5281 at [0, 0], "
            "expected -1.013." + SECTIONS,
        ),
        (overwriting, "The numbers are right, but you overwrite the input x."),
    ],
)

# --- Cross-attention ------------------------------------------------------------------------


def cross(t, i, Q, K, V, real, scale=None, weights=None):
    scores = (t @ Q) @ (i @ K).T * (Q.shape[1] ** -0.5 if scale is None else scale)
    weights = weights or (lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1))
    return weights(scores, real) @ (i @ V)


def word_by_word(t, i, Q, K, V, real):
    rows = []
    for word in t @ Q:
        exps = [math.exp(word @ key / len(word) ** 0.5) for key in (i @ K)[real]]
        rows.append(
            sum(e * value for e, value in zip(exps, (i @ V)[real], strict=True)) / sum(exps)
        )
    return torch.stack(rows)


def cross_by_pytorch(t, i, Q, K, V, real):
    return F.scaled_dot_product_attention(t @ Q, i @ K, i @ V, attn_mask=real.expand(len(t), -1))


CROSS_ATTENTION = Answers(
    right=[
        cross,
        word_by_word,
        cross_by_pytorch,
        lambda t, i, Q, K, V, real: attention(t @ Q, i @ K, i @ V, real).output,
        lambda t, i, Q, K, V, real: cross(t, i[real], Q, K, V, real[real]),
        lambda *a: cross(*a, weights=lambda s, m: (s - 1e9 * ~m).softmax(-1)),
    ],
    wrong=pointing(
        " See section 5.",
        [
            (
                lambda *a: cross(*a, weights=lambda s, m: s.softmax(-1)),
                "The padding is not hidden: is_patch is False there.",
            ),
            (
                lambda t, i, Q, K, V, real: cross(t, i, Q, K, V, ~real),
                "You hid the patches and kept the padding: is_patch is True where a word may look.",
            ),
            (
                lambda t, i, Q, K, V, real: cross(
                    t, i, Q, K, V, real & torch.ones(len(t), len(i)).tril().bool()
                ),
                "There is no causal mask here: no patch lies in the future of a word.",
            ),
            (
                lambda t, i, Q, K, V, real: attention(t @ Q, t @ K, t @ V).output,
                "The text asks itself: keys and values come from the image.",
            ),
            (
                lambda t, i, Q, K, V, real: attention(i @ Q, i @ K, i @ V, real).output,
                "The image asks: the queries come from the text.",
            ),
            (
                lambda t, i, Q, K, V, real: cross(t, i, K, Q, V, real),
                "W_Q belongs to the text and W_K to the image: yours are swapped.",
            ),
            (lambda *a: cross(*a, scale=1), "The scores are not scaled."),
            (
                lambda *a: cross(*a, scale=1 / math.sqrt(a[0].shape[1])),
                "You scaled by the width of the model: d_k is the width of a query.",
            ),
            (
                lambda *a: cross(*a, scale=1 / a[2].shape[1]),
                "You divided by d_k, not by its square root.",
            ),
            (
                lambda *a: cross(*a, weights=lambda s, m: s.softmax(-1) * m),
                "You masked after the softmax: the rows no longer sum to 1.",
            ),
            (
                lambda *a: cross(*a, weights=lambda s, m: s * m),
                "The softmax is missing: scores are not weights.",
            ),
            (
                lambda *a: a[0] @ a[4] + cross(*a),
                "Nothing is added here: the text's own rows are not part of the output.",
            ),
        ],
    ),
)

ANSWERS = {
    "masked_softmax": MASKED_SOFTMAX,
    "attention_function": ATTENTION_FUNCTION,
    "article_row": ARTICLE_ROW,
    "sharp_temperature": SHARP_TEMPERATURE,
    "share_above_one": SHARE_ABOVE_ONE,
    "look_and_carry_nothing": LOOK_AND_CARRY_NOTHING,
    "attention_sublayer": ATTENTION_SUBLAYER,
    "cross_attention": CROSS_ATTENTION,
}
