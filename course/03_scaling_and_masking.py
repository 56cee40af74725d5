# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # 3 · Scaling and masking
#
# **The question.** Scores are made. Before they become shares, two things happen to them:
# they are divided by √d_k, and some are crossed out. Why?
#
# **Afterwards you can**
# - explain with numbers why the divisor is √d_k, and not 1 or d_k;
# - build a causal and a padding mask, and say what each hides;
# - say what happens to a word that may attend to nothing.
#
# **Builds on** [notebook 2](02_queries_keys_values.ipynb): scores are Q Kᵀ, rows are queries, columns are keys.
# **Takes** about 52 minutes; there are stopping points on the way.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Two questions from before.** Answer in your head, then unfold.
#
# <details><summary>Which matrix can you change without changing any score: W_Q, W_K or W_V?</summary>
# W_V. It decides what is handed over, not where one looks.
# </details>
#
# <details><summary>Why can shares not be made by dividing scores by their sum?</summary>
# Scores may be negative or cancel out; then "shares" are negative, above 1, or a division by zero.
# </details>
#
# Then run the folded cell below: it imports what this notebook uses.

# %% Setup (unfold to see) jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["setup"]
# What this notebook imports
try:
    import attnlab  # noqa: F401
except ModuleNotFoundError:
    import sys

    message = f"{sys.executable} has no attnlab: run 'make lab', or 'pip install -e .[lab]' there"
    raise ModuleNotFoundError(message) from None

import torch
import torch.nn.functional as F
from torch import nn

from attnlab import attention, causal_mask, checks, padding_mask
from attnlab.checks import assert_close
from attnlab.data import WORD_COLOURS, embedding_table, encode
from attnlab.lab import Explorer, choice, plots, predict, progress, toggle
from attnlab.lab.weighted_sum import WeightedSum

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)

E = embedding_table()  # river [2, 0], money [0, 2], bank [1, 0]
tokens = ["river", "bank"]
X = E[encode("river bank")]  # (S, D) = (2, 2); Q = K = V = X for now

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Softmax in three lines
#
# The next notebook takes softmax apart; here you need only this much.
# It turns a row of scores into shares that are positive and sum to 1, and
# 1. a larger score gets a larger share;
# 2. only *differences* between scores matter;
# 3. a score of −∞ gets exactly nothing.
#
# These shares are the **attention weights**: computed anew for every input, unlike parameters, which are learned.
# Such a row of shares will stand in our sentence *a row times a matrix is a weighted sum of its rows*; a share of 0 leaves that row out.
#
# > **Box: `softmax(dim=-1)`.** `dim` is the axis along which the shares sum to 1; −1 is the last axis.
# > In a grid of scores that is the axis of the keys, so each row is shared out by itself.

# %% Three properties of softmax slideshow={"slide_type": "subslide"}
row = torch.tensor([2.0, 1.0, 0.0])
hidden = torch.tensor([2.0, 1.0, -torch.inf])
print("shares          ", row.softmax(dim=-1))
print("all scores + 100", (row + 100).softmax(dim=-1))
print("last one is -inf", hidden.softmax(dim=-1))

# %% Proof: the three properties jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert_close(row.softmax(dim=-1), (row + 100).softmax(dim=-1), atol=1e-5, rtol=0)
assert hidden.softmax(dim=-1)[2] == 0

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 1. Why divide by √d_k
#
# In the formula every score is divided by the square root of the key width d_k.
# For our example, d_k = 2:

# %% Scaled scores: loop, matrix, package slideshow={"slide_type": "subslide"}
raw = X @ X.T  # (S, S)
looped = torch.tensor([[(q @ k) / 2**0.5 for k in X] for q in X])
scaled = raw / 2**0.5  # (S, S)
assert_close(scaled, looped)
assert_close(scaled, attention(X, X, X).scaled)
print(scaled)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: variance.** How far numbers stray from their mean: the mean of the squared distances.
# > Its square root is the standard deviation.
# > The variance of a *sum* of independent numbers is the sum of their variances.
# > In code, `x.var(dim=-1)` is the variance along the last axis.
#
# A score is a sum of d_k products, q₁k₁ + q₂k₂ + ….
# If the components of q and k are independent, with mean 0 and variance 1, each product has mean 0 and variance 1, too (the mean of q₁²k₁² is that of q₁² times that of k₁²: 1 · 1).
# So the score, a sum of d_k of them, has variance **d_k**.

# %% Vote: a typical score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
score_vote = predict(
    "At d_k = 64, how far from 0 is a typical raw score?",
    {
        "1": "Each of the 64 products is, but they are added up.",
        "8": "Variances add up to 64, and the distance is the root of that.",
        "64": "That is the variance: a typical distance is its square root, for much cancels.",
    },
    key="8 at d_k = 64",
)
score_vote

# %% The variance of a score, measured slideshow={"slide_type": "subslide"}
generator = torch.Generator().manual_seed(0)


def twenty_variances(d_k):
    q, k = torch.randn(2, 20, 200, d_k, generator=generator)  # two tensors (20, 200, d_k)
    return (q * k).sum(dim=-1).var(dim=-1)  # (20,)


sizes = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
measured = torch.stack([twenty_variances(d_k) for d_k in sizes])  # (10, 20)
picture, axes = plots.panels(1, width=5)
log = {"xscale": "log", "yscale": "log", "xlim": (2, 1024), "ylim": (1, 2000)}
line = plots.curves(axes, ["d_k"], "Variance of q · k: band, and d_k", "d_k", "variance", **log)
line.band(sizes, measured.amin(dim=1), measured.amax(dim=1))
line.update(x=sizes, d_k=sizes)
picture

# %% What is behind it: a typical score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
score_vote.reveal(
    f"{measured[sizes.index(64)].mean() ** 0.5:.0f}",
    """
The band spans twenty measurements of two hundred random pairs each, around the line of d_k.
The variance is d_k, so a typical raw score is √d_k away from 0: 8 at d_k = 64.
Dividing by √d_k brings it back to about 1, whatever the width, **as long as the components are independent**: so it is when training begins.
""",
)

# %% Proof: the variance is d_k jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert (measured.mean(dim=1) / torch.tensor(sizes) - 1).abs().max() < 0.1

# %% [markdown] slideshow={"slide_type": "subslide"}
#
# ### What large scores do
#
# Let one random query meet 8 random keys, 2,000 times over.
# We measure two things: the largest attention weight, and how much the attention weights react when the query changes a little.
#
# > **Box: sensitivity.** A derivative says how much a result moves when an input is nudged.
# > We take all derivatives of the attention weights by the query and put them into one number, their norm (the root of the sum of their squares).
# > If it is near 0, nudging the query does nothing, and training, which nudges, can hardly improve where the word looks.

# %% Vote: a larger divisor jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
divisor_vote = predict(
    "At d_k = 512 we divide by d_k instead of √d_k. How do the attention weights react to the query?",
    {
        "more: small scores react more strongly": "Too large scores do kill the reaction, but so do too small ones.",
        "as with √d_k": "The scores are √512 times smaller: they can hardly move an attention weight.",
        "hardly at all": "Scores near 0 give equal attention weights, wherever the query points.",
    },
    key="hardly at all",
)
divisor_vote


# %% How it is measured (unfold to see) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how
def draw(d_k, draws=2000):
    generator = torch.Generator().manual_seed(d_k)
    q = torch.randn(draws, 1, d_k, generator=generator)
    K = torch.randn(draws, 8, d_k, generator=generator)
    return q, K


def measure(q, K, scale):
    """Mean largest attention weight, median sensitivity, and the scores themselves."""
    steps = attention(q, K, K, scale=scale)
    w = steps.weights[:, 0]  # (draws, 8)
    # the derivative of softmax (notebook 4, Further)
    dw_dscore = torch.diag_embed(w) - w[:, :, None] * w[:, None, :]  # (draws, 8, 8)
    dw_dq = scale * dw_dscore @ K  # (draws, 8, d_k)
    sensitivity = dw_dq.flatten(start_dim=1).norm(dim=1).median().item()
    return w.max(dim=1).values.mean().item(), sensitivity, steps


# %% Largest weight and sensitivity slideshow={"slide_type": "subslide"}
print("          largest weight           sensitivity")
print(" d_k    1     1/√d_k  1/d_k     1      1/√d_k  1/d_k")
table = {}
for d_k in (2, 8, 32, 128, 512):
    table[d_k] = [measure(*draw(d_k), scale)[:2] for scale in (1.0, d_k**-0.5, 1 / d_k)]
    largest, sensitive = zip(*table[d_k])
    print(f"{d_k:4}", *(f"  {x:.2f} " for x in largest), "  ", *(f" {x:.3f} " for x in sensitive))

# %% What is behind it: a larger divisor jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
_, by_root, by_width = (sensitivity for _, sensitivity in table[512])
divisor_vote.reveal(
    "hardly at all" if by_width < 0.1 * by_root else "as with √d_k",
    """
- **Unscaled**, the largest attention weight climbs from about 0.4 to above 0.9: one key takes all.
  The sensitivity first rises to about 1, then collapses to almost nothing.
- **Divided by √d_k**, both hardly move: 0.33 and 0.308 at d_k = 2, and about 0.36 and 0.367 at the larger widths.
- **Divided by d_k**, the attention weights drift to the uniform 1/8, and the sensitivity dies as well.

So the divisor is not simply "against small **gradients**" (the derivatives that training goes by).
It keeps the scores at a size where training can make attention sharp or soft.
""",
)

# %% Proof: the columns of that table jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
unscaled, by_root, by_width = (list(column) for column in zip(*table.values()))
assert abs(unscaled[0][0] - 0.38) < 0.05 and abs(unscaled[-1][0] - 0.95) < 0.02
assert all(abs(largest - 0.36) < 0.04 for largest, _ in by_root)
assert abs(max(s for _, s in unscaled) - 1) < 0.1 and unscaled[-1][1] < 0.006  # about .005 or less
assert all(abs(s - 0.37) < 0.07 for _, s in by_root)
assert abs(by_width[-1][0] - 0.13) < 0.01 and abs(by_width[-1][1] - 0.015) < 0.001
alike = torch.randn(1000, 512, generator=torch.Generator().manual_seed(0))
assert ((alike * alike).sum(dim=1) / 512**0.5).mean() > 20  # q = k
assert len(draw(2)[0]) == 2_000

# %% Explorer: width and scale jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, middle, right) = plots.panels(3, ratios=(3, 3, 2))
spread = plots.curves(
    left,
    ["share of the scores"],
    "Scores",
    x="score (the edges: beyond ±50)",
    y="share",
    xlim=(-50, 50),
    ylim=(0, 1),
)
weights = plots.bars(middle, range(1, 9), title="Attention weights of one query")
numbers = plots.bars(right, ["largest", "sensitivity"], title="500 queries", limits=(0, 1.2))
edges = torch.arange(-51.0, 52.0, 2.0)


def show(d_k, scale):
    factor = {"1": 1.0, "1/√d_k": d_k**-0.5, "1/d_k": 1 / d_k}[scale]
    largest, sensitivity, steps = measure(*draw(d_k, draws=500), factor)
    shares = (
        torch.histogram(steps.scaled.flatten().clamp(-50, 50), edges).hist / steps.scaled.numel()
    )
    spread.update(x=(edges[1:] + edges[:-1]) / 2, **{"share of the scores": shares})
    weights.update(steps.weights[0, 0])
    numbers.update([largest, sensitivity])
    result = f"largest attention weight **{largest:.2f}**, sensitivity **{sensitivity:.2f}**"
    return f"d_k = {d_k}, scores times {scale}: {result}.", d_k == 512 and scale == "1/√d_k"


width_and_scale_explorer = Explorer(
    picture,
    show,
    goal="At d_k = 512, let the sensitivity die in two different ways. Then bring it back.",
    d_k=choice([2, 8, 32, 128, 512], label="d_k"),
    scale=choice(["1", "1/√d_k", "1/d_k"]),
)
width_and_scale_explorer

# %% Stills of the explorer: width and scale jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
width_and_scale_explorer.stills(
    {"d_k": 512}, {"d_k": 512, "scale": "1/√d_k"}, {"d_k": 512, "scale": "1/d_k"}
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# **Where the argument ends.** It assumes independent components with mean 0.
# Training makes queries and keys *alike* where they are to meet. Then a score has a mean that grows with d_k itself, and no longer with its root:


# %% Queries and keys that are alike slideshow={"slide_type": "subslide"}
def mean_score(d_k):
    k, noise = torch.randn(2, 2_000, d_k, generator=torch.Generator().manual_seed(d_k))
    q = 0.3 * k + (1 - 0.3**2) ** 0.5 * noise  # each component correlated by 0.3
    return (q * k).sum(dim=-1).mean().item()


for d_k in (8, 64, 512):
    mean = mean_score(d_k)
    print(f"d_k = {d_k:3}: mean score / √d_k {mean / d_k**0.5:.1f}, / d_k {mean / d_k:.1f}")

# %% Proof: that mean grows with d_k jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert all(abs(mean_score(d_k) / d_k - 0.3) < 0.02 for d_k in (8, 64, 512))
assert mean_score(512) / 512**0.5 > 6 > 1 > mean_score(8) / 8**0.5

# %% [markdown] slideshow={"slide_type": "subslide"}
# Dividing by d_k would hold that mean still, and would make independent scores vanish. √d_k is the right start; what comes after it, training has to learn.
#
# ### Which width?
#
# Large models run several attentions side by side, called **heads**, each on a part of the width (notebook 5).

# %% Vote: the width under the root jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
width_vote = predict(
    "A model of width 36 has 4 heads, each 9 wide. By which number does a head divide its scores?",
    {
        "2, the root of 4": "The number of heads is no width: a score does not add up over heads.",
        "3, the root of 9": "A score of one head is a sum of 9 products.",
        "6, the root of 36": "That is the width of the whole model: a head sees 9 columns of it.",
    },
    key="root of 9",
)
width_vote

# %% Typical scores of one head slideshow={"slide_type": "subslide"}
q, k = torch.randn(2, 10_000, 9, generator=torch.Generator().manual_seed(0))
print(f"a typical score of a head that is 9 wide: {(q * k).sum(dim=-1).std():.1f}")

# %% What is behind it: the width under the root jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
typical = (q * k).sum(dim=-1).std().item()
width_vote.reveal(
    min(
        ("2, the root of 4", "3, the root of 9", "6, the root of 36"),
        key=lambda name: abs(int(name[0]) - typical),
    ),
    "In the formula d_k is the width of *one head*, not the width of the model.",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 19 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. The causal mask: do not look ahead
#
# A model that writes text reads from left to right.
# At "river", the word after it does not exist yet, so *river* must not attend to it.
# A **mask** says who may attend to whom; in this course **True means "may attend"**.

# %% Vote: how to block a score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
block_vote = predict(
    "river is to give bank no share at all, and its shares are still to sum to 1. What do we do with the score?",
    {
        "make it 0, then softmax": "A score of 0 is a score like others, and gets a share.",
        "softmax, then make the share 0": "The other shares do not grow: the row no longer sums to 1.",
        "make it −∞, then softmax": "e^−∞ is 0, and the others share out the whole.",
    },
    key="make it −∞",
)
block_vote

# %% Three ways to block slideshow={"slide_type": "subslide"}
river = scaled[0]  # of river: for itself and for bank
may = torch.tensor([True, False])
blocked = [
    (river * may).softmax(dim=-1),
    river.softmax(dim=-1) * may,
    river.masked_fill(~may, -torch.inf).softmax(dim=-1),
]
for shares in blocked:
    print(f"shares {shares}, sum {shares.sum():.2f}")

# %% What is behind it: how to block a score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
ways = ("make it 0, then softmax", "softmax, then make the share 0", "make it −∞, then softmax")
block_vote.reveal(
    next(w for w, row in zip(ways, blocked) if row[1] == 0 and abs(row.sum() - 1) < 1e-6),
    "A forbidden score is replaced by −∞, *before* the softmax: exactly nothing for that key, and the other shares still sum to 1.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: −∞ in code.** `torch.inf` is a number for the computer: e^−∞ is 0, and −∞ plus anything is −∞. `scores.masked_fill(~allowed, -torch.inf)` writes it wherever `allowed` is False; `~` swaps True and False.
#
# Three notations say the same, and each is in use: *boolean* (True: may), *0 and 1* (0: blocked), and *additive*, a matrix M of 0 and −∞ that is added to the scores.
# The grid of who looks at whom, and how much, is called the attention **pattern**.

# %% Vote: the score that goes jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
crossed_vote = predict(
    "Which of the four scores of “river bank” does a causal mask cross out?",
    {
        "row bank, column river": "That is bank looking back: rows are queries, and river is its past.",
        "row river, column bank": "The query is river, and the key bank comes after it.",
        "both: they must not see each other": "bank may look back at river, which stands before it.",
    },
    key="row river, column bank",
)
crossed_vote

# %% The causal mask slideshow={"slide_type": "subslide"}
allowed = causal_mask(2)  # (S_q, S_k), True on and below the diagonal
filled = scaled.masked_fill(~allowed, -torch.inf)  # (S, S)
M = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
assert_close(filled, scaled + M)  # additive
ones_and_zeros = torch.tensor([[1, 0], [1, 1]])  # 0: blocked, as in many texts
assert torch.equal(ones_and_zeros.bool(), allowed) and torch.equal(ones_and_zeros.log(), M)

steps = attention(X, X, X, allowed)
assert_close(steps.masked, filled)  # the package does the same
print(filled)

picture, (left, middle, right) = plots.panels(3)
plots.heatmap(left, tokens, tokens, allowed, kind="mask", title="May attend?")
plots.heatmap(middle, tokens, tokens, steps.masked, kind="scores", title="Masked scores")
plots.heatmap(right, tokens, tokens).update(steps.weights, allowed)
picture

# %% What is behind it: the score that goes jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
i, j = (~allowed).nonzero()[0].tolist()
crossed_vote.reveal(
    f"row {tokens[i]}, column {tokens[j]}",
    """
*river* has only itself to look at, and gets all of it.
*bank* sees both, and nothing has changed for it.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# In the picture of the weighted sum, a crossed-out key leaves its row out. In "river money bank", *money* sees *river* and itself:

# %% The masked row as a weighted sum jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
phrase = "river money bank".split()
X3 = E[encode("river money bank")]  # (S, D) = (3, 2)
money_row = attention(X3, X3, X3, causal_mask(3)).weights[1]  # (S_k,)
picture, axes = plots.panels(1, width=9.5, height=2.7)
parts_named = ("attention weights", "values", "values, scaled", "output of money")
title = "money may not look at bank"
WeightedSum(axes, phrase, money_row, X3, title, parts_named, colours=WORD_COLOURS)
picture

# %% Proof: money looks at river and itself jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert money_row[2] == 0 and abs(money_row.sum() - 1) < 1e-6 and 0 < money_row[0] < money_row[1]

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Edit the future
#
# Here is how to test a causal mask: change a later word, and watch the words before it.

# %% Vote: the last word changes jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
edit_vote = predict(
    "We replace the last word of “river bank” by money. When does the output of river change?",
    {
        "never: river comes first": "Without a mask every word sees every other, the later ones too.",
        "only without the mask": "Then river has read the word that comes after it.",
        "with the mask and without it": "With the mask river sees itself alone, and that has not changed.",
    },
    key="only without the mask",
)
edit_vote

# %% Change the last word slideshow={"slide_type": "subslide"}
edited = E[encode("river money")]
for name, mask in [("with the mask   ", causal_mask(2)), ("without the mask", None)]:
    before, after = attention(X, X, X, mask), attention(edited, edited, edited, mask)
    print(name, [steps.output[0] for steps in (before, after)])

# %% What is behind it: the last word changes jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
moved = [
    not torch.equal(
        attention(X, X, X, mask).output[0], attention(edited, edited, edited, mask).output[0]
    )
    for mask in (causal_mask(2), None)
]
edit_vote.reveal(
    {(False, True): "only without the mask", (False, False): "never: river comes first"}.get(
        tuple(moved), "with the mask and without it"
    ),
    "With the mask, *river* stays [2, 0].",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Writing, reading and training
#
# In an **encoder** such as BERT, which reads finished text, that is wanted: no causal mask, every word sees every other, however far.
# A model that writes, such as GPT, has the mask.
#
# **Why mask in training, when the whole text is there?**
# Because one pass predicts the next word at *every* position at once: a text of S words gives S examples for the price of one.
# The word after "river" is the very answer that position is to give; it must not see it.
# The causal mask matters in training just as much as in writing.
#
# *Stopping point: about 28 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. Padding, and the row with nothing to see
#
# Sequences of different length are put into one batch by filling up the short ones.
# What fills them up is called **padding**. It is no text, and nobody should attend to it: a **padding mask** hides it.
# A causal mask hides the *future*; a batch may need both, joined by "and".

# %% Vote: one mask for all? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
batch_vote = predict(
    "A phrase of two words and one of three stand in one batch. Which mask differs from phrase to phrase?",
    {
        "neither: one mask serves the whole batch": "The two phrases have padding at different places.",
        "the causal mask": "What is the future of a place depends on the place alone: one triangle for all.",
        "the padding mask": "It depends on the length of each phrase.",
        "both": "The triangle is the same for all phrases: it depends on places, not on words.",
    },
    key="the padding mask",
)
batch_vote

# %% The masks of two phrases slideshow={"slide_type": "subslide"}
valid = padding_mask([2, 3], 3)  # the first phrase has 2 real tokens, the second 3
print("causal ", tuple(causal_mask(3).shape), " padding", tuple(valid.shape))

# %% What is behind it: one mask for all? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
per_phrase = [
    name
    for name, mask in {"the causal mask": causal_mask(3)[None], "the padding mask": valid}.items()
    if len(mask) == 2 and not torch.equal(mask[0], mask[1])
]
batch_vote.reveal(
    {0: "neither: one mask serves the whole batch", 2: "both"}.get(
        len(per_phrase), *per_phrase[:1]
    ),
    """
The causal mask knows places only, so one triangle, (S_q, S_k), serves all phrases.
The padding mask knows lengths: it is (B, 1, S_k), one row for each phrase.
They are two different things, and neither replaces the other.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: broadcasting.** Two tensors of different shape can be joined number by number if, from the right, their sizes are equal or one of them is 1: that one is repeated.
# > So (S_q, S_k) and (B, 1, S_k) give (B, S_q, S_k). `x[:, None]` puts an axis of size 1 behind the first.

# %% Two masks are joined by "and" slideshow={"slide_type": "subslide"}
both = causal_mask(3) & valid  # (S_q, S_k) & (B, 1, S_k) -> (B, S_q, S_k)
picture, axes = plots.panels(3)
names = ["river", "bank", "(padding)"]
plots.heatmap(axes[0], names, names, causal_mask(3), kind="mask", title="Causal")
plots.heatmap(axes[1], names, names, valid[0].expand(3, 3), kind="mask", title="Padding")
plots.heatmap(axes[2], names, names, both[0], kind="mask", title="Both")
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: PyTorch's own attention.** `F.scaled_dot_product_attention` takes Q, K, V and a mask, and gives the output.
# > `nn.MultiheadAttention` is a module with projections of its own; it gives the output and, if asked, the weights.
#
# With padding on the *right*, every row still has a real word to look at.
# With padding on the **left** and a causal mask, the row of the padding itself has none: it is a **fully masked row**.

# %% Vote: a row of nothing but minus infinity jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
masked_vote = predict(
    "What does a plain softmax make of a row of three −∞?",
    {
        "an error": "Nothing stops: 0/0 is a value for the computer, and it goes on with it.",
        "equal shares": "That is what three times −1e9 gives: equal shares of forbidden keys.",
        "zeros": "A wish that has to be programmed: PyTorch's function and ours do.",
        "not a number": "exp(−∞) is 0, and 0 divided by the sum 0 has no value: NaN.",
    },
    key="NaN",
)
masked_vote

# %% A row that may attend to nothing: three answers slideshow={"slide_type": "subslide"}
left_padded = torch.stack([torch.zeros(2), *X])  # (3, 2): padding, river, bank
allowed = causal_mask(3) & torch.tensor([False, True, True])  # row 0 sees nothing
scores = left_padded @ left_padded.T / 2**0.5  # (3, 3)

naive = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
large = scores.masked_fill(~allowed, -1e9).softmax(dim=-1)
steps = attention(left_padded, left_padded, left_padded, allowed)
print("fill with -inf:", naive[0].tolist())
print("fill with -1e9:", large[0])
print("this course:   ", steps.weights[0].tolist())

x = left_padded[None]  # (B, S, D)
torch_output = F.scaled_dot_product_attention(x, x, x, attn_mask=allowed)  # (B, S, D)
assert_close(steps.output, torch_output[0])
module = nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
for needed in (True, False):
    theirs = module(x, x, x, attn_mask=~allowed, need_weights=needed)[0]
    print(f"nn.MultiheadAttention, need_weights={needed}:", theirs[0, 0].tolist())
print("PyTorch", torch.__version__[:4])

# %% Proof: -1e9 on an ordinary row jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert torch.equal(naive[1:], large[1:])

# %% Proof: NaN spreads jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert (naive @ (naive @ left_padded)).isnan().all()  # the same once more: 0 times NaN is NaN

# %% What is behind it: a row of nothing but minus infinity jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
masked_vote.reveal(
    "not a number" if naive[0].isnan().all() else "zeros",
    """
Softmax over nothing is 0/0: **NaN**, "not a number", and every sum it enters becomes NaN too.
Sent through the same attention a second time, it reaches *river* and *bank*, although they give the padding an attention weight of 0.
The popular fill −1e9 hides the problem: the row spreads *equal attention weights over forbidden keys*.
On an *ordinary* row −1e9 does no harm: in float32 its exponential is exactly 0, as that of −∞.
PyTorch's `scaled_dot_product_attention` gives zeros, and so do we; its `nn.MultiheadAttention` gives NaN if it is asked for the weights, and zeros if not (version 2.13).
Every function has its own answer: **look into the documentation** of the one that you call.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### All masks in your hands

# %% Explorer: masks (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, middle, right) = plots.panels(3, ratios=(3, 3, 2))
masked = plots.heatmap(left, "123", "123", kind="scores", title="Masked scores")
weights = plots.heatmap(middle, "123", "123")
output = plots.heatmap(right, "123", "12", kind="values", title="Output", names=("", ""))
phrases = {
    "right": "river bank (padding)",
    "left": "(padding) river bank",
    "none": "river river bank",
}
vectors = {"river": E[0], "money": E[1], "bank": E[2], "(padding)": torch.zeros(2)}


def show(causal, padding, side, last_word):
    phrase = phrases[side].replace("bank", last_word).split()
    x = torch.stack([vectors[word] for word in phrase])  # (3, 2)
    allowed = torch.ones(3, 3, dtype=torch.bool)
    if causal:
        allowed = allowed & causal_mask(3)
    if padding:
        allowed = allowed & torch.tensor([word != "(padding)" for word in phrase])
    steps = attention(x, x, x, allowed)
    for heat, values in ((masked, steps.masked), (weights, steps.weights)):
        heat.relabel(phrase, phrase)
        heat.update(values, allowed)
    first = phrase.index("river")
    river = steps.output[first].tolist()
    output.relabel(phrase, "12")
    output.update(steps.output)
    output.mark(first)
    blind = [phrase[i] for i in range(3) if not allowed[i].any()]
    blind = f" Nothing to attend to: {blind[0]}." if blind else ""
    sentence = f"The output of the first river is **[{river[0]:.3f}, {river[1]:.3f}]**.{blind}"
    return sentence, bool(blind)


masks_explorer = Explorer(
    picture,
    show,
    goal="Switch the causal mask off: does the last word now move river's output? Then put padding on the left and mask it: which row sees nothing?",
    causal=toggle(True, "causal mask"),
    padding=toggle(False, "padding mask"),
    last_word=choice(["bank", "money"], label="last word"),
    side=choice(["none", "right", "left"], label="padding on the"),
)
masks_explorer

# %% Stills of the explorer: masks jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
masks_explorer.stills({"causal": False, "last_word": "money"}, {"side": "left", "padding": True})

# %% [markdown] slideshow={"slide_type": "subslide"}
# Scores, mask, attention weights, output: [notebook 4](04_softmax_and_values.ipynb) puts W_Q, W_K and W_V in front of this chain and lets you turn them.
#
# ### What it costs
#
# The attention pattern has one entry per query and key, S_q · S_k of them, for every head.
# Twice the text, four times the entries: **O(S²)**.

# %% The price of everyone looking at everyone slideshow={"slide_type": "subslide"}
for n_tokens in (2, 256, 2048):
    print(f"{n_tokens:5,} tokens: {n_tokens * n_tokens:9,} entries")

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# **Exercise 3.1.** Hide the future: `scores` is `(S, S)`, and every score above the diagonal becomes −∞.
#
# <details><summary>Hint 1: nudge</summary>
# The future of a word stands to the right of the diagonal. May a word attend to itself?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# To hide the *past* of [[5, 6], [7, 8]] instead: it lies below the diagonal. `torch.ones(2, 2).tril(diagonal=-1).bool()` is [[False, False], [True, False]], and `masked_fill` puts −∞ where it is True: [[5, 6], [−∞, 8]].
# `triu(diagonal=1)` keeps what lies above the diagonal.
# </details>


# %% Exercise 3.1 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_causal_scores(scores):
    return ...  # your lines here


checks.causal_scores(my_causal_scores)


# %% Exercise 3.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def causal_scores_solution(scores):
    future = torch.ones_like(scores).triu(diagonal=1).bool()
    return scores.masked_fill(future, -torch.inf)


checks.causal_scores(causal_scores_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 3.2.** A model of width 768 has 12 heads that share its width equally.
# By which number is each raw score *multiplied*?
#
# <details><summary>Hint 1: nudge</summary>
# How many products are added up in one score of one head?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Width 48 with 3 heads: a head is 48 / 3 = 16 wide, the root of 16 is 4, so each score is divided by 4, that is, multiplied by **0.25**.
# </details>

# %% Exercise 3.2 slideshow={"slide_type": "skip"} tags=["exercise"]
my_scale = ...  # your number here

checks.head_scale(my_scale)

# %% Exercise 3.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
assert 768 / 12 == 64  # the width of one head
checks.head_scale((768 / 12) ** -0.5)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - Scores grow like √d_k; dividing by it keeps them, and the sensitivity of the attention weights, the same at every width.
# - A mask puts −∞ where a query may not look, before the softmax. True means "may attend".
# - A causal mask hides the future, a padding mask the padding. A row that sees nothing gives NaN with a plain softmax, zeros here and in `scaled_dot_product_attention`.
#
# **Next:** [4 · Softmax and values](04_softmax_and_values.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **Gradients through a row that sees nothing.**
# Adding −∞ lets NaN flow back into q, k and v alike; filling stops it at q and k, but not at v.
# The package lets none through.
#
# > **Box: gradients in code.** `requires_grad=True` marks a tensor; `number.backward()` computes how that number reacts to each of its entries, and writes it into `.grad`.

# %% NaN, backwards slideshow={"slide_type": "skip"} tags=["further"]
for name in ("add -inf", "masked_fill", "attnlab"):
    q, k, v = (torch.ones(2, 2, requires_grad=True) for _ in range(3))
    keep = torch.tensor([[True, False], [False, False]])
    bias = torch.zeros(2, 2).masked_fill(~keep, -torch.inf)
    if name == "add -inf":
        output = (q @ k.T + bias).softmax(dim=-1) @ v
    elif name == "masked_fill":
        output = (q @ k.T).masked_fill(~keep, -torch.inf).softmax(dim=-1) @ v
    else:
        output = attention(q, k, v, keep).output
    output.sum().backward()
    print(f"{name:11}", {n: bool(x.grad.isnan().any()) for n, x in zip("qkv", (q, k, v))})

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Half precision.** The largest number in float16 is 65,504, so −1e9 does not fit:
# filling with it is an error, and adding it gives −inf, with the NaN that follows.

# %% float16 slideshow={"slide_type": "skip"} tags=["further"]
print("largest float16:", f"{torch.finfo(torch.float16).max:,.0f}")
half = torch.zeros(2, dtype=torch.float16)
try:
    half.masked_fill(torch.tensor([True, False]), -1e9)
except RuntimeError:
    print("masked_fill(-1e9): an error")
print("adding -1e9:", (half + torch.tensor(-1e9)).tolist())
assert attention(*[half[None]] * 3, torch.tensor([[False]])).output.isfinite().all()

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **True is not True everywhere.** `nn.MultiheadAttention` takes a boolean mask, too.

# %% Vote: the same mask in another module jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["predict", "further"]
# Vote before you unfold: the reasons stand in here
module_vote = predict(
    "We hand nn.MultiheadAttention our causal mask of “river bank”, as it is. Whom does river look at?",
    {
        "itself alone, as here": "That would be so if True meant the same in both.",
        "bank alone": "There True means ignore, so river may look only where our mask says False.",
        "both": "One of its two places is True in our mask, and True does hide something there.",
    },
    key="bank alone",
)
module_vote

# %% Our mask in nn.MultiheadAttention slideshow={"slide_type": "skip"} tags=["further"]
pair = X[None]  # (B, S, D)
as_it_is = nn.MultiheadAttention(2, 1, bias=False, batch_first=True)(
    pair, pair, pair, attn_mask=causal_mask(2)
)[1]
print("weights of river:", as_it_is[0, 0].tolist())

# %% What is behind it: the same mask in another module jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["reveal", "further"]
# Run this cell when you have voted
module_vote.reveal(
    {(1, 0): "itself alone, as here", (0, 1): "bank alone"}.get(
        tuple(as_it_is[0, 0].tolist()), "both"
    ),
    """
In `scaled_dot_product_attention`, as here, True means *keep*. In `nn.MultiheadAttention`, True means *ignore*: hand it `~mask`.
Every shape is right either way, and nothing complains.
""",
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Two alignments.** PyTorch's `is_causal=True` aligns its triangle at the top left.
# While writing, the one new query must see *all* keys so far, so it has to be the bottom right, as in `causal_mask`.

# %% Two conventions slideshow={"slide_type": "skip"} tags=["further"]
x = X[None]  # (B, S, D)
keep = causal_mask(2)
module = nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
weights_if_inverted = module(x, x, x, attn_mask=~keep)[1]
print("MultiheadAttention with ~mask hides the future:", bool(weights_if_inverted[0, 0, 1] == 0))

values = torch.tensor([[[1.0], [2.0], [3.0]]])  # (1, S_k, d_v)
query, keys = torch.zeros(1, 1, 1), torch.zeros(1, 3, 1)
top_left = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
ours = attention(query, keys, values, causal_mask(1, 3)).output
print("one new query, three keys:", "is_causal", top_left.item(), "  causal_mask", ours.item())

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Five ways, every mask.** A loop, the matrix product, einsum, `scaled_dot_product_attention` and `nn.MultiheadAttention` agree under every mask that leaves each row something to see.
#
# > **Box: parameters by hand.** Within `with torch.no_grad():` nothing is recorded for a gradient, so a module's parameters may be overwritten: `copy_` does it in place, as every method whose name ends in `_`.

# %% Five ways under every mask of three words slideshow={"slide_type": "skip"} tags=["further"]
x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))  # (S, D)
multi = nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
with torch.no_grad():  # identity projections
    multi.in_proj_weight.copy_(torch.eye(4).repeat(3, 1))
    multi.out_proj.weight.copy_(torch.eye(4))
agreeing = 0
for number in range(2**9):
    mask = torch.tensor([number >> bit & 1 for bit in range(9)], dtype=torch.bool).view(3, 3)
    if not mask.any(dim=1).all():
        continue
    looped = []
    for i in range(3):
        exps = [(x[i] @ x[j] / 2).exp() if mask[i, j] else 0 for j in range(3)]
        looped.append(sum(e * x[j] for j, e in enumerate(exps)) / sum(exps))
    scores = torch.einsum("id,jd->ij", x, x) / 2  # (S_q, S_k)
    by_einsum = torch.einsum("ij,jd->id", scores.masked_fill(~mask, -torch.inf).softmax(-1), x)
    product = (x @ x.T / 2).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ x
    fused = F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=mask)[0]
    module_output = multi(x[None], x[None], x[None], attn_mask=~mask)[0][0]
    for other in (by_einsum, product, fused, module_output, attention(x, x, x, mask).output):
        assert_close(torch.stack(looped), other)
    agreeing += 1
print(f"{agreeing} masks, all agree")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### More exercises
#
# **Exercise 3.3, half-filled.** Phrases that are to be continued are padded on the **left**, so that all last words stand together.
# `lengths` `(B,)` counts the real words of each phrase, `size` is S.
# Return one mask `(B, S, S)` that hides the future *and* the padding; True means "may attend".
# `valid = torch.arange(size) >= size - lengths[:, None]` is `(B, S)` and True for the real words.
#
# <details><summary>Hint 1: nudge</summary>
# Two masks, and a place is open only where both open it. Is padding something nobody may ask, or something that may not ask?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One phrase with one real word, size 2: `valid` is [[False, True]], of shape (1, 2), and `valid[:, None]` is (1, 1, 2). `causal_mask(2)` is [[True, False], [True, True]].
# Joined by `&` they are [[[False, False], [False, True]]]: the word sees itself, and the padding sees nothing.
# </details>


# %% Exercise 3.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_both_masks(lengths, size):
    return ...  # (B, S_q, S_k): mind the axes


checks.both_masks(my_both_masks)


# %% Exercise 3.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def both_masks_solution(lengths, size):
    valid = torch.arange(size) >= size - lengths[:, None]  # (B, S_k)
    return causal_mask(size) & valid[:, None]  # (S_q, S_k) & (B, 1, S_k) -> (B, S_q, S_k)


checks.both_masks(both_masks_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 3.4, find the bug.** `nn.MultiheadAttention` takes padding as `key_padding_mask` `(B, S)`.
# The call below runs, every shape is right, and *river* looks at nothing but padding.
# Return the mask that this module needs. Here the padding stands on the right again.
#
# <details><summary>Hint 1: nudge</summary>
# Does True mean the same in this module as in this course?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Phrases of one and of two words, size 2. Here the mask of real words is [[True, False], [True, True]]; the module wants [[False, True], [False, False]], True at the padding. `~` turns one into the other.
# </details>


# %% Exercise 3.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def with_a_bug(lengths, size):
    return padding_mask(lengths, size)[:, 0]  # (B, S)


padded = torch.stack([*X, torch.zeros(2)])[None]  # (B, S, D) = (1, 3, 2): river, bank, padding
keys = with_a_bug([2], 3)  # (B, S_k)
weights = module(padded, padded, padded, key_padding_mask=keys)[1]  # (B, S_q, S_k)
print("river gives the padding", weights[0, 0, 2].item())


def my_filler(lengths, size):
    return ...  # (B, S)


checks.filler_for_multihead(my_filler)


# %% Exercise 3.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def padding_solution(lengths, size):
    return ~padding_mask(lengths, size)[:, 0]  # (B, S)


weights = module(padded, padded, padded, key_padding_mask=padding_solution([2], 3))[1]
print("river gives the padding", weights[0, 0, 2].item())
checks.filler_for_multihead(padding_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 3.5, explain by experiment.** Does the causal mask matter in training, where the whole text is there anyway?
# In training, position i predicts the token at i + 1, at all positions at once; the last one has nothing to predict.
# Write `leaks(allowed)`: at how many positions may a query attend to the very token it is to predict? `allowed` is `(S, S)`.
# Then count for a text of 6 tokens: without a mask, with a causal one, and with one that is off by one.
#
# <details><summary>Hint 1: nudge</summary>
# In row i, one single place tells the answer. Which column?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Three tokens, and allowed is [[True, False, False], [True, True, True], [True, True, True]]. Position 0 may not see token 1, position 1 may see token 2, position 2 has nothing to predict: **1**.
# `allowed.diagonal(offset=1)` is [False, True], the places that matter; `.sum()` counts the True ones.
# </details>

# %% Vote: who reads the answer jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["predict", "further"]
# Vote before you unfold: the reasons stand in here
leak_vote = predict(
    "Training on 6 tokens without a mask: how many of the 5 predictions may read their answer?",
    {
        "none: a mask is for writing": "In training the next token stands there, one column further.",
        "one, the last": "The last position predicts a token that is not in the text.",
        "all five": "Each may attend to the token after it, the very one it is to predict.",
    },
    key="all five",
)
leak_vote


# %% Exercise 3.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_leaks(allowed):
    return ...  # one number


checks.leaks(my_leaks)


# %% Exercise 3.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def leaks_solution(allowed):
    return allowed.diagonal(offset=1).sum().item()


everything = torch.ones(6, 6, dtype=torch.bool)
masks = {"no mask": everything, "causal": causal_mask(6), "off by one": everything.tril(1)}
found = {name: leaks_solution(mask) for name, mask in masks.items()}
print(found)
checks.leaks(leaks_solution)

# %% What is behind it: who reads the answer jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["reveal", "further"]
# Run this cell when you have voted
readers = leaks_solution(torch.ones(6, 6, dtype=torch.bool))
leak_vote.reveal(
    {0: "none: a mask is for writing", 1: "one, the last", 5: "all five"}[readers],
    "A causal mask that is off by one lets as many positions read their answer as no mask at all.",
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 3.6, build it.** Attention weights that survive everything: `scores` `(S_q, S_k)` are float16, `allowed` `(S_q, S_k)` is True where a query may attend.
# Hidden keys get nothing, every other row sums to 1, and a row with no True gets zeros: no NaN, no error.
#
# <details><summary>Hint 1: nudge</summary>
# Which number hides a score in every kind of float? And what does softmax make of a row that holds nothing else?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Two rows of scores, [3, 1] with the second key hidden and [3, 1] with both hidden. Filled: [3, −∞] and [−∞, −∞]. Softmax: [1, 0] and [NaN, NaN].
# A second fill, with 0 where nothing may be seen, gives [1, 0] and [0, 0].
# </details>


# %% Exercise 3.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_sturdy_weights(scores, allowed):
    return ...  # your lines here


checks.sturdy_weights(my_sturdy_weights)


# %% Exercise 3.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def sturdy_solution(scores, allowed):
    masked = scores.masked_fill(~allowed, -torch.inf)
    return masked.softmax(dim=-1).masked_fill(~allowed, 0.0)  # (S_q, S_k)


checks.sturdy_weights(sturdy_solution)

# %% Proof: the worked hints jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
below = torch.ones(2, 2).tril(diagonal=-1).bool()
grid = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
assert grid.masked_fill(below, -torch.inf).tolist() == [[5, 6], [-torch.inf, 8]]
assert (48 / 3) ** -0.5 == 0.25
one_word = both_masks_solution(torch.tensor([1]), 2)
assert one_word.tolist() == [[[False, False], [False, True]]]
assert padding_solution(torch.tensor([1, 2]), 2).tolist() == [[False, True], [False, False]]
assert leaks_solution(torch.tensor([[True, False, False], [True] * 3, [True] * 3])) == 1
hinted = torch.tensor([[3.0, 1.0], [3.0, 1.0]])
shown = torch.tensor([[True, False], [False, False]])
assert hinted.masked_fill(~shown, -torch.inf).softmax(dim=-1)[1].isnan().all()
assert sturdy_solution(hinted, shown).tolist() == [[1, 0], [0, 0]]

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### Further reading
#
# - Vaswani et al. 2017, [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762): section 3.2.1 and its footnote on variance.
# - PyTorch, [`scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [`nn.MultiheadAttention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): what each makes of a mask.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("03"), globals())
