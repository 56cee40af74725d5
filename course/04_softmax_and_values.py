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
# - write the whole of attention in a few lines;
# - lower a loss by hand with W_Q, W_K and W_V, and say what a gradient step does;
# - let one sequence attend to another: cross-attention.
#
# **Builds on** [notebook 2](02_queries_keys_values.ipynb) and [notebook 3](03_scaling_and_masking.ipynb).
# If you start here, two lines suffice:
# every word makes a query, a key and a value by a matrix product (Q = X W_Q, K = X W_K, V = X W_V);
# the score of a query for a key is their dot product over √d_k, with −∞ where looking is forbidden (in row *river*: at *bank*, which comes later).
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
# A raw score is a sum of d_k products, so it strays √d_k from 0. Dividing keeps it the same size at every width.
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
from attnlab.data import embed, embedding_table, encode
from attnlab.lab import Explorer, choice, matrix, plots, predict, progress, typed
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
# > **Box: e and the exponential.** e is about 2.72, and e^s, in code `s.exp()`, is positive for every s. Adding 1 to s multiplies e^s by e.
# > `softmax(dim=-1)` does all of it, for each row: exponential, sum, division.

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
print("scores", row)
print("exp   ", exps)
print("shares", exps / exps.sum())
print(f"the first is {exps[0] / exps[1]:.2f} times the second")
unscaled = torch.tensor([2.0, 1.0]).softmax(dim=-1)
print(f"had we not scaled: {unscaled}, {unscaled[0] / unscaled[1]:.2f} times")

# %% What is behind it: twice the score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
shares = row.softmax(dim=-1)
same = abs(unscaled[0] - shares[0]) < 0.01
apart = unscaled[0] > shares[0]
twice_vote.reveal(
    "yes, twice as much both times"
    if same
    else f"no, the unscaled shares lie {'further apart' if apart else 'closer together'}",
    """
The first is e^(1.4142 − 0.7071) = e^0.7071 = 2.03 times the second: only the *difference* of the scores counts, and that it is nearly twice is an accident.
Without scaling the scores are still 2 to 1, but their difference is 1, and the ratio is e = 2.72: 0.7311 and 0.2689.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### All rows: loop, matrix, package

# %% Softmax of the grid slideshow={"slide_type": "subslide"}
looped = torch.stack([row.exp() / row.exp().sum() for row in masked])  # (S_q, S_k)
weights = masked.softmax(dim=-1)  # along the keys: each row sums to 1
assert_close(weights, looped)
assert_close(weights, attention(X, X, X, causal_mask(2)).weights, atol=1e-4, rtol=0)
assert (weights >= 0).all()
assert_close(weights.sum(dim=-1), torch.ones(2))
print(weights)
wrong = masked.softmax(dim=0)
print("over the wrong axis:", wrong)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Each row, one for each query, sums to 1.
# `dim=-1` means "along the keys".
# With `dim=0` the *columns* would sum to 1, and the numbers would look just as innocent.
#
# **Why e, and not another increasing function?** Any positive one would give shares.
# With e^s the *ratio* of two shares depends on the *difference* of their scores alone: the same number added to a whole row changes nothing.
# Squares would ask something else of a score: −2 would count as much as 2.

# %% Other functions in the place of exp slideshow={"slide_type": "subslide"}
for name, f in {"exp(s)": torch.exp, "2 to the s": torch.exp2, "s squared": torch.square}.items():
    here, shifted = f(row), f(row + 1)
    print(f"{name:10}: {here / here.sum()}, every score + 1: {shifted / shifted.sum()}")

# %% [markdown] slideshow={"slide_type": "subslide"}
# 2^s is the same as e^s with smaller scores, a matter of temperature; the square notices where 0 lies, which a score should not.
# Attention **blends**: every word that may be seen keeps some share, if only a tiny one. A trained model may come so close to picking one word that 1.00 is printed.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### A published example
#
# An article on the web takes the scores [0.8, 0.5, −0.2, 0.9], masks the last two, and prints the attention weights [0.62, 0.38, 0, 0].

# %% Vote: which recipe printed that row? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
recipe_vote = predict(
    "Which recipe turns 0.8 and 0.5 (and two hidden scores) into 0.62, 0.38, 0 and 0?",
    {
        "hide, then softmax": "Work one out: e^0.8 / (e^0.8 + e^0.5).",
        "softmax, then hide": "Then the row would sum to less than 1.",
        "hide, then divide by the sum": "No exponential: it fails as soon as a score is negative.",
    },
    key="hide, then divide by the sum",
)
recipe_vote

# %% Check the article slideshow={"slide_type": "subslide"}
article = torch.tensor([0.8, 0.5, -0.2, 0.9])
keep = torch.tensor([True, True, False, False])
right = article.masked_fill(~keep, -torch.inf).softmax(dim=-1)
print("scores", article)
print("softmax gives", right)

# %% What is behind it: the recipe of the article jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
recipes = {
    "hide, then softmax": right,
    "softmax, then hide": article.softmax(dim=-1) * keep,
    "hide, then divide by the sum": article * keep / article[keep].sum(),
}
printed = torch.tensor([0.62, 0.38, 0.0, 0.0])
print("0.8 / 1.3 and 0.5 / 1.3 are", round(0.8 / 1.3, 2), "and", round(0.5 / 1.3, 2))
recipe_vote.reveal(
    next((name for name, r in recipes.items() if torch.allclose(r, printed, atol=0.005)), "none"),
    """
The right attention weights are 0.5744 and 0.4256.
The printed ones are 0.8/1.3 and 0.5/1.3: somebody divided by the sum.
""",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 10 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Values: what is carried away
#
# A row of attention weights times the matrix of values is a weighted sum of the values.
# You know this sentence from notebook 1: *a row times a matrix is a weighted sum of the matrix's rows*. In signs, for query i:
#
# $$z_i = \sum_j w_{ij}\, v_j$$

# %% Guess: what bank carries away jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Answer before you go on
carried_guess = predict(
    "bank mixes [2, 0] and [1, 0] with the attention weights 0.6698 and 0.3302. What is the first number of the mixture?",
    key="1.6698",
)
carried_guess

# %% The weighted sum: loop, matrix, package slideshow={"slide_type": "subslide"}
V = X  # (S_k, d_v)
parts = [weight * value for weight, value in zip(weights[1], V)]
by_hand = [[round(0.6698 * 2, 4), 0], [round(0.3302 * 1, 4), 0]]  # the weights at four decimals
print("bank: 0.6698 * [2, 0] + 0.3302 * [1, 0] =", by_hand[0], "+", by_hand[1])
output = weights @ V  # (S_q, S_k) @ (S_k, d_v) -> (S_q, d_v)
assert_close(output[1], sum(parts))
assert_close(output, attention(X, X, X, causal_mask(2)).output, atol=1e-4, rtol=0)
print(output)

# %% What is behind it: what bank carries away jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
carried_guess.reveal(
    output[1, 0],
    "0.6698 · 2 + 0.3302 · 1, about 1.67: nearer to *river*, which has the larger weight.",
)

# %% The same sum as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=9.5, height=2.1)
WeightedSum(
    axes,
    river_bank,
    weights[1],
    V,
    "bank mixes the values",
    ("attention weights", "values", "values, scaled", "output of bank"),
)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The other phrase
#
# Now the same for "money bank".

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
picture, axes = plots.panels(1, width=4.6, height=3.4)
bank = E[2]
arrows = torch.stack([bank, steps["river bank"].output[1], steps["money bank"].output[1]])
plots.vectors(axes, ["bank", "after river", "after money"], arrows, "One word, three vectors")
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
**Same embedding, two outputs**: that is contextualisation, the thing a table could not do.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Three limits, to be honest:
# - This is the output of *one attention step*. What it is part of has names, below.
# - Positions were left out on purpose; they come in notebook 5.
# - In "river bank" the output always lies on one line, that of [1, 0] W_V, because *river* is twice *bank*: W_Q and W_K only say how far along it.

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
print("the residual, with W_V the identity:", X[1] + steps["river bank"].output[1])

# %% What is behind it: what W_V moves jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
before = steps["river bank"]
weights_moved = not torch.equal(s.weights, before.weights)
moved_vote.reveal(
    "both" if weights_moved else "the output",
    "W_V changes what is carried, not where one looks: bank's output is [0.8349, 0.3340] now, and its attention weights are what they were.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Added, not replaced
#
# In a model the output does not replace the embedding; it is **added** to it: new = x + delta, here [1, 0] + [1.6698, 0] = [2.6698, 0].
# This bypass is called the **residual connection**.
# Without it *bank* could lose its own embedding: the sum is made of values only; the query never enters it.
#
# Four names, from small to large:
# - **attention sublayer**: one attention step and the addition, as here;
# - **block**: an attention sublayer, then a small network for each position by itself; you write one in notebook 5;
# - **hidden state**: what a position holds after a block. It is *contextual*: computed anew for every occurrence from the positions that it may use, where the embedding is one row for each id;
# - **decoder** and **encoder**: a stack of blocks with the causal mask, where a position uses itself and those before it, and one without, where it uses all.
#
# *Stopping point: about 19 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. The whole step
#
# In one line, with M the mask of 0 and −∞:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V$$
#
# Read it from the inside: **project** to Q, K and V, then **score, scale, mask, softmax, mix**; and **add**, around it.


# %% Attention in five lines slideshow={"slide_type": "subslide"}
def my_attention(q, k, v, allowed):
    scores = q @ k.transpose(-2, -1)  # (S_q, S_k)
    scaled = scores / q.shape[-1] ** 0.5
    masked = scaled.masked_fill(~allowed, -torch.inf)
    weights = masked.softmax(dim=-1)
    return weights @ v  # (S_q, d_v)


q, k, v = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0))  # S = 5, d = 7
assert_close(my_attention(q, k, v, causal_mask(5)), attention(q, k, v, causal_mask(5)).output)
assert_close(
    my_attention(q, k, v, causal_mask(5)), F.scaled_dot_product_attention(q, k, v, is_causal=True)
)
print("the five lines, the package and PyTorch agree")

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Step by step, and which knobs do nothing
#
# The same seven steps, one after another, for one marked word. Press Play, or take the *step* knob; then change the phrase and the matrices.

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
    show=["step", "phrase", "query", "W_Q", "W_K", "W_V", "Q", "K", "V", "words", "masked"]
    + ["weights", "output"],
    phrase="river bank",
    goal="Find the numbers that do nothing in “river bank”. Then choose “river money bank”, and make bank give money more than 0.5.",
    when=[["weights", "bank", "money", ">", 0.5]],
)
step

# %% The same in Python slideshow={"slide_type": "subslide"}
x_now = E[encode(step.phrase)]  # (S, D)
projected = [x_now @ torch.tensor(W) for W in (step.W_Q, step.W_K, step.W_V)]  # Q, K, V
mask_now = causal_mask(len(x_now)) if step.causal else None
in_python = attention(*projected, mask_now, 2**-0.5 / step.temperature)
assert_close(in_python.output, step.parts[0]["output"].float())  # what the page shows
print("output", in_python.output.tolist())

# %% Proof: the phrase in which every knob matters jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
AttentionStep(show=["weights", "output"], phrase="river money bank")

# %% What is behind it: the knobs that do nothing jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
river_X, other = E[encode("river bank")], torch.tensor([[1.0, 2.0], [5.0, -7.0]])
row_does_nothing = torch.equal(river_X @ other, river_X @ torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
knobs_vote.reveal(
    "the second row of each matrix" if row_does_nothing else "none: every number is used",
    """
In "river bank" both words have a 0 in the second coordinate; the second row of a matrix is only ever multiplied by that 0.
*money* wakes it up: in "river money bank" the second row of W_Q moves the row of *money*, and of nobody else, because *bank* itself still has a 0 there.
And in "river bank" W_Q[0, 1] moves Q, but no score, until W_K[0, 1] changes too: in a score the two numbers are multiplied.
""",
)

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
picture, (left, middle, right) = plots.panels(3)
heat_river = plots.heatmap(left, river_bank, river_bank, title="river bank")
heat_money = plots.heatmap(middle, money_bank, money_bank, title="money bank")
names = ["input", "beside river", "beside money"]
plane = plots.vectors(right, names, title="bank", limits=(-1, 3, -1, 3))


def show(W_Q, W_K, W_V):
    outputs = [E[2]]
    for phrase, heat in ((river_bank, heat_river), (money_bank, heat_money)):
        x = E[encode(" ".join(phrase))]
        steps = attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2))
        heat.update(steps.weights, causal_mask(2))
        outputs.append(steps.output[1])
    plane.update(torch.stack(outputs))
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

# %% What is behind it: the other phrase jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
rivers = []
for knob in (0.0, 1.0, 3.0):
    W_Q = torch.tensor([[1.0, knob], [0.0, 1.0]])
    money_X, river_X = E[encode("money bank")], E[encode("river bank")]
    money = attention(money_X @ W_Q, money_X, money_X, causal_mask(2)).weights[1, 0]
    river = attention(river_X @ W_Q, river_X, river_X, causal_mask(2)).weights[1, 0]
    rivers.append(river.item())
    print(
        f"W_Q[0, 1] = {knob:.0f}: bank gives money {money:.4f}, and in the other phrase river {river:.4f}"
    )
moved = rivers[-1] - rivers[0]
river_vote.reveal(
    "river keeps its weight"
    if abs(moved) < 1e-6
    else "river gains weight too"
    if moved > 0
    else "river loses weight",
    """
*money* went from 0.3302 to 0.6698 to 0.9717, and *river* stayed at 0.6698: no word of "river bank" has anything in the second coordinate.
Nothing was written into the table. **Where a word looks is decided by W_Q and W_K**; in a real model they are learned.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# One thing to keep for notebook 6: a large weight on a value of *zero* carries nothing.
# The attention weights alone do not tell what moved.
#
# *Stopping point: about 34 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 4. A loss under your hands
#
# Who chooses W_Q, W_K and W_V? A **loss** does.
# Let *bank*'s output z be the scores of two next words: its first number for *shore*, its second for *loan*.
# After "river bank" the next word is *shore*, after "money bank" it is *loan*.
#
# > **Box: loss and gradient step.** The model gives the right word a probability p, softmax over the two numbers; its loss is −ln p, averaged over both phrases: 0 if it is sure and right.
# > For every number of the matrices, the **gradient** says how fast the loss rises with it. A **gradient step** moves all of them a little the other way; PyTorch computes the gradient (**autograd**).
#
# Whoever sees only *bank*, and not the word before it, can do no better than one half for each: a loss of ln 2 = 0.6931.


# %% The loss of two phrases slideshow={"slide_type": "subslide"}
def loss_of(W_Q, W_K, W_V):
    """Mean loss of the two phrases, from bank's output."""
    losses = []
    for phrase, target in (("river bank", 0), ("money bank", 1)):
        x = E[encode(phrase)]  # (S, D)
        z = attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2)).output[1]  # (d_v,) = (2,)
        losses.append(-z.log_softmax(dim=-1)[target])
    return sum(losses) / 2


print(f"with all three the identity: {loss_of(*torch.eye(2).expand(3, 2, 2)):.4f}")


# %% One gradient step (unfold to see) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
def gradient_step(matrices, learn):
    """The same matrices after one step of size 1 on those named in `learn`."""
    matrices = {name: W.clone().requires_grad_(name in learn) for name, W in matrices.items()}
    loss_of(**matrices).backward()
    return {name: (W - W.grad if name in learn else W).detach() for name, W in matrices.items()}


start = {name: torch.eye(2) for name in ("W_Q", "W_K", "W_V")}
print(
    f"at the start {loss_of(**start):.4f}, after one gradient step {loss_of(**gradient_step(start, start)):.4f}"
)

# %% Explorer: race the gradient jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, middle, right, beside) = plots.panels(4, 9.5, 2.6, ratios=[1, 1, 1.5, 0.9])
heat_river = plots.heatmap(left, river_bank, river_bank, title="river bank")
heat_money = plots.heatmap(middle, money_bank, money_bank, title="money bank")
curve = plots.curves(right, ["loss"], "Loss after each move", "move", xlim=(0, 40), ylim=(0, 1.5))
curve.level(math.log(2), "ln 2: without context")
bars = plots.bars(beside, ["now", "after\na step"], limits=(0, 1.5))
moves = []  # (settings, loss) of every move so far


def show(W_Q, W_K, W_V, learn):
    matrices = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    if all(torch.equal(W, torch.eye(2)) for W in matrices.values()):
        moves.clear()  # back at the start: a new race
    now, settings = loss_of(**matrices).item(), torch.stack([W_Q, W_K, W_V]).tolist()
    if not moves or moves[-1][0] != settings:
        moves.append((settings, now))
    losses = [loss for _, loss in moves][-40:]
    names = list(matrices) if learn == "all three" else [learn]
    after = loss_of(**gradient_step(matrices, names)).item()
    curve.update(loss=losses)
    bars.update([now, after])
    for heat, phrase in ((heat_river, "river bank"), (heat_money, "money bank")):
        x = E[encode(phrase)]
        heat.update(attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2)).weights, causal_mask(2))
    sentence = f"Loss **{now:.2f}**; one gradient step on {learn} would make it {after:.2f}."
    return sentence, now < 0.05


def one_step(learn, **matrices):
    return gradient_step(matrices, list(matrices) if learn == "all three" else [learn])


race = Explorer(
    picture,
    show,
    goal="Bring the loss below 0.05 by hand, in as few moves as you can. Then reset the matrices, and let the gradient do it: how many steps does it need?",
    W_Q=matrix(),
    W_K=matrix(),
    W_V=matrix(),
    learn=choice(["all three", "W_Q", "W_K", "W_V"], label="gradient moves"),
    buttons={"One gradient step": one_step},
)
race

# %% Still: by hand, and by gradient jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
race.stills({"W_Q": [[1, 3], [0, 1]], "W_V": [[2, 0], [-3, 3]]})

# %% Proof: the race has two ways to the goal jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert (
    f"{math.e:.3f}" == "2.718"
    and round(loss_of(**start).item(), 4) == 0.4352
    and round(math.log(2), 4) == 0.6931
)
stepped, needed = start, 0
while loss_of(**stepped) > 0.05:
    stepped, needed = gradient_step(stepped, start), needed + 1
assert 5 <= needed <= 10
only = {name: start for name in start}
for _ in range(200):
    only = {name: gradient_step(matrices, [name]) for name, matrices in only.items()}
assert loss_of(**only["W_Q"]) > 0.1 and loss_of(**only["W_V"]) < 0.05

# %% [markdown] slideshow={"slide_type": "subslide"}
# W_Q (or W_K) alone gets stuck: better looking does not change what is handed over.
# W_V alone gets there: even with equal attention weights, *river* and *money* hand over different things.
# Notebook 6 does the same with hundreds of parameters.
#
# *Stopping point: about 42 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 5. Cross-attention: one sequence asks another
#
# So far the words of a phrase asked one another: **self-attention**.
# In **cross-attention** the queries come from one sequence, A, and the keys and values from another, B:
# a caption asks a picture, a translation asks the text it translates.
#
# | | self-attention | cross-attention |
# |---|---|---|
# | queries from | sequence A | sequence A |
# | keys and values from | sequence A | sequence B |
# | attention weights | (S_A, S_A) | (S_A, S_B) |
# | causal mask | in decoders | none: all of B is there |
# | padding mask | for the padding of A | for the padding of B |
#
# Here A is the text "blue red", and B a picture of three patches: red, blue, green. A fourth place is padding.
# A patch has four numbers: how red and how blue it is, and where it lies, x and y. A word has the same four, with no place.
# W_Q and W_K use the colours, W_V hands over the place.

# %% Text asks a picture slideshow={"slide_type": "subslide"}
patches = torch.tensor(  # (S_B, D): red, blue, x, y
    [[3.0, 0, 0, 1], [0, 3, 1, 1], [0, 0, 0, 0], [9, 9, 9, 9]]  # the last one is padding
)
words = torch.tensor([[0.0, 3, 0, 0], [3, 0, 0, 0]])  # (S_A, D): blue, red
module = MultiHeadAttention(4, n_heads=1)
with torch.no_grad():  # no learning here: the matrices are set by hand
    colours, places = (
        torch.diag(torch.tensor([1.0, 1, 0, 0])),
        torch.diag(torch.tensor([0.0, 0, 1, 1])),
    )
    module.w_q.weight.copy_(colours)
    module.w_k.weight.copy_(colours)
    module.w_v.weight.copy_(places)
    module.w_o.weight.copy_(torch.eye(4))
not_padding = padding_mask([3], 4)  # (B, 1, S_B) = (1, 1, 4)
crossed = module(words[None], context=patches[None], mask=not_padding)
print("weights", tuple(crossed.weights.shape), "= (B, H, S_A, S_B)")
print("places found", crossed.output[0, :, 2:].detach().round(decimals=2).tolist())

# %% The weights of text on patches jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=5.5, height=2.2)
names = ["red", "blue", "green", "padding"]
plots.heatmap(
    axes,
    ["blue", "red"],
    names,
    crossed.weights[0, 0].detach().masked_fill(~not_padding[0], -torch.inf),
    title="text attends to patches",
)
picture

# %% Proof: the words find their patches, and padding would win jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert crossed.weights.shape == (1, 1, 2, 4)
assert crossed.weights[0, 0].argmax(dim=-1).tolist() == [1, 0]
assert crossed.weights[0, 0, :, 3].tolist() == [0, 0]
unmasked = module(words[None], context=patches[None]).weights[0, 0]
assert (unmasked[:, 3] > 0.99).all()

# %% [markdown] slideshow={"slide_type": "subslide"}
# *blue* finds the patch at (1, 1), *red* the one at (0, 1).
# Without the mask the padding, whose numbers happen to be large, would get nearly everything.
# Nothing in B is the future of A, so there is no causal mask.

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# **Exercise 4.1.** Do better than the article: `scores` and the boolean `allowed` are `(S_q, S_k)`, True means "may attend".
# Every row has at least one True. Return the attention weights. Some scores are as large as 1000.
#
# <details><summary>Hint 1: nudge</summary>
# What must a score be so that its exponential is 0? And which number may you subtract from a whole row without changing its shares?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Fill the hidden scores with −∞, subtract each row's largest (`max(dim=-1, keepdim=True).values`), take exponentials, divide by each row's sum.
# </details>


# %% Exercise 4.1 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_masked_softmax(scores, allowed):
    return ...  # your lines here


checks.masked_softmax(my_masked_softmax)


# %% Exercise 4.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def masked_softmax_solution(scores, allowed):
    masked = scores.masked_fill(~allowed, -torch.inf)
    exps = (masked - masked.max(dim=-1, keepdim=True).values).exp()
    return exps / exps.sum(dim=-1, keepdim=True)


checks.masked_softmax(masked_softmax_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 4.2.** Write cross-attention: `text` is `(S_A, D)`, `image` is `(S_B, D)`, `W_Q` and `W_K` are `(D, d_k)`, `W_V` is `(D, d_v)`;
# `is_patch` `(S_B,)` is False at padding. Return the output, `(S_A, d_v)`.
#
# <details><summary>Hint 1: nudge</summary>
# Three projections: which two belong to the image? And how many columns has the grid of scores?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With one word [1, 0], patches [2, 0] and [0, 5], identity matrices and no padding, the scores are 2 and 0; divided by √2 they are 1.41 and 0;
# the weights are 0.80 and 0.20, and the output is 0.80 · [2, 0] + 0.20 · [0, 5] = [1.61, 0.98].
# </details>


# %% Exercise 4.2 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_cross_attention(text, image, W_Q, W_K, W_V, is_patch):
    return ...  # your lines here


checks.cross_attention(my_cross_attention)


# %% Exercise 4.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def cross_attention_solution(text, image, W_Q, W_K, W_V, is_patch):
    q, k, v = text @ W_Q, image @ W_K, image @ W_V  # (S_A, d_k), (S_B, d_k), (S_B, d_v)
    scores = q @ k.T / W_Q.shape[1] ** 0.5  # (S_A, S_B)
    weights = scores.masked_fill(~is_patch, -torch.inf).softmax(dim=-1)
    return weights @ v  # (S_A, d_v)


checks.cross_attention(cross_attention_solution)

# %% Proof: the numbers of the worked hint jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
hinted = attention(torch.tensor([[1.0, 0]]), *[torch.tensor([[2.0, 0], [0, 5]])] * 2)
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

# %% Explorer: your own phrase slideshow={"slide_type": "skip"} tags=["explorer", "further"]
picture, (left, right) = plots.panels(2, width=9.5, height=3.2)
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
    return f"The last word looks most at '{tokens[most]}': **{steps.weights[-1, most]:.2f}**."


Explorer(
    picture,
    show,
    goal="Write a sentence that ends in bank, and make bank look most at a word of your choice.",
    phrase=typed("the cat took money to the bank"),
    W_Q=matrix(),
    W_K=matrix(),
    W_V=matrix(),
    more=["W_V"],
)

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

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.3.** Write attention from memory: `q` is `(S_q, d_k)`, `k` is `(S_k, d_k)`, `v` is `(S_k, d_v)`, `allowed` is `(S_q, S_k)`. Return the output, `(S_q, d_v)`.
#
# <details><summary>Hint 1: nudge</summary>
# Five verbs, in this order: score, scale, mask, softmax, mix.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Rows are queries: q times the transpose of k. The scale is the square root of q.shape[-1]. Only after the softmax come the values.
# </details>


# %% Exercise 4.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_whole_attention(q, k, v, allowed):
    return ...  # your lines here


checks.attention_function(my_whole_attention)

# %% Exercise 4.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
checks.attention_function(my_attention)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.4, find the error.** The author of [0.62, 0.38, 0, 0] had a recipe. Complete it: `scores` and `allowed` are `(S_k,)`.
# Then find scores for which it prints a share above 1.
#
# <details><summary>Hint 1: nudge</summary>
# Section 1 has put three recipes beside the printed row. Only one of them never uses e.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Add up the visible scores. Which share of that sum is the first?
# </details>


# %% Exercise 4.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def authors_recipe(scores, allowed):
    visible = scores * allowed  # (S_k,): the hidden ones become 0
    return visible / ...  # by what?


checks.article_row(authors_recipe)


# %% Exercise 4.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def authors_recipe_solution(scores, allowed):
    visible = scores * allowed  # (S_k,)
    return visible / visible.sum()


both = torch.tensor([True, True])
print("scores 3 and -1:", authors_recipe_solution(torch.tensor([3.0, -1.0]), both))
checks.article_row(authors_recipe_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.5, predict a number.** *bank* gives *river* 0.6698 of its attention, from the scores 1.4142 and 0.7071.
# At which temperature would it be 0.99? Guess, try your guess with `(row / guess).softmax(dim=-1)`, and come closer.
#
# <details><summary>Hint 1: nudge</summary>
# Only the difference of the two scores counts. Is it to grow or to shrink?
# </details>
#
# <details><summary>Hint 2: method</summary>
# 0.99 against 0.01 is a ratio of 99, so the difference must become ln 99. It is 0.7071 now, and a temperature divides it.
# </details>

# %% Exercise 4.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_temperature = ...
checks.sharp_temperature(my_temperature)

# %% Exercise 4.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
temperature_solution = 0.7071 / math.log(99)  # about 0.154
share = (row / temperature_solution).softmax(dim=-1)[0]
print(f"river gets {share:.2f}")
checks.sharp_temperature(temperature_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 4.6, make two matrices.** In "river money bank", with W_K the identity, choose W_Q so that *bank* gives *money* more than 0.9,
# and W_V so that not a bit of *money* arrives at *bank*. *river* must go on carrying something.
#
# <details><summary>Hint 1: nudge</summary>
# One matrix says where to look, the other what is carried. Which is which?
# </details>
#
# <details><summary>Hint 2: method</summary>
# bank = [1, 0] asks with the first row of W_Q. money = [0, 2] hands over twice the second row of W_V.
# </details>

# %% Exercise 4.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_W_Q = ...  # (D, d_k) = (2, 2)
my_W_V = ...  # (D, d_v) = (2, 2)
checks.look_and_carry_nothing(my_W_Q, my_W_V)

# %% Exercise 4.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
W_Q_solution = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
W_V_solution = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
checks.look_and_carry_nothing(W_Q_solution, W_V_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# So a large attention weight tells where *bank* looks, and not what it gets.
#
# **Exercise 4.7, build it.** The attention part of a model, from an empty cell: project `x` `(S, D)` with `W_Q`, `W_K` `(D, d_k)` and `W_V` `(D, D)`,
# let every word attend to itself and those before it, and return the *new* `x` `(S, D)`.
#
# <details><summary>Hint 1: nudge</summary>
# You have written all of it: exercise 4.3, a mask from notebook 3, and one plus sign from section 2.
# </details>
#
# <details><summary>Hint 2: method</summary>
# q, k and v are three products with x. The mask is True on and below the diagonal. The output is added to x.
# </details>


# %% Exercise 4.7 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_sublayer(x, W_Q, W_K, W_V):
    return ...  # your lines here


checks.attention_sublayer(my_sublayer)


# %% Exercise 4.7, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def sublayer_solution(x, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, x @ W_K, x @ W_V  # (S, d_k), (S, d_k), (S, D)
    allowed = torch.ones(len(x), len(x)).tril().bool()  # (S, S)
    scores = q @ k.T / W_Q.shape[1] ** 0.5  # (S_q, S_k)
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return x + weights @ v  # (S, D)


checks.attention_sublayer(sublayer_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("04"), globals())
