# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # 4 · Softmax and values
#
# **The question.** Scores are scaled and masked.
# How do they become shares, and what does *bank* carry away from "river bank" and from "money bank"?
#
# **Afterwards you can**
# - compute attention weights by hand, and check a published example;
# - compute the output, and say what changed and what did not;
# - follow one word through the whole step;
# - lower a loss by hand with W_Q, W_K and W_V, and say what a gradient step does;
# - let one sequence attend to another: cross-attention.
#
# **Builds on** [notebook 2](02_queries_keys_values.ipynb) and [notebook 3](03_scaling_and_masking.ipynb).
# If you start here, you need this much:
# every word makes a query, a key and a value by a matrix product (Q = X W_Q, K = X W_K, V = X W_V);
# the score of a query for a key is their dot product over √d_k, and −∞ where the mask forbids looking.
# Here it hides later words: *river* may not look at *bank*.
#
# **Takes** about 60 minutes; there is a stopping point after each section.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Two questions from before.** Answer in your head, then unfold.
#
# <details><summary>In the grid of scores, what are the rows and what the columns?</summary>
# Rows are queries (who asks), columns are keys (who is asked).
# </details>
#
# <details><summary>Why divide by √d_k?</summary>
# A score is a sum of d_k products, so its typical size grows like √d_k. Dividing keeps it the same at every width.
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

import math

import torch
import torch.nn.functional as F

from attnlab import MultiHeadAttention, attention, causal_mask, checks, padding_mask
from attnlab.checks import assert_close
from attnlab.data import WORD_COLOURS, embed, embedding_table, encode
from attnlab.lab import Explorer, choice, matrix, plots, predict, progress, toggle, typed
from attnlab.lab.weighted_sum import WeightedSum
from attnlab.step import AttentionStep

torch.set_printoptions(sci_mode=False)

E = embedding_table()  # river [2, 0], money [0, 2], bank [1, 0]
river_bank, money_bank = "river bank".split(), "money bank".split()
X = E[encode("river bank")]  # (S, D) = (2, 2); Q = K = V = X to begin with
masked = torch.tensor([[2.8284, -torch.inf], [1.4142, 0.7071]])  # from notebook 3
assert_close(masked, attention(X, X, X, causal_mask(2)).masked, atol=1e-4, rtol=0)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 1. Softmax: shares that are never negative
#
# Dividing by the sum failed on negative scores.
# The repair is one step more: first make every score positive with the exponential function, *then* divide by the sum.
#
# $$w_j = \frac{e^{s_j}}{e^{s_1} + e^{s_2} + \dots}$$
#
# The shares are the **attention weights**.
# They are not learned: they are computed anew for every input.
# What is learned are the parameters W_Q, W_K and W_V.
#
# > **Box: the exponential.** e is about 2.72. e^s, in code `s.exp()`, is positive for every s; adding 1 to s multiplies it by e.
# > e^−∞ is 0, so a masked score gets no share.

# %% Vote: twice the score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
twice_vote = predict(
    "bank's scaled scores are 1.4142 and 0.7071; unscaled they were 2 and 1. Both times the first is twice the second. Are the shares the same?",
    {
        "yes, twice as much both times": "That would be dividing by the sum. The exponential looks at differences.",
        "no, the unscaled shares lie further apart": "Only the difference counts, and it is 1 instead of 0.7071.",
        "no, the unscaled shares lie closer together": "A larger difference drives the shares apart.",
    },
    key="further apart",
)
twice_vote

# %% Bank's row by hand slideshow={"slide_type": "subslide"}
row = torch.tensor([1.4142, 0.7071])
exps = row.exp()  # (S_k,)
print("exp   ", exps)
print(f"shares {exps / exps.sum()}, the first is {exps[0] / exps[1]:.2f} times the second")
unscaled = torch.tensor([2.0, 1.0]).exp()
print(f"had we not scaled: {unscaled / unscaled.sum()}, {unscaled[0] / unscaled[1]:.2f} times")

# %% What is behind it: twice the score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
first, first_unscaled = exps[0] / exps.sum(), unscaled[0] / unscaled.sum()
twice_vote.reveal(
    "yes, twice as much both times"
    if abs(first_unscaled - first) < 0.01
    else f"no, the unscaled shares lie {'further apart' if first_unscaled > first else 'closer together'}",
    """
The first is e^(1.4142 − 0.7071) = e^0.7071 = 2.03 times the second: only the *difference* of the scores counts, and that it is nearly twice is an accident.
Without scaling the scores are still 2 to 1, but their difference is 1, and the ratio is e = 2.72: 0.7311 and 0.2689.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### All rows: loop and matrix

# %% Softmax of the grid slideshow={"slide_type": "subslide"}
looped = torch.stack([scores.exp() / scores.exp().sum() for scores in masked])  # (S_q, S_k)
weights = masked.softmax(dim=-1)  # along the keys: (S_q, S_k)
assert_close(weights, looped)
print(weights)
print("over the wrong axis:", masked.softmax(dim=0))

# %% Proof: no weight is negative and each row sums to 1 jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert (weights >= 0).all()
assert_close(weights.sum(dim=-1), torch.ones(2))
assert_close(weights, attention(X, X, X, causal_mask(2)).weights, atol=1e-4, rtol=0)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: `softmax(dim=-1)`.** Exponential, sum, division, all in one. `dim=-1` says along which axis the shares sum to 1: the last one, the keys.
#
# Each row, one for each query, sums to 1.
# With `dim=0` the *columns* would sum to 1, and the numbers would look just as innocent.
#
# **Why e^s, and not another function?** Any positive function that grows with the score gives shares.
# One is softplus, ln(1 + e^s). Let us add the same number to both scores.

# %% Another function in the place of the exponential slideshow={"slide_type": "subslide"}
for s in (row, row + 10):
    print(f"exp {s.exp() / s.exp().sum()}, softplus {F.softplus(s) / F.softplus(s).sum()}")

# %% [markdown] slideshow={"slide_type": "subslide"}
# With e^s only the difference between scores counts, so nothing changes.
# Softplus depends on where 0 lies, and for large scores it is nearly s itself: back to dividing by the sum.
# (2^s would do: it is e^s with every score times ln 2.)
#
# Softmax **blends**: every word that may be seen keeps some share. It may come so close to picking one that 1.00 is printed, as trained models do in notebooks 5 and 6.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### A published example
#
# An article on the web takes the scores [0.8, 0.5, −0.2, 0.9], masks the last two, and prints the attention weights [0.62, 0.38, 0, 0].

# %% Vote: which recipe printed that row? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
recipe_vote = predict(
    "Which recipe turns 0.8 and 0.5 (and two masked scores) into 0.62, 0.38, 0 and 0?",
    {
        "mask, then softmax": "Work one out: e^0.8 / (e^0.8 + e^0.5).",
        "softmax, then mask": "Then the row would sum to less than 1.",
        "mask, then divide by the sum": "No exponential: it fails as soon as a score is negative.",
    },
    key="mask, then divide by the sum",
)
recipe_vote

# %% Check the article slideshow={"slide_type": "subslide"}
article = torch.tensor([0.8, 0.5, -0.2, 0.9])
keep = torch.tensor([True, True, False, False])
right = article.masked_fill(~keep, -torch.inf).softmax(dim=-1)
print("softmax gives", right)

# %% Proof: the printed row is no softmax jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
print("scores", article)
print("0.8 / 1.3 and 0.5 / 1.3 are", round(0.8 / 1.3, 2), "and", round(0.5 / 1.3, 2))

# %% What is behind it: the recipe of the article jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
recipes = {
    "mask, then softmax": right,
    "softmax, then mask": article.softmax(dim=-1) * keep,
    "mask, then divide by the sum": article * keep / article[keep].sum(),
}
printed = torch.tensor([0.62, 0.38, 0.0, 0.0])
recipe_vote.reveal(
    next((name for name, r in recipes.items() if torch.allclose(r, printed, atol=0.005)), "none"),
    """
The right attention weights are 0.5744 and 0.4256.
The printed ones are 0.8/1.3 = 0.62 and 0.5/1.3 = 0.38: somebody divided by the sum.
""",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 9 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Values: what is carried away
#
# A row of attention weights times the matrix of values is a weighted sum of the values.
# You know this sentence from notebook 1: *a row times a matrix is a weighted sum of the matrix's rows*.
# As a formula, for query i:
#
# $$z_i = \sum_j w_{ij}\, v_j$$

# %% Guess: what bank carries away jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Answer before you go on
carried_guess = predict(
    "bank mixes [2, 0] and [1, 0] with the attention weights 0.6698 and 0.3302. What is the first number of the mixture?",
    key="1.6698",
)
carried_guess

# %% The weighted sum: loop and matrix slideshow={"slide_type": "subslide"}
V = X  # (S_k, d_v)
parts = [weight * value for weight, value in zip(weights[1], V)]  # of bank's row
output = weights @ V  # (S_q, S_k) @ (S_k, d_v) -> (S_q, d_v)
assert_close(output[1], sum(parts))
print(output)

# %% Proof: the sum in numbers jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert_close(output, attention(X, X, X, causal_mask(2)).output, atol=1e-4, rtol=0)
by_hand = [[round(0.6698 * 2, 4), 0], [round(0.3302 * 1, 4), 0]]  # the weights at four decimals
print("bank: 0.6698 * [2, 0] + 0.3302 * [1, 0] =", by_hand[0], "+", by_hand[1])

# %% What is behind it: what bank carries away jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
carried_guess.reveal(
    output[1, 0],
    "0.6698 · [2, 0] + 0.3302 · [1, 0] = [1.3396, 0] + [0.3302, 0] = [1.6698, 0]: nearer to *river*, which has the larger weight.",
)

# %% The same sum as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=9.5, height=2.1)
parts_named = ("attention weights", "values", "values, scaled", "output of bank")
WeightedSum(
    axes, river_bank, weights[1], V, "bank mixes the values", parts_named, colours=WORD_COLOURS
)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The other phrase

# %% Vote: what changes with the phrase? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
row_vote = predict(
    "From “river bank” to “money bank”: which numbers in the row of bank change?",
    {
        "its embedding": "The table has one row for bank, whatever stands beside it.",
        "the parameters W_Q, W_K and W_V": "They are learned, then they stay: the same in every phrase.",
        "its attention weights": "They are computed anew for every input.",
    },
    key="its attention weights",
)
row_vote

# %% Same embedding, two outputs slideshow={"slide_type": "subslide"}
steps = {}
for phrase in ("river bank", "money bank"):
    x = E[encode(phrase)]  # (S, D)
    s = steps[phrase] = attention(x, x, x, causal_mask(2))
    print(f"{phrase}: weights {s.weights[1]}, output {s.output[1]}")

# %% One word, three vectors jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=4.6, height=3.0)
arrows = torch.stack([*(s.output[1] for s in steps.values()), E[2]])
names = ["beside river", "beside money", "input"]
plots.vectors(axes, names, arrows, "bank: one word, three vectors")
picture

# %% What is behind it: what changes with the phrase jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
inputs = [E[encode(phrase)][1] for phrase in steps]  # bank, both times
weights_differ = not torch.equal(*(s.weights[1] for s in steps.values()))
row_vote.reveal(
    "its attention weights" if weights_differ and torch.equal(*inputs) else "its embedding",
    """
The input of *bank* is [1, 0] in both phrases.
Its output is [1.6698, 0] beside *river* and [0.6698, 0.6605] beside *money*.
**Same embedding, two outputs**: that is contextualisation, which a table cannot do.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Two limits: positions were left out on purpose; they come in notebook 5.
# And in "river bank" the output lies on one line, whatever W_Q and W_K are, because *river* is twice *bank*.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Another W_V

# %% Vote: what does W_V move? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
moved_vote = predict(
    "We put another matrix in the place of W_V. What moves in the row of bank?",
    {
        "the attention weights": "They come from Q and K alone: W_V never meets a score.",
        "the output": "",
        "both": "The attention weights come from Q and K alone: W_V never meets a score.",
    },
    key="the output",
)
moved_vote

# %% Another W_V slideshow={"slide_type": "subslide"}
W_V = torch.tensor([[0.5, 0.2], [0.3, 0.8]])  # (D, d_v)
V = X @ W_V  # (S, d_v)
s = attention(X, X, V, causal_mask(2))
print("V =", V)
print("bank's row", s.weights[1], "gives", s.output[1])

# %% What is behind it: what W_V moves jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
before = steps["river bank"]
moved_vote.reveal(
    "the output" if torch.equal(s.weights, before.weights) else "both",
    "W_V changes what is carried, not where one looks: bank's output is [0.8349, 0.3340] now, and its attention weights are what they were.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Added, not replaced
#
# In a model the output does not replace the embedding; it is **added** to it: the **residual connection**.
# Without it *bank* could lose its own embedding, because the weighted sum is made of values only.

# %% The residual connection slideshow={"slide_type": "subslide"}
print("bank:", X[1], "+", steps["river bank"].output[1], "=", X[1] + steps["river bank"].output[1])

# %% [markdown] slideshow={"slide_type": "subslide"}
# Now the names that notebook 1 promised, from small to large:
# - **attention sublayer**: one attention step and the addition, as here;
# - **block**: an attention sublayer, then a small network for each position by itself (you write one in notebook 5);
# - **contextual hidden state**: what a position holds after a block, computed anew for every occurrence of a word, where an embedding is one row for each id;
# - **causal decoder** and **encoder**: a stack of blocks with the causal mask, where a position uses itself and those before it, and one without, where it uses all.
#
# *Stopping point: about 16 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. The whole step
#
# In one line, with M the mask of 0 and −∞:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V$$
#
# Read from the inside out, five steps begin with Q, K and V: **score, scale, mask, softmax, mix**.
# Before them comes **project** (X to Q, K and V), after them **add** (the residual connection).
# First a question; then you see all seven.

# %% Vote: the knobs that do nothing jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
knobs_vote = predict(
    "In “river bank”, which of the twelve numbers in W_Q, W_K and W_V do nothing, wherever the others stand?",
    {
        "none: every number is used": "A number that is only ever multiplied by 0 is not used.",
        "the second row of each matrix": "x W weighs the rows of W by the numbers of x, and the second one is 0 in river and in bank.",
        "the second column of each matrix": "The second column makes the second coordinate of Q, K and V: it wakes up as soon as it is not 0.",
    },
    key="the second row",
)
knobs_vote

# %% Explorer: the whole step, one part at a time jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# The page computes this one; the next cell computes the same in Python
step = AttentionStep(
    show=["step", "phrase", "query", "temperature", "causal", "W_Q", "W_K", "W_V"]
    + ["X", "Q", "K", "V", "words", "raw", "scaled", "masked", "weights", "output", "sum"],
    phrase="river bank",
    goal="Press Play. Look for dead numbers in “river bank”. Then, in “river money bank”, make bank give money more than 0.5.",
    when=[["weights", "bank", "money", ">", 0.5]],
)
step

# %% The same in Python, with the matrices as they stand above slideshow={"slide_type": "subslide"}
x_now = E[encode(step.phrase)]  # (S, D)
projected = [x_now @ torch.tensor(entries) for entries in (step.W_Q, step.W_K, step.W_V)]  # Q, K, V
mask_now = causal_mask(len(x_now)) if step.causal else None
in_python = attention(*projected, mask_now, scale=2**-0.5 / step.temperature)
assert_close(in_python.output, step.parts[0]["output"].float())  # what the page shows
print("output", in_python.output)

# %% Proof: the phrase in which every knob matters, and the goal jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
solved = AttentionStep(phrase="river money bank", W_Q=[[0, 1], [0, 1]], when=step.when)
assert solved.reached and not step.reached
AttentionStep(show=["weights", "output"], phrase="river money bank")

# %% What is behind it: the knobs that do nothing jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
other, same_first_row = torch.tensor([[1.0, 2.0], [5.0, -7.0]]), torch.tensor([[1.0, 2], [0, 1]])
knobs_vote.reveal(
    "the second row of each matrix"
    if torch.equal(X @ other, X @ same_first_row)
    else "none: every number is used",
    """
In "river bank" both words have a 0 in the second coordinate; the second row of a matrix is only ever multiplied by that 0.
*money* wakes it up: in "river money bank" the second row of W_Q moves the row of *money*, and of nobody else, because *bank* itself still has a 0 there.
And in "river bank" W_Q[0, 1] moves Q, but no score, until W_K[0, 1] changes too: in a score the two numbers are multiplied.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The step as a function
#
# > **Box: `k.transpose(-2, -1)`** exchanges the last two axes, as `k.T` does for a matrix; axes before them, such as a batch, stay.


# %% Attention in five lines slideshow={"slide_type": "subslide"}
def my_attention(q, k, v, allowed):
    scores = q @ k.transpose(-2, -1)  # (S_q, S_k)
    scaled = scores / q.shape[-1] ** 0.5
    masked = scaled.masked_fill(~allowed, -torch.inf)
    weights = masked.softmax(dim=-1)
    return weights @ v  # (S_q, d_v)


q, k, v = torch.randn(3, 5, 7)  # random, S = 5, d = 7
mine = my_attention(q, k, v, causal_mask(5))
assert_close(mine, attention(q, k, v, causal_mask(5)).output)
assert_close(mine, F.scaled_dot_product_attention(q, k, v, is_causal=True))
print("the five lines, the package and PyTorch agree")

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Teach *bank* to look for *money*
#
# So far *bank* asks with its own embedding, which is at right angles to *money*.
# Its query is [1, 0] W_Q, which is the *first row* of W_Q.
# Put a number in W_Q[0, 1], and *bank* asks in money's direction.

# %% Vote: and the other phrase? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
river_vote = predict(
    "W_Q[0, 1] goes from 0 to 3, and money gains weight in “money bank”. And river in “river bank”?",
    {
        "river loses weight": "Shares go to the words of the phrase: money is not in it.",
        "river keeps its weight": "",
        "river gains weight too": "Its key has a 0 where the query has grown.",
    },
    key="river keeps its weight",
)
river_vote

# %% Explorer: teach bank to look for money jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, middle, right) = plots.panels(3, height=2.7)
heat_river = plots.heatmap(left, river_bank, river_bank, title="river bank")
heat_money = plots.heatmap(middle, money_bank, money_bank, title="money bank")
names = ["beside river", "beside money", "input"]
plane = plots.vectors(right, names, title="bank", limits=(-1, 3, -1, 3))


def show(W_Q, W_K, W_V):
    outputs = []
    for phrase, heat in ((river_bank, heat_river), (money_bank, heat_money)):
        x = E[encode(" ".join(phrase))]
        steps = attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2))
        heat.update(steps.weights, causal_mask(2))
        outputs.append(steps.output[1])
    plane.update(torch.stack([*outputs, E[2]]))
    in_money, in_river = heat_money.values[1, 0], heat_river.values[1, 0]
    sentence = f"bank gives money **{in_money:.4f}** in 'money bank' and river **{in_river:.4f}** in 'river bank'."
    return sentence, in_money > 0.95


teach = Explorer(
    picture,
    show,
    goal="Make bank give money more than 0.95 by moving one number of W_Q. No embedding changes.",
    W_Q=matrix(),
    W_K=matrix(),
    W_V=matrix(),
    more=["W_K", "W_V"],
)
teach

# %% Stills of the explorer: teach bank to look for money jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
teach.stills({"W_Q": [[1, 1], [0, 1]]}, {"W_Q": [[1, 3], [0, 1]]})

# %% Proof: the two weights at three settings jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
for knob in (0.0, 1.0, 3.0):
    asking = torch.tensor([[1.0, knob], [0.0, 1.0]])
    money_X, river_X = E[encode("money bank")], E[encode("river bank")]
    money = attention(money_X @ asking, money_X, money_X, causal_mask(2)).weights[1, 0]
    river = attention(river_X @ asking, river_X, river_X, causal_mask(2)).weights[1, 0]
    print(
        f"W_Q[0, 1] = {knob:.0f}: bank gives money {money:.4f}, and in the other phrase river {river:.4f}"
    )

# %% What is behind it: the other phrase jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
asked = [X @ torch.tensor([[1.0, knob], [0.0, 1.0]]) for knob in (0.0, 3.0)]
before, after = (attention(q, X, X, causal_mask(2)).weights[1, 0] for q in asked)
river_vote.reveal(
    "river keeps its weight"
    if abs(after - before) < 1e-6
    else f"river {'gains weight too' if after > before else 'loses weight'}",
    """
*money* goes from 0.3302 to 0.6698 (at 1) and 0.9717 (at 3), and *river* stays at 0.6698: no word of "river bank" has anything in the second coordinate.
Nothing was written into the table. **Where a word looks is decided by W_Q and W_K**; in a real model they are learned.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# One thing to keep for notebook 6: a large weight on a value of *zero* carries nothing, so the attention weights alone do not tell what moved.
#
# *Stopping point: about 32 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 4. A loss under your hands
#
# Who chooses W_Q, W_K and W_V? Training, by making a **loss** small. Here you do it by hand.
# After "river bank" comes *shore*, after "money bank" *loan*.
# A fixed head reads *bank*'s output z: its first number is the score of *shore*, its second that of *loan*.
#
# > **Box: loss.** Softmax over the two scores gives the right word a probability p. The loss is −ln p, averaged over both phrases: 0 if p is 1, large if p is near 0.
#
# > **Box: gradient step.** The **gradient** says, for every entry, how fast the loss rises when that entry grows.
# > A step subtracts it, so each entry moves downhill. PyTorch computes it (*autograd*): `requires_grad_` marks what may move, `loss.backward()` writes the gradient into `.grad`.


# %% The loss of two phrases, and one gradient step slideshow={"slide_type": "subslide"}
def loss_of(W_Q, W_K, W_V):
    phrases = E[encode("river bank")], E[encode("money bank")]  # each (S, D)
    z = [attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2)).output[1] for x in phrases]  # of bank
    return F.cross_entropy(torch.stack(z), torch.tensor([0, 1]))  # shore, loan: the mean of -ln p


def gradient_step(matrices, learn):
    matrices = {name: W.clone().requires_grad_(name in learn) for name, W in matrices.items()}
    loss_of(**matrices).backward()
    return {name: (W - W.grad if name in learn else W).detach() for name, W in matrices.items()}


identities = {name: torch.eye(2) for name in ("W_Q", "W_K", "W_V")}
blind = identities | {"W_V": torch.zeros(2, 2)}  # nothing is handed over
print(f"with identities {loss_of(**identities):.4f}, without context {loss_of(**blind):.4f} = ln 2")

# %% [markdown] slideshow={"slide_type": "subslide"}
# Without context nothing is better than 1/2 for each word: the dotted line at ln 2 below.

# %% Vote: which matrix can do it alone? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
alone_vote = predict(
    "The gradient may move one matrix only, from the identities on. With which one does the loss come below 0.10?",
    {
        "W_Q alone": "Even if bank looks at its neighbour alone, it gets no more than that neighbour's value.",
        "W_V alone": "The two neighbours hand over different values, and W_V can pull them apart.",
        "either": "One of the two decides where bank looks, and that has a limit.",
        "neither": "One of the two decides what is handed over, and that can grow.",
    },
    key="W_V alone",
)
alone_vote

# %% Explorer: race the gradient jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, middle, right) = plots.panels(3, 9.5, 2.5, ratios=[1, 1, 2.2])
heat_river = plots.heatmap(left, river_bank, river_bank, title="river bank")
heat_money = plots.heatmap(middle, money_bank, money_bank, title="money bank")
lines = ["your moves", "gradient"]
curve = plots.curves(right, lines, "Loss", "move", "loss", xlim=(0, 24), ylim=(0, 1))
curve.lines["your moves"].set_marker("o")
curve.lines["gradient"].set_linestyle("--")
curve.level(math.log(2), "ln 2: without context")
curve.level(0.1, "goal")

learners = {"all three": list(identities)} | {name: [name] for name in identities}
gradient = {}  # who learns -> the losses of 24 gradient steps from the identities on
for label, learn in learners.items():
    path = [identities]
    while len(path) < 25:
        path.append(gradient_step(path[-1], learn))
    gradient[label] = [loss_of(**matrices).item() for matrices in path]
history = [(identities, None)]  # the matrices after every move, and the entry that was moved


def moved(a, b):
    """The entries in which they differ: (name, row, column)."""
    return [(name, *at) for name in a for at in (a[name] != b[name]).nonzero().tolist()]


def record(now):
    """An entry that moves on is the same move; a state that was there before goes back to it."""
    known = [n for n, (matrices, _) in enumerate(history) if not moved(matrices, now)]
    if known:
        del history[known[0] + 1 :]
        return
    for entry in moved(history[-1][0], now):
        if history[-1][1] == entry:
            history.pop()
        history.append((now, entry))


def show(W_Q, W_K, W_V, learn):
    now = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    record(now)
    for heat, phrase in ((heat_river, "river bank"), (heat_money, "money bank")):
        x = E[encode(phrase)]
        heat.update(attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2)).weights, causal_mask(2))
    losses = [loss_of(**matrices).item() for matrices, _ in history]
    steps = range(len(gradient[learn]))
    curve.update(**{"your moves": losses})
    curve.update(x=steps, gradient=gradient[learn])
    needed = next((n for n in steps if gradient[learn][n] < 0.1), None)
    said = f"needs {needed} steps" if needed else f"is not there after {steps[-1]} steps"
    moves = len(history) - 1
    sentence = f"Loss **{losses[-1]:.3f}** after {moves} move{'s' * (moves != 1)}. The gradient on {learn} {said}."
    return sentence, losses[-1] < 0.1 and moves < 4


def one_step(learn, **matrices):
    stepped = gradient_step(matrices, learners[learn])
    stepped = {name: W.clamp(-3, 3) for name, W in stepped.items()}  # as far as a knob goes
    history.append((stepped, "step"))  # all of it is one move
    return stepped


race = Explorer(
    picture,
    show,
    goal="Bring the loss below 0.10 in fewer moves than the gradient on all three (dashed). Dragging one number is one move.",
    W_Q=matrix(),
    W_K=matrix(),
    W_V=matrix(),
    learn=choice(list(learners), label="gradient on"),
    buttons={"One gradient step": one_step},
)
race

# %% Stills of the explorer: race the gradient jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
race.stills({"learn": "W_V"}, {"W_Q": [[1, 3], [0, 1]], "W_V": [[3, 0], [0, 1]]})

# %% Proof: what the gradient can do with one matrix, and how good looking alone can be jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
below = {
    name: [n for n, loss in enumerate(losses) if loss < 0.1] for name, losses in gradient.items()
}
assert [below[name][:1] for name in learners] == [[4], [], [], [23]]
assert round(math.log(1 + math.exp(-2)), 4) == 0.1269
assert gradient["W_Q"][-1] > 0.1269
single = []
for name, i, j in moved(identities, {name: W + 1 for name, W in identities.items()}):
    moves = identities[name].repeat(61, 1, 1)  # (61, 2, 2): one move each
    moves[:, i, j] = torch.linspace(-3, 3, 61)
    losses = torch.vmap(lambda W, name=name: loss_of(**identities | {name: W}))(moves)  # (61,)
    single.append(losses.min())
assert min(single) > 0.1  # so no single move reaches the goal

# %% What is behind it: which matrix can do it alone jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
alone = [name for name in ("W_Q", "W_V") if min(gradient[name]) < 0.1]
alone_vote.reveal(
    "neither" if not alone else "either" if len(alone) == 2 else f"{alone[0]} alone",
    """
W_Q (or W_K) alone never gets there. If *bank* looked at its neighbour only, z would be [2, 0] or [0, 2], and the loss 0.1269: better looking does not change what is handed over.
W_V alone gets there, after **23** steps, with bank looking where it looked before. All three together need **4**.
By hand two moves do it: one number that decides where *bank* looks, and one that makes the value larger.
The gradient does not know what the numbers mean; it moves all twelve at once, and would as readily move billions.
""",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 41 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 5. Cross-attention: one sequence asks another
#
# So far the words of a phrase attended to one another: **self-attention**.
# In **cross-attention** the queries come from one sequence, A, and the keys and values from another, B:
# a text attends to an image, a translation to the text that it translates (there attention began: Bahdanau et al. 2015).
#
# | | self-attention | cross-attention |
# |---|---|---|
# | queries from | sequence A | sequence A |
# | keys and values from | sequence A | sequence B |
# | attention weights | (S_A, S_A) | (S_A, S_B) |
# | causal mask | in decoders | none: all of B is there |
# | padding mask | for the padding of A | for the padding of B |
#
# Here A is the text "red blue", and B an image cut into four patches: red, blue, red and white.
# In a batch all images get as many rows as the largest; the fifth row is such **padding**.
# A row has four numbers: how red, how blue, and its place, x and y.
# W_Q and W_K keep the colours, W_V the place: a word asks *where is my colour?*

# %% Vote: which place does red get? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
place_vote = predict(
    "Two patches are red: top left, at [−1, 1], and bottom left, at [−1, −1]. Which place does the word red get?",
    {
        "the place of one of them": "Both have the same key, so the same score and the same share.",
        "the point halfway between them": "The output is a weighted sum of places, with equal shares.",
        "the centre of the image": "That would need shares for the right-hand patches, too.",
    },
    key="halfway",
)
place_vote

# %% Text attends to an image slideshow={"slide_type": "subslide"}
patches = torch.tensor(  # (S_B, D): red, blue, x, y; the last row is padding
    [[4.0, 0, -1, 1], [0, 4, 1, 1], [4, 0, -1, -1], [0, 0, 1, -1], [9, 9, 0, -2]]
)
text = torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]])  # (S_A, D): red, blue
W_Q = W_K = torch.eye(4)[:, :2]  # (D, d_k): keep the colours
W_V = torch.eye(4)[:, 2:]  # (D, d_v): keep the place
not_padding = padding_mask([4], size=5)[0]  # (1, S_B): True, True, True, True, False
crossed = attention(text @ W_Q, patches @ W_K, patches @ W_V, not_padding)
print(crossed.weights, crossed.output, sep="\n")  # (S_A, S_B), (S_A, d_v)

# %% What is behind it: the place of red jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
x, y = crossed.output[0].tolist()
place_vote.reveal(
    "the place of one of them"
    if abs(y) > 0.9
    else "the point halfway between them"
    if x < -0.9
    else "the centre of the image",
    """
*red* gives both red patches 0.4983, and gets [−0.9930, 0.0000]: the middle of the left edge, where no patch has its centre.
Attention blends. (*blue*, with one patch to find, gets nearly its place.)
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# The package's module takes the other sequence as `context=`. Its parameters are random here: look at the shapes and the padding.
# `text[None]` puts an axis of length 1 in front: the batch, B = 1.

# %% Cross-attention with the module slideshow={"slide_type": "subslide"}
module = MultiHeadAttention(4, n_heads=2)
with_context = module(text[None], context=patches[None], mask=padding_mask([4], size=5))
print("weights (B, H, S_A, S_B) =", tuple(with_context.weights.shape))
print("weight on the padding:", with_context.weights[..., 4].max().item())

# %% Explorer: text asks an image jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
inks = {"red": (0.9, 0.45, 0.4), "blue": (0.5, 0.65, 0.95), "white": (1.0, 1.0, 1.0)}
features = {"red": [4.0, 0.0], "blue": [0.0, 4.0], "white": [0.0, 0.0]}
picture, (left, right) = plots.panels(2, 9.5, 2.7, ratios=[1, 2])
image = left.imshow([[(1, 1, 1)] * 2] * 2, extent=(-2, 2, -2, 2), animated=True, zorder=0)
found = plots.vectors(left, ["red", "blue"], title="where a word points", limits=(-2, 2, -2, 2))
for drawn in (*found.arrows, *found.names):
    drawn.set_color("black")
heat = plots.heatmap(right, ["red", "blue"], ["1", "2", "3", "4", "5"])


def show(W_Q, bottom_left, mask_padding):
    colours = ["red", "blue", bottom_left, "white"]
    image.set_data([[inks[name] for name in pair] for pair in (colours[:2], colours[2:])])
    B = patches.clone()
    B[2, :2] = torch.tensor(features[bottom_left])
    mask = not_padding if mask_padding else None
    steps = attention(text[:, :2] @ W_Q, B @ W_K, B @ W_V, mask)
    columns = [f"{name} {arrow}" for name, arrow in zip(colours, "↖↗↙↘")] + ["padding"]
    heat.relabel(["red", "blue"], columns)
    heat.update(steps.weights, mask)
    found.update(steps.output)
    most = [columns[j] for j in steps.weights.argmax(dim=-1).tolist()]
    largest = steps.weights.amax(dim=-1)
    sentence = "; ".join(
        f"{word} looks most at {patch}: **{weight:.2f}**"
        for word, patch, weight in zip(["red", "blue"], most, largest)
    )
    blue = [j for j, name in enumerate(colours) if name == "blue"]
    return f"{sentence}.", (steps.weights[:, blue].sum(dim=-1) > 0.9).all()


ask_image = Explorer(
    picture,
    show,
    goal="Make both words find blue, by moving numbers of W_Q (its rows for red and blue). Then take the padding mask away.",
    W_Q=matrix(),
    bottom_left=choice(["red", "blue", "white"], label="patch at the bottom left"),
    mask_padding=toggle(True, "mask the padding"),
)
ask_image

# %% Stills of the explorer: text asks an image jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
ask_image.stills({"W_Q": [[0, 1], [0, 1]]}, {"mask_padding": False})

# %% [markdown] slideshow={"slide_type": "subslide"}
# Without the mask the padding gets nearly everything: its leftover numbers happen to be large.
# Nothing in B is the future of A, so there is no causal mask.
#
# *Stopping point: about 50 minutes.*

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# Six more stand under *Further*.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 4.1, break a recipe.** Give two scores, both visible, for which the article's recipe prints a share above 1.
#
# <details><summary>Hint 1: nudge</summary>
# When is a sum smaller than one of its parts?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Three scores, 5, 1 and −2: the sum is 4, and the first share is 5/4.
# </details>

# %% Exercise 4.1 slideshow={"slide_type": "skip"} tags=["exercise"]
my_scores = ...  # such as torch.tensor([1.0, 2.0])
checks.share_above_one(my_scores)

# %% Exercise 4.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
scores_solution = torch.tensor([3.0, -1.0])  # shares 1.5 and -0.5
checks.share_above_one(scores_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 4.2.** Write cross-attention: `text` is `(S_A, D)`, `image` is `(S_B, D)`, `W_Q` and `W_K` are `(D, d_k)`, `W_V` is `(D, d_v)`;
# `is_patch` `(S_B,)` is False at padding. Return the output, `(S_A, d_v)`; you may call `attention`.
#
# <details><summary>Hint 1: nudge</summary>
# Which two of the three projections belong to the image?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One word [1, 0], patches [2, 0] and [0, 5], identity matrices, no padding: scores 2 and 0, over √2 1.41 and 0,
# weights 0.80 and 0.20, output 0.80 · [2, 0] + 0.20 · [0, 5] = [1.61, 0.98].
# </details>


# %% Exercise 4.2 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_cross_attention(text, image, W_Q, W_K, W_V, is_patch):
    return ...  # your lines here


checks.cross_attention(my_cross_attention)


# %% Exercise 4.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def cross_attention_solution(text, image, W_Q, W_K, W_V, is_patch):
    return attention(text @ W_Q, image @ W_K, image @ W_V, is_patch).output  # (S_A, d_v)


checks.cross_attention(cross_attention_solution)

# %% Proof: the numbers of the worked hint jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
pair = torch.tensor([[2.0, 0], [0, 5]])
hinted = attention(torch.tensor([[1.0, 0]]), pair, pair)
assert round(2 / 2**0.5, 2) == 1.41
assert [round(x, 2) for x in hinted.weights[0].tolist()] == [0.8, 0.2]
assert [round(x, 2) for x in hinted.output[0].tolist()] == [1.61, 0.98]

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - Softmax: exponential, then divide by the row's sum. Attention weights are computed for each input; parameters are learned.
# - The output is a weighted sum of values, and is added to the input.
# - W_Q and W_K say where to look, W_V what to carry. Same embedding, other neighbours, other output.
# - Keys and values may come from another sequence: cross-attention.
#
# **Next:** [5 · Heads and positions](05_heads_and_positions.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **The same lesson, computed in the page.** Both phrases beside one another: lines as thick as the attention weights, and *bank*'s output as steps from word to word.

# %% Explorer: teach bank, as lines and steps jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
AttentionStep(
    show=["W_Q", "words", "plane"],
    phrase="river bank",
    beside="money bank",
    goal="Make bank give money more than 0.95 by moving one number of W_Q.",
    when=[["weights", "bank", "money", ">", 0.95]],
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **By hand.** Let *bank* be [1, 1] instead.
# Its scores for *river* and *itself* are then both 2: the attention weights are 0.5 and 0.5, and the output is [1.5, 0.5].
# Work out the one beside *money* before you run the cell.

# %% Another embedding for bank slideshow={"slide_type": "skip"} tags=["further"]
for word in (0, 1):  # river, money
    x = torch.stack([E[word], torch.tensor([1.0, 1.0])])
    s = attention(x, x, x, causal_mask(2))
    print(s.weights[1].tolist(), "->", s.output[1].tolist())

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### Two practical matters

# %% Large scores, and the temperature slideshow={"slide_type": "skip"} tags=["further"]
large = torch.tensor([1000.0, 0.0])
print("naive :", (large.exp() / large.exp().sum()).tolist(), " exp(1000) is", large.exp()[0].item())
shifted = large - large.max()  # only differences matter
print("stable:", (shifted.exp() / shifted.exp().sum()).tolist(), " from", shifted.tolist())
for temperature in (0.1, 1.0, 10.0):
    print(f"temperature {temperature:4}:", (row / temperature).softmax(dim=-1))

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# exp(1000) overflows to ∞, and ∞/∞ is nan; so every implementation subtracts the row's maximum first. Only differences matter.
#
# Dividing all scores by a **temperature** makes the attention weights softer (above 1) or sharper (below 1).
# At any temperature every word that may be seen keeps *some* share (the 0.0 above is e^−1000, too small for the computer): attention **blends**, however sharp.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Your own phrase.** Type up to eight words.
# *river*, *money* and *bank* have their own embeddings; any other word gets two made-up numbers, always the same for the same word.

# %% Explorer: your own phrase jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
picture, (left, right) = plots.panels(2, width=9.5, height=2.6)
heat = plots.heatmap(left, "ab", "ab")
table = plots.heatmap(right, "ab", ["1", "2"], kind="values", title="output", names=("", ""))


def show(phrase, W_Q, W_K, W_V):
    tokens, x = embed(phrase)  # S strings, (S, 2)
    allowed = causal_mask(len(tokens))
    steps = attention(x @ W_Q, x @ W_K, x @ W_V, allowed)
    heat.relabel(tokens, tokens)
    heat.update(steps.weights, allowed)
    table.relabel(tokens, ["1", "2"])
    table.update(steps.output)
    most = steps.weights[-1].argmax()
    weight = steps.weights[-1, most]
    reached = tokens[-1] == "bank" != tokens[most] and weight > 0.5
    return f"The last word looks most at '{tokens[most]}': **{weight:.2f}**.", reached


own_phrase = Explorer(
    picture,
    show,
    goal="Write a sentence that ends in bank, and make bank give more than 0.5 to another word, one of your choice.",
    phrase=typed("the cat took money to the bank"),
    W_Q=matrix(),
    W_K=matrix(),
    W_V=matrix(),
    more=["W_V"],
)
own_phrase

# %% Still of the explorer: your own phrase jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
own_phrase.stills({"phrase": "we swam in the river by the bank", "W_Q": [[3, 0], [0, 0]]})

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **How the attention weights react.** The derivative of the attention weights w by the scores is the matrix diag(w) − w wᵀ.
# If one weight is 1, it is zero everywhere: nothing reacts.
#
# **How spread out a row is** can be told by its entropy, −Σ w ln w: 0 for a single 1, ln n for n equal weights.

# %% Jacobian and entropy slideshow={"slide_type": "skip"} tags=["further"]
w = row.softmax(dim=-1)
jacobian = torch.diag(w) - torch.outer(w, w)  # (S_k, S_k)
assert_close(jacobian, torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), row))
entropy = -(w * w.log()).sum()
print(f"entropy {entropy:.4f} of at most ln 2 = {math.log(2):.4f}")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### More exercises
#
# **Exercise 4.3.** Do better than the article: `scores` and the boolean `allowed` are `(S_q, S_k)`, True means "may attend".
# Every row has at least one True. Return the attention weights. Some scores are as large as 1000.
#
# <details><summary>Hint 1: nudge</summary>
# What must a score be so that its exponential is 0? And which number may you subtract from a whole row without changing its shares?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# The row [3, 1, 7] with the last one masked: [3, 1, −∞], less the row's largest, 3: [0, −2, −∞].
# The exponentials are 1, 0.14 and 0, their sum is 1.14, the shares 0.88, 0.12 and 0.
# `row.max(dim=-1, keepdim=True).values` is the largest of each row, as a column.
# </details>


# %% Exercise 4.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_masked_softmax(scores, allowed):
    return ...  # your lines here


checks.masked_softmax(my_masked_softmax)


# %% Exercise 4.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def masked_softmax_solution(scores, allowed):
    masked = scores.masked_fill(~allowed, -torch.inf)
    exps = (masked - masked.max(dim=-1, keepdim=True).values).exp()
    return exps / exps.sum(dim=-1, keepdim=True)


checks.masked_softmax(masked_softmax_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.4.** Write attention from memory: `q` is `(S_q, d_k)`, `k` is `(S_k, d_k)`, `v` is `(S_k, d_v)`, `allowed` is `(S_q, S_k)`. Return the output, `(S_q, d_v)`.
#
# <details><summary>Hint 1: nudge</summary>
# Five verbs, in this order: score, scale, mask, softmax, mix.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One query [0, 2], keys [1, 1], [0, 3] and [4, 4], the last one masked, values [1, 0], [0, 1] and [5, 5].
# The scores are 2, 6 and 8; over √2 they are 1.41 and 4.24, and the third is −∞; the weights are 0.06, 0.94 and 0; the output is [0.06, 0.94].
# </details>


# %% Exercise 4.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_whole_attention(q, k, v, allowed):
    return ...  # your lines here


checks.attention_function(my_whole_attention)

# %% Exercise 4.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
checks.attention_function(my_attention)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.5, find the error.** The author of [0.62, 0.38, 0, 0] had a recipe. Complete it: `scores` and `allowed` are `(S_k,)`.
#
# <details><summary>Hint 1: nudge</summary>
# Section 1 has put three recipes beside the printed row. Only one of them never uses e.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Scores 3, 1 and 7, the last one masked. The visible ones are 3, 1 and 0, their sum is 4, and the recipe prints 3/4, 1/4 and 0.
# </details>


# %% Exercise 4.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def authors_recipe(scores, allowed):
    visible = scores * allowed  # (S_k,): the hidden ones become 0
    return visible / ...  # by what?


checks.article_row(authors_recipe)


# %% Exercise 4.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def authors_recipe_solution(scores, allowed):
    visible = scores * allowed  # (S_k,)
    return visible / visible.sum()


checks.article_row(authors_recipe_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.6, predict a number.** *bank* gives *river* 0.6698 of its attention, from the scores 1.4142 and 0.7071.
# At which temperature would it be 0.99? Guess, try your guess with `(row / guess).softmax(dim=-1)`, and come closer.
#
# <details><summary>Hint 1: nudge</summary>
# Only the difference of the two scores counts. Is it to grow or to shrink?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# For 0.90: 0.90 against 0.10 is a ratio of 9, so the difference must become ln 9 = 2.1972. It is 0.7071 now, and a temperature divides it: 0.7071 / 2.1972 = 0.3218.
# </details>

# %% Exercise 4.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_temperature = ...
checks.sharp_temperature(my_temperature)

# %% Exercise 4.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
temperature_solution = 0.7071 / math.log(99)  # about 0.154
share = (row / temperature_solution).softmax(dim=-1)[0]
print(f"river gets {share:.2f}")
checks.sharp_temperature(temperature_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.7, make two matrices.** In "river money bank", with W_K the identity and no mask, choose W_Q so that *bank* gives *money* more than 0.9,
# and W_V so that nothing of *money* arrives at *bank*. *river* must go on carrying something.
#
# <details><summary>Hint 1: nudge</summary>
# One matrix says where to look, the other what is carried. Which is which?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# To look at *river* instead: bank = [1, 0] asks with the first row of W_Q. If that is [3, 0], the scores for [2, 0], [0, 2] and [1, 0] are 6, 0 and 3,
# and *river* gets 0.88. So that nothing of *river* arrives: its value is [2, 0] W_V, twice the first row of W_V; make that row [0, 0].
# </details>

# %% Exercise 4.7 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_W_Q = ...  # (D, d_k) = (2, 2)
my_W_V = ...  # (D, d_v) = (2, 2)
checks.look_and_carry_nothing(my_W_Q, my_W_V)

# %% Exercise 4.7, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
W_Q_solution = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
W_V_solution = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
checks.look_and_carry_nothing(W_Q_solution, W_V_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# So a large attention weight tells where *bank* looks, and not what it gets.
#
# **Exercise 4.8, build it.** The attention sublayer of a model, from an empty cell: project `x` `(S, D)` with `W_Q`, `W_K` `(D, d_k)` and `W_V` `(D, D)`,
# let every word attend to itself and those before it, and return the *new* `x` `(S, D)`.
#
# <details><summary>Hint 1: nudge</summary>
# You have written all of it: exercise 4.4, a mask from notebook 3, and one plus sign from section 2.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# x = [[1, 0], [0, 1]], all matrices the identity. The first word sees itself alone: output [1, 0], new row [2, 0].
# The second has the scores 0 and 1/√2 = 0.71: weights 0.33 and 0.67, output [0.33, 0.67], new row [0.33, 1.67].
# </details>


# %% Exercise 4.8 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_sublayer(x, W_Q, W_K, W_V):
    return ...  # your lines here


checks.attention_sublayer(my_sublayer)


# %% Exercise 4.8, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def sublayer_solution(x, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, x @ W_K, x @ W_V  # (S, d_k), (S, d_k), (S, D)
    allowed = torch.ones(len(x), len(x)).tril().bool()  # (S, S)
    scores = q @ k.T / W_Q.shape[1] ** 0.5  # (S_q, S_k)
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return x + weights @ v  # (S, D)


checks.attention_sublayer(sublayer_solution)

# %% Proof: the numbers of the worked hints jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
assert [round(w, 2) for w in torch.tensor([3.0, 1]).softmax(0).tolist()] == [0.88, 0.12]
assert round(math.exp(-2), 2) == 0.14 and round(1 + math.exp(-2), 2) == 1.14
three = torch.tensor([[1.0, 1], [0, 3], [4, 4]])
hinted = attention(
    torch.tensor([[0.0, 2]]), three, torch.tensor([[1.0, 0], [0, 1], [5, 5]]), three[:, 0][None] < 4
)
assert hinted.raw.tolist() == [[2, 6, 8]] and round(6 / 2**0.5, 2) == 4.24
assert [round(w, 2) for w in hinted.weights[0].tolist()] == [0.06, 0.94, 0]
assert [round(z, 2) for z in hinted.output[0].tolist()] == [0.06, 0.94]
assert round(0.9 / 0.1) == 9
assert round(math.log(9), 4) == 2.1972 and round(0.7071 / math.log(9), 4) == 0.3218
assert round((torch.tensor([6.0, 0, 3]) / 2**0.5).softmax(0)[0].item(), 2) == 0.88
unit = torch.eye(2)
second = (unit + attention(unit, unit, unit, causal_mask(2)).output)[1]
assert [round(x, 2) for x in second.tolist()] == [0.33, 1.67] and round(0.5**0.5, 2) == 0.71

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### Further reading
#
# - Vaswani et al. 2017, [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762): section 3.2, the whole step; section 3.2.3, its decoder attends to its encoder.
# - Bahdanau, Cho and Bengio 2015, [*Neural Machine Translation by Jointly Learning to Align and Translate*](https://arxiv.org/abs/1409.0473): attention, and cross-attention, come from here.
# - Jaegle et al. 2021, [*Perceiver*](https://arxiv.org/abs/2103.03206): a model built on cross-attention to images, sound and text.
# - Arpit Bhayani, [*The Q, K, V Matrices*](https://arpitbhayani.me/blogs/qkv-matrices): the three matrices built up from small numbers.
#
# Where these texts differ from this notebook: some add biases to the projections or multiply W x instead of x W; notebook 2 has the translation.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("04"), globals())
