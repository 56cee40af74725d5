# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # 5 · Heads and positions
#
# **The question.** One attention step gives each word one pattern of attention weights.
# How can a word look at several things at once, how does it know what came first, and how does a model grow out of that?
#
# **Afterwards you can**
# - follow the shapes through several heads, and spot the classic mistake;
# - say when attention knows the order of the words, and explain RoPE with a clock hand;
# - say that you wrote a transformer: multi-head attention, norm, MLP, block and stack, each equal to the package's.
#
# **Builds on** [notebook 4](04_softmax_and_values.ipynb): attention(Q, K, V) = softmax(Q Kᵀ / √d_k + M) V, and each row of attention weights sums to 1.
# You need to have seen a Python class; what PyTorch adds stands in a box.
# **Takes** about 59 minutes; there are stopping points on the way.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Two questions from before.** Answer in your head, then unfold.
#
# <details><summary>Are attention weights learned?</summary>
# No. They are computed anew for every input. Learned are the parameters W_Q, W_K, W_V (and, below, W_O).
# </details>
#
# <details><summary>A word has a weight near 1 on another. Does that other word's value matter?</summary>
# Yes: the output is weight times value. A weight near 1 on a value of zero carries nothing.
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
from torch import nn

from attnlab import (
    MultiHeadAttention,
    TinyTransformer,
    attention,
    causal_mask,
    checks,
    merge_heads,
    rope,
    sinusoidal_positions,
    split_heads,
)
from attnlab.checks import assert_close
from attnlab.data import read_sentence, recorded_attention, recorded_mole, recorded_positions
from attnlab.lab import Explorer, choice, plots, predict, progress, slider
from attnlab.lab.weighted_sum import WeightedSum
from attnlab.model import Block, rms_norm, swiglu
from attnlab.training import seeded

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)


def shape(x):
    return str(tuple(x.shape)).replace(" ", "")


# %% [markdown] slideshow={"slide_type": "slide"}
# ## 1. Several heads
#
# In "the dog that bit the man slept", the word *slept* may want its subject, its tense and its neighbour, all at once.
# One softmax gives one row of attention weights.
# So a model runs several smaller attentions side by side, called **heads** ([Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)), each with its own W_Q, W_K and W_V.
#
# > **Box: batch, and a seeded generator.** A batch is B sentences at once: one more axis in front. A `torch.Generator` with a seed gives the same random numbers in every run.

# %% One head slideshow={"slide_type": "subslide"}
generator = torch.Generator().manual_seed(0)
X = torch.randn(2, 3, 8, generator=generator)  # (B, S, D)
W_Q, W_K, W_V, W_O = torch.randn(4, 8, 8, generator=generator) / 8**0.5  # each (D, D)
Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # (B, S, D) each
steps = attention(Q, K, V)
print("X, Q, K, V", shape(Q), " scores, weights", shape(steps.weights))
print("output", shape(steps.output))

# %% Vote: what do the heads share out? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
shared_vote = predict(
    "Two heads instead of one, at the same width D. What is shared out between them?",
    {
        "the words: each sees half of the sentence": "Look at the shape of the attention weights: every head has all S keys.",
        "the columns of Q, K and V": "Each head gets its own columns, of every token.",
        "nothing: each has D columns, and parameters double": "Count W_Q: it has as many columns as before.",
    },
    key="the columns of Q, K and V",
)
shared_vote

# %% Two heads: loop, then all at once slideshow={"slide_type": "subslide"}
outputs = []
for columns in (slice(0, 4), slice(4, 8)):  # one head at a time
    outputs.append(attention(Q[..., columns], K[..., columns], V[..., columns]).output)  # (B, S, 4)
looped = torch.cat(outputs, dim=-1) @ W_O  # (B, S, D)

q, k, v = (
    x.reshape(2, 3, 2, 4).transpose(1, 2) for x in (Q, K, V)
)  # (B, S, H, d_k) -> (B, H, S, d_k)
steps = attention(q, k, v)  # weights (B, H, S, S), output (B, H, S, d_v)
merged = steps.output.transpose(1, 2).reshape(2, 3, 8)  # (B, S, H, d_v) -> (B, S, D)
assert_close(merged @ W_O, looped)

assert_close(split_heads(Q, 2), q)  # the package does the same
assert_close(merge_heads(steps.output), merged)
print("q", shape(q), " weights", shape(steps.weights), " output", shape(merged @ W_O))
own = 3 * W_Q[:, :4].numel()  # a head's own part of W_Q, W_K and W_V
print("parameters: one head", 4 * W_Q.numel(), " two heads", 2 * own + W_O.numel())

# %% What is behind it: what the heads share out jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
shared_vote.reveal(
    "the columns of Q, K and V"
    if 2 * own + W_O.numel() == 4 * W_Q.numel()
    else "nothing: each has D columns, and parameters double",
    """
Two heads share the width: the first gets columns 0 to 3 of Q, K and V, the second gets columns 4 to 7.
(Columns 0 to 3 of Q are X times columns 0 to 3 of W_Q: those are the head's own W_Q.)
Each is an attention of its own, with d_k = 4.
The outputs are laid side by side again and mixed by one more learned matrix, **W_O**.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: reshape and transpose.** `reshape(2, 3, 2, 4)` cuts each row of 8 numbers into 2 pieces of 4 and moves nothing. `transpose(1, 2)` swaps two axes. `cat` joins tensors along an axis that is there, `stack` along a new one.
#
# Every head sees **all tokens**, through its own projection: heads divide the *width*, not the sentence.
# The new matrix is W_O.
# W_Q, W_K and W_V have the same size for any number of heads, and so has W_O; a single head is given one here, too, so that the count is fair.
# That H heads of width d_k fill the width, H · d_k = D, is a convention of the first transformer and no law; here the width must be divisible: 768 = 12 × 64.
#
# Inside each head it is the same sum as always: a row (of attention weights) times a matrix (of values) is a weighted sum of its rows.

# %% One head's sum as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=9.5, height=2.7)
WeightedSum(
    axes,
    ["t0", "t1", "t2"],
    steps.weights[0, 0, 2],
    v[0, 0],
    "Head 0: the last of three tokens mixes the values",
    ("attention weights", "values of head 0", "values, scaled", "output of head 0"),
    limits=(-1.5, 1.5),
)
picture

# %% Proof: every head has all the keys jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert steps.weights.shape[-1] == 3

# %% The path of shapes through three heads jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
x = torch.randn(2, 5, 12, generator=generator)
module = seeded(lambda: MultiHeadAttention(12, n_heads=3), 0)
q, k, v = (split_heads(w(x), 3) for w in (module.w_q, module.w_k, module.w_v))  # (B, H, S, d_k)
per_head = attention(q, k, v)  # output (B, H, S, d_v)
output = module.w_o(merge_heads(per_head.output))  # (B, S, D)
assert_close(output, module(x).output)
path = [x, q, per_head.weights, per_head.output, output]
names = ["X", "Q, K, V\nin heads", "scores,\nweights", "output\nper head", "merged,\ntimes W_O"]
picture, axes = plots.panels(1, width=9.5, height=1.5)
boxes = [(1.25 * i, 0, f"{name}\n{shape(t)}") for i, (name, t) in enumerate(zip(names, path))]
plots.flow(axes, boxes, [(i, i + 1) for i in range(4)], "Through three heads", size=(1.0, 1.0))
one_head = seeded(lambda: MultiHeadAttention(12, n_heads=1), 0)
count = [sum(p.numel() for p in m.parameters()) for m in (one_head, module)]
print("parameters with one head and with three:", count)
print("width 768 in 12 heads: each is", 768 // 12, "wide")
picture

# %% Proof: as many parameters with one head as with three jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert count[0] == count[1]

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The classic mistake
#
# To bring (B, S, D) to (B, H, S, d_k), split the last axis, *then* swap axes.
# A single `view` to the final shape gives the right shape and the wrong numbers: it mixes tokens.

# %% Right shape, wrong numbers slideshow={"slide_type": "subslide"}
numbers = torch.arange(12.0).reshape(1, 3, 4)  # (B, S, D): token 0 is 0..3, token 1 is 4..7
right = numbers.reshape(1, 3, 2, 2).transpose(1, 2)  # (B, H, S, d_k)
wrong = numbers.view(1, 2, 3, 2)
print("head 0, right:", right[0, 0].tolist())
print("head 0, wrong:", wrong[0, 0].tolist())

# %% Proof: the same shape, other numbers jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert right.shape == wrong.shape and not torch.equal(right, wrong)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Head 0 should have one row per token, 0 1, 4 5, 8 9. In the wrong one, the rows 0 1 and 2 3 both come from token 0.
#
# *Stopping point: about 9 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Who bites whom?
#
# So far the order of the words has played no part that you could see. Has it played one at all?

# %% Vote: the dog, or the man? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
order_vote = predict(
    "“dog bites man” and “man bites dog” pass the same attention, no mask. Does the output of dog differ?",
    {
        "yes, it bites in one and is bitten in the other": "A sum has no order: the same keys, the same values, the same attention weights.",
        "no": "The same keys and values are summed, in another order.",
        "yes, but only a little": "Not at all: the dot products do not know who came first.",
    },
    key="no",
)
order_vote


# %% Dog bites man slideshow={"slide_type": "subslide"}
def same(first, second):
    """Are the vectors of the second phrase those of the first, in reverse order?"""
    return torch.allclose(first, second.flip(0), atol=1e-5)


dog, bites, man = torch.randn(3, 12, generator=torch.Generator().manual_seed(2))
first = torch.stack([dog, bites, man])[None]  # (B, S, D)
second = torch.stack([man, bites, dog])[None]
out_first, out_second = module(first).output[0], module(second).output[0]  # (S, D)
print("the same three vectors, reordered:", same(out_first, out_second))
masked_first = module(first, mask=causal_mask(3)).output[0]
masked_second = module(second, mask=causal_mask(3)).output[0]
print("with a causal mask still the same:", same(masked_first, masked_second))


# %% What is behind it: the dog, or the man jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
moved = (out_first[0] - out_second[2]).abs().max()  # dog comes first, then last
order_vote.reveal(
    "no" if moved < 1e-5 else "yes, but only a little",
    """
Nothing in softmax(Q Kᵀ / √d_k) V says which row came first.
Without positions and without a mask, attention is **permutation-equivariant**: reorder the words, and the same vectors come out, reordered.
A causal mask breaks the symmetry, because later words see more.
""",
)

# %% Vote: can a model learn what came before? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
learn_vote = predict(
    "A model without positions is trained to name, at each of sixteen random tokens, the token before it. Who learns it?",
    {
        "nobody: without positions there is no order": "Later tokens see more tokens, if a mask hides what comes after: that gives the order away.",
        "only the model that sees no later tokens": "How many tokens a token sees tells it where it stands.",
        "every model, if it trains long enough": "What holds for all values of the parameters, no training changes.",
    },
    key="only the model that",
)
learn_vote

# %% What is behind it: can a model learn what came before jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
trained = {(found.sees, found.name): found for found in recorded_positions()}
learns = {
    sees: min(trained[sees, "none"].results) > 0.9 for sees in ("all tokens", "tokens so far")
}
learn_vote.reveal(
    "every model, if it trains long enough"
    if learns["all tokens"]
    else "only the model that sees no later tokens"
    if learns["tokens so far"]
    else "nobody: without positions there is no order",
    """
Where all tokens are seen, reordered words give reordered vectors, whatever the parameters are.
The best that is possible then is to name the most frequent *other* token, right in 0.267 of all cases, and training gets there and no further.
With a causal mask the second token sees two tokens and the tenth sees ten: from that the model finds the order by itself, and is right in more than 0.99 ([Haviv et al. 2022](https://arxiv.org/abs/2203.16634) found the same in language models).
""",
)

# %% With and without positions, measured jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
rows, columns = ["all tokens", "tokens so far"], ["none", "learned", "sinusoidal", "RoPE"]
accuracy = [[sum(trained[r, c].results) / 5 for c in columns] for r in rows]  # of five seeds
picture, axes = plots.panels(1, width=6.5, height=1.9)
plots.heatmap(
    axes,
    rows,
    columns,
    accuracy,
    title="How often the token before is named rightly",
    names=("seen", "positions"),
)
picture

# %% Proof: the table of positions jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert round(trained["all tokens", "none"].best, 3) == 0.267
assert max(trained["all tokens", "none"].results) < 0.27
assert all(min(trained["tokens so far", name].results) > 0.99 for name in columns)
assert all(min(trained["all tokens", name].results) > 0.99 for name in columns[1:])

# %% [markdown] slideshow={"slide_type": "subslide"}
# Any kind of position solves the task (mean of five trained models each; chance is 1 in 8).
# So an encoder *needs* positions; a causal model can do without, and is given them all the same, because it then need not find the order first.
#
# ### Positions, added
#
# The oldest way is to **add** a vector for the position: x_i = e_i + p_i.

# %% Add positions slideshow={"slide_type": "subslide"}
positions = sinusoidal_positions(3, 12)  # (S, D), fixed; could be learned as well
out_first = module(first + positions).output[0]  # (B, S, D) + (S, D)
out_second = module(second + positions).output[0]
print("with positions still the same:", same(out_first, out_second))

# %% [markdown] slideshow={"slide_type": "subslide"}
# Now *dog* as the one who bites and *dog* as the one who is bitten are two vectors.
#
# *Stopping point: about 15 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. RoPE: rotate, do not add
#
# Often it matters more *how far apart* two words are than where they stand in the book.
# **Rotary position embedding (RoPE, [Su et al. 2021](https://arxiv.org/abs/2104.09864))** builds that in.
#
# > **Box: rotation.** To rotate [a, b] by the angle t, compute [a cos t − b sin t, a sin t + b cos t].
# > The length stays the same. The dot product of two vectors depends on their lengths and on the angle *between* them only.
#
# Think of the query and the key as clock hands: with each position, the hand is rotated by the same angle.
# (Angles are counted as in mathematics, so these hands turn *counter*-clockwise; only the angle between two hands counts, and that is the same either way.)

# %% Vote: which scores are equal? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
shift_vote = predict(
    "A query stands at position 3, a key at 1. Which change leaves their score as it is?",
    {
        "they change places, 1 and 3": "The distance has a direction: two before is not two after.",
        "both go 100 positions further": "The angle between the hands stays, and so does the score.",
        "another key, still at 1": "The distance is the same, the content is not.",
        "none of these": "Rotate both hands alike, and the angle between them stays.",
    },
    key="both go 100 positions further",
)
shift_vote

# %% A clock hand: loop, matrix, package slideshow={"slide_type": "subslide"}
q, k = torch.tensor([1.0, 0.5]), torch.tensor([0.8, -0.3])


def turn(x, position):  # one pair of coordinates, 1 radian per position
    c, s = math.cos(position), math.sin(position)
    return x @ torch.tensor([[c, s], [-s, c]])  # (2,) @ (2, 2) -> (2,)


for m, n in [(3, 1), (103, 101), (3, 2), (1, 3)]:
    print(f"positions {m:3} and {n:3}: score {turn(q, m) @ turn(k, n):.4f}")
other = torch.tensor([0.1, 0.9])
print(f"another key at 3 and 1:  score {turn(q, 3) @ turn(other, 1):.4f}")
assert_close(turn(q, 3) @ turn(k, 1), turn(q, 103) @ turn(k, 101), atol=1e-4, rtol=0)
assert_close(turn(q, 3).norm(), q.norm())  # lengths are kept
looped = torch.stack([turn(row, t) for t, row in enumerate([q, k, q])])  # (S, 2)
assert_close(rope(torch.stack([q, k, q]), torch.arange(3)), looped)  # the package does the same

# %% What is behind it: which scores are equal jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
changes = {
    "both go 100 positions further": turn(q, 103) @ turn(k, 101),
    "they change places, 1 and 3": turn(q, 1) @ turn(k, 3),
    "another key, still at 1": turn(q, 3) @ turn(other, 1),
}
here = turn(q, 3) @ turn(k, 1)
equal = [name for name, score in changes.items() if abs(score - here) < 1e-4]
shift_vote.reveal(
    equal[0] if len(equal) == 1 else "none of these",
    """
Rotate both hands by the same amount, and the angle between them stays: 3 and 1 score as 103 and 101.
The score depends on **content and distance** (which way counts, too), not on distance alone: another key, another score.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# The **values are not rotated**: in this step, position changes where one looks, not what is handed over.
#
# ### Many hands
#
# One hand is ambiguous: after a full turn it points where it was.
# So a head of width d_k has d_k / 2 pairs of coordinates, each a hand with its own speed, from fast to very slow.
# Pair i turns by 10000^(−2i / d_k) radians per position.

# %% Every pair has its own speed slideshow={"slide_type": "subslide"}
d_k = 8
for i in range(d_k // 2):
    speed = 10000 ** (-2 * i / d_k)
    print(f"pair {i}: {speed:.3f} radians per position, {2 * math.pi / speed:4.0f} to a full turn")
hands = torch.tensor([[1.0, 0.0] * 4])  # four hands, all pointing right
assert_close(rope(hands, torch.tensor([3]))[0, 2:4], turn(hands[0, 2:4], 3 * 0.1))  # pair 1

# %% [markdown] slideshow={"slide_type": "subslide"}
# One reading is that heads use the fast pairs for neighbours and the slow ones for long distances; what a trained head makes of them must be measured.
#
# *Stopping point: about 20 minutes.*

# %% Proof: the formula of the speeds is that of the package jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
ones = torch.tensor([[1.0, 0.0] * 4])
assert all(
    abs(rope(ones, torch.tensor([1]))[0, 2 * i + 1] - math.sin(10000 ** (-2 * i / 8))) < 1e-6
    for i in range(4)
)
assert 10000 ** (-2 / 8) == 0.1

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 4. Write the model
#
# Now you write a transformer, part by part; a part that you leave out is lent to you, so that each can be written alone.
# When all five pass, the cell under *Your model as a file*, at the end of this notebook, saves them, and [notebook 6](06_tiny_trainer_and_kv_cache.ipynb) trains *your* model.
#
# > **Box: a class of parameters.** A model is a class that derives from `nn.Module`.
# > `__init__` calls `super().__init__()` first, then makes the parameters: an `nn.Linear(n, m, bias=False)` (call it, and it multiplies by its matrix), or an `nn.Parameter` around a tensor. A *bias* is a vector added after the product; none is used here.
# > `forward` computes; `model(x)` calls it.

# %% From attention to a prediction jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=9.5, height=3.0)
boxes = [
    (0, 0, "ids\n(B,S)"),
    (1.2, 0, "embedding\n(B,S,D)"),
    (2.4, 0, "x\n(B,S,D)"),
    (3.6, 1.2, "norm,\nattention"),
    (3.6, 0, "residual\npath"),
    (4.8, 0, "add\n(B,S,D)"),
    (6.0, 1.2, "norm,\nMLP"),
    (6.0, 0, "residual\npath"),
    (7.2, 0, "add\n(B,S,D)"),
    (8.4, 0, "next block,\n..., last"),
    (8.4, -1.2, "norm\n(B,S,D)"),
    (7.2, -1.2, "lm_head:\nlogits\n(B,S,vocab)"),
    (6.0, -1.2, "prediction of\nnext token"),
]
wires = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7), (6, 8), (7, 8)]
wires += [(8, 9), (9, 10), (10, 11), (11, 12)]
plots.flow(
    axes,
    boxes,
    wires,
    "One block is all from x to the second add; blocks are stacked",
    size=(1.05, 0.85),
)
picture

# %% [markdown] slideshow={"slide_type": "subslide"}
# **Exercise 5.1.** Write `MyMultiHeadAttention(width, n_heads)`.
# Its parameters are `w_q`, `w_k`, `w_v` and `w_o`, each `nn.Linear(width, width, bias=False)`; a width that `n_heads` does not divide raises a `ValueError`.
# `forward(x, mask=None)` takes and gives (B, S, D); q and k are rotated with `rope(..., layout="half")`, in each head, by positions 0, 1, 2, ...
# You may use `split_heads`, `merge_heads`, `rope` and `attention`.
#
# <details><summary>Hint 1: nudge</summary>
# Section 1 has all of it but the rotation. Project, split, rotate q and k, attend, merge, W_O.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One projection alone, at width 12 with 3 heads: `q = split_heads(self.w_q(x), 3)` is (B, 3, S, 4); `rope(q, torch.arange(x.shape[1]), layout="half")` keeps that shape.
# </details>


# %% Exercise 5.1 slideshow={"slide_type": "skip"} tags=["exercise"]
class MyMultiHeadAttention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        ...  # refuse some widths; keep n_heads; make w_q, w_k, w_v, w_o

    def forward(self, x, mask=None):
        return ...  # your lines here


checks.multi_head(MyMultiHeadAttention)


# %% Exercise 5.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
class HeadsSolution(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        if width % n_heads:
            raise ValueError(f"{n_heads} heads do not divide the width {width}")
        self.n_heads = n_heads
        self.w_q, self.w_k = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.w_v, self.w_o = (nn.Linear(width, width, bias=False) for _ in range(2))

    def forward(self, x, mask=None):
        q, k, v = (split_heads(w(x), self.n_heads) for w in (self.w_q, self.w_k, self.w_v))
        q, k = (rope(y, torch.arange(x.shape[1]), layout="half") for y in (q, k))
        return self.w_o(merge_heads(attention(q, k, v, mask).output))  # (B, S, D)


checks.multi_head(HeadsSolution)

# %% Multi-head attention: the same as the package jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Yours if its check passes, else the package's stands in
MyMultiHeadAttention = checks.stand_in(MyMultiHeadAttention, checks.multi_head)
heads_theirs = seeded(lambda: MultiHeadAttention(12, 3, rope="half"), 0)
heads_mine = MyMultiHeadAttention(12, 3)
heads_mine.load_state_dict(heads_theirs.state_dict())
keep = causal_mask(5)
assert_close(heads_mine(x, keep), heads_theirs(x, mask=keep).output)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The norm and the MLP
#
# **RMSNorm** ([Zhang and Sennrich 2019](https://arxiv.org/abs/1910.07467)) brings each token's vector to a standard size, so that numbers neither explode nor vanish as blocks are stacked: divide it by the root of the mean of its squares, then multiply each column by a learned number.
#
# **Exercise 5.2.** Write it: `x` is `(..., D)`, `weight` is `(D,)`; add 1e-6 to the mean of the squares, so that nothing is divided by 0.
#
# <details><summary>Hint 1: nudge</summary>
# Each token has its own mean: which axis, and how does it stay an axis?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# [3, 4] has the mean square 12.5, whose root is 3.54; divided, [0.85, 1.13]; with the weights [2, 1] that is [1.70, 1.13].
# </details>


# %% Exercise 5.2 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_rms_norm(x, weight):
    return ...  # your line here


checks.rms_norm(my_rms_norm)


# %% Exercise 5.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def rms_norm_solution(x, weight):
    return x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * weight


checks.rms_norm(rms_norm_solution)

# %% RMSNorm: the same as the package jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Yours if its check passes, else the package's stands in
my_rms_norm = checks.stand_in(my_rms_norm, checks.rms_norm)
assert_close(my_rms_norm(x, torch.ones(12)), rms_norm(x, torch.ones(12)))

# %% [markdown] slideshow={"slide_type": "subslide"}
# An **MLP** (multi-layer perceptron) is a few learned matrices with a non-linear function between them, for each token alone.
# Attention moves information *between* tokens, the MLP works *within* each.
# **SwiGLU** ([Shazeer 2020](https://arxiv.org/abs/2002.05202)) multiplies two products with x, one of them through silu(a) = a · sigmoid(a), in code `F.silu`: W_down(silu(W_gate x) · W_up x).
#
# **Exercise 5.3.** Write it. `gate_up` `(2 · hidden, D)` is W_gate on top of W_up, and `down` is `(D, hidden)`, stored as `nn.Linear` does: for x @ W use the transpose.
#
# <details><summary>Hint 1: nudge</summary>
# One product with all of gate_up; then cut the last axis in two: `chunk(2, dim=-1)`.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# x = [2], gate_up = [[1], [3]], down = [[0.5]]: gate 2, up 6; silu(2) = 2 · 0.88 = 1.76; 1.76 · 6 · 0.5 = 5.28.
# </details>


# %% Exercise 5.3 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_swiglu(x, gate_up, down):
    return ...  # your lines here


checks.swiglu(my_swiglu)


# %% Exercise 5.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def swiglu_solution(x, gate_up, down):
    gate, up = (x @ gate_up.T).chunk(2, dim=-1)  # (..., hidden) each
    return (F.silu(gate) * up) @ down.T  # (..., D)


checks.swiglu(swiglu_solution)

# %% SwiGLU: the same as the package jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Yours if its check passes, else the package's stands in
my_swiglu = checks.stand_in(my_swiglu, checks.swiglu)
matrices = torch.randn(30, 12, generator=generator), torch.randn(12, 15, generator=generator)
assert_close(my_swiglu(x, *matrices), swiglu(x, *matrices), atol=1e-4)

# %% Proof: the numbers of the worked hints on the parts jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert [round(n, 2) for n in rms_norm(torch.tensor([3.0, 4.0]), torch.ones(2)).tolist()] == [
    0.85,
    1.13,
]
assert [
    round(n, 2) for n in rms_norm(torch.tensor([3.0, 4.0]), torch.tensor([2.0, 1.0])).tolist()
] == [1.7, 1.13]
assert Block.eps == 1e-6
assert (round(12.5**0.5, 2), round(torch.tensor(2.0).sigmoid().item(), 2)) == (3.54, 0.88)
assert round(F.silu(torch.tensor(2.0)).item(), 2) == 1.76 and round(1.76 * 6 * 0.5, 2) == 5.28

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 45 minutes.*
#
# ### The block and the stack
#
# A block computes x + attention(norm(x)); to that it adds the MLP of its norm.
# The residual path runs straight through; a norm stands before each sublayer ("pre-norm"; the first transformer had it after the sum).
#
# **Exercise 5.4.** Write `forward` of `MyBlock`; its parameters are given. It takes and gives (B, S, D).
#
# <details><summary>Hint 1: nudge</summary>
# Two lines, one plus sign each: follow the picture.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With f and g for the sublayers and x = 1, f(x) = 2x, g(x) = 10x, and no norms: first 1 + 2 = 3, then 3 + 30 = 33 (not 1 + 2 + 10).
# </details>


# %% Exercise 5.4 slideshow={"slide_type": "skip"} tags=["exercise"]
class MyBlock(nn.Module):
    def __init__(self, width, n_heads):  # given
        super().__init__()
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.attention = MyMultiHeadAttention(width, n_heads)
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate_up = nn.Linear(width, 8 * width, bias=False).weight
        self.down = nn.Linear(4 * width, width, bias=False).weight

    def forward(self, x, mask=None):
        return ...  # your lines, with my_rms_norm and my_swiglu


checks.block(MyBlock)


# %% Exercise 5.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
class BlockSolution(MyBlock):  # with the parameters given
    def forward(self, x, mask=None):
        x = x + self.attention(my_rms_norm(x, self.attention_norm), mask)
        return x + my_swiglu(my_rms_norm(x, self.mlp_norm), self.gate_up, self.down)


checks.block(BlockSolution)

# %% The block: the same as the package jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Yours if its check passes, else the package's stands in
MyBlock = checks.stand_in(MyBlock, checks.block)
block_theirs, block_mine = seeded(lambda: Block(12, 3, None), 0), MyBlock(12, 3)
block_mine.load_state_dict(block_theirs.state_dict())
assert_close(block_mine(x, keep), block_theirs(x, keep)[0])

# %% [markdown] slideshow={"slide_type": "subslide"}
# **Exercise 5.5.** Write `forward` of `MyTransformer`; its parameters are given: the embedding, the blocks (in an `nn.ModuleList`, because a plain list would hide their parameters from PyTorch), a last norm, and the prediction head `lm_head`.
# It takes ids `(B, S)` and gives **logits**, a score for every possible next token, `(B, S, vocab_size)`; each position sees itself and those before it.
#
# <details><summary>Hint 1: nudge</summary>
# Embed; one causal mask for all blocks; through the blocks one by one; norm; head.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With two blocks that double their input, no norm and a head that adds 1: ids 3 -> embedding 5 -> 10 -> 20 -> 21. In code, `for block in self.blocks: x = block(x, mask)`.
# </details>


# %% Exercise 5.5 slideshow={"slide_type": "skip"} tags=["exercise"]
class MyTransformer(nn.Module):
    def __init__(self, vocab_size, width, n_heads, n_layers, max_length):  # given
        super().__init__()
        self.vocab_size, self.max_length = vocab_size, max_length
        self.emb = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(MyBlock(width, n_heads) for _ in range(n_layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.lm_head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, ids):
        return ...  # your lines here


checks.transformer(MyTransformer)


# %% Exercise 5.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
class TransformerSolution(MyTransformer):  # with the parameters given
    def forward(self, ids):
        x, mask = self.emb(ids), causal_mask(ids.shape[1])  # (B, S, D), (S, S)
        for block in self.blocks:
            x = block(x, mask)  # (B, S, D)
        return self.lm_head(my_rms_norm(x, self.norm))  # (B, S, vocab_size)


checks.transformer(TransformerSolution)

# %% The whole model: the same as the package jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Yours if its check passes, else the package's stands in
MyTransformer = checks.stand_in(MyTransformer, checks.transformer)
model_theirs = seeded(lambda: TinyTransformer(7, 12, 3, 2, 9), 0)
model_mine = MyTransformer(7, 12, 3, 2, 9)
model_mine.load_state_dict(model_theirs.state_dict())
ids = torch.tensor([[1, 6, 4, 4, 0]])  # (B, S)
assert_close(model_mine(ids), model_theirs(ids))
print("ids", shape(ids), " logits", shape(model_mine(ids)))

# %% Proof: the same word hands over the same at two places, in the first block only jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
states, handed_over = model_theirs.emb(ids), []  # words 2 and 3 are the same
for block in model_theirs.blocks:
    handed_over.append(block.attention.w_v(rms_norm(states, block.attention_norm))[0])  # (S, D)
    states = block(states, causal_mask(5))[0]
assert torch.equal(handed_over[0][2], handed_over[0][3])
assert (handed_over[1][2] - handed_over[1][3]).abs().max() > 0.001

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - Heads divide the width, not the sentence; split the axis, then swap; the parameters stay as many.
# - Attention that sees all tokens does not know the order; a causal model can find it. Positions are added to x, or q and k are rotated (RoPE).
# - With RoPE a score depends on content and distance; values are not rotated.
# - A block adds attention (between tokens) and an MLP (within each) to the residual path; blocks are stacked, and a head predicts.
#
# **Next:** [6 · Tiny trainer and KV cache](06_tiny_trainer_and_kv_cache.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **RoPE in your hands.** One pair of coordinates, one radian per position.

# %% Explorer: two positions and a shift jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
picture, (left, right) = plots.panels(2, width=8, height=2.9)
plane = plots.vectors(left, ["query", "key"], title="Clock hands", limits=(-1.5, 1.5, -1.5, 1.5))
scores = plots.bars(right, ["score", "shifted"], title="Scores", limits=(-1.2, 1.2))


def show(query_at, key_at, shift, angle):
    key = turn(k, angle)  # the content of the key
    here = (turn(q, query_at) @ turn(key, key_at)).item()
    hands = turn(q, query_at + shift), turn(key, key_at + shift)
    shifted = (hands[0] @ hands[1]).item()
    plane.update(torch.stack(hands))
    scores.update([here, shifted])
    sentence = (
        f"Positions {query_at} and {key_at}: score **{here:.3f}**; "
        f"both {shift} further: **{shifted:.3f}**. Distance {query_at - key_at}."
    )
    return sentence, query_at - key_at == 5 and here > 0.9


clock_explorer = Explorer(
    picture,
    show,
    goal="Shift both words: the hands rotate, the score stays. Then turn the key's content so that it scores above 0.9 when it stands five positions before the query.",
    shift=slider(0, 100, 0),
    query_at=slider(0, 20, 3, label="query at"),
    key_at=slider(0, 20, 1, label="key at"),
    angle=slider(0.0, 6.2, 0.0, label="key's content turned"),
)
clock_explorer

# %% Stills of the explorer: two positions and a shift jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
clock_explorer.stills({"shift": 7}, {"key_at": 2}, {"query_at": 8, "key_at": 3, "angle": 5.8})

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Heads of a real model.** all-MiniLM-L6-v2 is a small encoder with 6 blocks of 12 heads, width 384. These are its recorded weights for one sentence.
# Different heads have learned different relations. Find them by looking.

# %% Explorer: find the head jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
river_reading = {reading.text: reading for reading in recorded_attention()}[
    "He sat on the bank of the river."
]
tokens = list(river_reading.tokens)
picture, axes = plots.panels(1, width=6.0, height=3.0)
heat = plots.heatmap(axes, tokens, tokens, numbers=False)
river_at, bank_at = tokens.index("river"), tokens.index("bank")


def show(find, block, head):
    weights = river_reading.weights[block - 1, head - 1].float()  # (S, S)
    share, enough = {  # [CLS] and [SEP] do not count as words here
        "the token before": (weights.diagonal(-1)[:-1].mean(), 0.9),
        "the token after": (weights.diagonal(1)[1:].mean(), 0.5),
        "river, seen from bank": (weights[bank_at, river_at], 0.6),
    }[find]
    heat.update(weights)
    axes.set_title(f"Block {block}, head {head}: {share:.2f} to {find}")
    found = bool(share > enough)
    verdict = "you found it" if found else f"look on, for more than {enough}"
    return f"Block {block}, head {head}: {find} gets **{share:.2f}**; {verdict}.", found


heads_explorer = Explorer(
    picture,
    show,
    goal="Find a head that gives the token before more than 0.9; one that looks ahead; one in which bank looks at river.",
    find=choice(
        ["the token before", "the token after", "river, seen from bank"], "the token before"
    ),
    block=slider(1, 6, 1),
    head=slider(1, 12, 1),
)
heads_explorer

# %% Stills of the explorer: find the head jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
heads_explorer.stills(
    {"block": 1, "head": 3},
    {"find": "the token after", "block": 2, "head": 9},
    {"find": "river, seen from bank", "block": 1, "head": 5},
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Does it work in a real model?**
# The same encoder read twelve sentences with *mole*: four about skin, four about chemistry, four about the animal.
# After each block we ask of every *mole*: does the one most like it have the same sense?

# %% mole in three senses slideshow={"slide_type": "skip"} tags=["further"]
mole = recorded_mole()  # states (12, 7, D): 12 sentences; before block 1 and after each
print("states", shape(mole.states))
same_sense = []
for layer in range(7):
    states = F.normalize(mole.states[:, layer], dim=1)  # (12, D), length 1
    likeness = states @ states.T - 2 * torch.eye(12)  # cosines; nobody is his own neighbour
    nearest = likeness.argmax(dim=1).tolist()
    same_sense.append(sum(mole.senses[i] == mole.senses[j] for i, j in enumerate(nearest)))
print("same sense, of 12, before block 1 and after each block:", same_sense)

# %% Proof: what each block finds jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
assert same_sense[0] == 0 and same_sense[3:6] == [12, 12, 12]
table_rows = F.normalize(mole.states[:, 0], dim=1)
assert ((table_rows @ table_rows.T - 2 * torch.eye(12)).amax(dim=1) > 0.999).all()  # same place

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# Guessing would be right about 3 times in 12.
# Before the first block it is 0: the row of the table is the same in all twelve sentences and only the position differs, so the nearest *mole* is one at the very same place, and by our choice of sentences those have other senses.
# After three blocks it is right every time.
# That is contextualisation, measured.
# The twelve sentences are plain on purpose: with twelve less plain ones the same model got 9 or 10 right, and only in its last three blocks (the notes beside the recording say so).
# The example *mole of carbon dioxide* is [3Blue1Brown's](https://www.3blue1brown.com/lessons/attention).

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **PyTorch's own module agrees.** `nn.MultiheadAttention` keeps W_Q, W_K and W_V stacked in one matrix.
# Given the same parameters, it gives the same output.

# %% The same as nn.MultiheadAttention slideshow={"slide_type": "skip"} tags=["further"]
reference = nn.MultiheadAttention(12, 3, bias=False, batch_first=True)
with torch.no_grad():
    stacked = torch.cat([module.w_q.weight, module.w_k.weight, module.w_v.weight])  # (3D, D)
    reference.in_proj_weight.copy_(stacked)
    reference.out_proj.weight.copy_(module.w_o.weight)
keep = causal_mask(5)
theirs, their_weights = reference(x, x, x, attn_mask=~keep, average_attn_weights=False)
ours = module(x, mask=keep)
assert_close(ours.output, theirs)
assert_close(ours.weights, their_weights)  # (B, H, S, S)
print("output and weights agree; our True is their False")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Sinusoidal positions** are the fixed vectors that the first transformer added.
# Even columns hold sines, odd columns cosines, each pair at its own speed.

# %% Sinusoidal positions slideshow={"slide_type": "skip"} tags=["further"]
table = sinusoidal_positions(40, 16)  # (S, D)
angle = 3 / 10000 ** (4 / 16)  # position 3, columns 4 and 5
assert_close(table[3, 4:6], torch.tensor([angle, angle + torch.pi / 2]).sin())
picture, axes = plots.panels(1, width=5, height=3)
plots.heatmap(
    axes,
    [""] * 40,
    [""] * 16,
    table,
    kind="values",
    title="Sinusoidal positions",
    names=("position", "column"),
    numbers=False,
    limit=1.0,
)
axes.set(xticks=[0, 5, 10, 15], yticks=[0, 10, 20, 30])
axes.set(xticklabels=[0, 5, 10, 15], yticklabels=[0, 10, 20, 30])
picture

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Two layouts of RoPE are in use.**
# The paper and Meta's own Llama code pair neighbours ("interleaved": 0 with 1, 2 with 3).
# GPT-NeoX and the Hugging Face port of Llama pair the two halves (0 with 2, 1 with 3); that port permutes W_Q and W_K to match.
# Both are right, and they are equal up to a fixed reordering of the columns; but a model trained with one must be run with it.

# %% Interleaved and half slideshow={"slide_type": "skip"} tags=["further"]
x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
at_one = torch.tensor([1])
print("interleaved", rope(x, at_one)[0])
print("half       ", rope(x, at_one, layout="half")[0])
order = [0, 2, 1, 3]
assert_close(rope(x, at_one, layout="half"), rope(x[:, order], at_one)[:, order])

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **One head in numbers.** Head 3 of block 1, counted from 1.

# %% A head that looks one token back slideshow={"slide_type": "skip"} tags=["further"]
readings = {reading.text: reading for reading in recorded_attention()}
reading = readings["He sat on the bank of the river."]
head = reading.weights[0, 2]  # (S, S): block 1, head 3
print(f"mean weight on the token before: {head.diagonal(-1)[:-1].mean():.2f}")
picture, axes = plots.panels(1, width=5.5, height=3)
plots.heatmap(axes, reading.tokens, reading.tokens, head, title="Block 1, head 3", numbers=False)
picture

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Special tokens.** This model puts [CLS] before each text and [SEP] after it.
# Many heads rest on them when they have nothing to look for, so they soak up a good part of all attention (*attention sinks*, [Xiao et al. 2023](https://arxiv.org/abs/2309.17453), in models that write).
# Whoever averages maps must know that first.

# %% What the special tokens soak up slideshow={"slide_type": "skip"} tags=["further"]
shares = [(r.weights[..., 0] + r.weights[..., -1]).mean(dim=(1, 2)) for r in readings.values()]
shares = torch.stack(shares)  # (sentences, L)
print("share of [CLS] and [SEP], by block:", shares.mean(dim=0).round(decimals=2))

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **An honest limit.** In "The animal didn't cross the street because it was too tired", head 2 of block 4 lets *it* look at *animal*.
# It is tempting to say that the head resolves the pronoun.
# Before you believe it, try "The trophy didn't fit in the suitcase because it was too big" (*it* is the trophy) and "... too small" (*it* is the suitcase).

# %% It, the trophy and the suitcase slideshow={"slide_type": "skip"} tags=["further"]
for text, reading in readings.items():
    if "it was too" in text:
        tokens = list(reading.tokens)
        from_it = reading.weights[3, 1, tokens.index("it")]  # (S_k,): block 4, head 2
        nouns = [w for w in tokens if w in ("animal", "street", "trophy", "suitcase")]
        looks = [f"{noun} {from_it[tokens.index(noun)]:.2f}" for noun in nouns]
        print(text.split("it was ")[1], *looks)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# The head stays on *trophy* both times, and prefers *animal* to *street* even when *it* was too wide: whatever it does, it does not settle what *it* means.
#
# **Your own sentences.** With the model installed (one command, 84 MB), the next cell reads them.

# %% A sentence of your own slideshow={"slide_type": "skip"} tags=["further", "nbval-ignore-output"]
# nbval ignores this output: it depends on whether the optional model is installed
try:
    print(read_sentence("The mole dug a hole.").tokens)
except ModuleNotFoundError as problem:
    print(problem)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### More exercises
#
# **Exercise 5.6.** Split into heads: `x` is `(B, S, D)`, the result is `(B, n_heads, S, D / n_heads)`.
#
# <details><summary>Hint 1: nudge</summary>
# Which axis is the one that is shared out? Give it two axes first, and leave the words where they are.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# `x` of shape (1, 2, 6) with 3 heads: reshape to (1, 2, 3, 2), then transpose(1, 2): (1, 3, 2, 2). Row [0, 1, 2, 3, 4, 5] gives head 0 the numbers 0 and 1, head 1 the numbers 2 and 3.
# </details>


# %% Exercise 5.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_split(x, n_heads):
    return ...  # your lines here


checks.split(my_split)


# %% Exercise 5.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def split_solution(x, n_heads):
    B, S, D = x.shape
    return x.reshape(B, S, n_heads, D // n_heads).transpose(1, 2)


checks.split(split_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 5.7.** Rotate each row of `x` `(S, 2)` by its position in `positions` `(S,)`, one radian per position, counter-clockwise.
# No `rope` this time.
#
# <details><summary>Hint 1: nudge</summary>
# The box on rotation has the two formulas. Each row has its own angle.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Take [3, 1] at position 1, where cos is 0.54 and sin is 0.84: the new pair is [3 · 0.54 − 1 · 0.84, 3 · 0.84 + 1 · 0.54] = [0.78, 3.06]. For all rows at once: the two columns, the cosines and sines of `positions`, and `stack(..., dim=1)`.
# </details>


# %% Exercise 5.7 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_rotation(x, positions):
    return ...  # your lines here


checks.rotate_pair(my_rotation)


# %% Exercise 5.7, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def rotation_solution(x, positions):
    a, b = x[:, 0], x[:, 1]
    c, s = positions.cos(), positions.sin()
    return torch.stack([a * c - b * s, a * s + b * c], dim=1)  # (S, 2)


checks.rotate_pair(rotation_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 5.8, find the bug.** To lay the heads side by side again, somebody writes `x.reshape(B, S, H * d)` for `x` `(B, H, S, d)`.
# The shape is right. Write it so that the numbers are, too.
#
# <details><summary>Hint 1: nudge</summary>
# It is the classic mistake, backwards: in which order do the numbers lie in memory?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With (1, 2, 3, 2), two heads and three tokens: transpose(1, 2) gives (1, 3, 2, 2), reshape gives (1, 3, 4). Each token's row holds the two numbers of head 0, then those of head 1.
# </details>


# %% Exercise 5.8 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_merge(x):
    return ...  # your line here


checks.merge(my_merge)


# %% Exercise 5.8, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def merge_solution(x):
    B, H, S, d = x.shape
    return x.transpose(1, 2).reshape(B, S, H * d)


checks.merge(merge_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 5.9, predict two numbers.** How many parameters do W_Q, W_K, W_V and W_O have together, at width 768 with 12 heads? And with 24?
#
# <details><summary>Hint 1: nudge</summary>
# Did section 1 find more parameters with three heads than with one?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# At width 12 with 3 heads: a head's own W_Q is 12 × 4, three of them are 144 numbers; W_K, W_V and W_O the same: **576** in all.
# </details>


# %% Exercise 5.9 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
with_12_heads = ...
with_24_heads = ...
checks.parameters_of_heads(with_12_heads, with_24_heads)


# %% Exercise 5.9, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
solution_12 = 12 * 3 * 768 * (768 // 12) + 768 * 768  # head by head, and W_O
solution_24 = 4 * 768 * 768  # all at once
assert solution_12 == solution_24
checks.parameters_of_heads(solution_12, solution_24)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 5.10, complete it.** `e` `(B, S, D)` holds B sentences of S words, and `p` `(M, D)` a vector for each of M positions, more than S.
# Add row i of `p` to word i of every sentence.
#
# <details><summary>Hint 1: nudge</summary>
# Two sentences, one word each at place 0: do they get the same position, or different ones?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# With S = 2 and p of 5 rows, `p[:2]` is (2, D). Shapes are matched from the right, so it fits (B, 2, D) (*broadcasting*): word 0 of every sentence gets row 0.
# </details>


# %% Exercise 5.10 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_positions(e, p):
    rows = ...  # which rows of p, in which shape?
    return e + rows


checks.add_positions(my_positions)


# %% Exercise 5.10, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def positions_solution(e, p):
    return e + p[: e.shape[1]]  # (B, S, D) + (S, D)


checks.add_positions(positions_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 5.11, make a key.** Does RoPE simply favour near words? The query `q` is [1, 0.5]; it and its keys are rotated by one radian per position.
# Find a key `(2,)` that scores at least 0.5 *more* when it stands five positions before the query than when it stands at the query's own position.
#
# <details><summary>Hint 1: nudge</summary>
# A dot product is largest when two hands point the same way. Where does the hand of a key point that stands five positions earlier, seen from the query?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# For a query [0, 1] and a key two positions before it: the query has been rotated two radians further, so give the key these two radians from the start: [−sin 2, cos 2] = [−0.91, −0.42]. It scores 1 there, the most that its length allows.
# </details>


# %% Exercise 5.11 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
my_key = ...  # (2,)
checks.far_key(my_key)


# %% Exercise 5.11, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
key_solution = turn(torch.tensor([1.0, 0.5]), 5)  # (2,)
checks.far_key(key_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# So near words are not favoured as such: content and distance decide together.
#
# **Exercise 5.12, build it.** One head with RoPE, without a mask: `q` and `k` are `(S, d)`, `v` is `(S, d_v)`, `positions` `(S,)` may have gaps.
# You may use `rope(x, positions)`. Return the output `(S, d_v)`.
#
# <details><summary>Hint 1: nudge</summary>
# Three matrices come in. Which of them depend on where a word stands?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One pair, positions 0 and 2, q = k = [1, 0] both times: rotated they are [1, 0] and [−0.42, 0.91]. The first query's scores are 1 and −0.42, divided by √2 0.71 and −0.29, so its weights are 0.73 and 0.27; they mix the values as they are.
# </details>


# %% Exercise 5.12 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_rope_attention(q, k, v, positions):
    return ...  # your lines here


checks.rope_attention(my_rope_attention)


# %% Exercise 5.12, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def rope_attention_solution(q, k, v, positions):
    q, k = rope(q, positions), rope(k, positions)  # (S, d) each
    weights = (q @ k.T / q.shape[1] ** 0.5).softmax(dim=-1)  # (S_q, S_k)
    return weights @ v  # (S, d_v)


checks.rope_attention(rope_attention_solution)

# %% Proof: the numbers of the worked hints on positions jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
assert [round(n, 2) for n in turn(torch.tensor([3.0, 1.0]), 1).tolist()] == [0.78, 3.06]
assert [round(f(1), 2) for f in (math.cos, math.sin)] == [0.54, 0.84]
assert [round(n, 2) for n in turn(torch.tensor([0.0, 1.0]), 2).tolist()] == [-0.91, -0.42]
hinted = rope(torch.tensor([[1.0, 0.0]] * 2), torch.tensor([0, 2]))
assert [round(n, 2) for n in hinted[1].tolist()] == [-0.42, 0.91]
hinted = attention(hinted, hinted, hinted)
assert [round(n, 2) for n in hinted.scaled[0].tolist()] == [0.71, -0.29]
assert [round(n, 2) for n in hinted.weights[0].tolist()] == [0.73, 0.27]
assert 4 * (3 * 12 * 4) == 4 * 144 == 576

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Further reading.** [Vaswani et al. 2017](https://arxiv.org/abs/1706.03762), *Attention Is All You Need*; [Su et al. 2021](https://arxiv.org/abs/2104.09864), *RoFormer* (RoPE);
# [Haviv et al. 2022](https://arxiv.org/abs/2203.16634), on causal models without positions;
# [Jain and Wallace 2019](https://arxiv.org/abs/1902.10186) and [Wiegreffe and Pinter 2019](https://arxiv.org/abs/1908.04626), on attention and explanation;
# [Touvron et al. 2023](https://arxiv.org/abs/2302.13971), *LLaMA*, whose block you have written.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Your model as a file
#
# The cell below writes `my_model.py` beside this notebook, from your cells of exercises 5.1 to 5.5, once all five pass.

# %% Your transformer as a file jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["further"]
print(checks.write_model(globals()))

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("05"), globals())
