# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # 2 · Queries, keys, values
#
# **The question.** A word should be able to *ask* the words around it, and each of them to *answer*.
# How can a question and an answer be made of vectors?
#
# **Afterwards you can**
# - compute every score of a phrase with one matrix product, and read the grid of scores;
# - say which failures of X Xᵀ the matrices W_Q, W_K and W_V repair, and which one matrix decides the scores;
# - translate between the conventions of this course, of PyTorch, and of other texts.
#
# **You need** [notebook 1](01_static_embeddings.ipynb): X holds one embedding per row, a dot product measures how alike two vectors are, and a row times a matrix is a weighted sum of the matrix's rows.
#
# **Takes** about 45 minutes; there are stopping points on the way.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Two questions from notebook 1.** Answer in your head, then unfold.
#
# <details><summary>Why is the embedding of <em>bank</em> the same in "river bank" and "money bank"?</summary>
# The table is asked for an id and nothing else. It does not see the neighbours.
# </details>
#
# <details><summary>What is wrong with replacing each word by the average of its phrase?</summary>
# Every word counts the same, whoever asks; so all words of the phrase become one vector.
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
from torch import nn

from attnlab import attention, checks
from attnlab.checks import assert_close
from attnlab.data import WORD_COLOURS, embedding_table, encode
from attnlab.lab import Explorer, matrix, plots, predict, progress
from attnlab.lab.weighted_sum import WeightedSum

torch.set_printoptions(sci_mode=False)

E = embedding_table()  # river [2, 0], money [0, 2], bank [1, 0]
tokens = ["river", "bank"]
X = E[encode("river bank")]  # (S, D) = (2, 2)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 1. Let the embeddings ask
#
# Start with the simplest idea: a word asks with its own embedding.
# It takes the dot product of its embedding with the embedding of each word of the phrase, its own included.
# The vector that asks is called the **query**, the vector it is compared with a **key**, and the dot product is a **score**.

# %% Guess: a score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Answer before you go on
score_guess = predict(
    "bank is [1, 0], river is [2, 0]. Which score does bank give to river?", key="2"
)
score_guess

# %% The scores of bank, one at a time slideshow={"slide_type": "subslide"}
river, bank = X
print("bank . river =", (bank @ river).item())
print("bank . bank  =", (bank @ bank).item())

# %% What is behind it: a score jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
score_guess.reveal(bank @ river, "Multiply entry by entry and add: 1 · 2 + 0 · 0.")

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### All scores at once
#
# All scores form a grid.
# **Rows are queries, columns are keys**: row *bank*, column *river* holds what *bank* gives to *river*.
# There are three ways to compute it, and they agree.
#
# > **Box: `torch.einsum`.** It names the axes by letters: in `"id,jd->ij"` the first tensor has the axes i and d, the second j and d, the result i and j.
# > A letter that is missing after the arrow, here d, is multiplied and summed.

# %% Loop, matrix product, einsum slideshow={"slide_type": "subslide"}
looped = torch.zeros(2, 2)  # (S_q, S_k): queries by keys, here both S
for i in range(2):
    for j in range(2):
        looped[i, j] = X[i] @ X[j]  # query i meets key j

scores = X @ X.T  # (S, D) @ (D, S) -> (S, S)
assert_close(scores, looped)
assert_close(scores, torch.einsum("id,jd->ij", X, X))
scores.tolist()

# %% [markdown] slideshow={"slide_type": "subslide"}
# **Why the transpose?** A matrix product multiplies rows by columns.
# To make each query *row* meet each key *row*, the keys are laid on their side.
#
# The loop goes through the pairs one after another; the product does them all at once.
# That is why graphics processors, which are made for such products, run attention fast.

# %% Three phrases, three grids jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
picture, axes = plots.panels(3)
for ax, phrase in zip(axes, ["river bank", "money bank", "river money bank"]):
    rows = E[encode(phrase)]
    plots.heatmap(ax, phrase.split(), phrase.split(), rows @ rows.T, kind="scores", title=phrase)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# Look at the last grid and you see two failures.
#
# 1. **It is symmetric**: what *bank* gives to *river*, *river* gives to *bank*.
#    But "what does *bank* need to know?" and "what does *river* need to know?" are different questions.
# 2. **It favours long vectors**: *bank* gives *river* more than itself, only because *river* is longer.
#
# A third failure does not show in a grid: the vector that is compared is also the vector that is passed on.
# What a word is *found by* need not be what it *has to say*.
#
# *Stopping point: about 6 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Three matrices, each earned by a failure
#
# The repair is to give every word three vectors, each made from its embedding by a matrix of its own:
#
# | vector | made by | role | repairs |
# |---|---|---|---|
# | **query** | Q = X W_Q | what am I looking for? | 1: with a matrix of their own, asking and being asked can differ |
# | **key** | K = X W_K | what can I be matched on? | 2, in part: W_Q and W_K together learn which directions count, and how much |
# | **value** | V = X W_V | what do I hand over? | 3: being found and speaking differ |
#
# W_Q, W_K and W_V are parameters: learned, and **the same at every position**.
# (Only in part, because within one direction nothing changes: *river* stays twice *bank* under any matrix.)
# Such a product with a learned matrix is called a **projection**.
# What comes out lies in a space of its own; some texts call these the *query space*, the *search space* of the keys, and the *value space*.
#
# Two analogies, and they are only that.
# In a library, the query is your question, the key the label on a book's spine, the value what is written inside.
# At a party, the query is who you hope to meet, the key your name badge, the value what you say.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Identity first
#
# If all three matrices are the identity, then Q = K = V = X, and we are back in section 1.
# That is a shortcut for teaching.
# In a model the three start as different random numbers and are trained apart, so do not expect it there.
# (Some texts say that the three are "almost always different", which is the same warning in milder words.)
#
# From there we change one number: W_Q[0, 1] = 1.
# *bank* is [1, 0], and its query is that row times W_Q: a weighted sum of the rows of W_Q.

# %% The query of bank as a weighted sum jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
picture, axes = plots.panels(1, width=9.5, height=2.1)
names = ("bank", "W_Q", "its rows, scaled", "query of bank")
WeightedSum(axes, ["row 0", "row 1"], [1, 0], [[1, 1], [0, 1]], names=names)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# *bank* has all its length in direction 0, so its query is row 0 of W_Q, and nothing else.
# W_Q[0, 1] says how much of direction 0 of an embedding goes into direction 1 of a query, and direction 1 is where *money* lies.
# That is why this one number tilts the question of *bank* towards *money*.
#
# All queries at once are X W_Q = Q. Row by row it is the same sum, always with the same W_Q:

# %% X times W_Q, as blocks jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
phrase = "river money bank".split()
X3, blocks = E[encode("river money bank")], torch.tensor([[1.0, 1.0], [0.0, 1.0]])
picture, (left, middle, right) = plots.panels(3, width=8, height=2.9)
title = "X  (S, D)", "@  W_Q  (D, d_k)", "=  Q  (S, d_k)"
before = plots.heatmap(left, phrase, ["0", "1"], X3, "values", title[0], ("", ""), digits=0)
plots.heatmap(middle, ["0", "1"], ["0", "1"], blocks, "values", title[1], ("", ""), digits=0)
after = plots.heatmap(
    right, phrase, ["0", "1"], X3 @ blocks, "values", title[2], ("", ""), digits=0
)
before.mark(row=2)
after.mark(row=2)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# The outlined row of Q comes from the outlined row of X alone: a projection never mixes words.
#
# > **Box: `nn.Linear`.** A layer of PyTorch that holds a learned matrix, its `weight`, and multiplies by it.
# > It keeps the transpose, of shape (out, in), and computes `x @ weight.T`.
# > Unless `bias=False`, it also adds a learned row, its *bias*, to every result.
#
# This course leaves the biases of the projections out, as Llama does and as the formula Q = X W_Q says; GPT-2 and BERT have them.

# %% Project the phrase: loop, then matrix slideshow={"slide_type": "subslide"}
W_Q = torch.tensor([[1.0, 1.0], [0.0, 1.0]])  # (D, d_k): one number is not the identity's
W_K = torch.eye(2)  # (D, d_k)
W_V = torch.eye(2)  # (D, d_v)

looped = torch.stack([x @ W_Q for x in X])  # one token at a time: (S, d_k)
Q = X @ W_Q  # all at once: (S, D) @ (D, d_k) -> (S, d_k)
assert_close(Q, looped)

linear = nn.Linear(2, 2, bias=False)  # PyTorch keeps the transpose, (out, in)
linear.weight.data = W_Q.T
assert_close(linear(X), Q)
print("Q =", Q.tolist())

# %% [markdown] slideshow={"slide_type": "subslide"}
# So the `weight` of an `nn.Linear` is our W_Q transposed.
# Mind that when you read the parameters of a real model.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Asking and being asked
#
# The phrase is now "river money bank", with that W_Q.
#
# (`attention(Q, K, V)` from our package does all steps of the course. Today read `.raw`, the scores, and `.output`, the mixture of values; in section 3 also `.weights`, the shares.)

# %% Guess: asking and being asked jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Answer before you go on
asked_guess = predict(
    "W_Q[0, 1] is 1 now. Which score does bank give money, and which does money give bank?",
    {
        "2 and 2": "So it was without W_Q: the grid of X Xᵀ is symmetric. Now the queries have moved, and the keys have not.",
        "2 and 0": "bank asks with [1, 1], and 1 · 0 + 1 · 2 = 2. money still asks with [0, 2], and bank's key [1, 0] has nothing there.",
        "0 and 2": "The first row of W_Q is the query of bank, so it is bank's question that has changed.",
    },
    key="2 and 0",
)
asked_guess

# %% Asking is not being asked slideshow={"slide_type": "subslide"}
phrase = "river money bank".split()
X3 = E[encode("river money bank")]  # (3, 2)
steps = attention(X3 @ W_Q, X3 @ W_K, X3 @ W_V)
assert_close(steps.raw, (X3 @ W_Q) @ (X3 @ W_K).T)  # the package does the same
print("bank gives money:", steps.raw[2, 1].item(), "  money gives bank:", steps.raw[1, 2].item())

# %% What is behind it: asking and being asked jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
asks, is_asked = steps.raw[2, 1], steps.raw[1, 2]
asked_guess.reveal(
    f"{asks:.0f} and {is_asked:.0f}",
    "No longer symmetric: *bank* gives *money* a score of 2, and *money* gives *bank* 0.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The one matrix that decides
#
# Does it take no more than two different matrices?

# %% Vote: two different matrices jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
decides_vote = predict(
    "W_Q exchanges the two directions, [[0, 1], [1, 0]], and W_K is the identity. Is the grid of scores symmetric?",
    {
        "no, since W_Q and W_K differ": "That is not enough: what counts is the product W_Q W_Kᵀ.",
        "yes, all the same": "W_Q W_Kᵀ is [[0, 1], [1, 0]], and that is its own transpose.",
        "it depends on the phrase": "With a symmetric W_Q W_Kᵀ every phrase has a symmetric grid.",
    },
    key="all the same",
)
decides_vote

# %% Four choices of W_Q slideshow={"slide_type": "subslide"}
for name, rows in {
    "twice the identity": [[2.0, 0.0], [0.0, 2.0]],
    "stretch direction 1": [[1.0, 0.0], [0.0, 3.0]],
    "exchange directions": [[0.0, 1.0], [1.0, 0.0]],
    "one number changed": [[1.0, 1.0], [0.0, 1.0]],
}.items():
    M = torch.tensor(rows) @ W_K.T  # (D, d_k) @ (d_k, D) -> (D, D)
    grid = X3 @ M @ X3.T  # (S, D) @ (D, D) @ (D, S) -> (S, S)
    print(
        f"{name}: M = {M.int().tolist()}, grid equal to its transpose {torch.equal(grid, grid.T)}"
    )

# %% What is behind it: two different matrices jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
swapped = X3 @ torch.tensor([[0.0, 1.0], [1.0, 0.0]]) @ X3.T
decides_vote.reveal(
    "yes, all the same" if torch.equal(swapped, swapped.T) else "no, since W_Q and W_K differ",
    """
All scores are Q Kᵀ = (X W_Q)(X W_K)ᵀ = X (W_Q W_Kᵀ) Xᵀ.
So W_Q and W_K act through one matrix of shape (D, D), M = W_Q W_Kᵀ: the number M[a, b] says how much direction a of the word that asks counts together with direction b of the word that is asked.
If M is symmetric, so is every grid; only where M[a, b] and M[b, a] differ can asking differ from being asked.
""",
)

# %% Proof: W_Q and W_K act through their product jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
generator = torch.Generator().manual_seed(0)
to_q, to_k, rows = (torch.randn(5, n, generator=generator) for n in (3, 3, 7))
assert_close((rows.T @ to_q) @ (rows.T @ to_k).T, rows.T @ (to_q @ to_k.T) @ rows)
turn = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]  # turned both, the same scores
assert_close((to_q @ turn) @ (to_k @ turn).T, to_q @ to_k.T)
for one in ([[2.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]):
    assert torch.equal(X3 @ torch.tensor(one) @ X3.T, (X3 @ torch.tensor(one) @ X3.T).T)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Two pairs with the same product are two ways to write the same scores: only the product can be told from outside.
# The values have such a partner, too: in notebook 5 a matrix W_O follows W_V, and only W_V W_O matters.
# (Elhage et al. 2021 call them the QK and the OV circuit.)
#
# ### What W_V does

# %% Vote: another W_V jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
values_vote = predict(
    "We put another matrix in the place of W_V. What changes?",
    {
        "where the words look: the scores": "Scores are made of queries and keys: W_V never meets them.",
        "what the words receive: the output": "Values are what is mixed, so the mixture changes with them.",
        "both": "The output does. But scores are made of queries and keys: W_V never meets them.",
    },
    key="what the words receive",
)
values_vote

# %% Another W_V, another W_K slideshow={"slide_type": "subslide"}
other = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
other_values = attention(X3 @ W_Q, X3 @ W_K, X3 @ other)
other_keys = attention(X3 @ W_Q, X3 @ other, X3 @ W_V)
print("row of bank, scores with another W_V:", other_values.raw[2].tolist())
print("row of bank, scores with another W_K:", other_keys.raw[2].tolist())
print("row of bank, scores before:          ", steps.raw[2].tolist())

# %% What is behind it: another W_V jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
values_vote.reveal(
    "what the words receive: the output" if torch.equal(steps.raw, other_values.raw) else "both",
    """
Changing W_Q or W_K changes the scores.
Changing W_V does not: it changes what is handed over, **not where one looks**.
""",
)

# %% Proof: what each matrix changes jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert torch.equal(steps.raw, other_values.raw)
assert not torch.equal(steps.raw, other_keys.raw)
assert not torch.equal(steps.output, other_values.output)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Need it be likeness?

# %% Vote: likeness jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
likeness_vote = predict(
    "bank [1, 0] and money [0, 2] are at right angles. Can money get the highest score that bank gives?",
    {
        "no, a score measures likeness": "It does while Q = K = X. W_Q can turn the question.",
        "yes, but only with other embeddings": "They may stay: W_Q and W_K stand between embedding and score.",
        "yes, with another W_Q": "The query of bank may point anywhere, whatever bank is like.",
    },
    key="yes, with another W_Q",
)
likeness_vote

# %% A right angle, and still the highest score slideshow={"slide_type": "subslide"}
stronger = X3 @ torch.tensor([[1.0, 3.0], [0.0, 1.0]]) @ X3.T  # W_Q[0, 1] = 3
print("scores that bank gives to river, money, bank:", stronger[2].tolist())

# %% What is behind it: likeness jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
likeness_vote.reveal(
    "yes, with another W_Q" if stronger[2].argmax() == 1 else "no, a score measures likeness",
    "With W_Q[0, 1] = 3 *money* leads in the row of *bank*, although the two are at right angles: attention need not be likeness.",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 21 minutes.*
#
# ### Widths: what a narrow projection cannot see
#
# Q and K must have the same width, called `d_k`, or their rows could not be multiplied.
# It is often smaller than `D`. V may have a width of its own, `d_v`.
#
# What does a narrow W_Q throw away? Give the words a third number, say for the plural, and let W_Q have only two columns.

# %% Two words that ask the same question slideshow={"slide_type": "subslide"}
bank_and_banks = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])  # (2, D) = (2, 3)
narrow = torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])  # (D, d_k) = (3, 2)
print("queries of bank and banks:", (bank_and_banks @ narrow).tolist())

# %% [markdown] slideshow={"slide_type": "subslide"}
# Row 2 of this W_Q is zero, so the third number goes nowhere: *bank* and *banks* ask the same question.
# With d_k < D there is always a direction that is lost like that; training decides which.
# A score then looks at a few sides of a word only, and other heads (notebook 5) can look at others.
#
# What is saved are parameters, and multiplications for every score:

# %% What a narrow projection saves slideshow={"slide_type": "subslide"}
D, d_k = 4096, 128  # as in a model with 32 heads
print(f"parameters of W_Q: {D * D:,} if d_k = D, {D * d_k:,} with d_k = {d_k}")
print(f"multiplications for a score: {D:,} or {d_k}")

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### What is learned, and what is computed

# %% Vote: a longer phrase jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
longer_vote = predict(
    "The phrase grows from 3 words to 20. Which of these then has more numbers than before?",
    {
        "W_Q and W_K": "They multiply every row of X in turn: their shapes are (D, d_k), without an S.",
        "the grid of scores": "It has a row and a column for each word: from 9 numbers to 400.",
        "both": "The grid has. But W_Q and W_K serve every position: there is no S in (D, d_k).",
        "neither": "The grid has a row and a column for each word.",
    },
    key="the grid of scores",
)
longer_vote

# %% Three words and twenty slideshow={"slide_type": "subslide"}
generator = torch.Generator().manual_seed(0)
for S in (3, 20):
    rows = torch.randn(S, 2, generator=generator)  # (S, D)
    raw = attention(rows @ W_Q, rows @ W_K, rows @ W_V).raw  # (S, S)
    print(f"S = {S}: W_Q {tuple(W_Q.shape)}, W_K {tuple(W_K.shape)}, raw {tuple(raw.shape)}")

# %% What is behind it: a longer phrase jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
grows = raw.numel() > 3 * 3 and W_Q.shape == (2, 2)
longer_vote.reveal(
    "the grid of scores" if grows else "both",
    """
W_Q, W_K and W_V are **parameters**: learned once, the same for every phrase.
Scores, and the **attention weights** that notebook 3 makes of them, are computed anew for each phrase.
Both are loosely called "weights" elsewhere; this course never does.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Change every entry yourself

# %% Explorer: W_Q, W_K, W_V -> vectors and scores jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
phrase = "river money bank".split()
X3 = E[encode("river money bank")]  # (3, 2)
picture, axes = plots.panels(4, height=2.9)
queries, keys, values = (
    plots.vectors(ax, phrase, title=title, limits=(-4, 4, -4, 4), colours=WORD_COLOURS)
    for ax, title in zip(axes, ["Queries", "Keys", "Values"])
)
grid = plots.heatmap(axes[3], phrase, phrase, kind="scores", title="Scores")


def show(W_Q, W_K, W_V):
    steps = attention(X3 @ W_Q, X3 @ W_K, X3 @ W_V)
    queries.update(X3 @ W_Q)
    keys.update(X3 @ W_K)
    values.update(X3 @ W_V)
    grid.update(steps.raw)
    asks, asked = steps.raw[2, 1].item(), steps.raw[1, 2].item()
    x, y = (X3 @ W_V)[2].tolist()
    sentence = (
        f"bank gives money **{asks:.1f}**, money gives bank **{asked:.1f}**; "
        f"bank's value is [{x:.1f}, {y:.1f}]."
    )
    return sentence, abs(asked - 2) < 0.01 and abs(asks) < 0.01


matrices_explorer = Explorer(
    picture,
    show,
    goal="Make money give bank a score of 2 while bank gives money 0.",
    W_Q=matrix(low=-2, high=2),
    W_K=matrix(low=-2, high=2),
    W_V=matrix(low=-2, high=2),
)
matrices_explorer

# %% Stills of the explorer: W_Q, W_K, W_V -> vectors and scores jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
matrices_explorer.stills({"W_Q": [[1, 0], [1, 1]]}, {"W_V": [[0, 1], [-1, 0]]})

# %% [markdown] slideshow={"slide_type": "subslide"}
# One of the three matrices changes no score, whatever you do with it. Which?
#
# These are the first steps of a longer chain. The whole of it, under the same three matrices, is an explorer of [notebook 4](04_softmax_and_values.ipynb).
#
# *Stopping point: about 29 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. A rough full pass
#
# Scores are not yet an answer.
# *bank* should receive a mixture of the values, in shares that follow its scores.
# The obvious way to make shares: divide by the sum.

# %% Guess: the mixture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Answer before you go on
mixture_guess = predict(
    "bank gives river 2 and itself 1. Which shares is that, and what is the mixture of [2, 0] and [1, 0]?",
    {
        "2 and 1, so [5, 0]": "Those are the scores. Shares sum to 1: divide by 2 + 1 = 3.",
        "2/3 and 1/3, so [1.667, 0]": "2/3 of [2, 0] and 1/3 of [1, 0].",
        "1/2 and 1/2, so [1.5, 0]": "That is the average of notebook 1, which asks nobody.",
    },
    key="1.667",
)
mixture_guess

# %% Shares by dividing by the sum slideshow={"slide_type": "subslide"}
bank_scores = scores[1]  # [2, 1]
shares = bank_scores / bank_scores.sum()  # (S_k,)
output = shares @ X  # a row times a matrix: (S_k,) @ (S_k, D) -> (D,)
print("shares", shares)
print("output", output)

# %% The mixture as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
picture, axes = plots.panels(1, width=9.5, height=2.1)
names = ("shares of bank", "values", "values, scaled", "output")
WeightedSum(axes, tokens, shares, X, names=names, colours=WORD_COLOURS)
picture

# %% Proof: two thirds, one third jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert_close(shares, torch.tensor([2 / 3, 1 / 3]))
assert_close(output, torch.tensor([5 / 3, 0.0]))

# %% What is behind it: the mixture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
mixture_guess.reveal(
    f"2/3 and 1/3, so [{output[0]:.3f}, {output[1]:.0f}]",
    """
*bank* has moved towards *river*.
That is a whole attention step in outline: *score, share, mix*.
A row times a matrix, once more, and this time the row was computed from the words.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### It breaks
#
# But with another W_Q a score can be negative, since vectors can point apart.

# %% Negative scores slideshow={"slide_type": "subslide"}
broken = torch.tensor([2.0, -1.0])
shares = broken / broken.sum()
print("shares of [2, -1]:", shares.tolist(), " mixture:", (shares @ X).tolist())
worse = torch.tensor([1.0, -1.0])
print("shares of [1, -1]:", (worse / worse.sum()).tolist())

# %% [markdown] slideshow={"slide_type": "subslide"}
# A share of 2 and one of −1 give a mixture longer than either word; the other is a division by zero.
# Something better is needed than dividing by the sum: the **softmax** of the next two notebooks.
# It, too, gives the larger score the larger share, and it takes any numbers.
#
# One question in advance.
# In "money bank" the score of *bank* for *money* is 0, and dividing by the sum would give it nothing.

# %% Vote: a score of 0 jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
zero_vote = predict(
    "In “money bank”, bank gives money a score of 0. What share does money get after the softmax?",
    {
        "none: 0 means no attention": "Only a score of minus infinity gets nothing: 0 is a number like others.",
        "about a third": "The softmax makes a positive share of any number; of 0 against bank's own 1, a third.",
        "the same as bank": "bank's own score is 1: a larger score gets a larger share.",
    },
    key="about a third",
)
zero_vote

# %% A score of 0, after the softmax slideshow={"slide_type": "subslide"}
X_money = E[encode("money bank")]
steps = attention(X_money, X_money, X_money)
print(f"score {steps.raw[1, 0]:.0f}, share {steps.weights[1, 0]:.4f}")

# %% What is behind it: a score of 0 jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
third = abs(steps.weights[1, 0] - 1 / 3) < 0.01
zero_vote.reveal(
    "about a third" if third else "none: 0 means no attention",
    """
A score of 0 is not "no attention".
(`attention` also divides the scores by √2 before the softmax. Notebook 3 says why.)
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Who attends to whom: a warning
#
# In the original paper and in this course, *the query attends to the key*, queries are rows, and each row will sum to 1.
# Some texts, and one famous video, say and draw it the other way round, and let the softmax run down the columns.
# Neither is wrong, but mixing them is.
#
# | here | there | same thing |
# |---|---|---|
# | rows are queries, columns are keys | columns are queries, rows are keys | the grid is transposed |
# | `x @ W`, x is a row | W x, x is a column | W is transposed |
# | *bank* attends to *river*: the query to the key | "*river* attends to *bank*", or "*river* updates *bank*" | row *bank*, column *river* here |
#
# *Stopping point: about 35 minutes.*

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# **Exercise 2.1.** Write the raw scores of a phrase: `X` is `(S, D)`, `W_Q` and `W_K` are `(D, d_k)`, the result is `(S, S)`.
#
# <details><summary>Hint 1: nudge</summary>
# Two projections, then every row of one meets every row of the other.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With 5 words and d_k = 3, queries and keys are both (5, 3), and <code>queries @ keys</code> does not fit. <code>keys.T</code> is (3, 5), and (5, 3) @ (3, 5) gives (5, 5): row i, column j is query i times key j. In the exercise, first make both: one projection for each.
# </details>


# %% Exercise 2.1 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_scores(X, W_Q, W_K):
    return ...  # your lines here


checks.scores(my_scores)


# %% Exercise 2.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def scores_solution(X, W_Q, W_K):
    return (X @ W_Q) @ (X @ W_K).T  # (S, d_k) @ (d_k, S) -> (S, S)


checks.scores(scores_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 2.2.** Choose W_Q and W_K so that in "river money bank" the word *bank* gives *money* a score at least 1 higher than it gives *river*, and at least 1 higher than it gives itself.
# The explorer above is a good place to search.
#
# <details><summary>Hint 1: nudge</summary>
# bank is [1, 0]. Which row of W_Q makes its query?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Let us make <em>river</em> look for <em>money</em> instead. With W_K the identity, money's key is [0, 2]. river is [2, 0], so its query is twice row 0 of W_Q. With [0, 3] as that row the query is [0, 6], and the scores of river are 0 for river, 12 for money, 0 for bank. For bank, [1, 0], the query is row 0 once.
# </details>

# %% Exercise 2.2 slideshow={"slide_type": "skip"} tags=["exercise"]
my_W_Q = ...  # such as torch.tensor([[1.0, 0.0], [0.0, 1.0]]), with other numbers
my_W_K = ...  # torch.eye(2) is the identity

checks.bank_asks_for_money(my_W_Q, my_W_K)

# %% Exercise 2.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
checks.bank_asks_for_money(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.eye(2))

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - Score of query i for key j: q_i · k_j. All at once: Q Kᵀ = X (W_Q W_Kᵀ) Xᵀ, rows are queries, columns are keys.
# - W_Q and W_K decide where a word looks, W_V what it receives; all three are the same at every position.
# - Shares made by dividing by the sum break on negative scores.
#
# **Next:** [3 · Scaling and masking](03_scaling_and_masking.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.
#
# ### More exercises
#
# **Exercise 2.3, find the bug.** `with_a_bug(shares, X, W_V)` is to return what each word receives, `(S, d_v)`.
# Row i of `shares` `(S, S)` says how much word i takes from each word; each row sums to 1.
# The loop runs, and every shape is right. Find what is wrong, and write it without a loop.
#
# <details><summary>Hint 1: nudge</summary>
# Say the line with += aloud: who receives, who hands over, and whose row of shares is it?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Row 0 of the shares is [1, 0], row 1 is [1/2, 1/2], and the values are [2, 0] and [0, 4]. Then word 0 receives [2, 0], and word 1 receives 1/2 · [2, 0] + 1/2 · [0, 4] = [1, 2]: each row of shares times the matrix of values. All rows at once are one product.
# </details>


# %% Exercise 2.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def with_a_bug(shares, X, W_V):
    values = X @ W_V  # (S, d_v)
    received = torch.zeros_like(values)
    for i in range(len(X)):
        for j in range(len(X)):
            received[j] += shares[i, j] * values[i]
    return received


def my_receive(shares, X, W_V):
    return ...  # your lines here


checks.receive(my_receive)


# %% Exercise 2.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def receive_solution(shares, X, W_V):
    values = X @ W_V  # (S, d_v)
    return shares @ values  # (S, S) @ (S, d_v) -> (S, d_v)


halves = torch.tensor([[1.0, 0.0], [0.5, 0.5]])  # river takes from itself only
print("with the bug, river receives", with_a_bug(halves, X, W_V)[0].tolist())
print("it should be                ", receive_solution(halves, X, W_V)[0].tolist())
checks.receive(receive_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 2.4, explain by experiment.** Put `other` in the place of W_Q, then of W_K, then of W_V.
# Which of them can change the scores? And which the output?
#
# <details><summary>Hint 1: nudge</summary>
# Change one matrix at a time: X3 @ other in the first, the second or the third place.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# For W_Q the cell does it already: <code>attention(X3 @ other, X3, X3)</code> has other scores, so "W_Q" belongs into the first list. Its <code>.output</code> is shares times values; the shares follow the scores, so "W_Q" belongs into the second list, too. Now the same for <code>attention(X3, X3 @ other, X3)</code> and <code>attention(X3, X3, X3 @ other)</code>.
# </details>

# %% Exercise 2.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
before = attention(X3, X3, X3)  # all three are the identity
other = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
after = attention(X3 @ other, X3, X3)  # now W_Q is another one
print("scores changed:", not torch.equal(after.raw, before.raw))

my_score_movers = ...  # a list of some of "W_Q", "W_K", "W_V"
my_output_movers = ...
checks.what_moves(my_score_movers, my_output_movers)

# %% Exercise 2.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
for i, name in enumerate(["W_Q", "W_K", "W_V"]):
    projected = [X3, X3, X3]  # queries, keys, values
    projected[i] = X3 @ other
    after = attention(*projected)
    same = torch.equal(after.raw, before.raw), torch.equal(after.output, before.output)
    print(f"{name}: scores changed {not same[0]}, output changed {not same[1]}")

checks.what_moves(["W_Q", "W_K"], ["W_Q", "W_K", "W_V"])

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 2.5, make two matrices.** In "river money bank", choose W_Q and W_K so that *bank* ignores *money*:
# an attention weight (its share after the softmax) below 0.01, while *river* and *bank* keep at least 0.1 each.
# `attention(X3 @ W_Q, X3 @ W_K, X3).weights[2]` is the row of *bank*. With the identities its score for *money* is 0 already; is that enough?
#
# <details><summary>Hint 1: nudge</summary>
# A score of 0 gets a share. What kind of number lies far below 0?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# To make bank ignore <em>river</em> instead, its query would have to point against [2, 0]: with [-3, 0] as row 0 of W_Q the score for river is -6, but the score for bank itself is -3 and for money 0, so bank would ignore itself, too. For money the way is clear: its key [0, 2] has direction 1 for itself. Which number of row 0 of W_Q reaches only that direction?
# </details>

# %% Exercise 2.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_ignoring_W_Q = ...
my_ignoring_W_K = ...

checks.bank_ignores_money(my_ignoring_W_Q, my_ignoring_W_K)

# %% Exercise 2.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
against_money = torch.tensor([[1.0, -4.0], [0.0, 1.0]])
row = attention(X3 @ against_money, X3, X3).weights[2]
assert row[1] < 0.01 and min(row[0], row[2]) >= 0.1

checks.bank_ignores_money(against_money, torch.eye(2))

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 2.6, build it.** Attention need not be likeness: let any word look for any other.
# There are V words, their embeddings are the one-hot rows (X is the identity), and so is W_K.
# `who` `(V,)` says whom each word is to look for. Return the W_Q `(V, V)` with which word i gives word `who[i]` the score 1, and all others 0.
#
# <details><summary>Hint 1: nudge</summary>
# With X and W_K the identity, what are the scores?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With three words and who = [1, 1, 0], the W_Q has the rows [0, 1, 0], [0, 1, 0], [1, 0, 0]: row i is the one-hot row of who[i]. <code>F.one_hot(ids, num_classes=V).float()</code> makes such rows (after <code>import torch.nn.functional as F</code>); or look them up in the identity matrix.
# </details>


# %% Exercise 2.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_look_for(who):
    return ...  # your lines here


checks.look_for(my_look_for)


# %% Exercise 2.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def look_for_solution(who):
    return torch.eye(len(who))[who]  # (V, V): a lookup in the one-hot rows


checks.look_for(look_for_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 2.7, other matrices, the same scores.** W_Q `(D, d_k)` is replaced by `W_Q @ A`, where A `(d_k, d_k)` can be inverted.
# Which W_K `(D, d_k)` gives every phrase the scores that it had before?
#
# > **Box: inverse.** `torch.linalg.inv(A)` undoes A: `A @ torch.linalg.inv(A)` is the identity.
#
# <details><summary>Hint 1: nudge</summary>
# Only the product W_Q W_Kᵀ counts. What must stand between W_Q and W_Kᵀ so that A disappears?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With d_k = 1 everything is a number: W_Q = [3], W_K = [2], A = [4]. The product was 6; now W_Q A = [12], so the new W_K must be [1/2]: the old one divided by 4. For matrices, division is the inverse, and it stands in W_Kᵀ: (new W_K)ᵀ = A⁻¹ W_Kᵀ. Transpose both sides, and mind that a transposed product changes its order.
# </details>


# %% Exercise 2.7 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_other_W_K(W_K, A):
    return ...  # your lines here


checks.same_scores(my_other_W_K)


# %% Exercise 2.7, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def same_scores_solution(W_K, A):
    return W_K @ torch.linalg.inv(A).T  # (D, d_k) @ (d_k, d_k) -> (D, d_k)


checks.same_scores(same_scores_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 2.8, count.** The embeddings have D = 6 numbers, d_k = 4, d_v = 3, and there are no biases.
# How many *parameters* do W_Q, W_K and W_V have together, and how many *scores* does a phrase of 10 words have?
#
# <details><summary>Hint 1: nudge</summary>
# Which of the two is learned once, and which is computed anew for every phrase?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With D = 2, d_k = 3, d_v = 5 and 7 words: W_Q and W_K have 2 · 3 = 6 numbers each and W_V has 2 · 5 = 10, together 22, however long the phrase is. Each of the 7 words gives each of the 7 a score: 49.
# </details>

# %% Exercise 2.8 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_n_parameters = ...
my_n_scores = ...

checks.parameters_and_scores(my_n_parameters, my_n_scores)

# %% Exercise 2.8, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
checks.parameters_and_scores(6 * 4 + 6 * 4 + 6 * 3, 10 * 10)

# %% Proof: the worked hints jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
for_river = E @ torch.tensor([[0.0, 3.0], [0.0, 1.0]]) @ E.T
assert for_river[0].tolist() == [0, 12, 0]
against_river = E @ torch.tensor([[-3.0, 0.0], [0.0, 1.0]]) @ E.T
assert against_river[2].tolist() == [-6, 0, -3]
received = torch.tensor([[1.0, 0.0], [0.5, 0.5]]) @ torch.tensor([[2.0, 0.0], [0.0, 4.0]])
assert received.tolist() == [[2, 0], [1, 2]]
assert 2 * 3 + 2 * 3 + 2 * 5 == 22 and 7 * 7 == 49 and 3 * 2 == 3 * 4 * (2 / 4)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### Further reading
#
# - Vaswani et al. 2017, [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762): queries, keys and values as used here, without biases.
# - Elhage et al. 2021, [*A Mathematical Framework for Transformer Circuits*](https://transformer-circuits.pub/2021/framework/index.html): W_Q W_Kᵀ and W_V W_O as the matrices that decide.
# - 3Blue1Brown, [*Attention in transformers, step-by-step*](https://www.3blue1brown.com/lessons/attention): draws queries as columns.
# - Arpit Bhayani, [*The Q, K, V Matrices*](https://arpitbhayani.me/blogs/qkv-matrices): the three matrices built up from small numbers.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("02"), globals())
