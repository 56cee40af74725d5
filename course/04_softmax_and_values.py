# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4 · Softmax and values
#
# **The question.** Scores are scaled and masked.
# How do they become shares, and what does *bank* carry away from "river bank" and from "money bank"?
#
# **Afterwards you can**
# - compute attention weights by hand, and catch a published mistake;
# - compute the output, and say what changed and what did not;
# - write the whole of attention in a few lines.
#
# **Builds on** [notebook 2](02_queries_keys_values.ipynb) and [notebook 3](03_scaling_and_masking.ipynb).
# If you start here, two lines suffice:
# every word makes a query, a key and a value by a matrix product (Q = X W_Q, K = X W_K, V = X W_V);
# the score of a query for a key is their dot product over √d_k, with −∞ where looking is forbidden (in row *river*: at *bank*, which comes later).
#
# **Takes** about 40 minutes; there is a stopping point after each section.

# %% [markdown]
# **Two questions from before.** Answer in your head, then unfold.
#
# <details><summary>In the grid of scores, what are the rows and what the columns?</summary>
# Rows are queries (who asks), columns are keys (who is asked).
# </details>
#
# <details><summary>Why divide by √d_k?</summary>
# A raw score is a sum of d_k products, so it strays √d_k from 0. Dividing keeps it the same size at every width.
# </details>

# %% Setup tags=["setup"]
try:
    import attnlab  # noqa: F401
except ModuleNotFoundError:
    import sys

    message = f"{sys.executable} has no attnlab: run 'make lab', or 'pip install -e .[lab]' there"
    raise ModuleNotFoundError(message) from None

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from attnlab import attention, causal_mask, checks, plots
from attnlab.data import embedding_table, encode
from attnlab.explorers import Explorer, choice, matrix, slider

E = embedding_table()  # river [2, 0], money [0, 2], bank [1, 0]
river_bank, money_bank = "river bank".split(), "money bank".split()
X = E[encode("river bank")]  # (S, D) = (2, 2); Q = K = V = X until section 3
masked = torch.tensor([[2.8284, -torch.inf], [1.4142, 0.7071]])  # from notebook 3
assert_close(masked, attention(X, X, X, causal_mask(2)).masked, atol=1e-4, rtol=0)

# %% [markdown]
# ## 1. Softmax: shares that are always positive
#
# Dividing by the sum failed on negative scores.
# The repair is one step more: first make every score positive with the exponential function, *then* divide by the sum.
#
# $$w_j = \frac{e^{s_j}}{e^{s_1} + e^{s_2} + \dots}$$
#
# The shares are the **attention weights**.
# They are not learned: they are computed anew for every input.
# What is learned are the parameters W_Q, W_K and W_V.

# %% [markdown] tags=["predict"]
# **Predict before you run.** The scaled scores of *bank* are 1.4142 and 0.7071.
# Will *river* get twice the weight of *bank*, more, or less?

# %% Bank's row by hand
row = torch.tensor([1.4142, 0.7071])
exps = row.exp()  # (S_k,)
print("exp   ", [round(x, 4) for x in exps.tolist()])
print("shares", [round(x, 4) for x in (exps / exps.sum()).tolist()])
unscaled = torch.tensor([2.0, 1.0]).softmax(dim=-1)
print("had we not scaled:", [round(x, 4) for x in unscaled.tolist()])

# %% [markdown]
# 0.6698 and 0.3302: about twice, here.
# Without scaling, 0.7311 and 0.2689: sharper.
#
# ### All rows: loop, matrix, package

# %% Softmax of the grid
looped = torch.stack([row.exp() / row.exp().sum() for row in masked])  # (S_q, S_k)
weights = masked.softmax(dim=-1)  # along the keys: each row sums to 1
assert_close(weights, looped)
assert_close(weights, attention(X, X, X, causal_mask(2)).weights, atol=1e-4, rtol=0)
assert (weights >= 0).all()
assert_close(weights.sum(dim=-1), torch.ones(2))
print([[round(w, 4) for w in row] for row in weights.tolist()])
wrong = masked.softmax(dim=0)
print("over the wrong axis:", [[round(w, 4) for w in row] for row in wrong.tolist()])

# %% [markdown]
# Each row, one for each query, sums to 1.
# `dim=-1` means "along the keys".
# With `dim=0` the *columns* would sum to 1, and the numbers would look just as innocent.

# %% [markdown]
# ### Two practical matters

# %% Large scores, and the temperature
large = torch.tensor([1000.0, 0.0])
print("naive :", (large.exp() / large.exp().sum()).tolist())
shifted = large - large.max()  # only differences matter
print("stable:", (shifted.exp() / shifted.exp().sum()).tolist())
for temperature in (0.1, 1.0, 10.0):
    print(f"temperature {temperature:4}:", [round(w, 4) for w in (row / temperature).softmax(-1).tolist()])

# %% [markdown]
# exp(1000) overflows, so every implementation subtracts the row's maximum first; only differences matter.
#
# Dividing all scores by a **temperature** makes the weights softer (above 1) or sharper (below 1).
# At any temperature every word that may be seen keeps *some* weight: attention **blends, it does not pick**.

# %% [markdown] tags=["predict"]
# ### A published example to catch
#
# An article on the web takes the scores [0.8, 0.5, −0.2, 0.9], masks the last two, and prints the weights [0.62, 0.38, 0, 0].
#
# **Predict before you run.** Is that softmax? If not, what did its author do?

# %% Check the article
article = torch.tensor([0.8, 0.5, -0.2, 0.9])
keep = torch.tensor([True, True, False, False])
right = article.masked_fill(~keep, -torch.inf).softmax(dim=-1)
print("softmax gives", [round(w, 4) for w in right.tolist()])
print("0.8 / 1.3 and 0.5 / 1.3 are", round(0.8 / 1.3, 2), "and", round(0.5 / 1.3, 2))

# %% [markdown]
# The right weights are 0.5744 and 0.4256.
# The printed ones are 0.8/1.3 and 0.5/1.3: somebody divided by the sum.
#
# *Stopping point: about 15 minutes.*

# %% [markdown]
# ## 2. Values: what is carried away
#
# A row of weights times the matrix of values is a weighted sum of the values.
# You know this sentence from notebook 1: *a row times a matrix is a weighted sum of the matrix's rows*.

# %% [markdown] tags=["predict"]
# **Predict before you run.** The values are still the embeddings.
# What does *bank* carry away from [2, 0] and [1, 0] with the weights 0.6698 and 0.3302?

# %% The weighted sum: loop, matrix, package
V = X  # (S_k, d_v)
parts = [weight * value for weight, value in zip(weights[1], V)]
by_hand = [[round(0.6698 * 2, 4), 0], [round(0.3302 * 1, 4), 0]]  # the weights at four decimals
print("bank: 0.6698 * [2, 0] + 0.3302 * [1, 0] =", by_hand[0], "+", by_hand[1])
output = weights @ V  # (S_q, S_k) @ (S_k, d_v) -> (S_q, d_v)
assert_close(output[1], sum(parts))
assert_close(output, attention(X, X, X, causal_mask(2)).output, atol=1e-4, rtol=0)
print("all: ", [[round(x, 4) for x in row] for row in output.tolist()])

# %% [markdown]
# Now the same for "money bank".

# %% Same embedding, two outputs
steps = {
    phrase: attention(*[E[encode(phrase)]] * 3, causal_mask(2))
    for phrase in ("river bank", "money bank")
}
for phrase, s in steps.items():
    print(phrase, "-> weights", [round(w, 4) for w in s.weights[1].tolist()],
          " output", [round(x, 4) for x in s.output[1].tolist()])  # fmt: skip
picture, axes = plots.panels(1, width=4.6, height=3.4)
arrows = torch.stack([E[2], steps["river bank"].output[1], steps["money bank"].output[1]])
plots.vectors(axes, ["bank", "after river", "after money"], arrows, "One word, three vectors")
picture

# %% [markdown]
# The input of *bank* is [1, 0] in both phrases.
# Its output is [1.6698, 0] beside *river* and [0.6698, 0.6605] beside *money*.
# **Same embedding, two outputs**: that is contextualisation, the thing a table could not do.
#
# Three limits, to be honest:
# - This is the output of *one attention step*, not yet the hidden state of a whole model.
# - Positions were left out on purpose; they come in notebook 5.
# - In "river bank" the output can only move along one line, whatever the matrices: *river* is twice *bank*, so every value is a multiple of the other.
#
# **By hand.** Let *bank* be [1, 1] instead.
# Its scores for *river* and *itself* are then both 2: the weights are 0.5 and 0.5, and the output is [1.5, 0.5].
# Work out the one beside *money* before you run the cell.

# %% bank = [1, 1]
for word in (0, 1):  # river, money
    x = torch.stack([E[word], torch.tensor([1.0, 1.0])])
    s = attention(x, x, x, causal_mask(2))
    print(s.weights[1].tolist(), "->", s.output[1].tolist())

# %% [markdown]
# ### W_V changes what is carried, not where one looks

# %% Another W_V
W_V = torch.tensor([[0.5, 0.2], [0.3, 0.8]])  # (D, d_v)
V = X @ W_V  # (S, d_v)
s = attention(X, X, V, causal_mask(2))
print("V =", [[round(x, 2) for x in row] for row in V.tolist()])
print("bank's output", [round(x, 4) for x in s.output[1].tolist()])
assert torch.equal(s.weights, steps["river bank"].weights)  # the weights did not move

# %% [markdown]
# ### Added, not replaced
#
# In a model the output does not replace the embedding; it is **added** to it: new = x + delta.
# This way around is called the **residual** connection.
# It is needed, because the weighted sum is made of values only: the query itself never enters it.
#
# *Stopping point: about 25 minutes.*

# %% [markdown]
# ## 3. The whole step
#
# In one line, with M the mask of 0 and −∞:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V$$
#
# Read it from the inside: **score, scale, mask, softmax, mix**.

# %% Attention in five lines
def my_attention(q, k, v, allowed):
    scores = q @ k.transpose(-2, -1)  # (S_q, S_k)
    scaled = scores / q.shape[-1] ** 0.5
    masked = scaled.masked_fill(~allowed, -torch.inf)
    weights = masked.softmax(dim=-1)
    return weights @ v  # (S_q, d_v)


q, k, v = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0))  # S = 5, d = 7
assert_close(my_attention(q, k, v, causal_mask(5)), attention(q, k, v, causal_mask(5)).output)
assert_close(my_attention(q, k, v, causal_mask(5)),
             F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0])  # fmt: skip
print("the loop, the five lines, the package and PyTorch agree")

# %% [markdown]
# ### Teach *bank* to look for *money*
#
# So far *bank* asks with its own embedding, which is at right angles to *money*.
# Its query is [1, 0] W_Q, which is the *first row* of W_Q.
# Put a number in W_Q[0, 1], and *bank* asks in money's direction.

# %% [markdown] tags=["predict"]
# **Predict before you move.** W_Q[0, 1] goes from 0 to 1 and then to 3.
# What happens to the weight of *money* in "money bank"?
# And to that of *river* in "river bank"?

# %% Explorer: teach bank to look for money tags=["explorer"]
picture, (left, middle, right) = plots.panels(3)
heat_river = plots.heatmap(left, river_bank, river_bank, title="river bank")
heat_money = plots.heatmap(middle, money_bank, money_bank, title="money bank")
plane = plots.vectors(right, ["in", "beside river", "beside money"], title="bank", limits=(-1, 3, -1, 3))


def show(W_Q, W_K, W_V):
    outputs = [E[2]]
    for phrase, heat in ((river_bank, heat_river), (money_bank, heat_money)):
        x = E[encode(" ".join(phrase))]
        steps = attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(2))
        heat.update(steps.weights)
        outputs.append(steps.output[1])
    plane.update(torch.stack(outputs))
    return (
        f"bank gives money {heat_money.values[1, 0]:.4f} in 'money bank' "
        f"and river {heat_river.values[1, 0]:.4f} in 'river bank'."
    )


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

# %% The same in numbers
for knob in (0.0, 1.0, 3.0):
    W_Q = torch.tensor([[1.0, knob], [0.0, 1.0]])
    given = []
    for phrase in (money_bank, river_bank):
        x = E[encode(" ".join(phrase))]
        given.append(round(attention(x @ W_Q, x, x, causal_mask(2)).weights[1, 0].item(), 4))
    print(f"W_Q[0, 1] = {knob:.0f}: money in 'money bank' {given[0]}, river in 'river bank' {given[1]}")

# %% [markdown]
# *money* went from 0.3302 to 0.6698 to 0.9717, and *river* stayed at 0.6698: no word of "river bank" has anything in the second coordinate.
# Nothing was written into the table. **Where a word looks is learned in W_Q and W_K.**

# %% [markdown] tags=["predict"]
# ### Which knobs are dead?
#
# **Predict before you move.** With the phrase "river bank", the second row of each matrix does nothing. Why?
# In "river money bank" every one of the twelve numbers matters. Why?

# %% Explorer: the whole step tags=["explorer"]
words = ["river", "money", "bank"]
picture, (left, right) = plots.panels(2, width=8, height=3.4)
heat = plots.heatmap(left, words, words)
plane = plots.vectors(right, ["bank in", "bank out"], title="bank", limits=(-3, 3, -3, 3))


def show(W_Q, W_K, W_V, phrase, temperature):
    x = E[encode(phrase)]
    n = len(x)
    scale = 2**-0.5 / temperature
    steps = attention(x @ W_Q, x @ W_K, x @ W_V, causal_mask(n), scale=scale)
    grid = torch.full((3, 3), torch.nan)  # words that are not in the phrase stay unknown
    places = encode(phrase)
    grid[places[:, None], places] = steps.weights
    heat.update(grid)
    plane.update(torch.stack([E[2], steps.output[-1]]))
    shares = ", ".join(f"{w} {v:.4f}" for w, v in zip(phrase.split(), steps.weights[-1].tolist()))
    x, y = steps.output[-1].tolist()
    return f"bank's weights: {shares}; its output [{x:.4f}, {y:.4f}]."


Explorer(
    picture,
    show,
    goal="Find the knobs that do nothing in 'river bank', then wake them with 'river money bank'.",
    W_Q=matrix(),
    W_V=matrix(),
    phrase=choice(["river money bank", "river bank", "money bank"]),
    W_K=matrix(),
    temperature=slider(0.1, 5.0, 1.0),
    more=["W_K", "temperature"],
)

# %% [markdown]
# In "river bank" both words have a 0 in the second coordinate; the second row of a matrix is only ever multiplied by that 0.
# *money* has something there, and then every knob works.
#
# One thing to keep for notebook 6: a large weight on a value of *zero* carries nothing.
# The weights alone do not tell what moved.

# %% [markdown]
# ## Exercises
#
# **Exercise 4.1.** Do better than the article: `scores` and the boolean `allowed` are `(S_q, S_k)`, True means "may attend".
# Return the attention weights. Some scores are as large as 1000.

# %% Exercise 4.1 tags=["exercise"]
def my_masked_softmax(scores, allowed):
    return ...  # your lines here


checks.masked_softmax(my_masked_softmax)

# %% Exercise 4.1, a solution jupyter={"source_hidden": true} tags=["solution"]
def masked_softmax_solution(scores, allowed):
    masked = scores.masked_fill(~allowed, -torch.inf)
    exps = (masked - masked.max(dim=-1, keepdim=True).values).exp()
    return exps / exps.sum(dim=-1, keepdim=True)


checks.masked_softmax(masked_softmax_solution)

# %% [markdown]
# **Exercise 4.2.** Write attention from memory: `q` is `(S_q, d_k)`, `k` is `(S_k, d_k)`, `v` is `(S_k, d_v)`, `allowed` is `(S_q, S_k)`.

# %% Exercise 4.2 tags=["exercise"]
def my_whole_attention(q, k, v, allowed):
    return ...  # your lines here


checks.attention_function(my_whole_attention)

# %% Exercise 4.2, a solution jupyter={"source_hidden": true} tags=["solution"]
checks.attention_function(my_attention)

# %% [markdown]
# ## Remember
#
# - Softmax: exponential, then divide by the row's sum. Weights are computed for each input; parameters are learned.
# - The output is a weighted sum of values, and is added to the input.
# - W_Q and W_K say where to look, W_V what to carry. Same embedding, other neighbours, other output.
#
# **Next:** [5 · Heads and positions](05_heads_and_positions.ipynb)

# %% [markdown] tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **Cross-attention.** The queries may come from one sequence and the keys and values from another.
#
# | | self-attention | cross-attention |
# |---|---|---|
# | queries from | sequence A | sequence A |
# | keys and values from | sequence A | sequence B |
# | weights | (S_A, S_A) | (S_A, S_B) |
# | causal mask | in decoders | usually none: B is all there |
# | padding mask | for the filler of A | for the filler of B |
#
# An encoder-decoder translates this way: the text being written asks the text being read.
# A caption can ask an image in the same way.

# %% Cross-attention tags=["further"]
A, B = torch.randn(5, 2), torch.randn(3, 2)  # two sequences of different length
s = attention(A, B, B)
print("weights", tuple(s.weights.shape), " output", tuple(s.output.shape))

# %% [markdown] tags=["further"]
# **How the weights react.** The derivative of the weights w by the scores is the matrix diag(w) − w wᵀ.
# If one weight is 1, it is zero everywhere: nothing reacts.
#
# **How spread out a row is** can be told by its entropy, −Σ w ln w: 0 for a single 1, ln n for n equal weights.

# %% Jacobian and entropy tags=["further"]
w = row.softmax(dim=-1)
jacobian = torch.diag(w) - torch.outer(w, w)  # (S_k, S_k)
assert_close(jacobian, torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), row))
entropy = -(w * w.log()).sum()
print("entropy", round(entropy.item(), 4), "of at most ln 2 =", round(torch.tensor(2.0).log().item(), 4))

# %% [markdown] tags=["further"]
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.
