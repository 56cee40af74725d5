# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 1 · Static embeddings
#
# **The question.** *bank* means one thing in "river bank" and another in "money bank".
# Can a table with one vector per word tell them apart?
#
# **Afterwards you can**
# - turn a phrase into a matrix of embeddings, and say what each axis is;
# - measure how alike two words are by a dot product and by a cosine;
# - say what a static embedding cannot do, and why averaging does not repair it.
#
# **Builds on** Python and the matrix product. **Takes** about 35 minutes; there are stopping points on the way.
#
# Press *Shift + Enter* to run a cell, and run every cell from the top.
# You can change any number in any cell: *Kernel → Restart* fixes anything you break.

# %% [markdown]
# **Two questions to warm up.** Answer in your head, then unfold.
#
# <details><summary>What is the shape of a (2, 3) matrix times a (3, 5) matrix?</summary>
# (2, 5). The inner sizes must agree, and they disappear.
# </details>
#
# <details><summary>What is [0, 0, 1] times a matrix with three rows?</summary>
# Its third row. You multiply the first two rows by 0 and the third by 1, and add.
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
import torch.nn.functional as F
from torch import nn

from attnlab import checks
from attnlab.checks import assert_close
from attnlab.data import corpus, embedding_table, encode, glove
from attnlab.lab import Explorer, choice, matrix, plots, predict, progress

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)

# %% [markdown]
# ## 1. A table of rows
#
# A language model does not see words.
# It sees **tokens**, the pieces a text is cut into; here every word is one token.
# Each token has a whole number, its **id**, and the id picks one row of a table.
# That row is the token's **embedding**: a list of numbers, that is, a vector.
#
# Our whole world has three words, and each gets two numbers so that we can draw it:
#
# | token | id | embedding |
# |---|---|---|
# | river | 0 | [2, 0] |
# | money | 1 | [0, 2] |
# | bank | 2 | [1, 0] |

# %% Vote: two banks jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
banks_vote = predict(
    "Which row will bank get in “river bank”, and which in “money bank”?",
    {
        "one near river, one near money": "The table sees one id, and no neighbours.",
        "[1, 0] both times": "The table is asked for an id, and the id is the same.",
        "[1, 0] and a second row for the other bank": "One word, one id, one row, whatever it means.",
    },
    key="[1, 0] both times",
)
banks_vote

# %% Two phrases, looked up
E = embedding_table()  # (V, D) = (3, 2)
river_bank = encode("river bank")  # ids (S,)
money_bank = encode("money bank")
print("river bank", river_bank.tolist(), "->", E[river_bank].tolist())
print("money bank", money_bank.tolist(), "->", E[money_bank].tolist())

# %% What is behind it: two banks jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
same = torch.equal(E[river_bank][1], E[money_bank][1])
banks_vote.reveal(
    "[1, 0] both times" if same else "one near river, one near money",
    """
The table is asked for "row 2" and has no way to know which words stand beside it.
Such an embedding is called **static**.
""",
)

# %% [markdown]
# ### The same lookup three times
#
# Looking up a row can also be written as a matrix product.
# A **one-hot** row is zero everywhere except for a single 1, at the place of the id.
#
# > A row times a matrix is a weighted sum of the matrix's rows.
# > With a one-hot row, one of them counts, times 1, and the others not at all.
#
# Keep that sentence: attention will be the same sum with other numbers in the row.
# PyTorch's `nn.Embedding` is this table, with rows that are **parameters**: numbers that training adjusts.
#
# (`assert_close` stops the notebook if two tensors differ.)

# %% Loop, matrix, PyTorch
looked_up = torch.stack([E[i] for i in river_bank])  # loop over tokens: (S, D)
one_hot = F.one_hot(river_bank, num_classes=3).float()  # (S, V)
X = one_hot @ E  # (S, V) @ (V, D) -> (S, D)
table = nn.Embedding.from_pretrained(E, freeze=False)
assert_close(looked_up, X)
assert_close(table(river_bank), X)
print("one-hot", one_hot.tolist())
print("X      ", X.tolist())

# %% [markdown]
# The rows of a phrase, stacked, are the matrix **X**.
# In this course its axes always have the same letters:
#
# | letter | axis | here |
# |---|---|---|
# | `B` | batch: how many sequences at once | 1, so we leave it out |
# | `S` | sequence: how many tokens | 2 |
# | `D` | model width: numbers per token | 2 |
# | `V` | vocabulary: rows of the table (later, V will also be the matrix of values) | 3 |
#
# Real models use the same picture with larger numbers.

# %% The shape of X
batch = torch.stack([E[river_bank], E[money_bank]])  # (B, S, D)
large = torch.empty(2048, 4096, device="meta")  # a shape without memory behind it
print("X:", tuple(X.shape))
print("a batch of two phrases:", tuple(batch.shape))
print("2,048 tokens at width 4,096:", tuple(large.shape), "=", f"{large.numel():,} numbers")

# %% [markdown]
# ### Not only banks
#
# A *mole* can sit on a face, and a chemist counts molecules in moles.
# Here is a table with random rows for a few more words.

# %% One row for two moles
words = tuple("a carbon dioxide face his mole of on the".split())
random_table = torch.randn(len(words), 4, generator=torch.Generator().manual_seed(0))  # (V, D)
skin = random_table[encode("the mole on his face", words)]  # (5, 4)
chemistry = random_table[encode("a mole of carbon dioxide", words)]  # (5, 4)
print("mole has the same row in both:", torch.equal(skin[1], chemistry[1]))
print("the shapes are", tuple(skin.shape), "and", tuple(chemistry.shape))

# %% [markdown]
# Two kinds of vector must be kept apart from now on:
#
# - the **input embedding**: one row per *id*, a learned parameter like any other, the same in every sentence;
# - the **contextual hidden state**: one vector per *occurrence*, computed anew from the positions that occurrence may use.
#   In a causal decoder (the kind that writes text) those are itself and the ones before it; in an encoder (the kind that reads a finished text), all.
#
# This course is about how the first becomes the second.
#
# *Stopping point: about 10 minutes.*

# %% [markdown]
# ## 2. Directions carry meaning
#
# Why vectors, and not just ids?
# Because two vectors can be compared.
#
# > **Box: the dot product.** Multiply entry by entry and add: [3, 1] · [1, 2] = 3·1 + 1·2 = 5.
# > It is the two lengths times the cosine of the angle between the vectors:
# > large when they point the same way, 0 when they are at right angles, negative when they point apart.
#
# Dividing by both lengths leaves the **cosine**: 1 for the same direction, 0 for a right angle.
# The dot product counts length *and* angle; the cosine only the angle.

# %% Vote: the larger dot product jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
dots_vote = predict(
    "river is [2, 0], bank is [1, 0]. With which does bank have the larger dot product?",
    {
        "with itself": "Nothing is more like bank than bank, but a dot product counts length as well.",
        "with river": "It points the same way and is longer: 2 against 1.",
        "no difference": "That is what the cosine says. The dot product also counts length.",
    },
    key="with river",
)
dots_vote

# %% Dot products and cosines
river, money, bank = E
dots = E @ E.T  # (3, D) @ (D, 3) -> (3, 3): every word with every word
lengths = E.norm(dim=1)  # (3,)
cosines = dots / (lengths[:, None] * lengths[None, :])  # (3, 3) / ((3, 1) * (1, 3)) -> (3, 3)
assert_close(cosines[0, 2], F.cosine_similarity(river, bank, dim=0))

tokens = ["river", "money", "bank"]
picture, (left, middle, right) = plots.panels(3)
plots.vectors(left, tokens, E, "Three embeddings")
plots.heatmap(middle, tokens, tokens, dots, "scores", "Dot products", ("", ""))
plots.heatmap(right, tokens, tokens, cosines, "values", "Cosines", ("", ""), limit=1.0)
picture

# %% What is behind it: the larger dot product jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
dots_vote.reveal(
    "with river" if bank @ river > bank @ bank else "with itself",
    """
bank · river = 2 is more than bank · bank = 1, although the direction is the same (cosine 1): *river* is simply longer, twice *bank*.
*money* is at right angles to both, so its dot product with *bank* is 0.
""",
)

# %% Proof: the dot products in the text jupyter={"source_hidden": true} tags=["proof"]
assert river @ bank == 2 and bank @ bank == 1 and bank @ money == 0
assert torch.tensor([3, 1]) @ torch.tensor([1, 2]) == 5  # the box

# %% [markdown]
# ### Move them yourself

# %% Explorer: three vectors in the plane jupyter={"source_hidden": true} tags=["explorer"]
# Unfold to see and to change what is drawn
tokens = ["river", "money", "bank"]
picture, (left, middle, right) = plots.panels(3, height=3.4, ratios=(4, 5, 5))
arrows = plots.vectors(left, [*tokens, "average"], title="Vectors", limits=(-3, 3, -3, 3))
dot_bars = plots.bars(
    middle, ["river · money", "river · bank", "money · bank"], title="Dot products", limits=(-9, 9)
)
cos_bars = plots.bars(
    right, ["river, money", "river, bank", "money, bank"], title="Cosines", limits=(-1.2, 1.2)
)


def show(vectors, phrase):
    pairs = [(0, 1), (0, 2), (1, 2)]
    average = vectors[encode(phrase)].mean(dim=0)
    arrows.update(torch.cat([vectors, average[None]]))
    dot_bars.update([vectors[i] @ vectors[j] for i, j in pairs])
    cosines = [F.cosine_similarity(vectors[i], vectors[j], dim=0) for i, j in pairs]
    cos_bars.update(cosines)
    (x, y), (_, river, money) = average.tolist(), cosines
    said = f"bank has cosine **{river:.2f}** with river and **{money:.2f}** with money."
    return f"The average of '{phrase}' is [{x:.2f}, {y:.2f}]; {said}"


plane_explorer = Explorer(
    picture,
    show,
    goal="Turn bank until it has the same angle to river and to money: both cosines the same.",
    vectors=matrix(3, 2, embedding_table(), label="Embeddings", row_names=tokens),
    phrase=choice(["river bank", "money bank", "river money bank"]),
)
plane_explorer

# %% Stills of the explorer: three vectors in the plane jupyter={"source_hidden": true} tags=["proof"]
plane_explorer.stills({"vectors": [[2, 0], [0, 2], [1, 1]]}, {"vectors": [[2, 0], [0, 2], [0, 1]]})

# %% [markdown]
# ### Where do the numbers come from?
#
# Nobody writes them down.
# They are parameters: they start at random and are nudged until a prediction gets better.
# A simple, well-known recipe is **skip-gram**: let each word predict the words it shares a sentence with.
# The folded cell does that on 4,000 generated sentences, such as "a fisherman saw that small bank flood near the shore", and compares the directions (after subtracting the average of all words).

# %% Skip-gram: the result (unfold to see how) jupyter={"source_hidden": true}
# Unfold to see how
language = corpus()
sentences = language.sample(4000, torch.Generator().manual_seed(0))  # (4000, 10) ids
generator = torch.Generator().manual_seed(0)
V = len(language.words)
embedding = torch.randn(V, 8, generator=generator).mul(0.1).requires_grad_()
context = torch.randn(V, 8, generator=generator).mul(0.1).requires_grad_()
first, second = torch.combinations(torch.arange(sentences.shape[1])).T  # every pair of places
pairs = sentences[:, first].flatten() * V + sentences[:, second].flatten()
counts = torch.bincount(pairs, minlength=V * V).reshape(V, V).float()
counts = counts + counts.T  # how often two words shared a sentence
speed = {embedding: 0.0, context: 0.0}
for _ in range(400):
    log_p = F.log_softmax(embedding @ context.T, dim=1)  # (V, V)
    loss = -(counts * log_p).sum() / counts.sum()
    for p, slope in zip(speed, torch.autograd.grad(loss, list(speed))):
        speed[p] = 0.9 * speed[p] - 4 * slope  # downhill, with momentum
        p.data += speed[p]

chosen = "shore flood crumble bank loan fail lend".split()
rows = embedding.detach()[encode(" ".join(chosen), language.words)]  # (7, 8)
rows = F.normalize(rows - embedding.detach().mean(dim=0), dim=1)  # length 1: dot product = cosine
learned = rows @ rows.T  # (7, 7)
picture, axes = plots.panels(1, width=6)
plots.heatmap(
    axes,
    chosen,
    chosen,
    learned,
    kind="values",
    title="Cosines after skip-gram",
    names=("", ""),
    limit=1.0,
    digits=1,
)
river_side, money_side = learned[3, :3].mean(), learned[3, 4:].mean()
across = learned[:3, 4:].mean()
print(
    f"bank and river side {river_side:.1f}, bank and money side {money_side:.1f}, across {across:.1f}"
)
picture

# %% Proof: what skip-gram found jupyter={"source_hidden": true} tags=["proof"]
assert min(river_side, money_side) > across + 0.1
assert len(sentences) == 4_000

# %% [markdown]
# Words used alike have come to point alike: the river words form one block, the money words another.
# And *bank*, which has only one row for both uses, has been pulled **between** them.
#
# The same is true of vectors trained on billions of real words.
# These are from GloVe, a well-known set with 50 numbers per word.

# %% Real vectors
glove_words, glove_vectors = glove()  # (V, 50)


def real_cosine(a, b):
    rows = glove_vectors[encode(f"{a} {b}", glove_words)]
    return F.cosine_similarity(rows[0], rows[1], dim=0).item()


pairs = "bank money, bank loan, bank river, river shore, river money"
for a, b in (pair.split() for pair in pairs.split(", ")):
    print(f"{a:5} and {b:5} {real_cosine(a, b):.2f}")

# %% [markdown]
# *bank* is nearer to each sense than *river* is to *money* (to *river* only just), and nearer to *money* than to *river*, probably because the texts speak of money more often.
# One vector has to serve both senses.
#
# *Stopping point: about 25 minutes.*

# %% [markdown]
# ## 3. A first try at context: the average
#
# A word should know its neighbours.
# The simplest way: replace every row by the average of the phrase.
# That is again *a row times a matrix*, this time with equal numbers in the row.

# %% Vote: after averaging jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
average_vote = predict(
    "Every row becomes the average of its phrase. Which two vectors are now the same?",
    {
        "bank in “river bank” and bank in “money bank”": "They were before. Now each has its neighbour in it.",
        "river and bank in “river bank”": "The same sum with the same numbers, whoever asks.",
        "none": "Each row is the same sum with the same numbers, whoever asks.",
    },
    key="river and bank in “river bank”",
)
average_vote

# %% The average, twice
equal = torch.full((2, 2), 1 / 2)  # every word counts the same
river_average = equal @ E[river_bank]  # (S, S) @ (S, D) -> (S, D)
money_average = equal @ E[money_bank]
assert_close(river_average[1], E[river_bank].mean(dim=0))
print("river bank ->", river_average.tolist())
print("money bank ->", money_average.tolist())

# %% What is behind it: after averaging jupyter={"source_hidden": true} tags=["reveal"]
# Run this cell when you have voted
average_vote.reveal(
    "river and bank in “river bank”" if torch.equal(*river_average) else "none",
    """
Something has been won: *bank* is now [1.5, 0] beside *river* and [0.5, 1] beside *money*.
Same word, two vectors.

But look at the two rows of each result: they are equal.
*river* and *bank* have become the same vector, because every word counts the same, **whoever asks**.
In a phrase of twenty words, "the" would count as much as "river".
""",
)

# %% [markdown]
# So the numbers in that row must not be fixed.
# A word must be able to *ask*, and the others must be able to *answer*, some louder than others.
# How a question and an answer can be made of vectors is the next notebook.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.1.** Write the lookup as a matrix product: `ids` are whole numbers `(S,)`, `E` is `(V, D)`, the result is `(S, D)`.
# No indexing with `E[ids]` this time.
#
# <details><summary>Hint 1: nudge</summary>
# Which row vector picks exactly one row of a table?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Make a one-hot row as long as the vocabulary for each id, stack them to (S, V), and multiply by E. F.one_hot gives whole numbers; a product wants floats.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 1.1 tags=["exercise"]
def my_lookup(ids, E):
    return ...  # your lines here


checks.lookup(my_lookup)


# %% Exercise 1.1, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
def lookup_solution(ids, E):
    one_hot = F.one_hot(ids, num_classes=len(E)).to(E.dtype)  # (S, V)
    return one_hot @ E  # (S, D)


checks.lookup(lookup_solution)

# %% [markdown]
# **Exercise 1.2.** Write the cosine of two vectors `a` and `b`, both `(D,)`, without `F.cosine_similarity`.
#
# <details><summary>Hint 1: nudge</summary>
# The dot product is two lengths times the cosine.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Divide the dot product by both lengths. A length is the root of the sum of squares, or a.norm().
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 1.2 tags=["exercise"]
def my_cosine(a, b):
    return ...  # your lines here


checks.cosine(my_cosine)


# %% Exercise 1.2, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
def cosine_solution(a, b):
    return (a @ b) / (a.norm() * b.norm())


checks.cosine(cosine_solution)

# %% [markdown]
# ## Remember
#
# - An embedding is a row of a table, picked by id: the same row in every sentence.
# - A row times a matrix is a weighted sum of the matrix's rows: one-hot looks up, equal numbers average.
# - Dot products compare directions; the average brings context, but lets nobody ask.
#
# **Next:** [2 · Queries, keys, values](02_queries_keys_values.ipynb)

# %% [markdown] tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **The embedding table is trained like any other parameter.**
# Only the rows that were looked up receive a gradient (which way to nudge a parameter, and how strongly).

# %% Which rows learn tags=["further"]
trainable = nn.Embedding(3, 2)  # random start
trainable(river_bank).sum().backward()
print("can be learned:", trainable.weight.requires_grad)
print("gradient of each row:", trainable.weight.grad.tolist())

# %% [markdown] tags=["further"]
# **Arithmetic with directions.**
# Among the GloVe words recorded here, *king* − *man* + *woman* points nearest to *queen*.
# It is customary to leave out the three words of the question, and that is done here too; without it, the nearest word is *king* itself.

# %% King, man, woman tags=["further"]
asked = encode("king man woman", glove_words)
king, man, woman = glove_vectors[asked]
target = king - man + woman
likeness = F.cosine_similarity(glove_vectors, target[None], dim=1)  # (V,)
print("nearest of all:", glove_words[likeness.argmax()])
likeness[asked] = -1
print(f"nearest other: {glove_words[likeness.argmax()]} {likeness.max():.2f}")

# %% [markdown] tags=["further"]
# **Let the vectors choose the numbers.**
# The average gave all words the same number. The dot products could decide instead: row *i* of X Xᵀ holds those of word *i* with every word.
# **Softmax** makes shares of them: positive, of sum 1, and the larger the product, the larger the share (notebook 3 builds it).
# Then softmax(X Xᵀ) X is again *a row times a matrix*, and nothing in it is learned.
# Below it is done twice with real vectors: once each has length 1, and once they are as they are, the dot products divided by √D (notebook 3 says why).

# %% Attention without parameters tags=["further"]
pulled = {}
for neighbour in ("river", "money"):
    X = glove_vectors[encode(f"{neighbour} bank", glove_words)]  # (S, D) = (2, 50)
    unit = F.normalize(X, dim=1)  # every row of length 1
    for name, rows, scores in (("unit", unit, unit @ unit.T), ("raw", X, X @ X.T / 50**0.5)):
        shares = scores.softmax(dim=1)  # (S, S)
        new_bank = (shares @ rows)[1]  # (D,)
        whom = glove_vectors[encode("river money bank", glove_words)]  # (3, D)
        pulled[name, neighbour] = [shares[1, 1], *F.cosine_similarity(new_bank[None], whom)]
for (name, neighbour), (itself, to_river, to_money, to_bank) in pulled.items():
    print(
        f"{name:4} {neighbour} bank: share of itself {itself:.2f};",
        f"cosine with river {to_river:.2f}, money {to_money:.2f}, the old bank {to_bank:.3f}",
    )

# %% Proof: whom bank is pulled to jupyter={"source_hidden": true} tags=["proof", "further"]
expected = {"river": (0.73, 0.63), "money": (0.44, 0.87)}  # of the new bank with river and money
for neighbour, (to_river, to_money) in expected.items():
    assert abs(pulled["unit", neighbour][1] - to_river) < 0.01
    assert abs(pulled["unit", neighbour][2] - to_money) < 0.01
assert min(pulled["raw", neighbour][3] for neighbour in expected) > 0.996

# %% [markdown] tags=["further"]
# With length 1 *bank* is pulled to *river* or to *money*, whichever stands beside it.
# As they are, it hardly moves: its dot product with itself is far larger than any other, so it keeps nearly everything for itself.
# Whom to look at should not depend on how long a vector happens to be. It will be learned: notebook 2.

# %% [markdown] tags=["further"]
# ### More exercises
#
# **Exercise 1.3, half-filled.** The average of a phrase is *a row times the table*. Write that row.
# `ids` `(S,)` are the phrase, `n_words` is V, the result is `(V,)`. A word that occurs twice counts twice.
# And predict: does such a row know the order of the words?
#
# <details><summary>Hint 1: nudge</summary>
# Each token brings its one-hot row. You have S of them and want one.
# </details>
#
# <details><summary>Hint 2: method</summary>
# The average of E[ids] is the average of one-hot rows times E. Along which axis of (S, V) do the tokens stand?
# </details>
#
# Hint 3 is the folded solution below.

# %% Vote: the order of the words jupyter={"source_hidden": true} tags=["predict", "further"]
# Vote before you unfold: the reasons stand in here
order_vote = predict(
    "Does the average tell “river bank” from “bank river”?",
    {
        "yes, the rows come in order": "The rows of the result are all equal: nothing is left to be in order.",
        "yes, the first word counts more": "Every token counts 1/S, wherever it stands.",
        "no": "A sum does not know in which order its terms came.",
    },
    key="no",
)
order_vote


# %% Exercise 1.3 tags=["exercise", "further"]
def my_average_row(ids, n_words):
    one_hot = F.one_hot(ids, num_classes=n_words).float()  # (S, V): one row for each token
    return one_hot.sum(dim=...) / ...  # (V,): one row for the phrase


checks.average_row(my_average_row)


# %% Exercise 1.3, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def average_row_solution(ids, n_words):
    one_hot = F.one_hot(ids, num_classes=n_words).float()  # (S, V)
    return one_hot.mean(dim=0)  # (V,)


print("that row times the table:", average_row_solution(river_bank, 3) @ E)
checks.average_row(average_row_solution)

# %% What is behind it: the order of the words jupyter={"source_hidden": true} tags=["reveal", "further"]
# Run this cell when you have voted
row, reverse = (average_row_solution(encode(text), 3) for text in ("river bank", "bank river"))
order_vote.reveal("no" if torch.equal(row, reverse) else "yes, the first word counts more")

# %% [markdown] tags=["further"]
# **Exercise 1.4, make the vector.** Long is not near.
# Give *money* a new embedding: its dot product with *bank* [1, 0] is larger than that of *river* [2, 0], although its cosine with *bank* is at most 0.9.
#
# <details><summary>Hint 1: nudge</summary>
# What does the second number of money do to its dot product with [1, 0]? And to its length?
# </details>
#
# <details><summary>Hint 2: method</summary>
# With [1, 0] the dot product is the first number alone: make it larger than 2. Then turn the vector away with the second, until the cosine is small enough.
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 1.4 tags=["exercise", "further"]
my_money = ...  # two numbers: torch.tensor([1.0, 1.0]) is a start

checks.long_not_near(my_money)

# %% Exercise 1.4, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
money_solution = torch.tensor([3.0, 3.0])

checks.long_not_near(money_solution)

# %% [markdown] tags=["further"]
# **Exercise 1.5, find the bugs.** `with_two_bugs(i, E)` is to return the id of the word most like word `i`: the largest cosine, word `i` itself left out.
# See what it says for *river* (id 0) in our table, find both bugs, and write it anew.
#
# <details><summary>Hint 1: nudge</summary>
# Which word is most like river, whatever the table holds? And what does a dot product count besides the angle?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Compare cosines (exercise 1.2, for all rows at once), and make the word's own cosine so small that it cannot win.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 1.5 tags=["exercise", "further"]
def with_two_bugs(i, E):
    return (E @ E[i]).argmax()


def my_nearest(i, E):
    return ...  # the same, mended


checks.nearest(my_nearest)


# %% Exercise 1.5, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def nearest_solution(i, E):
    alike = F.cosine_similarity(E, E[i][None], dim=1)  # (V,)
    alike[i] = -torch.inf
    return alike.argmax()


print("with both bugs, the word most like river is", tokens[with_two_bugs(0, E)])
checks.nearest(nearest_solution)

# %% [markdown] tags=["further"]
# **Exercise 1.6, build it.** From ids to vectors that know their phrase and stay themselves:
# each word keeps the part `keep` (from 0 to 1) of its own embedding, the rest is the average of its phrase.
# `ids` is `(S,)`, `E` is `(V, D)`, the result `(S, D)`.
# Then look: can *river* be told from *bank* again? And *bank* in "river bank" from *bank* in "bank river"?
#
# <details><summary>Hint 1: nudge</summary>
# Two parts that add up to 1, as with two liquids.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Look the phrase up first, X = E[ids]. The average is X.mean(dim=0), one row, which is added to every row by itself.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 1.6 tags=["exercise", "further"]
def my_mix(ids, E, keep):
    return ...  # your lines here


checks.mix_in_average(my_mix)


# %% Exercise 1.6, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def mix_solution(ids, E, keep):
    X = E[ids]  # (S, D)
    return keep * X + (1 - keep) * X.mean(dim=0)  # (S, D)


mixed, turned = (mix_solution(encode(text), E, 0.5) for text in ("river bank", "bank river"))
print("river", mixed[0].tolist(), " bank", mixed[1].tolist())
print("bank is the same, first or last:", torch.equal(mixed[1], turned[0]))
checks.mix_in_average(mix_solution)

# %% [markdown] tags=["further"]
# Every word can be told apart again, but all of them still hear the same average, and the order is still unknown (notebook 5).
#
# **Further reading.** Mikolov et al. 2013, *Efficient Estimation of Word Representations in Vector Space* (word2vec, skip-gram);
# Pennington, Socher and Manning 2014, *GloVe: Global Vectors for Word Representation*.

# %% My progress tags=["progress"]
progress(checks.exercises("01"), globals())
