# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
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
# **You need** some Python (functions, lists, loops) and to have multiplied two matrices once.
# You need no PyTorch and no machine learning: short boxes explain each idea and each call where it is first used.
#
# **Takes** about 40 minutes, and four more for the questions at the start; there are stopping points on the way.
#
# Press *Shift + Enter* to run a cell, and run every cell from the top.
# You can change any number in any cell: *Kernel → Restart* fixes anything you break.

# %% [markdown] slideshow={"slide_type": "skip"}
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

from attnlab import checks
from attnlab.checks import assert_close
from attnlab.data import WORD_COLOURS, corpus, embedding_table, encode, glove
from attnlab.lab import Explorer, matrix, plots, predict, progress, slider
from attnlab.lab.weighted_sum import WeightedSum

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Before you start: eight questions
#
# Most of their words will be new, and that is as it should be.
# The same questions come back at the end of notebook 6, where your two answers stand side by side.
# There is no grade, and nothing is revealed now: four minutes, and guesses are welcome.

# %% The eight questions slideshow={"slide_type": "subslide"}
checks.eight_questions.ask()

# %% Your eight letters slideshow={"slide_type": "subslide"}
my_first_answers = "????????"  # a letter for each question in turn; leave ? if you have no idea

checks.eight_questions.note(my_first_answers)

# %% [markdown] slideshow={"slide_type": "slide"}
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
#
# > **Box: tensor.** A *tensor* is PyTorch's array of numbers: a vector has one axis, a matrix two.
# > Its `.shape` says how long each axis is; `.tolist()` makes a Python list of it.
#
# > **Box: indexing with ids.** If E is the table, `E[2]` is its row 2.
# > `E[ids]`, with a tensor of several ids, takes one row for each and puts them below one another.
#
# In the next cell `encode` turns a phrase into its ids.

# %% Vote: two banks jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
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

# %% Two phrases, looked up slideshow={"slide_type": "subslide"}
E = embedding_table()  # (V, D) = (3, 2)
river_bank = encode("river bank")  # ids (S,)
money_bank = encode("money bank")
print("river bank", river_bank.tolist(), "->", E[river_bank].tolist())
print("money bank", money_bank.tolist(), "->", E[money_bank].tolist())

# %% What is behind it: two banks jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
same = torch.equal(E[river_bank][1], E[money_bank][1])
banks_vote.reveal(
    "[1, 0] both times" if same else "one near river, one near money",
    """
The table is asked for "row 2" and has no way to know which words stand beside it.
Such an embedding is called **static**.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The same lookup three times
#
# Looking up a row can also be written as a matrix product.
# A **one-hot** row is zero everywhere except for a single 1, at the place of the id.
#
# > A row times a matrix is a weighted sum of the matrix's rows.
# > With a one-hot row, one of them counts, times 1, and the others not at all.
#
# Keep that sentence: attention will be the same sum with other numbers in the row.

# %% The sentence as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
words = ["river", "money", "bank"]
picture, axes = plots.panels(1, width=9.5, height=2.7)
names = ("one-hot row", "table E", "its rows, scaled", "sum")
WeightedSum(axes, words, [0, 0, 1], E, names=names, colours=WORD_COLOURS)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# Each cell holds a number, and a bar of that height in the colour of its word.
# The row says how much of each word is taken: here nothing of *river* and *money*, and *bank* once.
# The same picture comes back in every notebook, with other numbers in the row.
#
# > **Box: `torch.stack`.** It puts tensors of the same shape below one another, along a new first axis:
# > two vectors with D numbers become a matrix of shape (2, D).
#
# > **Box: `F.one_hot`.** It makes the one-hot row of each id.
# > They are whole numbers; `.float()` turns them into decimal numbers, because `@`, the matrix product, wants two tensors of the same kind.
#
# PyTorch's `nn.Embedding` is this table, with rows that are **parameters**: numbers that training adjusts.
# The cell looks the phrase up in three ways, and `assert_close` would stop the notebook if two results differed.

# %% Loop, matrix, PyTorch slideshow={"slide_type": "subslide"}
looked_up = torch.stack([E[i] for i in river_bank])  # loop over tokens: (S, D)
one_hot = F.one_hot(river_bank, num_classes=3).float()  # (S, V)
X = one_hot @ E  # (S, V) @ (V, D) -> (S, D)
table = nn.Embedding.from_pretrained(E, freeze=False)
assert_close(looked_up, X)
assert_close(table(river_bank), X)
print("one-hot", one_hot.tolist())
print("X      ", X.tolist())

# %% [markdown] slideshow={"slide_type": "subslide"}
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
# Real models have the same axes, only longer.

# %% The shape of X slideshow={"slide_type": "subslide"}
batch = torch.stack([E[river_bank], E[money_bank]])  # (B, S, D)
S, D = 2048, 4096  # in a real model
print("X:", tuple(X.shape))
print("a batch of two phrases:", tuple(batch.shape))
print("2,048 tokens at width 4,096:", (S, D), "=", f"{S * D:,} numbers")

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Not only banks
#
# A *mole* can sit on a face, and a chemist counts molecules in moles.
# (The example is 3Blue1Brown's; the link is under *Further reading*.)
# Here is a table with random rows for a few more words.
#
# > **Box: random numbers that stay the same.** `torch.randn` draws random numbers around 0.
# > A *generator* is where they come from; with a *seed*, `manual_seed(0)`, it starts at the same place each time, so you and we see the same rows.

# %% One row for two moles slideshow={"slide_type": "subslide"}
vocabulary = tuple("a carbon dioxide face his mole of on the".split())
generator = torch.Generator().manual_seed(0)
random_table = torch.randn(len(vocabulary), 4, generator=generator)  # (V, D) = (9, 4)
skin = random_table[encode("the mole on his face", vocabulary)]  # (5, 4)
chemistry = random_table[encode("a mole of carbon dioxide", vocabulary)]  # (5, 4)
print("mole has the same row in both:", torch.equal(skin[1], chemistry[1]))
print("the shapes are", tuple(skin.shape), "and", tuple(chemistry.shape))

# %% [markdown] slideshow={"slide_type": "subslide"}
# A row of this table is called an **input embedding**: one per *id*, learned like any other parameter, the same in every sentence.
# What we want is a vector per *occurrence*, which knows the words around it.
# Making the second out of the first is what attention is for, and what this course builds up to.
#
# *Stopping point: about 11 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Directions carry meaning
#
# Why vectors, and not just ids?
# Because two vectors can be compared.
#
# > **Box: dot product.** Multiply entry by entry and add: [3, 1] · [1, 2] = 3·1 + 1·2 = 5.
# > It is large when two vectors point the same way, 0 when they are at right angles, negative when they point apart.
# > In PyTorch it is `a @ b`.
#
# > **Box: length, or norm.** The length of a vector is the root of the sum of its squares: [3, 4] has length 5.
# > PyTorch calls it the *norm*: `a.norm()`. With `dim=1` each row of a matrix gets its own.
#
# The dot product is the two lengths times the cosine of the angle between the vectors.
# Dividing by both lengths leaves the **cosine**: 1 for the same direction, 0 for a right angle, −1 for opposite directions.
# So the dot product counts length *and* angle, the cosine only the angle.

# %% Vote: the larger dot product jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
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

# %% [markdown] slideshow={"slide_type": "subslide"}
# All dot products at once are a table, and so are all cosines.
#
# > **Box: transpose.** `E.T` is E with rows and columns exchanged.
# > So E @ E.T multiplies every row of E by every row of E.
#
# > **Box: broadcasting.** `lengths[:, None]` writes the three lengths as a column, `lengths[None, :]` as a row.
# > Where a column meets a row, PyTorch repeats both to a 3 × 3 table, and the product holds each length times each other.

# %% Dot products and cosines slideshow={"slide_type": "subslide"}
river, money, bank = E
dots = E @ E.T  # (3, D) @ (D, 3) -> (3, 3): every word with every word
lengths = E.norm(dim=1)  # (3,)
cosines = dots / (lengths[:, None] * lengths[None, :])  # (3, 3) / ((3, 1) * (1, 3)) -> (3, 3)
assert_close(cosines[0, 2], F.cosine_similarity(river, bank, dim=0))

# %% Dot products and cosines as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
tokens = ["river", "money", "bank"]
picture, (left, middle, right) = plots.panels(3)
plots.vectors(left, tokens, E, "Three embeddings", colours=WORD_COLOURS)
plots.heatmap(middle, tokens, tokens, dots, "scores", "Dot products", ("", ""))
plots.heatmap(right, tokens, tokens, cosines, "values", "Cosines", ("", ""), limit=1.0)
picture

# %% What is behind it: the larger dot product jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
dots_vote.reveal(
    "with river" if bank @ river > bank @ bank else "with itself",
    """
bank · river = 2 is more than bank · bank = 1, although the direction is the same (cosine 1): *river* is simply longer, twice *bank*.
*money* is at right angles to both, so its dot product with *bank* is 0.
""",
)

# %% Proof: the dot products in the text jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert river @ bank == 2 and bank @ bank == 1 and bank @ money == 0
assert torch.tensor([3, 1]) @ torch.tensor([1, 2]) == 5  # the box

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Move them yourself

# %% Explorer: three vectors in the plane jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
tokens = ["river", "money", "bank"]
picture, (left, middle, right) = plots.panels(3, height=3)
arrows = plots.vectors(left, tokens, title="Vectors", limits=(-3, 3, -3, 3), colours=WORD_COLOURS)
dot_grid = plots.heatmap(middle, tokens, tokens, None, "scores", "Dot products", ("", ""))
cos_grid = plots.heatmap(right, tokens, tokens, None, "values", "Cosines", ("", ""), limit=1.0)


def show(vectors):
    lengths = vectors.norm(dim=1).clamp(min=1e-8)  # (3,); a vector of length 0 has cosine 0
    dots = vectors @ vectors.T  # (3, 3)
    cosines = dots / (lengths[:, None] * lengths[None, :])  # (3, 3)
    arrows.update(vectors)
    dot_grid.update(dots)
    cos_grid.update(cosines)
    river, money, _ = cosines[2].tolist()
    same = abs(river - money) < 0.005 and vectors[2].norm() > 0
    return f"bank has cosine **{river:.2f}** with river and **{money:.2f}** with money.", same


plane_explorer = Explorer(
    picture,
    show,
    goal="Turn bank until it has the same angle to river and to money: both cosines the same.",
    vectors=matrix(3, 2, embedding_table(), label="Embeddings", row_names=tokens),
)
plane_explorer

# %% Stills of the explorer: three vectors in the plane jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
plane_explorer.stills({"vectors": [[2, 0], [0, 2], [1, 1]]}, {"vectors": [[2, 0], [0, 2], [0, 1]]})

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Where do the numbers come from?
#
# Nobody writes them down.
# They are parameters: they start at random and are nudged until a prediction gets better.
# The recipe that made such vectors famous is **word2vec** ([Mikolov et al. 2013](https://arxiv.org/abs/1301.3781)).
# Its **skip-gram** variant lets each word predict the words around it.
# The folded cell does that, in its simplest form, on 4,000 generated sentences such as "a fisherman saw that small bank flood near the shore".
# Its picture compares the directions of seven words (after subtracting the average of all words).

# %% Skip-gram: the result (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
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

# %% Proof: what skip-gram found jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert min(river_side, money_side) > across + 0.1
assert len(sentences) == 4_000

# %% [markdown] slideshow={"slide_type": "subslide"}
# Words used alike have come to point alike: the river words form one block, the money words another.
# And *bank*, which has only one row for both uses, has been pulled **between** them.
#
# The same is true of vectors trained on billions of real words.
# These are from GloVe ([Pennington et al. 2014](https://aclanthology.org/D14-1162/)), a well-known set with 50 numbers per word.

# %% Real vectors slideshow={"slide_type": "subslide"}
glove_words, glove_vectors = glove()  # (V, 50)


def real_cosine(a, b):
    rows = glove_vectors[encode(f"{a} {b}", glove_words)]
    return F.cosine_similarity(rows[0], rows[1], dim=0).item()


pairs = "bank money, bank loan, bank river, river shore, river money"
for a, b in (pair.split() for pair in pairs.split(", ")):
    print(f"{a:5} and {b:5} {real_cosine(a, b):.2f}")

# %% [markdown] slideshow={"slide_type": "subslide"}
# *bank* is nearer to each sense than *river* is to *money* (to *river* only just), and nearer to *money* than to *river*, probably because the texts speak of money more often.
# One vector has to serve both senses.
#
# *Stopping point: about 22 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. A first try at context: the average
#
# A word should know its neighbours.
# The simplest way: replace every row by the average of the phrase.
# That is again *a row times a matrix*, this time with equal numbers in the row.
#
# > **Box: `mean(dim=0)`.** `dim` is the axis along which a call works, counted from 0, and that axis disappears.
# > `X.mean(dim=0)` averages over the rows: from (S, D) one row (D,) is left.
#
# In the next cell `torch.full((2, 2), 1 / 2)` is a 2 × 2 matrix in which every number is ½.

# %% Vote: after averaging jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
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

# %% The average, twice slideshow={"slide_type": "subslide"}
equal = torch.full((2, 2), 1 / 2)  # every word counts the same
river_average = equal @ E[river_bank]  # (S, S) @ (S, D) -> (S, D)
money_average = equal @ E[money_bank]
assert_close(river_average[1], E[river_bank].mean(dim=0))
print("river bank ->", river_average.tolist())
print("money bank ->", money_average.tolist())

# %% What is behind it: after averaging jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
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

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Choose the numbers yourself
#
# Equal numbers are only one choice.
# Here they are in your hands: the row starts as the average of "river bank".

# %% Explorer: a row of numbers of your own jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
words = ["river", "money", "bank"]
picture, axes = plots.panels(1, width=9.5, height=2.7)
names = ("a row", "table E", "its rows, scaled", "sum")
mixed = WeightedSum(axes, words, [0, 0, 0], E, "", names, (0, 3), WORD_COLOURS)


def show(river, money, bank):
    row = torch.tensor([river, money, bank])
    mixed.update(row, E)
    x, y = (row @ E).tolist()  # (3,) @ (3, 2) -> (2,)
    reached = abs(x - 1) < 0.005 and abs(y - 1) < 0.005 and river == 0
    taken = f"{river:.2f} × river + {money:.2f} × money + {bank:.2f} × bank"
    return f"{taken} = **[{x:.2f}, {y:.2f}]**", reached


mix_explorer = Explorer(
    picture,
    show,
    goal="Make the sum [1, 1] without using river.",
    river=slider(0.0, 1.0, 0.5),
    money=slider(0.0, 1.0, 0.0),
    bank=slider(0.0, 1.0, 0.5),
)
mix_explorer

# %% Stills of the explorer: a row of numbers of your own jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
by_river = {"river": 0.5, "money": 0.5, "bank": 0.0}  # the same sum
mix_explorer.stills(by_river, {"river": 0.0, "money": 0.5, "bank": 1.0})

# %% [markdown] slideshow={"slide_type": "subslide"}
# So far *you* chose the numbers, and for every phrase anew.
# In a language model nobody sits at the sliders: the words themselves must decide.
# A word must be able to *ask*, and the others must be able to *answer*, some louder than others.
# How a question and an answer can be made of vectors is the next notebook.
#
# *Stopping point: about 30 minutes.*

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# Put your answer in place of the dots and run the cell: it says whether it is right, or which mistake it looks like.
#
# **Exercise 1.1.** Write the lookup as a matrix product: `ids` are whole numbers `(S,)`, `E` is `(V, D)`, the result is `(S, D)`.
# (`E[ids]` gives the same numbers and passes, too; but the product is what attention will use.)
#
# <details><summary>Hint 1: nudge</summary>
# Which row vector picks exactly one row of a table?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# A table with the three rows [5, 6], [7, 8], [9, 0] and the ids 1, 1: the one-hot rows are [0, 1, 0] and [0, 1, 0], a (2, 3) matrix, and <code>F.one_hot(torch.tensor([1, 1]), num_classes=3).float()</code> makes it. Times the table it gives [7, 8] twice. In the exercise, the number of rows of the table is <code>len(E)</code>.
# </details>


# %% Exercise 1.1 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_lookup(ids, E):
    return ...  # your lines here


checks.lookup(my_lookup)


# %% Exercise 1.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def lookup_solution(ids, E):
    one_hot = F.one_hot(ids, num_classes=len(E)).to(E.dtype)  # (S, V)
    return one_hot @ E  # (S, D)


checks.lookup(lookup_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 1.2.** Write the cosine of two vectors `a` and `b`, both `(D,)`, without `F.cosine_similarity`.
#
# <details><summary>Hint 1: nudge</summary>
# The dot product is two lengths times the cosine.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# For [3, 4] and [0, 2] the dot product is 8 and the lengths are 5 and 2, so the cosine is 8 / (5 · 2) = 4/5. The division by the first length alone is <code>(a @ b) / a.norm()</code>.
# </details>


# %% Exercise 1.2 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_cosine(a, b):
    return ...  # your lines here


checks.cosine(my_cosine)


# %% Exercise 1.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def cosine_solution(a, b):
    return (a @ b) / (a.norm() * b.norm())


checks.cosine(cosine_solution)

# %% Proof: the worked hints jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
hint = torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 0.0]])
one, two, three = (torch.tensor(v) for v in ([3.0, 4.0], [0.0, 2.0], [8.0, 6.0]))
assert_close(F.one_hot(torch.tensor([1, 1]), num_classes=3).float() @ hint, hint[[1, 1]])
assert (one @ two, one.norm(), two.norm()) == (8, 5, 2) and three.norm() == 10
row = F.one_hot(torch.tensor([1, 1, 0]), num_classes=4).float().sum(dim=0) / 3
assert_close(row, torch.tensor([1 / 3, 2 / 3, 0, 0]))
half = torch.tensor([[4.0, 0.0], [0.0, 2.0]])
assert (half / 2 + half.mean(dim=0) / 2).tolist() == [[3, 0.5], [1, 1.5]]

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - An embedding is a row of a table, picked by id: the same row in every sentence.
# - A row times a matrix is a weighted sum of the matrix's rows: one-hot looks up, equal numbers average.
# - Dot products compare directions; the average brings context, but lets nobody ask.
#
# **Next:** [2 · Queries, keys, values](02_queries_keys_values.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **The embedding table is trained like any other parameter.**
# Only the rows that were looked up receive a gradient.
#
# > **Box: gradient.** How much would a number change if a parameter grew a little? The answers for all parameters are its *gradient*.
# > `number.backward()` computes them, and each parameter keeps its own in `.grad`; training then nudges the parameters accordingly.

# %% Which rows learn slideshow={"slide_type": "skip"} tags=["further"]
trainable = nn.Embedding(3, 2)  # random start
trainable(river_bank).sum().backward()
print("can be learned:", trainable.weight.requires_grad)
print("gradient of each row:", trainable.weight.grad.tolist())

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Arithmetic with directions.**
# Among the GloVe words recorded here, *king* − *man* + *woman* points nearest to *queen*.
# It is customary to leave out the three words of the question, and that is done here, too; otherwise the nearest word is *king* itself.

# %% King, man, woman slideshow={"slide_type": "skip"} tags=["further"]
asked = encode("king man woman", glove_words)
king, man, woman = glove_vectors[asked]
target = king - man + woman
likeness = F.cosine_similarity(glove_vectors, target[None], dim=1)  # (V,)
print("nearest of all:", glove_words[likeness.argmax()])
likeness[asked] = -1
print(f"nearest other: {glove_words[likeness.argmax()]} {likeness.max():.2f}")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Let the vectors choose the numbers.**
# The average gave all words the same number. The dot products could decide instead: row *i* of X Xᵀ holds those of word *i* with every word.
# **Softmax** makes shares of them: positive, of sum 1, and the larger the product, the larger the share (notebook 3 builds it).
# Then softmax(X Xᵀ) X is again *a row times a matrix*, and nothing in it is learned.
# Below it is done twice with real vectors: once each has length 1, and once they are as they are, the dot products divided by √D (notebook 3 says why).

# %% Attention without parameters slideshow={"slide_type": "skip"} tags=["further"]
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

# %% Proof: whom bank is pulled to jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
expected = {"river": (0.73, 0.63), "money": (0.44, 0.87)}  # of the new bank with river and money
for neighbour, (to_river, to_money) in expected.items():
    assert abs(pulled["unit", neighbour][1] - to_river) < 0.01
    assert abs(pulled["unit", neighbour][2] - to_money) < 0.01
assert min(pulled["raw", neighbour][3] for neighbour in expected) > 0.996

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# With length 1 *bank* is pulled to *river* or to *money*, whichever stands beside it.
# As they are, it hardly moves: its dot product with itself is far larger than any other, so it keeps nearly everything for itself.
# Whom to look at should not depend on how long a vector happens to be. It will be learned: notebook 2.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
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
# <details><summary>Hint 2: a similar case, worked</summary>
# A phrase with the ids 1, 1, 0 and four words in the table: the one-hot rows are [0, 1, 0, 0] twice and [1, 0, 0, 0]. Added along axis 0, the axis of the tokens, they make [1, 2, 0, 0]; divided by the three tokens, [1/3, 2/3, 0, 0].
# </details>

# %% Vote: the order of the words jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["predict", "further"]
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


# %% Exercise 1.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_average_row(ids, n_words):
    one_hot = F.one_hot(ids, num_classes=n_words).float()  # (S, V): one row for each token
    return one_hot.sum(dim=...) / ...  # (V,): one row for the phrase


checks.average_row(my_average_row)


# %% Exercise 1.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def average_row_solution(ids, n_words):
    one_hot = F.one_hot(ids, num_classes=n_words).float()  # (S, V)
    return one_hot.mean(dim=0)  # (V,)


print("that row times the table:", average_row_solution(river_bank, 3) @ E)
checks.average_row(average_row_solution)

# %% What is behind it: the order of the words jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["reveal", "further"]
# Run this cell when you have voted
row, reverse = (average_row_solution(encode(text), 3) for text in ("river bank", "bank river"))
order_vote.reveal("no" if torch.equal(row, reverse) else "yes, the first word counts more")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 1.4, make the vector.** Long is not near.
# Give *money* a new embedding: its dot product with *bank* [1, 0] is larger than that of *river* [2, 0], although its cosine with *bank* is at most 0.9.
#
# <details><summary>Hint 1: nudge</summary>
# What does the second number of money do to its dot product with [1, 0]? And to its length?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# A vector whose dot product with [0, 1] is 6, and whose cosine with it is small: the dot product is the second number alone, so that is 6, and the first turns the vector away. [8, 6] has length 10 and cosine 6/10.
# </details>

# %% Exercise 1.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_money = ...  # two numbers: torch.tensor([1.0, 1.0]) is a start

checks.long_not_near(my_money)

# %% Exercise 1.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
money_solution = torch.tensor([3.0, 3.0])

checks.long_not_near(money_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 1.5, find the bugs.** `with_two_bugs(i, E)` is to return the id of the word most like word `i`: the largest cosine, word `i` itself left out.
# See what it says for *river* (id 0) in our table, find both bugs, and write it anew.
#
# <details><summary>Hint 1: nudge</summary>
# Which word is most like river, whatever the table holds? And what does a dot product count besides the angle?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Say word 0 has the cosines [1, 1/5, 4/5] with the three words. With its own one overwritten, <code>alike[0] = -torch.inf</code>, they are [−∞, 1/5, 4/5], and <code>alike.argmax()</code>, the place of the largest, is 2. <code>F.cosine_similarity(E, E[i][None], dim=1)</code> gives all cosines at once.
# </details>


# %% Exercise 1.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def with_two_bugs(i, E):
    return (E @ E[i]).argmax()


def my_nearest(i, E):
    return ...  # the same, mended


checks.nearest(my_nearest)


# %% Exercise 1.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def nearest_solution(i, E):
    alike = F.cosine_similarity(E, E[i][None], dim=1)  # (V,)
    alike[i] = -torch.inf
    return alike.argmax()


print("with both bugs, the word most like river is", tokens[with_two_bugs(0, E)])
checks.nearest(nearest_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 1.6, build it.** From ids to vectors that know their phrase and stay themselves:
# each word keeps the part `keep` (from 0 to 1) of its own embedding, the rest is the average of its phrase.
# `ids` is `(S,)`, `E` is `(V, D)`, the result `(S, D)`.
# Can *river* be told from *bank* again? And *bank* in "river bank" from *bank* in "bank river"? The solution prints both.
#
# <details><summary>Hint 1: nudge</summary>
# Two parts that add up to 1, as with two liquids.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# For X with the rows [4, 0] and [0, 2] and keep = 1/2: the average is [2, 1], so the first row becomes 1/2 · [4, 0] + 1/2 · [2, 1] = [3, 1/2] and the second 1/2 · [0, 2] + 1/2 · [2, 1] = [1, 3/2]. In <code>keep * X + X.mean(dim=0)</code> the average, one row, is added to every row: that is broadcasting.
# </details>


# %% Exercise 1.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_mix(ids, E, keep):
    return ...  # your lines here


checks.mix_in_average(my_mix)


# %% Exercise 1.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def mix_solution(ids, E, keep):
    X = E[ids]  # (S, D)
    return keep * X + (1 - keep) * X.mean(dim=0)  # (S, D)


mixed, turned = (mix_solution(encode(text), E, 0.5) for text in ("river bank", "bank river"))
print("river", mixed[0].tolist(), " bank", mixed[1].tolist())
print("bank is the same, first or last:", torch.equal(mixed[1], turned[0]))
checks.mix_in_average(mix_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# Every word can be told apart again, but all of them still hear the same average, and the order is still unknown (notebook 5).
#
# ### Further reading
#
# - Mikolov et al. 2013, [*Efficient Estimation of Word Representations in Vector Space*](https://arxiv.org/abs/1301.3781): word2vec and skip-gram.
# - Pennington, Socher and Manning 2014, [*GloVe: Global Vectors for Word Representation*](https://aclanthology.org/D14-1162/).
# - 3Blue1Brown, [*Attention in transformers, step-by-step*](https://www.3blue1brown.com/lessons/attention): the video with the *mole* on a face and the mole of carbon dioxide.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("01"), globals())
