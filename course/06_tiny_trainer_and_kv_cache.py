# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # 6 · Tiny trainer and KV cache
#
# **The question.** Who finds the numbers in W_Q, W_K and W_V?
# And once they are found, how does a model write text without computing everything again for each word?
#
# **Afterwards you can**
# - train a model, your own transformer among them, and say what its loss curve shows;
# - look at trained heads, take them out, and say why a large attention weight does not explain a prediction;
# - write with a KV cache, say why it is exact, and compute how much memory it takes.
#
# **Builds on** [notebook 4](04_softmax_and_values.ipynb) (the attention step) and [notebook 5](05_heads_and_positions.ipynb) (heads, blocks, RoPE).
# **Takes** about 60 minutes, with stopping points: *train*, *look inside*, then *generate*.

# %% [markdown] slideshow={"slide_type": "skip"}
# **Two questions from before.** Answer in your head, then unfold.
#
# <details><summary>What does the causal mask hide, and when is it needed?</summary>
# The future. It is needed when writing and in training, because each position is trained to predict the word after it.
# </details>
#
# <details><summary>Which of Q, K and V does RoPE rotate?</summary>
# Q and K. V is not rotated: in the first block, what a word hands over does not depend on where it stands. (Later blocks start from states in which that has left its trace.)
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
import tempfile
import time
from copy import deepcopy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from attnlab import (
    KVCache,
    MultiHeadAttention,
    TinyCausalAttention,
    TinyTransformer,
    attention,
    causal_mask,
    checks,
    generate,
    rope,
    train,
)
from attnlab.checks import assert_close
from attnlab.data import TOY_WORDS, corpus, decode, encode, recorded_ladder, toy_task
from attnlab.lab import Explorer, choice, plots, predict, progress, slider, toggle
from attnlab.lab.weighted_sum import WeightedSum
from attnlab.model import rms_norm
from attnlab.training import evaluate, seeded, train_seeds, training_steps

torch.set_num_threads(1)  # our tensors are tiny: a second thread would only wait for the first
torch.set_printoptions(sci_mode=False)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 1. Train
#
# The task is as small as it can be: after "river bank" comes *shore*, after "money bank" comes *loan*.
# Both phrases end in *bank*, so a model that sees only the last word can do no better than guess.
#
# > **Box: cross-entropy.** The loss is −ln p, where p is the probability the model gave to the right word.
# > p = 1 costs 0; p = 1/2 costs ln 2 = 0.6931; p near 0 costs a lot. It is measured in *nats*.
#
# > **Box: LayerNorm** ([Ba et al. 2016](https://arxiv.org/abs/1607.06450)) came before RMSNorm (notebook 5): for each position it first subtracts the mean of its numbers.

# %% The task, and a model in four lines slideshow={"slide_type": "subslide"}
inputs, targets = toy_task()  # ids (B, S) = (2, 2), and the right next word (B,)
shore, loan = targets.tolist()  # their ids
print("vocabulary:", ", ".join(TOY_WORDS))
model = seeded(TinyCausalAttention, 42)  # seed 42 fixes the random start; D = 12


def forward(ids):
    x = model.emb(ids)  # (B, S, D)
    steps = attention(model.q(x), model.k(x), model.v(x), causal_mask(ids.shape[1]))
    x = model.norm(x + model.o(steps.output))  # W_O, residual, LayerNorm (last, as in 2017)
    return model.lm_head(x)  # (B, S, vocab): one logit (score) for each word of the vocabulary


assert_close(forward(inputs), model(inputs))  # the package does the same
for phrase, answer in zip(inputs, targets):
    print(decode(phrase, TOY_WORDS), "->", TOY_WORDS[answer])

# %% Proof: what guessing costs jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
print(
    f"guessing among five words costs ln 5 = {math.log(5):.4f}, among two ln 2 = {math.log(2):.4f}"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# > **Box: a gradient step.** For each parameter, the derivative of the loss says which way is downhill.
# > Take a small step that way; its size is the *learning rate*. Then measure the loss again.
# > Adam ([Kingma and Ba 2015](https://arxiv.org/abs/1412.6980)) is a popular rule for choosing the step of each parameter. In PyTorch it is an *optimizer*, which holds the parameters and moves them.

# %% Vote: the untrained model jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
start_vote = predict(
    "Guessing all five words alike would cost ln 5 = 1.6094. Is the untrained model better or worse than that?",
    {
        "better": "It knows nothing yet. Where its guesses differ, they differ at random.",
        "worse": "Its guesses are uneven, and being sure of a wrong word costs more than being sure of the right one saves.",
        "the same": "Then its guesses would have to be even, and a random start makes them uneven.",
    },
    key="2.02",
)
start_vote

# %% The training loop slideshow={"slide_type": "subslide"}
model = seeded(TinyCausalAttention, 42)  # a new start whenever this cell runs
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
losses = []
for _ in range(201):
    logits = model(inputs)[:, -1]  # (B, vocab): only the last position is asked here
    loss = F.cross_entropy(logits, targets)  # softmax, then -ln p, then the mean
    losses.append(loss.item())  # a plain number, not a tensor
    optimizer.zero_grad()  # forget the old derivatives
    loss.backward()  # compute all derivatives
    optimizer.step()  # the small step downhill

first_below = next((i for i in range(201) if max(losses[i:]) < 0.01), "no step")
print(f"loss at the start {losses[0]:.4f}; below 0.01 from step {first_below} on")
print("ends below 0.0001:", losses[-1] < 1e-4)

# %% Proof: the package trains the same way jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
same = train(seeded(TinyCausalAttention, 42), inputs, targets, steps=20, lr=0.03)
assert_close(torch.tensor(same.losses), torch.tensor(losses[:20]))
assert abs(losses[-1] - 6e-5) < 2e-5

# %% What is behind it: the untrained model jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
start = seeded(TinyCausalAttention, 42)(inputs)[:, -1].softmax(dim=-1)  # (B, vocab)
start_vote.reveal(
    "worse" if losses[0] > math.log(5) else "better",
    f"""
It starts at {losses[0]:.4f}: this start gives *river* {start[:, 0].mean():.2f}, which is never right.
It is not bad luck: two of three starts are worse than even guesses, because being unsure in an uneven way costs more than it saves (the mean of −ln p is at least −ln of the mean).
Then it learns both phrases within a few steps.
""",
)

# %% Proof: two of three starts are worse than even guesses jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
first_losses = [
    F.cross_entropy(seeded(TinyCausalAttention, start)(inputs)[:, -1], targets).item()
    for start in range(100)
]
assert 0.55 < sum(first > math.log(5) for first in first_losses) / 100 < 0.78

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### The floor without context
#
# Was attention needed for that?
# Set W_V to zero and do not let it learn: then nothing can flow from one word to another.

# %% Vote: how low without context? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
floor_vote = predict(
    "W_V is held at zero. How low can the loss go now?",
    {
        "to 0": "Both phrases end in bank, and nothing else arrives: the model must guess.",
        "to ln 2, about 0.69": "Both phrases end in bank: shore and loan get one half each.",
        "to ln 5, about 1.61": "It can still learn that only shore and loan ever follow.",
    },
    key="0.6932",
)
floor_vote


# %% Train without context slideshow={"slide_type": "subslide"}
def hold_at_zero(model, *names):
    for name in names:
        weight = getattr(model, name).weight
        weight.data.zero_()
        weight.requires_grad_(False)
    return model


blind = hold_at_zero(seeded(TinyCausalAttention, 42), "v")
blind_losses = train(blind, inputs, targets, steps=201, lr=0.03).losses
p = blind(inputs)[:, -1].softmax(dim=-1)  # (B, vocab)
looks = blind.steps(inputs).weights[1, 1, 0]
print(f"bank gives money {looks:.2f}, whose value is zero")
print(
    f"W_V = 0: ends at {blind_losses[-1]:.4f}; p(shore) {p[0, shore]:.2f}, p(loan) {p[0, loan]:.2f}"
)

# %% Two runs jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, axes = plots.panels(1, width=6)
curve = plots.curves(axes, ["with context", "W_V = 0"], "Two runs", xlim=(0, 200), ylim=(0, 2.2))
curve.level(math.log(2), "ln 2")
curve.update(**{"with context": losses, "W_V = 0": blind_losses})
picture

# %% What is behind it: how low without context jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
levels = {"to 0": 0.0, "to ln 2, about 0.69": math.log(2), "to ln 5, about 1.61": math.log(5)}
floor_vote.reveal(
    min(levels, key=lambda name: abs(blind_losses[-1] - levels[name])),
    """
It stops at 0.6932, a hair above ln 2 = 0.6931, with both words at 0.50: a fair coin.
That line is the **floor without context**; whatever is below it was bought by attention.
*bank* gives *money* 0.55 and gets nothing for it: an attention weight on a value of zero carries nothing, as notebook 4 promised.
""",
)

# %% [markdown] slideshow={"slide_type": "skip"}
# *Stopping point: about 11 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 2. Where does it look?
#
# The model is right both times. So *bank* looks at *river* in one phrase and at *money* in the other?

# %% Vote: how much does river get? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
weight_vote = predict(
    "The model knows “river bank -> shore”. How large is the weight that bank gives to river?",
    {
        "about 1": "A person would look there; this model need not.",
        "about 0.5": "That is what it gets when all scores are equal.",
        "about 0": "One signal is enough to tell two cases apart.",
    },
    key="about 0",
)
weight_vote

# %% Look at the attention weights slideshow={"slide_type": "subslide"}
weights = model.steps(inputs).weights  # (B, S, S), of the model trained above
p = model(inputs)[:, -1].softmax(dim=-1)
for i, word in enumerate(["river", "money"]):
    looks, itself = weights[i, 1].tolist()
    print(
        f"{word} bank: weight on {word} {looks:.2f}, on itself {itself:.2f};",
        f"p({TOY_WORDS[targets[i]]}) > 0.99: {bool(p[i, targets[i]] > 0.99)}",
    )
alone = model(encode("bank bank", TOY_WORDS)[None])[0, -1].softmax(dim=-1)  # (vocab,)
print("bank bank: p(shore) > 0.99:", bool(alone[shore] > 0.99))

# %% What is behind it: how much river gets jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
on_river = weights[0, 1, 0]
weight_vote.reveal(
    "about 1" if on_river > 0.9 else "about 0" if on_river < 0.1 else "about 0.5",
    """
In "money bank" it is 1.00. In "river bank" it is **0.00**, and *shore* is predicted all the same.

The model needs to tell two cases apart, and *one* signal is enough:
"money arrived" means *loan*; "only bank arrived" means *shore*. Indeed, "bank bank" gives *shore* too.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### No choice of where to look
#
# And we can take away the choice altogether.

# %% Without any choice of where to look slideshow={"slide_type": "subslide"}
even = hold_at_zero(seeded(TinyCausalAttention, 42), "q")  # all scores 0: weights 0.50 and 0.50
even_losses = train(even, inputs, targets, steps=201, lr=0.03).losses
print("W_Q = 0: weights of bank", even.steps(inputs).weights[0, 1].tolist())
print("ends below 0.0001:", even_losses[-1] < 1e-4)

# %% Proof: as low as with attention jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert abs(even_losses[-1] - 7e-5) < 2e-5

# %% [markdown] slideshow={"slide_type": "subslide"}
# The loss goes just as low. Now the attention weights are the same in both phrases, so only the *values* can tell them apart.
#
# Of twenty other starts 15 look where a person would and 5 do not, and all are equally right (*Further*).
# **Attention weights alone do not explain a prediction**: values, projections, the residual path, later blocks and the output layer all have a part in it.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 3. Your transformer learns a language
#
# In notebook 5 you wrote a transformer. If `my_model.py` lies beside this notebook and its numbers are right, **it is what gets trained now**; otherwise the package's, which is the same.
# The language is the small generated one of notebook 1. All positions are trained at once: position t predicts word t + 1, from the words up to t.
# The language is finite, so the best possible loss is known *exactly*.
#
# > **Box: `state_dict`.** All parameters of a model, by name. `load_state_dict` writes them into another model of the same shape.

# %% Whose model? slideshow={"slide_type": "subslide"}
own_model, said = checks.load_model()
print(said)
Model = own_model or TinyTransformer

# %% Keep some steps (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
snapshots = {}  # step -> the parameters then


def keep(step, loss):
    if step in (0, 20, 60, 149):
        snapshots[step] = {name: x.clone() for name, x in trained.state_dict().items()}


# %% Train it slideshow={"slide_type": "subslide"}
language = corpus()
floors = language.floors()


def make():
    return TinyTransformer(len(language.words), width=32, n_heads=4, n_layers=2, max_length=64)


trained = Model(len(language.words), 32, 4, 2, 64)
trained.load_state_dict(seeded(make, 0).state_dict())  # the same start for yours and the package's


def batches(step, generator):
    sentences = language.sample(48, generator)  # (B, 10)
    return sentences[:, :-1], sentences[:, 1:]  # each position predicts the next word


def warm_up_and_cool_down(step):  # factor for the learning rate: small first, small last
    return min((step + 1) / 20, 1) * (1 + math.cos(math.pi * step / 150)) / 2


history = train(trained, batches, steps=150, lr=0.02, schedule=warm_up_and_cool_down, on_step=keep)
transformer = make()
transformer.load_state_dict(trained.state_dict())  # your parameters, to look inside

# %% The loss, and what is possible slideshow={"slide_type": "subslide"}
held_out = language.sample(1000, torch.Generator().manual_seed(1))
loss = evaluate(transformer, held_out[:, :-1], held_out[:, 1:])
best = language.exact_loss(held_out).mean().item()
print(
    "best possible loss:",
    ", ".join(f"{name} {floor:.3f}" for name, floor in floors._asdict().items()),
)
print("the model is within 3 % of the best:", loss < 1.03 * best)

# %% The loss and its floors as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
picture, axes = plots.panels(1, width=6)
curve = plots.curves(axes, ["loss"], "Two blocks", xlim=(0, 150), ylim=(0, 4.6))
curve.level(floors.none, "no word")
curve.level(floors.one_word, "one word")
curve.level(floors.full, "all words before", below=True)  # the curve comes from above
curve.update(loss=history.losses)
picture

# %% Proof: the package holds the same model jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
with torch.no_grad():
    assert_close(transformer(held_out[:5]), trained(held_out[:5]), atol=1e-4)

# %% [markdown] slideshow={"slide_type": "subslide"}
# The three dotted lines are the best that is possible with no word of context (only its position), with the word before, and with all.
# The curve goes down to the lowest: the model uses the whole sentence.
#
# ### The ladder: what each part is worth
#
# Take the transformer apart and build it up again, one part at a time. Each rung has a floor, the best that is possible with what it sees.

# %% Vote: the most useful part jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
ladder_vote = predict(
    "One attention head, then several heads, + residual, + MLP, + norm, + a second block. Which step lowers the loss most?",
    {
        "from one head to several": "With one softmax, one head must look for the person and for its neighbours at once.",
        "the MLP": "Most of the parameters are there, but little is left to gain in so small a language.",
        "the second block": "It can look at what the first one has collected; here one look is nearly enough.",
    },
    key="several heads .8",
)
ladder_vote

# %% The ladder (recorded: five starts of each) slideshow={"slide_type": "subslide"}
ladder = recorded_ladder()
for rung in ladder:
    mean = sum(rung.results) / 5
    print(f"{rung.name:14} loss {mean:.2f}, floor {rung.best:.2f}, above it {mean - rung.best:.2f}")

# %% The ladder as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
picture, axes = plots.panels(1, width=9.5, height=2.6)
above = [sum(rung.results) / 5 - rung.best for rung in ladder]
plots.bars(axes, [rung.name for rung in ladder], above, "Loss above the floor", (0, 0.6), digits=2)
picture

# %% Proof: one rung, trained again jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
n_words = len(language.words)
one_word = seeded(
    lambda: nn.Sequential(nn.Embedding(n_words, 32), nn.Linear(32, n_words, bias=False)), 0
)
train(one_word, batches, steps=150, lr=0.02, schedule=warm_up_and_cool_down)


def exact(model):
    sentences = language.sentences
    with torch.no_grad():
        losses = F.cross_entropy(
            model(sentences[:, :-1]).transpose(1, 2), sentences[:, 1:], reduction="none"
        ).mean(dim=1)
    return (language.probabilities @ losses.double()).item()


assert abs(exact(one_word) - ladder[1].results[0]) < 0.02
assert abs(exact(transformer) - ladder[-1].results[0]) < 0.02

# %% What is behind it: the most useful part jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
names = {3: "from one head to several", 5: "the MLP", 7: "the second block"}
drops = {at: above[at - 1] - above[at] for at in names}
ladder_vote.reveal(
    names[max(drops, key=drops.get)],
    """
One head is far from its floor after 150 steps, and with patience it would come near: what several heads buy is *time*.
The residual connection and the MLP add a little; the norm and the second block gain no more here than one start differs from the next.
In a deep model they decide whether it can be trained at all.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### What its heads look at, and what it says
#
# Scrub through the training: the eight heads, for *bank* in a sentence, and what the model writes at that step.

# %% Explorer: heads and words while it learns jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["explorer"]
# Unfold to see and to change what is drawn
prompts = ["a fisherman saw that small bank", "a banker saw that small bank"]
stages = {"0": 0, "20": 20, "60": 60, "150": 149}
at_stage = {}
for stage, at in stages.items():
    at_stage[stage] = make()
    at_stage[stage].load_state_dict(snapshots[at])
picture, (left, right) = plots.panels(2, width=9.5, height=2.9, ratios=[1.5, 1])
heads = [f"{block}.{head}" for block in (1, 2) for head in (1, 2, 3, 4)]
looks = plots.heatmap(
    left, heads, prompts[0].split(), title="bank attends to", names=("head", ""), digits=1
)
following = ["crumble", "flood", "fail", "lend"]
next_bars = plots.bars(right, following, limits=(0, 1.1), digits=1, title="next word")


@torch.no_grad()
def show(step, prompt, temperature, top_k, seed):
    model, ids = at_stage[step], encode(prompt, language.words)[None]  # (1, S)
    looks.relabel(heads, prompt.split())
    looks.update(torch.cat([block.weights[0, :, -1] for block in model.steps(ids)]))  # (8, S)
    p = (model(ids)[0, -1] / temperature).softmax(dim=-1)  # (vocab,)
    next_bars.update([p[language.words.index(word)] for word in following])
    word = language.words[p.argmax()]
    generator = torch.Generator().manual_seed(seed)
    text = generate(model, ids, 4, temperature=temperature, top_k=top_k, generator=generator)
    written = decode(text[0], language.words)
    sentence = f"Step {step}: after bank comes {word} with {p.max():.1f}. It writes: {written}."
    return sentence, step == "150" and word == "fail" and written.split()[:2] == ["a", "banker"]


reading = Explorer(
    picture,
    show,
    goal="Find the step at which the heads begin to look at the person, and make the trained model say that a bank failed.",
    step=choice(list(stages)),
    prompt=choice(prompts),
    temperature=slider(0.1, 2.0, 1.0),
    top_k=choice([1, 3, 10], 3),
    seed=slider(0, 20, 0),
    more=["seed", "top_k"],
)
reading

# %% Stills: heads at the end jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
reading.stills({"step": "20"}, {"step": "150"}, {"step": "150", "prompt": prompts[1]})

# %% Proof: three heads look at the fisherman jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
with torch.no_grad():
    onto = [
        s.weights[0, :, -1, 1] for s in transformer.steps(encode(prompts[0], language.words)[None])
    ]
assert sum(int((weights > 0.8).sum()) for weights in onto) == 3 and onto[0][2] > 0.9

# %% [markdown] slideshow={"slide_type": "subslide"}
# At the end *bank* gives *fisherman* more than 0.8 in three of the eight heads. Nobody told them to look there.
#
# *Stopping point: about 27 minutes.*

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 4. Taken apart
#
# After *bank*, *mole* and the other ambiguous words, the right word depends on the person, four words before.
# Set a matrix to zero, or take out a head, and count how often that word is still right.
#
# > **Box: `torch.no_grad()`.** Within it, or in a function below `@torch.no_grad()`, nothing is kept for a gradient: for all that is not training.

# %% Vote: which matrix is missed most jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
zeroed_vote = predict(
    "After training we set one matrix to zero. Which costs the most right words?",
    {
        "W_Q": "All scores become 0, so all words count alike: the person is still in that average, faintly.",
        "W_K": "All scores become 0, as with W_Q: all words count alike, and the person is still in that average.",
        "W_V": "Nothing flows between words any more: what is left is the guess from the ambiguous word alone.",
    },
    key="nothing flow",
)
zeroed_vote

# %% How often is the word after bank right? slideshow={"slide_type": "subslide"}
after = language.position + 1  # the place after the ambiguous word
known, answers = language.sentences[:, :after], language.sentences[:, after]


@torch.no_grad()
def share_right(model, ids=known, mask=None):
    right = model(ids, mask)[:, -1].argmax(dim=-1) == answers
    return (language.probabilities @ right.double()).item()  # exact: over the whole language


# %% Set a matrix to zero (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
def zeroed(name):
    model = deepcopy(transformer)
    for block in model.blocks:
        getattr(block.attention, name).weight.data.zero_()
    return model


# %% Right words slideshow={"slide_type": "subslide"}
rates = {"trained": share_right(transformer)}
rates |= {f"{W.upper()} = 0": share_right(zeroed(W)) for W in ("w_q", "w_k", "w_v")}
itself_only = torch.eye(after, dtype=torch.bool)  # each word attends to itself only
rates["context hidden"] = share_right(transformer, mask=itself_only)
picture, axes = plots.panels(1, width=8, height=2.4)
plots.bars(axes, list(rates), list(rates.values()), "Right words", (0, 0.85), digits=1)
print(f"trained: right {rates['trained']:.1f} of the time; the language itself leaves a choice")
picture

# %% Proof: what is left without the context jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
pair = known[:, -1], answers  # ambiguous word, next word
both_words = torch.zeros(len(language.words), len(language.words)).index_put(
    pair, language.probabilities.float(), accumulate=True
)  # P(word, next word)
word_alone = both_words.amax(dim=1).sum().item()
assert round(word_alone, 2) == 0.32 and abs(rates["W_V = 0"] - word_alone) < 0.03
assert abs(rates["trained"] - 0.7) < 0.05 and rates["W_V = 0"] < rates["W_Q = 0"] < 0.65
assert abs(rates["context hidden"] - rates["W_V = 0"]) < 0.15
with torch.no_grad():
    assert torch.equal(zeroed("w_q")(known), zeroed("w_k")(known))

# %% What is behind it: which matrix is missed most jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
zeroed_vote.reveal(
    min(("W_Q", "W_K", "W_V"), key=lambda name: rates[f"{name} = 0"]),
    """
W_V = 0 lets nothing flow between words: what is left is the best guess from the ambiguous word alone, 0.32.
W_Q = 0 and W_K = 0 are the same: either makes every score 0, so all words count alike, as in the average of notebook 1.
The person is in that average, faintly.
A hidden context is about as bad as W_V = 0. Whether a little better or worse differs from one start to the next.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Take out a head
#
# A head writes into the sum that becomes the next hidden state. To **knock it out**, its output is replaced by its mean, so that only what it *tells apart* is gone.
# The effect is how much the loss rises, where the context decides. Beside it: how much attention *bank* and the others give to the person.


# %% Take out a head (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
@torch.no_grad()
def loss_after(model):
    losses = F.cross_entropy(model(known)[:, -1], answers, reduction="none")
    return (language.probabilities @ losses.double()).item()


def knocked_out(block, head, fill="mean"):
    """The loss with one head's output replaced by its mean over the language, or by zero."""
    model, columns = deepcopy(transformer), slice(8 * head, 8 * head + 8)

    def replace(module, arguments):
        (merged,) = arguments  # (B, S, D): the heads side by side, before W_O
        merged = merged.clone()
        mean = torch.einsum("b,bsd->sd", language.probabilities.float(), merged[..., columns])
        merged[..., columns] = mean if fill == "mean" else 0.0
        return (merged,)

    model.blocks[block].attention.w_o.register_forward_pre_hook(replace)
    return loss_after(model)


# %% Weight and effect of every head jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how the table is made
whole = loss_after(transformer)
with torch.no_grad():
    on_person = [
        (steps.weights[:, :, -1, 1].T @ language.probabilities.float()).tolist()  # (H,)
        for steps in transformer.steps(known)
    ]
effects = [[knocked_out(block, head) - whole for head in range(4)] for block in range(2)]
print("head  weight on the person  effect: mean, zero")
for block in range(2):
    for head in range(4):
        zero = knocked_out(block, head, "zero") - whole
        print(
            f"{block + 1}.{head + 1}   {on_person[block][head]:.1f}",
            f"                   {effects[block][head]:.1f}, {zero:.1f}",
        )

# %% Weight against effect jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
picture, (left, right) = plots.panels(2, width=9.5, height=2.4)
names = [f"{block}.{head}" for block in (1, 2) for head in (1, 2, 3, 4)]
plots.bars(left, names, sum(on_person, []), "Weight on the person", (0, 1.1), digits=1)
plots.bars(right, names, sum(effects, []), "Loss without the head", (0, 0.4), digits=1)
picture

# %% Proof: the head that looks most is not the one that is missed most jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
flat_weight, flat_effect = torch.tensor(sum(on_person, [])), torch.tensor(sum(effects, []))
assert flat_weight.argmax() != flat_effect.argmax()
assert flat_effect[flat_weight.argmax()] < 0.05 and flat_effect.max() > 0.1

# %% [markdown] slideshow={"slide_type": "subslide"}
# The head that looks most at the person can be taken out for nothing; the one that is missed most looks there less.
# In five starts out of five the two are different heads (*recorded*). This is the method behind "attention is not explanation":
# a weight says where a head looks; only taking it out says what that is worth.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## 5. Generate, and remember keys and values

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Write one word at a time
#
# Take the logits of the last position, choose a word, append it, start again.
#
# > **Box: `argmax`.** The place of the largest number along an axis: here the id of the most likely word. `keepdim=True` leaves that axis there, with length 1.

# %% Vote: the same last four words jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
person_vote = predict(
    "“a fisherman saw that small bank …” and “a banker saw that small bank …”: will the next word be the same?",
    {
        "yes: the last four words are the same": "The model reads all words so far, through attention.",
        "no: the person decides": "The difference comes from the second word, four words before bank.",
    },
    key="crumble",
)
person_vote


# %% Greedy generation: loop, then package slideshow={"slide_type": "subslide"}
def write(text, n_new):
    ids = encode(text, language.words)[None]  # (1, S)
    for _ in range(n_new):
        logits = transformer(ids)[:, -1]  # (1, vocab)
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)  # (1, S + 1)
    return ids


for person in ("fisherman", "banker"):
    prompt = f"a {person} saw that small bank"
    ids = write(prompt, 1)
    assert torch.equal(ids, generate(transformer, encode(prompt, language.words)[None], 1))
    print(decode(ids[0], language.words))

# %% What is behind it: the same last four words jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
people = ("fisherman", "banker")
next_words = [
    decode(write(f"a {person} saw that small bank", 1)[0, -1:], language.words) for person in people
]
person_vote.reveal(
    "no: the person decides"
    if len(set(next_words)) == 2
    else "yes: the last four words are the same",
    "*crumble* and *fail*: the difference came from the second word, through attention.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### What stays the same
#
# This loop computes every position again for each new word.
# Must it? Append a word, and compare what the old positions computed.

# %% Vote: what does the cache cost in precision? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
cache_vote = predict(
    "Suppose we keep the keys and values of the old words instead of computing them again. How far apart are the logits after ten words?",
    {
        "far: each new word changes the old keys": "Old words cannot see the new one, so nothing about them changes.",
        "a little, and it grows with each word": "Nothing is left out: old keys and values are what they would be anyway.",
        "a little, since old queries were dropped": "Old queries are never asked again: only the newest position is read.",
        "not at all, but for rounding": "Nothing is left out, and nothing old can see the new word.",
    },
    key="exact",
)
cache_vote

# %% Append a word: what changes at the old positions? slideshow={"slide_type": "subslide"}
x = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(0))  # (B, S, D)
layer = seeded(lambda: MultiHeadAttention(12, 3), 0)


def moved(mask4, mask5):
    """Largest change of the first four outputs when a fifth word is appended."""
    with torch.no_grad():
        return (layer(x[:, :4], mask=mask4).output - layer(x, mask=mask5).output[:, :4]).abs().max()


print("causal model: old positions move:", bool(moved(causal_mask(4), causal_mask(5)) > 1e-5))
print("encoder:      old positions move:", bool(moved(None, None) > 1e-5))

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### A cache
#
# With a cache of keys and values, a new word costs one query, one key and one value per head and block.
# The query needs one row of attention weights, times the matrix V: a weighted sum of its rows, as always.

# %% One head with a cache, by hand slideshow={"slide_type": "subslide"}
W_Q, W_K, W_V = torch.randn(3, 12, 4, generator=torch.Generator().manual_seed(1))  # (D, d) each
K, V = torch.empty(0, 4), torch.empty(0, 4)
for t in range(5):  # cat copies the past at every step; a KVCache reserves its room beforehand
    new = x[0, t : t + 1]  # (1, D)
    K = torch.cat([K, new @ W_K])  # (t + 1, d): append the new key
    V = torch.cat([V, new @ W_V])  # (t + 1, d): append the new value
    cached = attention(new @ W_Q, K, V).output  # (1, d): the new query meets all keys
    whole = attention(x[0] @ W_Q, x[0] @ W_K, x[0] @ W_V, causal_mask(5)).output[t]
    assert_close(cached[0], whole)
print("cached and uncached outputs agree at all 5 steps")

# %% A cached step as a picture jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"}
# Unfold to see how it is drawn
row = attention(x[0, 2:3] @ W_Q, K[:3], V[:3]).weights[0]  # (3,): of the third word
picture, axes = plots.panels(1, width=9.5, height=2.7)
parts_named = ("attention weights", "cached values", "values, scaled", "output of the new word")
WeightedSum(axes, ["first", "second", "new"], row, V[:3], "The third word", parts_named, (-4, 8))
picture

# %% The whole model with a KVCache slideshow={"slide_type": "subslide"}
sentence = language.sample(1, torch.Generator().manual_seed(3))  # (1, 10)
cache = transformer.new_cache(batch=1, capacity=10)
largest = 0.0
with torch.no_grad():
    for t in range(10):
        cached = transformer(sentence[:, t : t + 1], cache=cache)[:, -1]  # one new token
        uncached = transformer(sentence[:, : t + 1])[:, -1]  # everything again
        largest = max(largest, (cached - uncached).abs().max().item())
print("largest difference of any logit below 0.00001:", largest < 1e-5)
print(cache)

# %% What is behind it: what the cache costs in precision jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
cache_vote.reveal(
    "not at all, but for rounding" if largest < 1e-5 else "a little, and it grows with each word",
    """
In a causal model old positions cannot see the new word, so nothing about them changes: not their outputs, hence not their keys and values in the next block either.
**Keep them.** Old *queries* are never asked again, so they need not be kept.
In an encoder the outputs move, and so do the keys and values of every later block.

The cache is **exact**, not an approximation; what is left is rounding.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Break it
#
# A cache is a promise that the past does not change.

# %% Vote: what does an edit spoil? jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["predict"]
# Vote before you unfold: the reasons stand in here
stale_vote = predict(
    "We change the second of ten words and keep the cache. Which of the cached keys of block 2, one per word, are wrong now?",
    {
        "none": "The cache does not notice: it still holds what the old word has left behind.",
        "the second": "True in block 1. In block 2 others have looked at that word.",
        "the second and all to its right": "Those words have looked at it, so their own keys depend on it.",
        "all ten": "The first word cannot see the second: the model is causal.",
    },
    key="to its right",
)
stale_vote

# %% Edit an early word slideshow={"slide_type": "subslide"}
edited = sentence.clone()
edited[0, 1] = language.words.index("banker")
print("cached:", decode(sentence[0], language.words))
print("edited:", decode(edited[0], language.words))
recomputed = transformer.new_cache(1, 10)
with torch.no_grad():
    transformer(edited, cache=recomputed)
change = (recomputed.keys - cache.keys).abs()  # (layers, B, H, S, d)
stale = change.amax(dim=(1, 2, 4)) > 1e-5  # largest change of each key: (layers, S)
columns = decode(edited[0], language.words).split()  # one column of the cache per word
print("stale in block 1:", *(word for word, bad in zip(columns, stale[0]) if bad))
print("stale in block 2:", *(word for word, bad in zip(columns, stale[1]) if bad))

# %% What is behind it: what an edit spoils jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["reveal"]
# Run this cell when you have voted
names = {0: "none", 1: "the second", 9: "the second and all to its right", 10: "all ten"}
stale_vote.reveal(
    names.get(int(stale[1].sum()), "another number"),
    """
In block 1 only the edited word's own key is wrong.
In block 2 that word and everything **to its right** are stale, because those words had looked at it. With the values it is the same.
Appending never does that; editing does.
""",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### What it saves, and what it costs
#
# Without a cache the t-th word costs t² scores in each head, with it t: for the 512th word 512 instead of 262,144 (131,328 of which the causal mask leaves).
# The price is memory: two vectors, a key and a value, for each position, in each head of each layer.
# A prompt can be read at once (**prefill**); after that each new word needs the whole cache (**decode**), so reading memory is what serving waits for.
# *Further* counts the bytes.
#
# *Stopping point: about 45 minutes.*

# %% Proof: the numbers of scores jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert 512**2 == 262_144 and sum(range(1, 513)) == 131_328 == int(causal_mask(512).sum())

# %% [markdown] slideshow={"slide_type": "skip"}
# ## Exercises
#
# **Exercise 6.1.** One step of one head with a cache.
# `q_new`, `k_new` are `(1, d)`, `v_new` is `(1, d_v)`, the cache so far is `K` `(S, d)` and `V` `(S, d_v)`.
# Return the output `(1, d_v)`, the new K and the new V.
#
# <details><summary>Hint 1: nudge</summary>
# May the new word attend to itself? Then what must happen first?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# One word is cached, d = d_v = 1: K = [[2]], V = [[6]]. The new one has query [[0]], key [[3]], value [[10]].
# Append first: K = [[2], [3]], V = [[6], [10]]. The scores are 0 · 2 and 0 · 3, the weights 1/2 and 1/2, the output 6/2 + 10/2 = 8.
# </details>


# %% Exercise 6.1 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_decode_step(q_new, k_new, v_new, K, V):
    return ...  # your lines here


checks.decode_step(my_decode_step)


# %% Exercise 6.1, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def decode_step_solution(q_new, k_new, v_new, K, V):
    K, V = torch.cat([K, k_new]), torch.cat([V, v_new])  # (S + 1, d), (S + 1, d_v)
    weights = (q_new @ K.T / q_new.shape[-1] ** 0.5).softmax(dim=-1)  # (1, S + 1)
    return weights @ V, K, V


checks.decode_step(decode_step_solution)

# %% [markdown] slideshow={"slide_type": "skip"}
# **Exercise 6.2, take out a head.** `heads` `(B, H, S, d)` are the outputs of all heads. Return them with head number `out` replaced by its mean over the batch, at each position.
# Leave `heads` itself as it is.
#
# <details><summary>Hint 1: nudge</summary>
# Over which axis is the mean? What stays of the axes is one output for each position.
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Two sentences of one word, two heads of width 1: `heads` = [[[[1.]], [[5.]]], [[[3.]], [[9.]]]]. Without head 0, both sentences get (1 + 3) / 2 = 2 there: [[[[2.]], [[5.]]], [[[2.]], [[9.]]]].
# </details>


# %% Exercise 6.2 slideshow={"slide_type": "skip"} tags=["exercise"]
def my_knock_out(heads, out):
    changed = heads.clone()
    changed[:, out] = ...  # what comes in its place?
    return changed


checks.knock_out(my_knock_out)


# %% Exercise 6.2, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution"]
# A solution: unfold it when you have tried
def knock_out_solution(heads, out):
    changed = heads.clone()
    changed[:, out] = heads[:, out].mean(dim=0)  # (S, d), the same for all of the batch
    return changed


checks.knock_out(knock_out_solution)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Remember
#
# - Training finds W_Q, W_K and W_V; ln 2 was the floor without context, and attention broke through it.
# - A weight says where a head looks, a knock-out what that is worth: attention weights alone do not explain a prediction.
# - The KV cache keeps keys and values, never queries; it is exact, until an early word is edited.
#
# You have come from a table of rows to a model that you wrote, trained and took apart. Back to the start: [1 · Static embeddings](01_static_embeddings.ipynb)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## The eight questions again
#
# The same as at the beginning of notebook 1. Type your letters, run the second cell, and see both answers side by side.

# %% The eight questions, again slideshow={"slide_type": "skip"} tags=["further"]
checks.eight_questions.ask()

# %% Your eight letters, again slideshow={"slide_type": "skip"} tags=["further"]
my_last_answers = "????????"
checks.eight_questions.compare(my_last_answers)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ## Further
#
# Everything below is optional.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Is seed 42 an odd one?** Ask twenty others.

# %% Twenty starts slideshow={"slide_type": "skip"} tags=["further"]
seeds = range(20)
models, band = train_seeds(TinyCausalAttention, inputs, targets, seeds=seeds, steps=201, lr=0.03)
looks = torch.stack([m.steps(inputs).weights[:, 1, 0] for m in models]).detach()  # (20, B)
both = int((looks > 0.5).all(dim=1).sum())
print(
    f"{both} of 20 look at the context word in both phrases, {20 - both} do not;",
    "largest final loss below 0.0001:",
    bool(band[:, -1].max() < 1e-4),
)
picture, axes = plots.panels(1, width=6, height=2.8)
curve = plots.curves(axes, ["middle one"], "Loss of twenty starts", xlim=(0, 60), ylim=(0, 3))
curve.level(math.log(2), "ln 2")
curve.band(range(201), band.amin(dim=0), band.amax(dim=0))
curve.update(**{"middle one": band.median(dim=0).values})
picture

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# The line is the median, and the band reaches from the best start to the worst.
# 15 look where a person would, 5 do not, and all are equally right.

# %% Proof: fifteen of twenty jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
assert both == 15

# %% Explorer: retrain, then scrub through the training (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
inputs, targets = toy_task()
shore, loan = targets.tolist()
picture, (left, middle, right, last) = plots.panels(4, ratios=(4, 3, 3, 2))
log = {"x": "step (log scale)", "xscale": "symlog"}  # most of it happens in the first ten
curve = plots.curves(left, ["loss"], "Loss", xlim=(0, 200), ylim=(0, 2.5), **log)
curve.level(math.log(2), "ln 2: no context")
river_heat = plots.heatmap(middle, ["river", "bank"], ["river", "bank"], title="river bank")
money_heat = plots.heatmap(right, ["money", "bank"], ["money", "bank"], title="money bank")
probabilities = plots.bars(last, ["shore", "loan"], title="Probability")
runs = {}  # settings -> model, its training so far, where it was stopped; only the last is kept


def show(W_Q, W_K, W_V, learns, lr, seed, steps, at):
    settings = (W_Q, W_K, W_V, learns, lr, seed, steps)
    if settings not in runs:
        model = seeded(TinyCausalAttention, seed)
        for name, start in zip("qkv", (W_Q, W_K, W_V)):
            weight = getattr(model, name).weight
            if start != "random":
                weight.data.copy_(torch.eye(12) if start == "identity" else torch.zeros(12, 12))
            weight.requires_grad_(learns in ("all", f"only W_{name.upper()}"))
        runs.clear()
        runs[settings] = model, training_steps(model, inputs, targets, lr=lr), [], [], []
    model, training, losses, parameters, stopped = runs[settings]
    while len(losses) <= steps and not stopped:
        step, loss = next(training)  # goes on where a moved knob left off
        losses.append(loss)
        now = {name: p.clone() for name, p in model.state_dict().items()}
        parameters.append(now)  # the model at this step
        if step % 10 == 0:
            curve.update(loss=losses)
            if (yield f"Training: step {step} of {steps}, loss {loss:.3f}."):  # Stop was pressed
                stopped.append(f"Stopped at step {step}. ")
    at = min(at, len(losses) - 1)
    model.load_state_dict(parameters[at])
    with torch.no_grad():
        weights = model.steps(inputs).weights  # (B, S, S)
        p = model(inputs)[:, -1].softmax(dim=-1)  # (B, vocab)
    curve.update(loss=losses, mark=at)
    river_heat.update(weights[0], causal_mask(2))
    money_heat.update(weights[1], causal_mask(2))
    probabilities.update([p[0, shore], p[1, loan]])
    sentence = (
        f"{''.join(stopped)}Step {at}: bank gives river **{weights[0, 1, 0]:.2f}** "
        f"and money **{weights[1, 1, 0]:.2f}**; p(shore) {p[0, shore]:.2f}, "
        f"p(loan) {p[1, loan]:.2f}. Loss above ln 2: {losses[at] > math.log(2)}."
    )
    yield sentence, len(losses) > 200 and min(losses) > math.log(2) - 1e-4  # rounding


starts = ["random", "identity", "zero"]
training_explorer = Explorer(
    picture,
    show,
    goal="Scrub to the step where the loss falls below ln 2. Then choose settings with which 200 steps never bring it there. Which matrix must be missing?",
    at=slider(0, 200, 200, label="look at step"),
    seed=slider(0, 50, 42),
    W_V=choice(starts, label="W_V starts"),
    W_Q=choice(starts, label="W_Q starts"),
    W_K=choice(starts, label="W_K starts"),
    learns=choice(["all", "only W_Q", "only W_K", "only W_V", "none of them"], label="may learn"),
    lr=choice([0.003, 0.01, 0.03, 0.1], 0.03, label="learning rate"),
    steps=slider(20, 200, 200),
    more=["W_Q", "W_K", "learns", "lr", "steps"],
)
training_explorer

# %% Stills of the explorer: retrain, then scrub through the training jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
training_explorer.stills({"at": 0}, {"at": 3}, {"W_V": "zero", "learns": "only W_Q"})

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# Without W_V nothing about the context arrives, wherever *bank* looks.
# At seed 39 it is the other way round: *bank* looks only at itself, in both phrases, and the loss stays at ln 2 as well.

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### And in an encoder?

# %% Vote: append a word in an encoder jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["predict", "further"]
# Vote before you unfold: the reasons stand in here
encoder_vote = predict(
    "Let the same blocks look both ways, as an encoder does, and append a word. Which cached keys still hold?",
    {
        "all of them": "In block 1, yes. In block 2 every word has looked at the new one.",
        "those of block 1 only": "They are made from each word alone; those of block 2 from words that have looked at the new one.",
        "none": "The keys of block 1 are made from each word alone, whoever looks.",
    },
    key="every column of block 2",
)
encoder_vote

# %% Explorer: break the cache (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
language = corpus()
reader = seeded(lambda: TinyTransformer(len(language.words), 32, 4, 2, 64), 0)  # untrained will do
sentence = language.sample(1, torch.Generator().manual_seed(3))  # (1, 10)
picture, (left, right) = plots.panels(2, width=9.5, ratios=(4, 1), height=2.6)
names = decode(sentence[0], language.words).split()
answers = {"kind": "mask", "names": ("", ""), "limit": 3, "labels": ("–", "stale", "holds", "new")}
grid = plots.heatmap(left, ["block 1", "block 2"], names, title="Cached keys", **answers)
counts = {"title": "Scores for this word", "limits": (0, 110), "digits": 0}
counter = plots.bars(right, ["cache", "none"], **counts)


@torch.no_grad()
def keys(ids, encoder):
    """The keys of both blocks, (2, S, D), with or without a view of the future."""
    allowed = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool)
    allowed = allowed if encoder else causal_mask(ids.shape[1])
    x, found = reader.emb(ids), []
    for block in reader.blocks:
        found.append(block.attention.w_k(rms_norm(x, block.attention_norm))[0])  # (S, D)
        x = block(x, allowed)[0]
    return torch.stack(found)


def show(words_so_far, edit, encoder):
    old, new = words_so_far - 1, sentence[:, :words_so_far].clone()
    if edit:
        new[0, 1] = language.words.index("banker")
    cached, right_now = keys(sentence[:, :old], encoder), keys(new, encoder)
    holds = (cached - right_now[:, :old]).abs().amax(dim=2) < 1e-5  # (blocks, old)
    state = torch.zeros(2, 10)  # not written yet
    state[:, :old] = 1 + holds.float()
    state[:, old] = 3
    grid.update(state)
    counter.update([words_so_far, words_so_far**2])
    said = (
        f"Word {words_so_far}: **{int(holds.all(dim=0).sum())}** of {old} cached words still hold in both blocks. "
        f"{words_so_far} scores with the cache, {words_so_far**2} without."
    )
    return said, encoder and not edit and not holds.all()


cache_explorer = Explorer(
    picture,
    show,
    goal="Append words: nothing goes stale. Then edit word 2. Then spoil the cache without an edit, by appending alone.",
    words_so_far=slider(3, 10, 5, label="words so far"),
    edit=toggle(False, "edit word 2"),
    encoder=toggle(False, "look both ways (encoder)"),
)
cache_explorer

# %% Stills of the explorer: break the cache jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof"]
cache_explorer.stills({"edit": True}, {"encoder": True})

# %% What is behind it: an encoder jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["reveal", "further"]
# Run this cell when you have voted
cached, now = keys(sentence[:, :4], True), keys(sentence[:, :5], True)[:, :4]
holds = ((cached - now).abs().amax(dim=2) < 1e-5).all(dim=1).tolist()  # (blocks,)
encoder_vote.reveal(
    {(True, True): "all of them", (True, False): "those of block 1 only"}.get(tuple(holds), "none"),
    "With both ways open, even appending spoils every column of block 2.",
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### What it saves, and what it costs

# %% The cache filling up slideshow={"slide_type": "skip"} tags=["further"]
n = 12
computed_with = torch.eye(n) + 0.35 * torch.ones(n, n).tril(-1)  # 1: computed now, 0.35: kept
computed_without = torch.ones(n, n).tril()
picture, (left, right) = plots.panels(2, width=8)
steps_down = [str(t + 1) for t in range(n)]
for ax, values, title in (
    (left, computed_with, "With a cache"),
    (right, computed_without, "Without"),
):
    plots.heatmap(
        ax, steps_down, steps_down, values, title=title, names=("step", "position"), numbers=False
    )
scores_with = [t for t in range(1, 513)]  # one new query meets t keys
scores_without = [t * t for t in range(1, 513)]  # t queries meet t keys
print("scores for the 512th word:", scores_with[-1], "with,", f"{scores_without[-1]:,}", "without")
picture

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# Dark cells are positions computed at that step, light ones are kept.
# Each position that is computed asks up to S keys. So the scores for a new word grow like S with the cache, and like S² without.
#
# The price is memory:
# bytes = 2 × layers × key/value heads × head width × positions × batch × bytes per number.
# The 2 is for keys *and* values.
#
# Only key/value heads are in the formula. So models save memory by letting several query heads share one:
# **grouped-query attention (GQA)**, or **multi-query attention (MQA)** if all share a single one.


# %% Bytes (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["further"]
# Unfold to see how
def cache_bytes(layers, kv_heads, head_width, positions, batch=1, bytes_per_number=2):
    return 2 * layers * kv_heads * head_width * positions * batch * bytes_per_number


assert cache_bytes(2, 4, 8, 10, 1, 4) == cache.nbytes == KVCache(2, 1, 4, 10, 8).nbytes
for name, kv_heads in (("32 heads", 32), ("8, GQA", 8), ("1, MQA", 1)):
    size = cache_bytes(32, kv_heads, 128, 4096)
    print(f"{name:8} {size / 2**20:5.0f} MiB = {size / 2**30} GiB")

# %% Bytes against length jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["further"]
# Unfold to see how it is drawn
positions = [2**n for n in range(9, 18)]  # 512 to 131,072
picture, axes = plots.panels(1, width=6.5)
log = {"xscale": "log", "yscale": "log", "xlim": (512, 131_072), "ylim": (0.005, 100)}
names = {"32 heads": 32, "8, GQA": 8, "1, MQA": 1}
grows = plots.curves(axes, list(names), "Memory of a cache", "positions", "GiB", **log)
for name, kv_heads in names.items():
    gib = [cache_bytes(32, kv_heads, 128, n) / 2**30 for n in positions]
    grows.update(x=positions, **{name: gib})
picture

# %% Proof: where the cache outgrows the parameters jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
assert [cache_bytes(32, n, 128, 32_768) / 2**30 for n in (32, 8, 1)] == [16, 4, 0.5]
assert round(7_000_000_000 * 2 / 2**30) == 13

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# Twice the length, twice the bytes; fewer key/value heads only move the line down.
# At 32,768 positions the full heads take 16 GiB, more than the 13 GiB of a model of 7 billion parameters (2 bytes each), and each text that is served at the same time needs its own. Eight heads take 4 GiB, one takes 0.5.
#
# **Exact, however it is filled.** The cache of section 5 was filled word by word. It may be filled in pieces, for padded texts, and with shared heads.

# %% In pieces, padded, grouped slideshow={"slide_type": "skip"} tags=["further"]
two_texts = language.sample(2, torch.Generator().manual_seed(5))  # (B, S) = (2, 10)
valid = torch.arange(10) >= torch.tensor(
    [[0], [3]]
)  # (B, S): the second begins with three columns of padding
grouped = seeded(lambda: TinyTransformer(len(language.words), 32, 4, 2, 64, n_kv_heads=2), 0)
for decoder in (transformer, grouped):
    filled, pieces, at = decoder.new_cache(2, 10), [], 0
    with torch.no_grad():
        for size in (4, 1, 5):
            new, at = two_texts[:, at : at + size], at + size
            pieces.append(decoder(new, valid[:, None, :at], cache=filled))
        assert_close(torch.cat(pieces, dim=1), decoder(two_texts, valid[:, None]), atol=1e-4)
print("pieces of 4, 1 and 5 words: the same logits, with 4 key/value heads and with 2")

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Freeze one matrix.** Let W_Q, W_K or W_V stay at its random start while all else learns.
# The tiny task is easy enough to be solved around any of them.

# %% One matrix frozen slideshow={"slide_type": "skip"} tags=["further"]
picture, axes = plots.panels(1, width=6)
curve = plots.curves(axes, ["W_Q", "W_K", "W_V"], "One matrix frozen", xlim=(0, 60), ylim=(0, 2.2))
for name in "qkv":
    frozen = seeded(TinyCausalAttention, 42)
    getattr(frozen, name).weight.requires_grad_(False)
    frozen_losses = train(frozen, inputs, targets, steps=61, lr=0.03).losses
    curve.update(**{f"W_{name.upper()}": frozen_losses})
    print(f"W_{name.upper()} frozen: loss falls below 0.01:", frozen_losses[-1] < 0.01)
picture

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Sampling.** Instead of the most likely word, draw one: the *temperature* flattens or sharpens the probabilities,
# *top-k* keeps the k most likely words, *top-p* the fewest that together reach p.
# Each text comes from a generator of random numbers with a seed of its own.

# %% Draw sentences slideshow={"slide_type": "skip"} tags=["further"]
prompt = encode("a", language.words)[None].expand(200, 1)  # 200 sentences at once
generator = torch.Generator().manual_seed(0)
drawn = generate(transformer, prompt, 9, temperature=1.0, generator=generator)
for text in drawn[:3]:
    print(decode(text, language.words))
possible = {tuple(row) for row in language.sentences.tolist()}
share = sum(tuple(row) in possible for row in drawn.tolist()) / 200
print("more than 8 in 10 are sentences of the language:", share > 0.8)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Checkpoints.** A run that was stopped can go on, if a file holds all that it needs:
# the parameters, what Adam remembers of earlier gradients, the state of the random generator, the losses so far.
# `train` writes and reads such a file; with a `checkpoint` it does so again and again, and at the end.
# It loads with `weights_only=True`: then a file can hold numbers, and no program.

# %% Stop, and go on slideshow={"slide_type": "skip"} tags=["further"]
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "run.pt"
    whole = train(seeded(make, 1), batches, steps=4, lr=0.02)
    train(seeded(make, 1), batches, steps=2, lr=0.02, checkpoint=path)  # stops half-way
    copy = seeded(make, 2)  # another start: what was learned comes from the file
    resumed = train(copy, batches, steps=4, lr=0.02, resume=path)
    print("in the file:", ", ".join(torch.load(path, weights_only=True)))
print("the same losses to the last digit:", resumed.losses == whole.losses)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Seconds.** The counts above are exact; those without a cache include the scores that the causal mask then hides. Beside them you can draw the milliseconds, for a model of the same shape with room for 256 words.
# They depend on your machine, so they are measured only when you ask for them.

# %% Explorer: counted and timed (unfold to see how) jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["explorer", "further"]
# Unfold to see and to change what is drawn
long = TinyTransformer(len(corpus().words), width=32, n_heads=4, n_layers=2, max_length=256)
lengths = [16, 64, 128, 192, 256]
picture, (left, right) = plots.panels(2, width=9)
names, limits = ["with", "without"], {"x": "word", "xlim": (0, 256)}
counted = plots.curves(left, names, "Scores", y="scores", ylim=(0, 66_000), legend=False, **limits)
scores_with = list(range(1, 257))
scores_without = [t * t for t in scores_with]
counted.update(**{"with": scores_with, "without": scores_without})
timed = plots.curves(right, names, "Time", y="ms", ylim=(0, 20), **limits)


@torch.no_grad()
def milliseconds(ids, cache=None):
    length = 0 if cache is None else cache.length
    best = math.inf
    for _ in range(3):
        if cache is not None:
            cache.length = length  # the same word again
        started = time.perf_counter()
        long(ids, cache=cache)
        best = min(best, 1000 * (time.perf_counter() - started))
    return best


def show(timing):
    with_cache, without = [], []
    for n in lengths if timing else []:
        text, cache = torch.zeros(1, n, dtype=torch.long), long.new_cache(1)  # (1, n)
        with torch.no_grad():
            long(text[:, :-1], cache=cache)  # all but the last word
        with_cache.append(milliseconds(text[:, -1:], cache))
        without.append(milliseconds(text))
    timed.update(lengths[: len(without)], **{"with": with_cache, "without": without})
    sentence = (
        f"Word 256: {scores_with[255]} scores with the cache, {scores_without[255]:,} without"
    )
    if timing:
        sentence += f"; here **{with_cache[-1]:.2f}** and **{without[-1]:.2f}** milliseconds"
    return sentence + "."


Explorer(
    picture,
    show,
    goal="Measure it here. Which of the two grows with the length of the text?",
    timing=toggle(False, "measure the time on this machine"),
)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### More exercises

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 6.3.** The bytes of a cache, from memory. Say first which numbers you multiply.
#
# <details><summary>Hint 1: nudge</summary>
# What is kept for each position, in each head of each layer? Two vectors. Which two?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Two layers, 3 heads of width 4, 5 positions, one text, 2 bytes a number. One position keeps 3 · 4 numbers as keys and as many as values in each layer: 24, and in both layers 48.
# Five positions make **240** numbers, or **480** bytes.
# </details>


# %% Exercise 6.3 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_cache_bytes(layers, kv_heads, head_width, positions, batch, bytes_per_number):
    return ...  # your line here


checks.cache_bytes(my_cache_bytes)

# %% Exercise 6.3, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
checks.cache_bytes(cache_bytes)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 6.4, explain by experiment.** *bank* gives *river* the weight 0.00, and the model still says *shore*. So what does it need?
# `p_shore` erases one thing in "river bank" and tells what is left of p(shore).
# Try `"value of river"`, `"value of bank"` and `"residual"`, and answer with the one without which *shore* is lost.
#
# <details><summary>Hint 1: nudge</summary>
# What does a weight of 0.00 do to a value? And one of 1.00?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# In "money bank" *bank* gives *money* 1.00, so the value of *money* arrives and no other. Without it, p(loan) falls to about a half; without the value of *bank* it stays above 0.99. So there *loan* needs the value of *money*.
# Now "river bank", where the weights are 0.00 and 1.00: whose value arrives?
# </details>


# %% Exercise 6.4 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
@torch.no_grad()
def p_shore(erased):
    x = model.emb(inputs[:1])  # (1, S, D): river bank
    keep = torch.tensor([[erased != "value of river"], [erased != "value of bank"]])  # (S, 1)
    steps = attention(model.q(x), model.k(x), model.v(x) * keep, causal_mask(2))
    x = x * (erased != "residual") + model.o(steps.output)
    return model.lm_head(model.norm(x))[0, -1].softmax(dim=-1)[shore].item()


print("nothing erased, p(shore) > 0.99:", p_shore("nothing") > 0.99)
shore_needs = ...  # "value of river", "value of bank" or "residual"
checks.what_shore_needs(shore_needs)

# %% Exercise 6.4, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
parts = ["value of river", "value of bank", "residual"]
lost = [part for part in parts if p_shore(part) < 0.6]
kept = [part for part in parts if p_shore(part) > 0.99]
print("lost without:", lost, " not needed:", kept)
checks.what_shore_needs(lost)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# *bank* tells the output layer by its own value that no *money* came before it. Look at the attention weight of *river* alone, and you miss it.
#
# **Exercise 6.5, predict three numbers.** A causal model of two blocks has twelve words in its cache.
# The fifth is edited, and the cache is kept: how many columns are stale in block 1, how many in block 2?
# And how many in all if a thirteenth word is *appended* instead?
#
# <details><summary>Hint 1: nudge</summary>
# From what is a key of block 1 made, and from what one of block 2?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Three words in the cache, and the second is edited. Block 1: a key is made of its own word, so one is stale. Block 2: it is made of all that its word has looked at; the second word and the third have looked at the second, so two are stale.
# For an appended word ask the same: which of the old words have looked at it?
# </details>

# %% Exercise 6.5 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
stale_in_block_1 = ...
stale_in_block_2 = ...
stale_after_appending = ...
checks.stale_columns(stale_in_block_1, stale_in_block_2, stale_after_appending)

# %% Exercise 6.5, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
looked = causal_mask(12)[:, 4].sum().item()  # who sees column 4, the fifth word
checks.stale_columns(1, looked, 0)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 6.6, complete it.** Grouped-query attention: `k` `(B, H_kv, S, d)` has fewer heads than there are query heads.
# Neighbouring query heads share one. Return `(B, n_heads, S, d)`, in which each query head finds its own.
#
# <details><summary>Hint 1: nudge</summary>
# Two key/value heads for four query heads: 0 and 1 share, and so do 2 and 3. Which four numbers is that?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Six query heads and three key/value heads: groups of 6 / 3 = 2, so the query heads read 0 0 1 1 2 2. Query head 5 reads head 5 // 2 = 2.
# </details>


# %% Exercise 6.6 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_shared_heads(k, n_heads):
    reads = ...  # n_heads numbers: query head i reads key/value head reads[i]
    return k[:, list(reads)]  # (B, n_heads, S, d)


checks.share_heads(my_shared_heads)


# %% Exercise 6.6, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def shared_heads_solution(k, n_heads):
    group = n_heads // k.shape[1]
    reads = [i // group for i in range(n_heads)]
    return k[:, list(reads)]  # (B, n_heads, S, d)


checks.share_heads(shared_heads_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 6.7, find the bug.** A step with a cache, now with RoPE. The cached keys `K` `(S, d)` have been rotated by their positions 0 to S − 1.
# Somebody rotates the new query and the new key with `rope(x, torch.arange(len(x)))`. Which position does every new word then get? Write the step without the bug.
#
# <details><summary>Hint 1: nudge</summary>
# There is one new word. What is torch.arange(1)? And where does the word stand?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# Two keys in the cache stand at 0 and 1, so the new word stands at 2: `torch.tensor([2])`. A new query [1, 0] becomes [−0.42, 0.91], and so does a new key [1, 0]; their score is 1, as without rotation, for both stand at the same place.
# With `torch.arange(1)` both would stay [1, 0], as if they stood at 0. Then go on as in exercise 6.1.
# </details>


# %% Exercise 6.7 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_rope_step(q_new, k_new, v_new, K, V):
    position = ...  # (1,): where the new word stands
    q_new, k_new = rope(q_new, position), rope(k_new, position)  # (1, d) each
    return ...  # the output (1, d_v), and the new K and V


checks.rope_decode_step(my_rope_step)


# %% Exercise 6.7, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def rope_step_solution(q_new, k_new, v_new, K, V):
    position = torch.tensor([len(K)])  # (1,)
    q_new, k_new = rope(q_new, position), rope(k_new, position)  # (1, d) each
    K, V = torch.cat([K, k_new]), torch.cat([V, v_new])  # (S + 1, d), (S + 1, d_v)
    weights = (q_new @ K.T / q_new.shape[1] ** 0.5).softmax(dim=-1)  # (1, S + 1)
    return weights @ V, K, V


checks.rope_decode_step(rope_step_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Exercise 6.8, build it.** Write greedily with a cache, as `generate` does. `model(ids, cache=cache)` reads ids `(1, S)` that are *new*, adds them to the cache,
# and returns logits `(1, S, vocab)`; `model.new_cache(1)` is an empty cache. Return the prompt `ids` `(1, S)` with `n_new` words more.
#
# <details><summary>Hint 1: nudge</summary>
# What has the model read after the first call, and what is new at the second?
# </details>
#
# <details><summary>Hint 2: a similar case, worked</summary>
# A prompt of 3 ids, 2 new words. The first call reads all 3 ids; its logits at the last position name the fourth word. The second call reads that one id, and names the fifth. Done: 5 ids, of which the model has read 4, each once.
# `logits[:, -1].argmax(dim=-1, keepdim=True)` has the shape (1, 1), so `torch.cat([ids, it], dim=1)` fits.
# </details>


# %% Exercise 6.8 slideshow={"slide_type": "skip"} tags=["exercise", "further"]
def my_generate(model, ids, n_new):
    return ...  # your lines here


checks.write_with_cache(my_generate)


# %% Exercise 6.8, a solution jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["solution", "further"]
# A solution: unfold it when you have tried
def generate_solution(model, ids, n_new):
    cache, new = model.new_cache(1), ids
    for _ in range(n_new):
        logits = model(new, cache=cache)[:, -1]  # (1, vocab)
        new = logits.argmax(dim=-1, keepdim=True)  # (1, 1)
        ids = torch.cat([ids, new], dim=1)  # (1, S + 1)
    return ids


checks.write_with_cache(generate_solution)

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# **Your code runs a real model.** `TinyTransformer` has the architecture of Llama ([Touvron et al. 2023](https://arxiv.org/abs/2302.13971)). Download the folder of a small one (config.json, *.safetensors, tokenizer.json), put its path below, and look at its heads on your own sentence.

# %% A real Llama, from a folder slideshow={"slide_type": "skip"} tags=["further"]
folder = ""  # the path of the folder
if folder:
    from attnlab.llama import load_llama

    llama, tokenizer = load_llama(folder)
    ids = torch.tensor([tokenizer.encode("the bank of the river").ids])  # (1, S)
    with torch.no_grad():
        weights = llama.steps(ids)[0].weights[0, 0]  # block 1, head 1: (S, S)
    picture, axes = plots.panels(1, width=5, height=4)
    tokens = [tokenizer.id_to_token(i) for i in ids[0].tolist()]
    plots.heatmap(axes, tokens, tokens, weights, title="block 1, head 1")
    picture.savefig("heads.png")
    print(tokenizer.decode(generate(llama, ids, 20)[0].tolist()))  # with the cache
else:
    print("Put the path of a Llama's folder into the cell, and run it again.")

# %% Proof: the worked hints jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["proof", "further"]
one, three, ten = (torch.tensor([[n]]) for n in (0.0, 3.0, 10.0))
hinted = decode_step_solution(one, three, ten, torch.tensor([[2.0]]), torch.tensor([[6.0]]))
assert [part.tolist() for part in hinted] == [[[8]], [[2], [3]], [[6], [10]]]
assert 3 * 4 * 2 * 2 * 5 == 240 and cache_bytes(2, 3, 4, 5, 1, 2) == 480


@torch.no_grad()
def p_loan_without(place):
    x, values = model.emb(inputs[1:]), model.v(model.emb(inputs[1:]))  # (1, S, D): money bank
    values[:, place] = 0.0
    steps = attention(model.q(x), model.k(x), values, causal_mask(2))
    return model.lm_head(model.norm(x + model.o(steps.output)))[0, -1].softmax(dim=-1)[loan]


assert p_loan_without(0) < 0.6 and p_loan_without(1) > 0.99
six = torch.arange(3.0)[None, :, None, None]  # (B, H_kv, S, d) = (1, 3, 1, 1)
assert shared_heads_solution(six, 6).flatten().tolist() == [0, 0, 1, 1, 2, 2]
turned = rope(torch.tensor([[1.0, 0.0]]), torch.tensor([2]))
assert [round(n, 2) for n in turned[0].tolist()] == [-0.42, 0.91]

# %% [markdown] slideshow={"slide_type": "skip"} tags=["further"]
# ### Further reading
#
# - Kingma and Ba 2015, [*Adam: A Method for Stochastic Optimization*](https://arxiv.org/abs/1412.6980).
# - Ba et al. 2016, [*Layer Normalization*](https://arxiv.org/abs/1607.06450): the norm of the small model in section 1.
# - Jain and Wallace 2019, [*Attention is not Explanation*](https://arxiv.org/abs/1902.10186), and Wiegreffe and Pinter 2019, [*Attention is not not Explanation*](https://arxiv.org/abs/1908.04626).
# - Michel et al. 2019, [*Are Sixteen Heads Really Better than One?*](https://arxiv.org/abs/1905.10650): heads taken out of large models.
# - Shazeer 2019, [*Fast Transformer Decoding: One Write-Head is All You Need*](https://arxiv.org/abs/1911.02150): MQA.
# - Ainslie et al. 2023, [*GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*](https://arxiv.org/abs/2305.13245).
# - Holtzman et al. 2020, [*The Curious Case of Neural Text Degeneration*](https://arxiv.org/abs/1904.09751): top-p.

# %% My progress slideshow={"slide_type": "skip"} tags=["progress"]
progress(checks.exercises("06"), globals())
