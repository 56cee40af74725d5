# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2 · Queries, keys, values
#
# **The question.** A word should be able to *ask* the words around it, and each of them to *answer*.
# How can a question and an answer be made of vectors?
#
# **Afterwards you can**
# - compute every score of a phrase with one matrix product, and read the grid of scores;
# - say which failures of X Xᵀ the matrices W_Q, W_K and W_V repair;
# - translate between the conventions of this course, of PyTorch, and of other texts.
#
# **Builds on** [notebook 1](01_static_embeddings.ipynb): X holds one embedding per row, and a dot product measures how alike two vectors are.
# **Takes** about 35 minutes; there are stopping points on the way.

# %% [markdown]
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

# %% Setup (unfold to see) jupyter={"source_hidden": true} tags=["setup"]
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
from attnlab.data import embedding_table, encode
from attnlab.lab import Explorer, matrix, plots, predict, progress

torch.set_printoptions(sci_mode=False)

E = embedding_table()  # river [2, 0], money [0, 2], bank [1, 0]
tokens = ["river", "bank"]
X = E[encode("river bank")]  # (S, D) = (2, 2)

# %% [markdown]
# ## 1. Let the embeddings ask
#
# Start with the simplest idea: a word asks with its own embedding.
# It takes the dot product of its embedding with the embedding of each word of the phrase, its own included.
# The vector that asks is called the **query**, the vector it is compared with a **key**, and the dot product is a **score**.

# %% Guess: a score jupyter={"source_hidden": true} tags=["predict"]
# Answer before you go on
score_guess = predict(
    "bank is [1, 0], river is [2, 0]. Which score does bank give to river?", key="2"
)
score_guess

# %% The scores of bank, one at a time
river, bank = X
print("bank . river =", (bank @ river).item())
print("bank . bank  =", (bank @ bank).item())

# %% What is behind it: a score jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
score_guess.reveal(bank @ river, "Multiply entry by entry and add: 1 · 2 + 0 · 0.")

# %% [markdown]
# ### All scores at once
#
# All scores form a grid.
# **Rows are queries, columns are keys**: row *bank*, column *river* holds what *bank* gives to *river*.
# There are three ways to compute it, and they agree.

# %% Loop, matrix product, einsum
looped = torch.zeros(2, 2)  # (S_q, S_k): queries by keys, here both S
for i in range(2):
    for j in range(2):
        looped[i, j] = X[i] @ X[j]  # query i meets key j

scores = X @ X.T  # (S, D) @ (D, S) -> (S, S)
assert_close(scores, looped)
assert_close(scores, torch.einsum("id,jd->ij", X, X))
scores.tolist()

# %% [markdown]
# **Why the transpose?** A matrix product multiplies rows by columns.
# To make each query *row* meet each key *row*, the keys are laid on their side.
#
# In `einsum`, a letter that is missing after the arrow (here d) is multiplied and summed.
#
# The loop goes through the pairs one after another; the product does them all at once.
# That is why graphics processors, which are made for such products, run attention fast.

# %% Three phrases, three grids
picture, axes = plots.panels(3)
for ax, phrase in zip(axes, ["river bank", "money bank", "river money bank"]):
    rows = E[encode(phrase)]
    plots.heatmap(ax, phrase.split(), phrase.split(), rows @ rows.T, kind="scores", title=phrase)
picture

# %% [markdown]
# Look at the last grid and you see two failures.
#
# 1. **It is symmetric**: what *bank* gives to *river*, *river* gives to *bank*.
#    But "what does *bank* need to know?" and "what does *river* need to know?" are different questions.
# 2. **It favours long vectors**: *bank* gives *river* more than itself, only because *river* is longer.
#
# A third failure does not show in a grid: the vector that is compared is also the vector that is passed on.
# What a word is *found by* need not be what it *has to say*.
#
# *Stopping point: about 12 minutes.*

# %% [markdown]
# ## 2. Three matrices, each earned by a failure
#
# The repair is to give every word three vectors, each made from its embedding by a matrix of its own:
#
# | vector | made by | role | repairs |
# |---|---|---|---|
# | **query** | Q = X W_Q | what am I looking for? | 1: asking and being asked differ, as soon as W_Q and W_K do |
# | **key** | K = X W_K | what can I be matched on? | 2, in part: W_Q and W_K together learn which directions count, and how much |
# | **value** | V = X W_V | what do I hand over? | 3: being found and speaking differ |
#
# W_Q, W_K and W_V are parameters: learned, and **the same at every position**.
# (Only in part, because within one direction nothing changes: *river* stays twice *bank* under any matrix.)
# Such a product with a learned matrix is called a **projection**.
#
# Two analogies, and they are only that.
# In a library, the query is your question, the key the label on a book's spine, the value what is written inside.
# At a party, the query is who you hope to meet, the key your name badge, the value what you say.

# %% [markdown]
# ### Identity first
#
# If all three matrices are the identity, then Q = K = V = X, and we are back in section 1.
# That is a shortcut for teaching; no trained model has it.
# From there we change one number: with W_Q[0, 1] = 1, the query of *bank* gets a part in the direction of *money*.

# %% Project the phrase: loop, then matrix
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

# %% [markdown]
# `nn.Linear` computes `x @ weight.T`, so its `weight` is our W_Q transposed.
# Reading the parameters of a real model, mind that.

# %% [markdown]
# ### Asking and being asked
#
# The phrase is now "river money bank", with that W_Q.
#
# (`attention(Q, K, V)` from our package does all steps of the course. Today read `.raw`, the scores, and `.output`, the mixture of values; in section 3 also `.weights`, the shares.)

# %% Guess: asking and being asked jupyter={"source_hidden": true} tags=["predict"]
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

# %% Vote: another W_V jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
values_vote = predict(
    "Then we put another matrix in the place of W_V. What changes?",
    {
        "where the words look: the scores": "Scores are made of queries and keys: W_V never meets them.",
        "what the words receive: the output": "",
        "both": "The output does. But scores are made of queries and keys: W_V never meets them.",
    },
    key="what the words receive",
)
values_vote

# %% Asking is not being asked
phrase = "river money bank".split()
X3 = E[encode("river money bank")]  # (3, 2)
steps = attention(X3 @ W_Q, X3 @ W_K, X3 @ W_V)
assert_close(steps.raw, (X3 @ W_Q) @ (X3 @ W_K).T)  # the package does the same

other_values = attention(X3 @ W_Q, X3 @ W_K, X3 @ torch.tensor([[0.0, 3.0], [1.0, 0.0]]))
other_keys = attention(X3 @ W_Q, X3 @ torch.tensor([[0.0, 3.0], [1.0, 0.0]]), X3 @ W_V)
print("bank gives money:", steps.raw[2, 1].item(), "  money gives bank:", steps.raw[1, 2].item())
picture, axes = plots.panels(1, width=4)
plots.heatmap(axes, phrase, phrase, steps.raw, kind="scores", title="Scores, W_Q changed")
picture

# %% What is behind it: asking and being asked jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
asks, is_asked = steps.raw[2, 1], steps.raw[1, 2]
asked_guess.reveal(
    f"{asks:.0f} and {is_asked:.0f}",
    "No longer symmetric: *bank* gives *money* a score of 2, and *money* gives *bank* 0.",
)

# %% What is behind it: another W_V jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
values_vote.reveal(
    "what the words receive: the output" if torch.equal(steps.raw, other_values.raw) else "both",
    """
Changing W_Q or W_K changes the scores.
Changing W_V does not: it changes what is handed over, **not where one looks**.
""",
)

# %% Proof: what each matrix changes jupyter={"source_hidden": true} tags=["proof"]
assert torch.equal(steps.raw, other_values.raw)
assert not torch.equal(steps.raw, other_keys.raw)
assert not torch.equal(steps.output, other_values.output)

# %% Vote: likeness jupyter={"source_hidden": true} tags=["predict"]
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

# %% A right angle, and still the highest score
stronger = X3 @ torch.tensor([[1.0, 3.0], [0.0, 1.0]]) @ X3.T  # W_Q[0, 1] = 3
print("scores that bank gives to river, money, bank:", stronger[2].tolist())

# %% What is behind it: likeness jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
likeness_vote.reveal(
    "yes, with another W_Q" if stronger[2].argmax() == 1 else "no, a score measures likeness",
    "With W_Q[0, 1] = 3 *money* leads in the row of *bank*, although the two are at right angles: attention need not be likeness.",
)

# %% [markdown]
# ### Widths
#
# Q and K must have the same width, called `d_k`, or their rows could not be multiplied.
# It is often smaller than `D`.
# V may have a width of its own, `d_v`.

# %% Other widths
to_q, to_k, to_v = torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 5)  # d_k = 3, d_v = 5
steps = attention(X3 @ to_q, X3 @ to_k, X3 @ to_v)
print("scores", tuple(steps.raw.shape), " output", tuple(steps.output.shape))

# %% [markdown]
# ### Change every entry yourself

# %% Explorer: W_Q, W_K, W_V -> vectors and scores jupyter={"source_hidden": true} tags=["explorer"]
# Unfold to see and to change what is drawn
phrase = "river money bank".split()
X3 = E[encode("river money bank")]  # (3, 2)
picture, axes = plots.panels(4, height=2.9)
queries, keys, values = (
    plots.vectors(ax, phrase, title=title, limits=(-4, 4, -4, 4))
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
    return (
        f"bank gives money **{asks:.1f}**, money gives bank **{asked:.1f}**; "
        f"bank's value is [{x:.1f}, {y:.1f}]."
    )


matrices_explorer = Explorer(
    picture,
    show,
    goal="Make money give bank a score of 2 while bank gives money 0. Then find the matrix that changes no score.",
    W_Q=matrix(low=-2, high=2),
    W_K=matrix(low=-2, high=2),
    W_V=matrix(low=-2, high=2),
)
matrices_explorer

# %% Stills of the explorer: W_Q, W_K, W_V -> vectors and scores jupyter={"source_hidden": true} tags=["proof"]
matrices_explorer.stills({"W_Q": [[1, 0], [1, 1]]}, {"W_V": [[0, 1], [-1, 0]]})

# %% [markdown]
# These are the first steps of a longer chain. The whole of it, under the same three matrices, is an explorer of [notebook 4](04_softmax_and_values.ipynb).
#
# *Stopping point: about 27 minutes.*

# %% [markdown]
# ## 3. A rough full pass
#
# Scores are not yet an answer.
# *bank* should receive a mixture of the values, in shares that follow its scores.
# The obvious way to make shares: divide by the sum.

# %% Guess: the mixture jupyter={"source_hidden": true} tags=["predict"]
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

# %% Shares by dividing by the sum
bank_scores = scores[1]  # [2, 1]
shares = bank_scores / bank_scores.sum()  # (S_k,)
output = shares @ X  # a row times a matrix: (S_k,) @ (S_k, D) -> (D,)
print("shares", shares)
print("output", output)

# %% Proof: two thirds, one third jupyter={"source_hidden": true} tags=["proof"]
assert_close(shares, torch.tensor([2 / 3, 1 / 3]))
assert_close(output, torch.tensor([5 / 3, 0.0]))

# %% What is behind it: the mixture jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
mixture_guess.reveal(
    f"2/3 and 1/3, so [{output[0]:.3f}, {output[1]:.0f}]",
    """
*bank* has moved towards *river*.
That is a whole attention step in outline: *score, share, mix*.
A row times a matrix, once more, and this time the row was computed from the words.
""",
)

# %% [markdown]
# ### It breaks
#
# But with another W_Q a score can be negative, since vectors can point apart.

# %% Negative scores
broken = torch.tensor([2.0, -1.0])
shares = broken / broken.sum()
print("shares of [2, -1]:", shares.tolist(), " mixture:", (shares @ X).tolist())
worse = torch.tensor([1.0, -1.0])
print("shares of [1, -1]:", (worse / worse.sum()).tolist())

# %% [markdown]
# A share of 2 and one of −1 give a mixture longer than either word; the other is a division by zero.
# Something better is needed than dividing by the sum: the **softmax** of the next two notebooks.
# It, too, gives the larger score the larger share, and it takes any numbers.
#
# One question in advance.
# In "money bank" the score of *bank* for *money* is 0, and dividing by the sum would give it nothing.

# %% Vote: a score of 0 jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
zero_vote = predict(
    "In “money bank”, bank gives money a score of 0. What share does money get after the softmax?",
    {
        "none: 0 means no attention": "Only a score of minus infinity gets nothing: 0 is a number like others.",
        "about a third": "",
        "the same as bank": "bank's own score is 1: a larger score gets a larger share.",
    },
    key="about a third",
)
zero_vote

# %% A score of 0, after the softmax
X_money = E[encode("money bank")]
steps = attention(X_money, X_money, X_money)
print(f"score {steps.raw[1, 0]:.0f}, share {steps.weights[1, 0]:.4f}")

# %% What is behind it: a score of 0 jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
third = abs(steps.weights[1, 0] - 1 / 3) < 0.01
zero_vote.reveal(
    "about a third" if third else "none: 0 means no attention",
    """
A score of 0 is not "no attention".
(`attention` also divides the scores by √2 before the softmax. Notebook 3 says why.)
""",
)

# %% [markdown]
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

# %% [markdown]
# ## Exercises
#
# **Exercise 2.1.** Write the raw scores of a phrase: `X` is `(S, D)`, `W_Q` and `W_K` are `(D, d_k)`, the result is `(S, S)`.
#
# <details><summary>Hint 1: nudge</summary>
# Two projections, then every row of one meets every row of the other.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Queries X @ W_Q and keys X @ W_K are (S, d_k). The one that is to run along the columns is laid on its side.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 2.1 tags=["exercise"]
def my_scores(X, W_Q, W_K):
    return ...  # your lines here


checks.scores(my_scores)


# %% Exercise 2.1, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
def scores_solution(X, W_Q, W_K):
    return (X @ W_Q) @ (X @ W_K).T  # (S, d_k) @ (d_k, S) -> (S, S)


checks.scores(scores_solution)

# %% [markdown]
# **Exercise 2.2.** Choose W_Q and W_K so that in "river money bank" the word *bank* gives *money* a score at least 1 higher than it gives *river*, and at least 1 higher than it gives itself.
# The explorer above is a good place to search.
#
# <details><summary>Hint 1: nudge</summary>
# bank is [1, 0]. Which row of W_Q makes its query?
# </details>
#
# <details><summary>Hint 2: method</summary>
# With W_K the identity, money's key is [0, 2]: let the first row of W_Q point its way, and not along [1, 0].
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 2.2 tags=["exercise"]
my_W_Q = ...  # such as torch.tensor([[1.0, 0.0], [0.0, 1.0]]), with other numbers
my_W_K = ...

checks.bank_asks_for_money(my_W_Q, my_W_K)

# %% Exercise 2.2, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
checks.bank_asks_for_money(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.eye(2))

# %% [markdown]
# ## Remember
#
# - Score of query i for key j: q_i · k_j. All at once: Q Kᵀ, rows are queries, columns are keys.
# - W_Q and W_K decide where a word looks, W_V what it receives; all three are the same at every position.
# - Shares made by dividing by the sum break on negative scores.
#
# **Next:** [3 · Scaling and masking](03_scaling_and_masking.ipynb)

# %% [markdown] tags=["further"]
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
# <details><summary>Hint 2: method</summary>
# In shares[i, j] the query i receives from the key j. A row of shares times the matrix of values is what that one word receives.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 2.3 tags=["exercise", "further"]
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


# %% Exercise 2.3, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def receive_solution(shares, X, W_V):
    values = X @ W_V  # (S, d_v)
    return shares @ values  # (S, S) @ (S, d_v) -> (S, d_v)


halves = torch.tensor([[1.0, 0.0], [0.5, 0.5]])  # river takes from itself only
print("with the bug, river receives", with_a_bug(halves, X, W_V)[0].tolist())
print("it should be                ", receive_solution(halves, X, W_V)[0].tolist())
checks.receive(receive_solution)

# %% [markdown] tags=["further"]
# **Exercise 2.4, explain by experiment.** Put `other` in the place of W_Q, then of W_K, then of W_V.
# Which of them can change the scores? And which the output?
#
# <details><summary>Hint 1: nudge</summary>
# Change one matrix at a time: X3 @ other in the first, the second or the third place.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Compare .raw with before.raw, and .output with before.output. The output is shares times values: follow each matrix through.
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 2.4 tags=["exercise", "further"]
before = attention(X3, X3, X3)  # all three are the identity
other = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
after = attention(X3 @ other, X3, X3)  # now W_Q is another one
print("scores changed:", not torch.equal(after.raw, before.raw))

my_score_movers = ...  # a list of some of "W_Q", "W_K", "W_V"
my_output_movers = ...
checks.what_moves(my_score_movers, my_output_movers)

# %% Exercise 2.4, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
for i, name in enumerate(["W_Q", "W_K", "W_V"]):
    projected = [X3, X3, X3]  # queries, keys, values
    projected[i] = X3 @ other
    after = attention(*projected)
    same = torch.equal(after.raw, before.raw), torch.equal(after.output, before.output)
    print(f"{name}: scores changed {not same[0]}, output changed {not same[1]}")

checks.what_moves(["W_Q", "W_K"], ["W_Q", "W_K", "W_V"])

# %% [markdown] tags=["further"]
# **Exercise 2.5, make two matrices.** In "river money bank", choose W_Q and W_K so that *bank* ignores *money*:
# an attention weight (its share after the softmax) below 0.01, while *river* and *bank* keep at least 0.1 each.
# `attention(X3 @ W_Q, X3 @ W_K, X3).weights[2]` is the row of *bank*. With the identities its score for *money* is 0 already; is that enough?
#
# <details><summary>Hint 1: nudge</summary>
# A score of 0 gets a share. What kind of number lies far below 0?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Leave bank's query at 1 along [1, 0], so that river and bank keep their scores, and let it point against money's key [0, 2].
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 2.5 tags=["exercise", "further"]
my_ignoring_W_Q = ...
my_ignoring_W_K = ...

checks.bank_ignores_money(my_ignoring_W_Q, my_ignoring_W_K)

# %% Exercise 2.5, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
against_money = torch.tensor([[1.0, -4.0], [0.0, 1.0]])
row = attention(X3 @ against_money, X3, X3).weights[2]
assert row[1] < 0.01 and min(row[0], row[2]) >= 0.1

checks.bank_ignores_money(against_money, torch.eye(2))

# %% [markdown] tags=["further"]
# **Exercise 2.6, build it.** Attention need not be likeness: let any word look for any other.
# There are V words, their embeddings are the one-hot rows (X is the identity), and so is W_K.
# `who` `(V,)` says whom each word is to look for. Return the W_Q `(V, V)` with which word i gives word `who[i]` the score 1, and all others 0.
#
# <details><summary>Hint 1: nudge</summary>
# With X and W_K the identity, what are the scores?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Row i of W_Q is the query of word i: it is to be the one-hot row of who[i]. Notebook 1 has made such rows.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 2.6 tags=["exercise", "further"]
def my_look_for(who):
    return ...  # your lines here


checks.look_for(my_look_for)


# %% Exercise 2.6, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def look_for_solution(who):
    return torch.eye(len(who))[who]  # (V, V): a lookup in the one-hot rows


checks.look_for(look_for_solution)

# %% [markdown] tags=["further"]
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*; 3Blue1Brown's video on attention, which draws queries as columns;
# Bhayani's article on the Q, K and V matrices.

# %% My progress tags=["progress"]
progress(checks.exercises("02"), globals())
