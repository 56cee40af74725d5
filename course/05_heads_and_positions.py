# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5 · Heads and positions
#
# **The question.** One attention step gives each word one pattern of attention weights.
# How can a word look at several things at once, and does it know what came first?
#
# **Afterwards you can**
# - follow the shapes through several heads, and spot the classic mistake;
# - test whether attention can tell "dog bites man" from "man bites dog";
# - explain RoPE with a clock hand.
#
# **Builds on** [notebook 4](04_softmax_and_values.ipynb): attention(Q, K, V) = softmax(Q Kᵀ / √d_k + M) V, and each row of attention weights sums to 1.
# **Takes** about 40 minutes; there are stopping points on the way.

# %% [markdown]
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

# %% Setup (unfold to see) jupyter={"source_hidden": true} tags=["setup"]
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
    attention,
    causal_mask,
    checks,
    merge_heads,
    rope,
    sinusoidal_positions,
    split_heads,
)
from attnlab.checks import assert_close
from attnlab.data import read_sentence, recorded_attention, recorded_mole
from attnlab.lab import Explorer, choice, plots, predict, progress, slider
from attnlab.training import seeded

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)


def shape(x):
    return str(tuple(x.shape)).replace(" ", "")


# %% [markdown]
# ## 1. Several heads
#
# In "the dog that bit the man slept", the word *slept* may want its subject, its tense and its neighbour, all at once.
# One softmax gives one row of attention weights.
# So a model runs several smaller attentions side by side, called **heads**, each with its own W_Q, W_K and W_V.
#
# First the shapes with one head, and now with a batch axis: B = 2 sequences of S = 3 tokens at width D = 8.

# %% One head
generator = torch.Generator().manual_seed(0)
X = torch.randn(2, 3, 8, generator=generator)  # (B, S, D)
W_Q, W_K, W_V, W_O = torch.randn(4, 8, 8, generator=generator) / 8**0.5  # each (D, D)
Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # (B, S, D) each
steps = attention(Q, K, V)
print("X, Q, K, V", shape(Q), " scores, weights", shape(steps.weights))
print("output", shape(steps.output))

# %% Vote: what do the heads share out? jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
shared_vote = predict(
    "Two heads instead of one, at the same width D. What is shared out between them?",
    {
        "the words: each sees half of the sentence": "Look at the shape of the attention weights: every head has all S keys.",
        "the columns of Q, K and V": "",
        "nothing: each has D columns, and parameters double": "Count W_Q: it has as many columns as before.",
    },
    key="the columns of Q, K and V",
)
shared_vote

# %% Two heads: loop, then all at once
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

# %% What is behind it: what the heads share out jupyter={"source_hidden": true} tags=["reveal"]
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

# %% [markdown]
# ### All tokens, part of the width
#
# Every head sees **all tokens**, through its own projection.
# Inside each it is the same sum as always: a row (of attention weights) times a matrix (of values) is a weighted sum of its rows.
# The heads divide the *width*, not the sentence.
# And nothing has been added: W_Q, W_K, W_V and W_O have the same size for any number of heads.
# The width must be divisible: 768 = 12 × 64 is a common choice.

# %% Proof: every head has all the keys jupyter={"source_hidden": true} tags=["proof"]
assert steps.weights.shape[-1] == 3

# %% The path of shapes through three heads
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

# %% Proof: as many parameters with one head as with three jupyter={"source_hidden": true} tags=["proof"]
assert count[0] == count[1]

# %% [markdown]
# ### The classic mistake
#
# To bring (B, S, D) to (B, H, S, d_k), split the last axis, *then* swap axes.
# A single `view` to the final shape gives the right shape and the wrong numbers: it mixes tokens.

# %% Right shape, wrong numbers
numbers = torch.arange(12.0).reshape(1, 3, 4)  # (B, S, D): token 0 is 0..3, token 1 is 4..7
right = numbers.reshape(1, 3, 2, 2).transpose(1, 2)  # (B, H, S, d_k)
wrong = numbers.view(1, 2, 3, 2)
print("head 0, right:", right[0, 0].tolist())
print("head 0, wrong:", wrong[0, 0].tolist())

# %% Proof: the same shape, other numbers jupyter={"source_hidden": true} tags=["proof"]
assert right.shape == wrong.shape and not torch.equal(right, wrong)

# %% [markdown]
# Head 0 should have one row per token, 0 1, 4 5, 8 9. In the wrong one, the rows 0 1 and 2 3 both come from token 0.

# %% [markdown]
# ### PyTorch's own module agrees
#
# `nn.MultiheadAttention` keeps W_Q, W_K and W_V stacked in one matrix.
# Given the same parameters, it gives the same output.

# %% The same as nn.MultiheadAttention
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

# %% Explorer: one heat map per head jupyter={"source_hidden": true} tags=["explorer"]
# Unfold to see and to change what is drawn
sentence = "dog bites man today".split()
embedded = torch.randn(1, 4, 12, generator=torch.Generator().manual_seed(1))  # (B, S, D)
picture, axes = plots.panels(4, height=2.4)
heats = [
    plots.heatmap(ax, sentence, sentence, title=f"head {i + 1}", numbers=False)
    for i, ax in enumerate(axes)
]


def show(heads, seed, sharpness):
    module = seeded(lambda: MultiHeadAttention(12, heads), seed)
    with torch.no_grad():
        module.w_q.weight *= sharpness
    weights = module(embedded).weights[0]  # (H, S, S)
    for i, (ax, heat) in enumerate(zip(axes, heats)):
        ax.set_visible(i < heads)
        if i < heads:
            heat.update(weights[i].detach())
    looks = [sentence[i] for i in weights[:, 2].argmax(dim=-1)]
    n_heads = f"{heads} head{'s' if heads > 1 else ''}"
    return f"{n_heads} of width {12 // heads}; 'man' looks most at: {', '.join(looks)}."


heads_explorer = Explorer(
    picture,
    show,
    goal="Choose 4 heads, and find a seed at which all four look at different words for 'man'. (These heads are random, not trained.)",
    heads=choice([1, 2, 3, 4], 3),
    seed=slider(0, 20, 0),
    sharpness=slider(1.0, 10.0, 4.0, label="scores times"),
    more=["sharpness"],
)
heads_explorer

# %% Stills of the explorer: one heat map per head jupyter={"source_hidden": true} tags=["proof"]
heads_explorer.stills({"heads": 1}, {"heads": 2}, {"heads": 4, "seed": 9})

# %% [markdown]
# *Stopping point: about 18 minutes.*

# %% [markdown]
# ## 2. Who bites whom?
#
# So far the order of the words has played no part that you could see. Has it played one at all?

# %% Vote: the dog, or the man? jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
order_vote = predict(
    "“dog bites man” and “man bites dog” pass the same attention, no mask. Does the output of dog differ?",
    {
        "yes, it bites in one and is bitten in the other": "A sum has no order: the same keys, the same values, the same attention weights.",
        "no": "",
        "yes, but only a little": "Not at all: the dot products do not know who came first.",
    },
    key="no",
)
order_vote


# %% Dog bites man
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

# %% What is behind it: the dog, or the man jupyter={"source_hidden": true} tags=["reveal"]
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

# %% [markdown]
# ### Positions, added
#
# The oldest way is to **add** a vector for the position: x_i = e_i + p_i.

# %% Add positions
positions = sinusoidal_positions(3, 12)  # (S, D), fixed; could be learned as well
out_first = module(first + positions).output[0]  # (B, S, D) + (S, D)
out_second = module(second + positions).output[0]
print("with positions still the same:", same(out_first, out_second))

# %% [markdown]
# Now *dog* as the one who bites and *dog* as the one who is bitten are two vectors.
#
# *Stopping point: about 24 minutes.*

# %% [markdown]
# ## 3. RoPE: rotate, do not add
#
# Often it matters more *how far apart* two words are than where they stand in the book.
# **Rotary position embedding (RoPE)** builds that in.
#
# > **Box: rotation.** To rotate [a, b] by the angle t, compute [a cos t − b sin t, a sin t + b cos t].
# > The length stays the same. The dot product of two vectors depends on their lengths and on the angle *between* them only.
#
# Think of the query and the key as clock hands.
# At position 0 nothing happens; with each further position, the hand is rotated by the same angle.

# %% Vote: which scores are equal? jupyter={"source_hidden": true} tags=["predict"]
# Vote before you unfold: the reasons stand in here
shift_vote = predict(
    "A query stands at position 3, a key at 1. Which change leaves their score as it is?",
    {
        "they change places, 1 and 3": "The distance has a direction: two before is not two after.",
        "both go 100 positions further": "",
        "another key, still at 1": "The distance is the same, the content is not.",
        "none of these": "Rotate both hands alike, and the angle between them stays.",
    },
    key="both go 100 positions further",
)
shift_vote

# %% A clock hand: loop, matrix, package
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

# %% What is behind it: which scores are equal jupyter={"source_hidden": true} tags=["reveal"]
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

# %% [markdown]
# ### What is not rotated
#
# The **values are not rotated**: what a word has to say does not depend on where it stands.
# Position changes only where one looks.
#
# ### Many hands
#
# One hand is ambiguous: after a full turn it points where it was.
# So a head of width d_k has d_k / 2 pairs of coordinates, each a hand with its own speed, from fast to very slow, like the hands of a clock.

# %% Every pair has its own speed
pairs = torch.tensor([[1.0, 0.0] * 4])  # a vector of width 8: four hands, all pointing right
rotated = rope(pairs.expand(60, 8), torch.arange(60))  # (S, 8)
picture, axes = plots.panels(1, width=6.5, height=2.6)
names = ["pair 1", "pair 2", "pair 3", "pair 4"]
hands = plots.curves(axes, names, "First coordinate of each hand", "position", "cosine")
axes.set(xlim=(0, 59), ylim=(-1.1, 1.1))
hands.update(**{f"pair {i + 1}": rotated[:, 2 * i] for i in range(4)})
picture

# %% [markdown]
# Pair 1 rotates fast, pair 4 hardly moves. A head can use the fast ones for neighbours and the slow ones for long distances.

# %% Explorer: two positions and a shift jupyter={"source_hidden": true} tags=["explorer"]
# Unfold to see and to change what is drawn
picture, (left, right) = plots.panels(2, width=8, height=3.4)
plane = plots.vectors(left, ["query", "key"], title="Clock hands", limits=(-1.5, 1.5, -1.5, 1.5))
scores = plots.bars(right, ["score", "shifted"], title="Scores", limits=(-1.2, 1.2))


def show(query_at, key_at, shift, angle):
    key = turn(k, angle)  # the content of the key
    here = (turn(q, query_at) @ turn(key, key_at)).item()
    hands = turn(q, query_at + shift), turn(key, key_at + shift)
    shifted = (hands[0] @ hands[1]).item()
    plane.update(torch.stack(hands))
    scores.update([here, shifted])
    return (
        f"Positions {query_at} and {key_at}: score **{here:.3f}**; "
        f"both {shift} further: **{shifted:.3f}**. Distance {query_at - key_at}."
    )


clock_explorer = Explorer(
    picture,
    show,
    goal="Shift both words: the hands rotate, the score stays. Then change the distance by one.",
    shift=slider(0, 100, 0),
    query_at=slider(0, 20, 3, label="query at"),
    key_at=slider(0, 20, 1, label="key at"),
    angle=slider(0.0, 6.2, 0.0, label="turn the key's content"),
    more=["angle"],
)
clock_explorer

# %% Stills of the explorer: two positions and a shift jupyter={"source_hidden": true} tags=["proof"]
clock_explorer.stills({"shift": 7}, {"shift": 7, "key_at": 2})

# %% [markdown]
# ### From a step to a model
#
# A **block** wraps attention with three more parts.
#
# > **Box.** *Normalisation* (LayerNorm, RMSNorm) brings each token's vector to a standard size, so that numbers neither explode nor vanish.
# > An *MLP* (multi-layer perceptron) is two or three learned matrices with a simple non-linear function between them, such as max(0, x), applied to each token alone.
#
# Attention moves information *between* tokens, the MLP works *within* each.
# Both results are added to what was there: the residual path runs straight through.
# Blocks are stacked; a model has from a few to over a hundred.

# %% The wiring of one block
picture, axes = plots.panels(1, width=9.5, height=2.0)
boxes = [
    (0, 0, "x"),
    (1, 1, "normalise"),
    (2, 1, "attention"),
    (3, 0, "add"),
    (4, 1, "normalise"),
    (5, 1, "MLP"),
    (6, 0, "add"),
    (7, 0, "next block"),
]
wires = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (5, 6), (3, 6), (6, 7)]
plots.flow(axes, boxes, wires, "One block", size=(0.75, 0.5))
picture

# %% [markdown]
# **Does it work in a real model?**
# We let a small real encoder (all-MiniLM-L6-v2: 6 blocks, 12 heads, width 384) read twelve sentences with *mole*: four about skin, four about chemistry, four about the animal.
# After each block we ask of every *mole*: does the one most like it have the same sense?

# %% mole in three senses
mole = recorded_mole()  # states (12, 7, D): 12 sentences; before block 1 and after each
print("states", shape(mole.states))
same_sense = []
for layer in range(7):
    states = F.normalize(mole.states[:, layer], dim=1)  # (12, D), length 1
    likeness = states @ states.T - 2 * torch.eye(12)  # cosines; nobody is his own neighbour
    nearest = likeness.argmax(dim=1).tolist()
    same_sense.append(sum(mole.senses[i] == mole.senses[j] for i, j in enumerate(nearest)))
print("same sense, of 12, before block 1 and after each block:", same_sense)

# %% Proof: what each block finds jupyter={"source_hidden": true} tags=["proof"]
assert same_sense[0] == 0 and same_sense[3:6] == [12, 12, 12]
table_rows = F.normalize(mole.states[:, 0], dim=1)
assert ((table_rows @ table_rows.T - 2 * torch.eye(12)).amax(dim=1) > 0.999).all()  # same place

# %% [markdown]
# Guessing would be right about 3 times in 12.
# Before the first block it is 0: the row of the table is the same in all twelve sentences and only the position differs, so the nearest *mole* is one at the very same place, and by our choice of sentences those have other senses.
# After three blocks it is right every time.
# That is contextualisation, measured. (The twelve sentences are plain on purpose; with trickier ones the model errs now and then.)
#
# *Stopping point: about 36 minutes.*

# %% [markdown]
# ## Exercises
#
# **Exercise 5.1.** Split into heads: `x` is `(B, S, D)`, the result is `(B, n_heads, S, D / n_heads)`.
#
# <details><summary>Hint 1: nudge</summary>
# Which axis is the one that is shared out? Give it two axes first, and leave the words where they are.
# </details>
#
# <details><summary>Hint 2: method</summary>
# reshape to (B, S, n_heads, D / n_heads), then swap the axes 1 and 2 with transpose.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 5.1 tags=["exercise"]
def my_split(x, n_heads):
    return ...  # your lines here


checks.split(my_split)


# %% Exercise 5.1, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
def split_solution(x, n_heads):
    B, S, D = x.shape
    return x.reshape(B, S, n_heads, D // n_heads).transpose(1, 2)


checks.split(split_solution)

# %% [markdown]
# **Exercise 5.2.** Rotate each row of `x` `(S, 2)` by its position in `positions` `(S,)`, one radian per position, counter-clockwise.
# No `rope` this time.
#
# <details><summary>Hint 1: nudge</summary>
# The box on rotation has the two formulas. Each row has its own angle.
# </details>
#
# <details><summary>Hint 2: method</summary>
# Take the two columns a and b of x, and the cosines and sines of the positions; compute both new columns from the old ones, and stack them along dim=1.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 5.2 tags=["exercise"]
def my_rotation(x, positions):
    return ...  # your lines here


checks.rotate_pair(my_rotation)


# %% Exercise 5.2, a solution jupyter={"source_hidden": true} tags=["solution"]
# A solution: unfold it when you have tried
def rotation_solution(x, positions):
    a, b = x[:, 0], x[:, 1]
    c, s = positions.cos(), positions.sin()
    return torch.stack([a * c - b * s, a * s + b * c], dim=1)  # (S, 2)


checks.rotate_pair(rotation_solution)

# %% [markdown]
# ## Remember
#
# - Heads divide the width, not the sentence; split the axis, then swap; the parameters stay as many.
# - Attention alone does not know the order; positions are added to x, or q and k are rotated (RoPE).
# - With RoPE a score depends on content and distance; values are not rotated.
#
# **Next:** [6 · Tiny trainer and KV cache](06_tiny_trainer_and_kv_cache.ipynb)

# %% [markdown] tags=["further"]
# ## Further
#
# Everything below is optional.
#
# **Sinusoidal positions** are the fixed vectors that the first transformer added.
# Even columns hold sines, odd columns cosines, each pair at its own speed.

# %% Sinusoidal positions tags=["further"]
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

# %% [markdown] tags=["further"]
# **Two layouts of RoPE are in use.**
# The paper and Meta's own Llama code pair neighbours ("interleaved": 0 with 1, 2 with 3).
# GPT-NeoX and the Hugging Face port of Llama pair the two halves (0 with 2, 1 with 3); that port permutes W_Q and W_K to match.
# Both are right, and they are equal up to a fixed reordering of the columns; but a model trained with one must be run with it.

# %% Interleaved and half tags=["further"]
x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
at_one = torch.tensor([1])
print("interleaved", rope(x, at_one)[0])
print("half       ", rope(x, at_one, layout="half")[0])
order = [0, 2, 1, 3]
assert_close(rope(x, at_one, layout="half"), rope(x[:, order], at_one)[:, order])

# %% [markdown] tags=["further"]
# **Heads of the real model.** Different heads have learned different relations.
# Here is head 3 of block 1, counted from 1.

# %% A head that looks one token back tags=["further"]
readings = {reading.text: reading for reading in recorded_attention()}
reading = readings["He sat on the bank of the river."]
head = reading.weights[0, 2]  # (S, S): block 1, head 3
print(f"mean weight on the token before: {head.diagonal(-1)[:-1].mean():.2f}")
picture, axes = plots.panels(1, width=5.5, height=4)
plots.heatmap(axes, reading.tokens, reading.tokens, head, title="Block 1, head 3", numbers=False)
picture

# %% [markdown] tags=["further"]
# **Special tokens.** This model puts [CLS] before each text and [SEP] after it.
# Many heads rest on them when they have nothing to look for, so they soak up a good part of all attention.
# Whoever averages maps must know that first.

# %% What the special tokens soak up tags=["further"]
shares = [(r.weights[..., 0] + r.weights[..., -1]).mean(dim=(1, 2)) for r in readings.values()]
shares = torch.stack(shares)  # (sentences, L)
print("share of [CLS] and [SEP], by block:", shares.mean(dim=0).round(decimals=2))

# %% [markdown] tags=["further"]
# **An honest limit.** In "The animal didn't cross the street because it was too tired", head 2 of block 4 lets *it* look at *animal*.
# It is tempting to say that the head resolves the pronoun.
# Before you believe it, try "The trophy didn't fit in the suitcase because it was too big" (*it* is the trophy) and "... too small" (*it* is the suitcase).

# %% It, the trophy and the suitcase tags=["further"]
for text, reading in readings.items():
    if "it was too" in text:
        tokens = list(reading.tokens)
        from_it = reading.weights[3, 1, tokens.index("it")]  # (S_k,): block 4, head 2
        nouns = [w for w in tokens if w in ("animal", "street", "trophy", "suitcase")]
        looks = [f"{noun} {from_it[tokens.index(noun)]:.2f}" for noun in nouns]
        print(text.split("it was ")[1], *looks)

# %% [markdown] tags=["further"]
# The head stays on *trophy* both times, and prefers *animal* to *street* even when *it* was too wide: whatever it does, it does not settle what *it* means.
#
# **Your own sentences.** With the model installed (one command, 84 MB), the next cell reads them.

# %% A sentence of your own tags=["further", "nbval-ignore-output"]
# nbval ignores this output: it depends on whether the optional model is installed
try:
    print(read_sentence("The mole dug a hole.").tokens)
except ModuleNotFoundError as problem:
    print(problem)

# %% [markdown] tags=["further"]
# ### More exercises
#
# **Exercise 5.3, find the bug.** To lay the heads side by side again, somebody writes `x.reshape(B, S, H * d)` for `x` `(B, H, S, d)`.
# The shape is right. Write it so that the numbers are, too.
#
# <details><summary>Hint 1: nudge</summary>
# It is the classic mistake, backwards: in which order do the numbers lie in memory?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Undo the split: first swap H and S, then reshape.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 5.3 tags=["exercise", "further"]
def my_merge(x):
    return ...  # your line here


checks.merge(my_merge)


# %% Exercise 5.3, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def merge_solution(x):
    B, H, S, d = x.shape
    return x.transpose(1, 2).reshape(B, S, H * d)


checks.merge(merge_solution)

# %% [markdown] tags=["further"]
# **Exercise 5.4, predict two numbers.** How many parameters do W_Q, W_K, W_V and W_O have together, at width 768 with 12 heads? And with 24?
#
# <details><summary>Hint 1: nudge</summary>
# Did section 1 find more parameters with three heads than with one?
# </details>
#
# <details><summary>Hint 2: method</summary>
# A matrix from width 768 to width 768, four times. Or head by head: 768 rows and 768 / 12 columns, for three matrices and twelve heads, and W_O.
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 5.4 tags=["exercise", "further"]
with_12_heads = ...
with_24_heads = ...
checks.parameters_of_heads(with_12_heads, with_24_heads)

# %% Exercise 5.4, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
solution_12 = 12 * 3 * 768 * (768 // 12) + 768 * 768  # head by head, and W_O
solution_24 = 4 * 768 * 768  # all at once
assert solution_12 == solution_24
checks.parameters_of_heads(solution_12, solution_24)

# %% [markdown] tags=["further"]
# **Exercise 5.5, complete it.** `e` `(B, S, D)` holds B sentences of S words, and `p` `(M, D)` a vector for each of M positions, more than S.
# Add row i of `p` to word i of every sentence.
#
# <details><summary>Hint 1: nudge</summary>
# Two sentences, one word each at place 0: do they get the same position, or different ones?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Take S rows of p. Shapes are matched from the right, so (S, D) already fits (B, S, D).
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 5.5 tags=["exercise", "further"]
def my_positions(e, p):
    rows = ...  # which rows of p, in which shape?
    return e + rows


checks.add_positions(my_positions)


# %% Exercise 5.5, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def positions_solution(e, p):
    return e + p[: e.shape[1]]  # (B, S, D) + (S, D)


checks.add_positions(positions_solution)

# %% [markdown] tags=["further"]
# **Exercise 5.6, make a key.** Does RoPE simply favour near words? The query `q` is [1, 0.5]; it and its keys are rotated by one radian per position.
# Find a key `(2,)` that scores at least 0.5 *more* when it stands five positions before the query than when it stands at the query's own position.
#
# <details><summary>Hint 1: nudge</summary>
# A dot product is largest when two hands point the same way. Where does the hand of a key point that stands five positions earlier, seen from the query?
# </details>
#
# <details><summary>Hint 2: method</summary>
# The query will have been rotated five radians further than the key. Give the key those five radians from the start: turn(q, 5).
# </details>
#
# Hint 3 is the folded solution below.

# %% Exercise 5.6 tags=["exercise", "further"]
my_key = ...  # (2,)
checks.far_key(my_key)

# %% Exercise 5.6, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
key_solution = turn(torch.tensor([1.0, 0.5]), 5)  # (2,)
checks.far_key(key_solution)

# %% [markdown] tags=["further"]
# So near words are not favoured as such: content and distance decide together.
#
# **Exercise 5.7, build it.** One head with RoPE, without a mask: `q` and `k` are `(S, d)`, `v` is `(S, d_v)`, `positions` `(S,)` may have gaps.
# You may use `rope(x, positions)`. Return the output `(S, d_v)`.
#
# <details><summary>Hint 1: nudge</summary>
# Three matrices come in. Which of them depend on where a word stands?
# </details>
#
# <details><summary>Hint 2: method</summary>
# Rotate q and k by the positions given. Then score, scale, softmax, mix, as ever, with the values as they are.
# </details>
#
# Hint 3 is the folded solution below.


# %% Exercise 5.7 tags=["exercise", "further"]
def my_rope_attention(q, k, v, positions):
    return ...  # your lines here


checks.rope_attention(my_rope_attention)


# %% Exercise 5.7, a solution jupyter={"source_hidden": true} tags=["solution", "further"]
# A solution: unfold it when you have tried
def rope_attention_solution(q, k, v, positions):
    q, k = rope(q, positions), rope(k, positions)  # (S, d) each
    weights = (q @ k.T / q.shape[1] ** 0.5).softmax(dim=-1)  # (S_q, S_k)
    return weights @ v  # (S, d_v)


checks.rope_attention(rope_attention_solution)

# %% [markdown] tags=["further"]
# **Further reading.** Vaswani et al. 2017, *Attention Is All You Need*; Su et al. 2021, *RoFormer* (RoPE);
# Haviv et al. 2022, on causal models without positions; Jain and Wallace 2019 and Wiegreffe and Pinter 2019, on attention and explanation.

# %% My progress tags=["progress"]
progress(checks.exercises("05"), globals())
