"""Answers to the exercises of notebook 5."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from answers import Answers
from attnlab import attention, causal_mask, merge_heads, rope, sinusoidal_positions, split_heads

SECTION_1, SECTION_2, SECTION_3 = " See section 1.", " See section 2.", " See section 3."
SECTION_4 = " See section 4."


def pointing(where, wrong):
    return [(answer, message + where) for answer, message in wrong]


# --- Multi-head attention as a class --------------------------------------------------------


class Heads(nn.Module):
    """A right answer, one method for each step that a wrong one changes."""

    def __init__(self, width, n_heads):
        super().__init__()
        if width % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {width}")
        self.n_heads = n_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, self.linear(width))

    def linear(self, width):
        return nn.Linear(width, width, bias=False)

    def project(self, x):
        return self.w_q(x), self.w_k(x), self.w_v(x)

    def split(self, x):
        return torch.stack(x.chunk(self.n_heads, dim=-1), dim=1)

    def rotate(self, q, k, v):
        return self.turn(q), self.turn(k), v

    def turn(self, x):
        return rope(x, torch.arange(x.shape[-2]), layout="half")

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(k.shape[-1])

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(dim=-1)

    def join(self, output):
        return torch.cat(output.unbind(1), dim=-1)

    def mix(self, merged):
        return self.w_o(merged)

    def forward(self, x, mask=None):
        q, k, v = self.rotate(*(self.split(y) for y in self.project(x)))
        return self.mix(self.join(self.weigh(self.scores(q, k), mask) @ v))


class OneHeadAfterTheOther(Heads):
    def forward(self, x, mask=None):
        q, k, v = self.project(x)
        d, outputs = q.shape[-1] // self.n_heads, []
        for h in range(self.n_heads):
            columns = slice(h * d, (h + 1) * d)
            rotated = [self.turn(y[..., columns]) for y in (q, k)]
            outputs.append(attention(*rotated, v[..., columns], mask).output)
        return self.w_o(torch.cat(outputs, dim=-1))


class ByPyTorch(Heads):
    def forward(self, x, mask=None):
        q, k, v = (y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for y in self.project(x))
        output = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, attn_mask=mask)
        return self.w_o(output.transpose(1, 2).flatten(2))


class ByEinsum(Heads):
    def forward(self, x, mask=None):
        q, k, v = (y.unflatten(-1, (self.n_heads, -1)) for y in self.project(x))  # (B, S, H, d)
        q, k = (self.turn(y.transpose(1, 2)) for y in (q, k))
        weights = self.weigh(torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5, mask)
        return self.w_o(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))


class RotatedByHand(Heads):
    def turn(self, x):
        half = x.shape[-1] // 2
        speeds = 10000.0 ** (-torch.arange(half) / half)
        angles = torch.arange(x.shape[-2])[:, None] * speeds
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1
        )


def no_parameters(self, width, n_heads):
    nn.Module.__init__(self)
    self.n_heads = n_heads


def other_names(self, width, n_heads):
    nn.Module.__init__(self)
    self.n_heads = n_heads
    self.query, self.key, self.value, self.out = (self.linear(width) for _ in range(4))


def narrow(self, width, n_heads):
    nn.Module.__init__(self)
    self.n_heads = n_heads
    self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, 4, bias=False) for _ in range(4))


def asserting(self, width, n_heads):
    assert width % n_heads == 0, "no"
    Heads.__init__(self, width, n_heads)


def careless(self, width, n_heads):
    Heads.__init__(self, width, n_heads if width % n_heads == 0 else 1)


def with_a_buffer(self, width, n_heads):
    Heads.__init__(self, width, n_heads)
    if width != 14:
        self.register_buffer("speeds", torch.ones(width))


def without_super(self, width, n_heads):
    self.n_heads = n_heads
    self.w_q = self.linear(width)


def masked_after(self, scores, mask):
    weights = scores.softmax(dim=-1)
    return weights if mask is None else weights * mask


def inverted(self, scores, mask):
    if mask is None:
        return scores.softmax(dim=-1)
    return scores.masked_fill(mask, -math.inf).softmax(dim=-1).nan_to_num()


def always_causal(self, scores, mask):
    return Heads.weigh(
        self, scores.masked_fill(~causal_mask(len(scores.mT[0][0])), -math.inf), mask
    )


def detached(self, x, mask=None):
    return (
        self.w_o(Heads.forward(self, x, mask).detach() * 0) + Heads.forward(self, x, mask).detach()
    )


MULTI_HEAD = Answers(
    right=[Heads, OneHeadAfterTheOther, ByPyTorch, ByEinsum, RotatedByHand],
    wrong=pointing(
        SECTION_4,
        [
            (type("Changed", (Heads,), change), message)
            for change, message in [
                (
                    {"scores": lambda self, q, k: q @ k.mT},
                    "The scores are not scaled: divide them by the square root of d_k.",
                ),
                (
                    {"scores": lambda self, q, k: q @ k.mT / math.sqrt(k.shape[-1] * self.n_heads)},
                    "You scaled by the square root of the whole width: a head is d_k wide.",
                ),
                (
                    {"scores": lambda self, q, k: q @ k.mT / k.shape[-1]},
                    "You divided by d_k, not by its square root.",
                ),
                (
                    {"scores": lambda self, q, k: k @ q.mT / math.sqrt(k.shape[-1])},
                    "Queries are rows and keys are columns: yours are swapped.",
                ),
                (
                    {
                        "split": lambda self, x: x.view(
                            len(x), self.n_heads, x.shape[1], x.shape[2] // self.n_heads
                        )
                    },
                    "Right shape, but tokens are mixed: split the width first, then swap the axes.",
                ),
                (
                    {"join": lambda self, y: y.reshape(len(y), y.shape[2], -1)},
                    "The heads are laid side by side wrongly: swap the axes before you reshape.",
                ),
                (
                    {"split": lambda self, x: x[:, None]},
                    "That is one head of the whole width: split it into n_heads.",
                ),
                ({"turn": lambda self, x: x}, "Nothing is rotated: queries and keys need RoPE."),
                (
                    {"rotate": lambda self, q, k, v: (self.turn(q), k, v)},
                    "Only one side is rotated: the score needs the angle between both.",
                ),
                (
                    {"rotate": lambda self, q, k, v: (q, self.turn(k), v)},
                    "Only one side is rotated: the score needs the angle between both.",
                ),
                (
                    {"rotate": lambda self, *parts: map(self.turn, parts)},
                    "You rotated the values too: rotate only queries and keys.",
                ),
                (
                    {
                        "project": lambda self, x: (
                            self.turn(self.w_q(x)),
                            self.turn(self.w_k(x)),
                            self.w_v(x),
                        ),
                        "rotate": lambda self, q, k, v: (q, k, v),
                    },
                    "You rotated before you split: each head rotates its own pairs.",
                ),
                (
                    {"turn": lambda self, x: rope(x, torch.arange(x.shape[2]))},
                    'Pairs come from the two halves of a head here: layout="half".',
                ),
                (
                    {"weigh": lambda self, scores, mask: scores.softmax(dim=-1)},
                    "The mask is not used.",
                ),
                (
                    {"weigh": inverted},
                    "True means may attend: your mask hides what it should show.",
                ),
                (
                    {"weigh": masked_after},
                    "You masked after the softmax: a row no longer sums to 1.",
                ),
                (
                    {"weigh": always_causal},
                    "You added a causal mask of your own: use the one that is given.",
                ),
                (
                    {"mix": lambda self, merged: merged},
                    "W_O is missing: the heads, side by side again, go through w_o.",
                ),
                (
                    {"project": lambda self, x: (self.w_q(x), self.w_k(x), self.w_k(x))},
                    "The values have a projection of their own, w_v.",
                ),
                (
                    {"project": lambda self, x: (self.w_q(x), self.w_k(x), x)},
                    "The values have a projection of their own, w_v.",
                ),
                (
                    {"linear": lambda self, width: nn.Linear(width, width)},
                    "Your linear layers have a bias: build them with bias=False.",
                ),
                (
                    {"__init__": careless},
                    "A width that the heads do not divide passes: raise a ValueError in __init__.",
                ),
            ]
        ],
    )
    + [
        (type("Changed", (Heads,), change), message)
        for change, message in [
            (
                {"__init__": other_names},
                "MyMultiHeadAttention(12, 3) has no parameter w_q.weight: it has query.weight.",
            ),
            (
                {"__init__": no_parameters},
                "MyMultiHeadAttention(12, 3) has no parameter w_q.weight.",
            ),
            (
                {"__init__": narrow},
                "In MyMultiHeadAttention(12, 3), w_q.weight has shape (4, 12), expected (12, 12).",
            ),
            (
                {"__init__": with_a_buffer},
                "MyMultiHeadAttention(12, 3) also has speeds, which the task does not name.",
            ),
            (
                {"__init__": without_super},
                "MyMultiHeadAttention(12, 3) raised AttributeError: cannot assign module before "
                "Module.__init__() call. Begin __init__ with super().__init__().",
            ),
            (
                {"__init__": asserting},
                "MyMultiHeadAttention(14, 4) raised AssertionError: no: it must be a ValueError.",
            ),
            (
                {"forward": detached},
                "The output is right, but its gradient of w_q.weight is not: leave out detach, "
                "no_grad and .data.",
            ),
        ]
    ]
    + [(lambda x, mask: x, "Expected a class that is an nn.Module, got function.")],
)

# --- The norm and the MLP -------------------------------------------------------------------


def norm_in_a_loop(x, weight):
    rows = [
        row / torch.sqrt(row @ row / len(row) + 1e-6) * weight for row in x.reshape(-1, len(weight))
    ]
    return torch.stack(rows).reshape(x.shape)


def root_mean_square(x, **more):
    return (x**2).mean(dim=-1, keepdim=True, **more).sqrt()


RMS_NORM = Answers(
    right=[
        lambda x, weight: x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + 1e-6) * weight,
        norm_in_a_loop,
        lambda x, weight: weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x, weight: F.rms_norm(x.double(), weight.shape, weight.double(), eps=1e-6),
        lambda x, weight: (
            x
            / (torch.einsum("...d,...d->...", x, x) / len(weight) + 1e-6)[..., None] ** 0.5
            @ torch.diag(weight)
        ),
    ],
    wrong=pointing(
        SECTION_4,
        [
            (
                lambda x, w: F.layer_norm(x, w.shape, w, eps=1e-6),
                "You subtract the mean, as LayerNorm does: RMSNorm does not.",
            ),
            (
                lambda x, w: (
                    (y := x - x.mean(-1, keepdim=True))
                    / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-6)
                    * w
                ),
                "You subtract the mean, as LayerNorm does: RMSNorm does not.",
            ),
            (
                lambda x, w: x / x.std(dim=-1, keepdim=True) * w,
                "You divide by the standard deviation: the mean is not subtracted, here neither.",
            ),
            (
                lambda x, w: x / root_mean_square(x) * w,
                "Without the 1e-6 a row of tiny numbers becomes large: add it under the root.",
            ),
            (
                lambda x, w: w * x / (root_mean_square(x) + 1e-6),
                "The 1e-6 is added to the mean of the squares, before the root.",
            ),
            (
                lambda x, w: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True) * w,
                "You divide by the length: the root of the mean of the squares, not of their sum.",
            ),
            (
                lambda x, w: x / ((x * x).mean(dim=-1, keepdim=True) + 1e-6) * w,
                "You divide by the mean square: take its root.",
            ),
            (
                lambda x, w: x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6),
                "The columns are not multiplied by weight.",
            ),
            (
                lambda x, w: x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) + w,
                "You added weight: multiply by it.",
            ),
            (
                lambda x, w: x / torch.sqrt((x * x).mean() + 1e-6) * w,
                "One mean for all rows: each token has its own, over dim=-1 with keepdim=True.",
            ),
            (
                lambda x, w: x / torch.sqrt((x * x).mean(dim=1, keepdim=True) + 1e-6) * w,
                "You took the mean over the tokens: take it over the width, dim=-1.",
            ),
        ],
    )
    + [
        (
            lambda x, w: x / torch.sqrt((x * x).mean(dim=-1) + 1e-6) * w,
            "With x (2, 3, 5), weight (5,) your function raised RuntimeError: The size of "
            "tensor a (5) must match the size of tensor b (3) at non-singleton dimension 2. "
            "Compare the shapes from the right. Did you mean @ instead of *?",
        )
    ],
)


def mlp(x, gate_up, down, inner):
    gate, up = (x @ gate_up.T).chunk(2, dim=-1)
    return inner(gate, up) @ down.T


def token_by_token(x, gate_up, down):
    hidden, out = down.shape[1], torch.zeros_like(x)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            gate, up = gate_up[:hidden] @ x[b, s], gate_up[hidden:] @ x[b, s]
            out[b, s] = down @ (gate / (1 + torch.exp(-gate)) * up)
    return out


SWIGLU = Answers(
    right=[
        lambda x, gate_up, down: mlp(x, gate_up, down, lambda gate, up: F.silu(gate) * up),
        token_by_token,
        lambda x, gate_up, down: mlp(x, gate_up, down, lambda g, up: g * g.sigmoid() * up),
        lambda x, gate_up, down: F.linear(
            F.silu(x @ gate_up[: len(gate_up) // 2].mT) * (x @ gate_up[len(gate_up) // 2 :].mT),
            down,
        ),
        lambda x, gate_up, down: mlp(
            x.double(), gate_up.double(), down.double(), lambda g, u: u * F.silu(g)
        ),
    ],
    wrong=pointing(
        SECTION_4,
        [
            (lambda x, gate_up, down, inner=inner: mlp(x, gate_up, down, inner), message)
            for inner, message in [
                (
                    lambda gate, up: gate * F.silu(up),
                    "Gate and up are swapped: W_gate is the upper half, and silu is taken of it.",
                ),
                (
                    lambda gate, up: torch.sigmoid(gate) * up,
                    "You took sigmoid: silu(a) is a * sigmoid(a).",
                ),
                (lambda gate, up: torch.relu(gate) * up, "You took relu: here it is silu."),
                (lambda gate, up: F.gelu(gate) * up, "You took gelu: here it is silu."),
                (
                    lambda gate, up: gate * up,
                    "silu is missing: without it, no function but products is in the MLP.",
                ),
                (
                    lambda gate, up: F.silu(gate * up),
                    "You took silu of the product: take it of the gate alone.",
                ),
                (
                    lambda gate, up: F.silu(gate) * F.silu(up),
                    "You took silu of both halves: take it of the gate alone.",
                ),
                (lambda gate, up: F.silu(gate) + up, "You added gate and up: multiply them."),
                (lambda gate, up: up, "The gate is missing: multiply up by silu(gate)."),
                (lambda gate, up: F.silu(gate), "up is missing: multiply silu(gate) by it."),
            ]
        ]
        + [
            (
                lambda x, gate_up, down: (
                    F.silu(x @ gate_up[::2].T) * (x @ gate_up[1::2].T) @ down.T
                ),
                "W_gate is the upper half of gate_up: yours are dealt out one by one.",
            ),
            (
                lambda x, gate_up, down: mlp(
                    x, gate_up, torch.eye(down.shape[1]), lambda g, u: F.silu(g) * u
                ),
                "W_down is missing: bring the result back to width D.",
            ),
        ],
    )
    + [
        (
            lambda x, gate_up, down: x @ gate_up,
            "With x (2, 3, 5), gate_up (14, 5), down (5, 7) your function raised RuntimeError: "
            "mat1 and mat2 shapes cannot be multiplied (6x5 and 14x5). "
            "Does one need to be transposed, or is a row missing?",
        )
    ],
)

# --- The block and the stack ----------------------------------------------------------------


def norm(x, weight):
    return RMS_NORM.right[0](x, weight)


class OneBlock(nn.Module):
    """A right answer, one method for each step that a wrong one changes."""

    def __init__(self, width, n_heads):
        super().__init__()
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.attention = Heads(width, n_heads)
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate_up = nn.Linear(width, 8 * width, bias=False).weight
        self.down = nn.Linear(4 * width, width, bias=False).weight

    def mlp(self, x):
        return SWIGLU.right[0](x, self.gate_up, self.down)

    def first(self, x, mask):
        return x + self.attention(norm(x, self.attention_norm), mask)

    def last(self, x):
        return x + self.mlp(norm(x, self.mlp_norm))

    def forward(self, x, mask=None):
        return self.last(self.first(x, mask))


class InOneLine(OneBlock):
    def forward(self, x, mask=None):
        return (y := x + self.attention(norm(x, self.attention_norm), mask)) + self.mlp(
            norm(y, self.mlp_norm)
        )


class WithRoomForMore(OneBlock):
    def __init__(self, width, n_heads):
        super().__init__(width, n_heads)
        self.attention, self.parts = ByPyTorch(width, n_heads), 2
        self.gate_up = nn.Parameter(torch.zeros(2 * 4 * width, width))

    def forward(self, x, mask=None):
        residual = x
        x = F.rms_norm(x, x.shape[-1:], self.attention_norm, eps=1e-6)
        x = residual + self.attention(x, mask=mask)
        residual = x
        x = F.rms_norm(x, x.shape[-1:], self.mlp_norm, eps=1e-6)
        gate, up = F.linear(x, self.gate_up).chunk(self.parts, dim=-1)
        return residual + F.linear(F.silu(gate) * up, self.down)


class SentenceBySentence(OneBlock):
    def forward(self, x, mask=None):
        return torch.cat([super(SentenceBySentence, self).forward(y[None], mask) for y in x])


def post_norm(self, x, mask=None):
    x = norm(x + self.attention(x, mask), self.attention_norm)
    return norm(x + self.mlp(x), self.mlp_norm)


def normed_outputs(self, x, mask=None):
    x = x + norm(self.attention(x, mask), self.attention_norm)
    return x + norm(self.mlp(x), self.mlp_norm)


def normed_path(self, x, mask=None):
    x = norm(x, self.attention_norm)
    x = x + self.attention(x, mask)
    x = norm(x, self.mlp_norm)
    return x + self.mlp(x)


def layers_with_a_bias(self, width, n_heads):
    OneBlock.__init__(self, width, n_heads)
    self.extra = nn.Linear(width, width)


def norms_that_are_not_learned(self, width, n_heads):
    OneBlock.__init__(self, width, n_heads)
    del self.mlp_norm
    self.register_buffer("mlp_norm", torch.ones(width))


def norms_that_are_no_parameters(self, width, n_heads):
    OneBlock.__init__(self, width, n_heads)
    del self.mlp_norm
    self.mlp_norm = torch.ones(width)


BLOCK = Answers(
    right=[OneBlock, InOneLine, WithRoomForMore, SentenceBySentence],
    wrong=pointing(
        SECTION_4,
        [
            (type("Changed", (OneBlock,), change), message)
            for change, message in [
                (
                    {"forward": post_norm},
                    "You normalise after the sum, as in 2017: here it is before attention and MLP.",
                ),
                (
                    {"forward": normed_outputs},
                    "You normalise what attention and MLP give: normalise what goes into them.",
                ),
                (
                    {"forward": normed_path},
                    "You normalise the residual path itself: add to x as it was.",
                ),
                (
                    {"first": lambda self, x, m: self.attention(norm(x, self.attention_norm), m)},
                    "The residual path around attention is missing: x + attention(...).",
                ),
                (
                    {"last": lambda self, x: self.mlp(norm(x, self.mlp_norm))},
                    "The residual path around the MLP is missing: x + swiglu(...).",
                ),
                (
                    {
                        "first": lambda self, x, m: self.attention(norm(x, self.attention_norm), m),
                        "last": lambda self, x: self.mlp(norm(x, self.mlp_norm)),
                    },
                    "Both residual paths are missing: add each result to x.",
                ),
                (
                    {"first": lambda self, x, mask: x + self.attention(x, mask)},
                    "What goes into attention is not normalised.",
                ),
                (
                    {"last": lambda self, x: x + self.mlp(x)},
                    "What goes into the MLP is not normalised.",
                ),
                (
                    {
                        "first": lambda self, x, mask: x + self.attention(x, mask),
                        "last": lambda self, x: x + self.mlp(x),
                    },
                    "Nothing is normalised: attention and MLP each get a normalised x.",
                ),
                (
                    {
                        "first": lambda self, x, m: x + self.attention(norm(x, self.mlp_norm), m),
                        "last": lambda self, x: x + self.mlp(norm(x, self.attention_norm)),
                    },
                    "The two norms are swapped: attention_norm comes first.",
                ),
                (
                    {"last": lambda self, x: x + self.mlp(norm(x, self.attention_norm))},
                    "One norm is used twice: attention and MLP have their own.",
                ),
                (
                    {
                        "forward": lambda self, x, mask=None: (
                            x
                            + self.attention(norm(x, self.attention_norm), mask)
                            + self.mlp(norm(x, self.mlp_norm))
                        )
                    },
                    "The MLP gets the first x: it comes after attention and gets x + "
                    "attention(...).",
                ),
                (
                    {"forward": lambda self, x, mask=None: self.first(self.last(x), mask)},
                    "The MLP comes first: here attention does.",
                ),
                (
                    {"forward": lambda self, x, mask=None: self.last(self.first(x, None))},
                    "The mask is not handed to attention.",
                ),
                ({"last": lambda self, x: x}, "The MLP is missing."),
                ({"first": lambda self, x, mask: x}, "Attention is missing."),
                (
                    {"__init__": layers_with_a_bias},
                    "Your linear layers have a bias: build them with bias=False.",
                ),
            ]
        ],
    )
    + [
        (type("Changed", (OneBlock,), change), message)
        for change, message in [
            (
                {"__init__": norms_that_are_not_learned},
                "In MyBlock(12, 3), mlp_norm is not learned: make it an nn.Parameter.",
            ),
            (
                {"__init__": norms_that_are_no_parameters},
                "MyBlock(12, 3) has no parameter mlp_norm.",
            ),
            (
                {
                    "first": lambda self, x, mask: (
                        x + OneBlock.first(self, x, mask).detach() - x.detach()
                    )
                },
                "The output is right, but its gradient of attention_norm is not: leave out detach, "
                "no_grad and .data.",
            ),
        ]
    ],
)


class Decoder(nn.Module):
    """A right answer, one method for each step that a wrong one changes."""

    def __init__(self, vocab_size, width, n_heads, n_layers, max_length):
        super().__init__()
        self.vocab_size, self.max_length = vocab_size, max_length
        self.emb = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList([OneBlock(width, n_heads) for _ in range(n_layers)])
        self.norm = nn.Parameter(torch.ones(width))
        self.lm_head = nn.Linear(width, vocab_size, bias=False)

    def embed(self, ids):
        return self.emb(ids)

    def mask(self, n):
        return torch.ones(n, n).tril().bool()

    def order(self):
        return list(self.blocks)

    def head(self, x):
        return self.lm_head(norm(x, self.norm))

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.order():
            x = block(x, self.mask(ids.shape[1]))
        return self.head(x)


class Unrolled(Decoder):
    def forward(self, ids):
        def up_to(n):
            return (
                self.blocks[n - 1](up_to(n - 1), causal_mask(ids.shape[1])) if n else self.emb(ids)
            )

        return self.head(up_to(len(self.blocks)))


class OneHot(Decoder):
    def embed(self, ids):
        return F.one_hot(ids, self.vocab_size).float() @ self.emb.weight


class Prefixes(Decoder):
    def forward(self, ids):
        ends = [super(Prefixes, self).forward(ids[:, : n + 1])[:, -1] for n in range(ids.shape[1])]
        return torch.stack(ends, dim=1)


class Sequential(Decoder):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.blocks = nn.Sequential(*self.blocks)


def blocks_in_a_list(self, *sizes):
    Decoder.__init__(self, *sizes)
    kept = list(self.blocks)
    del self.blocks
    self.blocks = kept


def silent_about_length(self, *sizes):
    Decoder.__init__(self, *sizes)
    del self.max_length


def tied(self, x):
    return norm(x, self.norm) @ self.emb.weight.T


def with_positions(self, ids):
    x = self.emb(ids)
    return x + sinusoidal_positions(*x.shape[1:])


def norm_between(self, ids):
    x = self.emb(ids)
    for block in self.blocks:
        x = norm(block(x, self.mask(ids.shape[1])), self.norm)
    return self.lm_head(x)


TRANSFORMER = Answers(
    right=[Decoder, Unrolled, OneHot, Prefixes, Sequential],
    wrong=pointing(
        SECTION_4,
        [
            (type("Changed", (Decoder,), change), message)
            for change, message in [
                (
                    {"mask": lambda self, n: None},
                    "The causal mask is missing: each position may see itself and those before it.",
                ),
                (
                    {"mask": lambda self, n: torch.ones(n, n).triu().bool()},
                    "Your mask hides the past: True means may attend, and the past may be seen.",
                ),
                (
                    {"head": lambda self, x: self.lm_head(x)},
                    "The head comes before the norm: normalise what the last block gives, then the "
                    "head.",
                ),
                (
                    {
                        "embed": lambda self, ids: norm(self.emb(ids), self.norm),
                        "head": lambda self, x: self.lm_head(x),
                    },
                    "The norm belongs after the last block: yours is before the first.",
                ),
                (
                    {"forward": norm_between},
                    "The norm belongs after the last block alone: blocks have norms of their own.",
                ),
                (
                    {"order": lambda self: self.blocks[-1:]},
                    "Only one block is used: x goes through all of them.",
                ),
                (
                    {"order": lambda self: self.blocks[:1]},
                    "Only one block is used: x goes through all of them.",
                ),
                (
                    {"order": lambda self: [self.blocks[0] for _ in self.blocks]},
                    "The same block is used again and again: each has its own parameters.",
                ),
                (
                    {"order": lambda self: reversed(self.blocks)},
                    "The blocks come in the wrong order: the first one first.",
                ),
                (
                    {"order": lambda self: []},
                    "The blocks are missing: you predict from the embeddings.",
                ),
                (
                    {"head": lambda self, x: Decoder.head(self, x).softmax(dim=-1)},
                    "Those are probabilities: return the logits, without a softmax.",
                ),
                (
                    {"head": lambda self, x: Decoder.head(self, x)[:, -1]},
                    "Only the last position: return logits for every position.",
                ),
                (
                    {"embed": with_positions},
                    "You add positions: the blocks rotate queries and keys already.",
                ),
                (
                    {"head": tied},
                    "The head has parameters of its own, lm_head: yours is the embedding table.",
                ),
                (
                    {"head": lambda self, x: norm(x, self.norm)},
                    "lm_head is missing: from width D to a logit for each word.",
                ),
            ]
        ],
    )
    + [
        (type("Changed", (Decoder,), change), message)
        for change, message in [
            (
                {"__init__": blocks_in_a_list},
                "MyTransformer(7, 12, 3, 2, 9) has no parameter blocks.0.attention_norm.",
            ),
            (
                {"__init__": silent_about_length},
                "The logits are right, but the model has no max_length: self.max_length = ...",
            ),
        ]
    ],
)

# --- Split, and turn one pair ---------------------------------------------------------------


def loop_split(x, n_heads):
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width : (h + 1) * width] for h in range(n_heads)], dim=1)


def rotate_by_matrix(x, positions):
    turn = [[[math.cos(p), -math.sin(p)], [math.sin(p), math.cos(p)]] for p in positions.tolist()]
    return (torch.tensor(turn) @ x[:, :, None])[:, :, 0]


def rotate_complex(x, positions):
    turned = torch.view_as_complex(x.contiguous()) * torch.exp(1j * positions)
    return torch.view_as_real(turned)


def rotate_in_place_on_a_copy(x, positions):
    x = x.clone()
    a, b = x[:, 0].clone(), x[:, 1].clone()
    x[:, 0] = a * positions.cos() - b * positions.sin()
    x[:, 1] = b * positions.cos() + a * positions.sin()
    return x


def rotate_with_signs(x, angles, first, second):
    c, s = angles.cos(), angles.sin()
    columns = [x[:, 0] * c + first * x[:, 1] * s, second * x[:, 0] * s + x[:, 1] * c]
    return torch.stack(columns, dim=1)


def rotate_overwriting(x, positions):
    out = x.clone()
    out[:, 0] = out[:, 0] * positions.cos() - out[:, 1] * positions.sin()
    out[:, 1] = out[:, 0] * positions.sin() + out[:, 1] * positions.cos()
    return out


SPLIT = Answers(
    right=[
        split_heads,
        loop_split,
        lambda x, n: x.view(*x.shape[:2], n, -1).transpose(1, 2),
        lambda x, n: torch.stack(x.double().chunk(n, dim=-1), dim=1).contiguous(),
        lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2] // n).permute(0, 2, 1, 3),
    ],
    wrong=pointing(
        SECTION_1,
        [
            (
                lambda x, n: x.view(x.shape[0], n, x.shape[1], x.shape[2] // n),
                "Right shape, but tokens are mixed: the order of reshape and transpose matters.",
            ),
            (
                lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1),
                "A head takes neighbouring columns: yours are dealt out one by one.",
            ),
            (
                lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n),
                "A head takes neighbouring columns: yours are dealt out one by one.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=2), dim=2),
                "The axis of heads comes before the sequence: yours comes after it.",
            ),
            (
                lambda x, n: x.view(*x.shape[:2], n, -1).permute(0, 2, 3, 1),
                "Within a head tokens are rows: yours are columns.",
            ),
            (
                lambda x, n: torch.stack(x.chunk(n, dim=1), dim=1),
                "Heads split the width, not the sentence: each sees every token.",
            ),
            (
                lambda x, n: x.unflatten(-1, (n, -1)).movedim(2, 0),
                "With x (2, 6, 15), n_heads 3 the result has shape (3, 2, 6, 5), "
                "expected (2, 3, 6, 5).",
            ),
        ],
    ),
)

ROTATE_PAIR = Answers(
    right=[rope, rotate_by_matrix, rotate_complex, rotate_in_place_on_a_copy],
    wrong=pointing(
        SECTION_3,
        [
            (
                lambda x, p: rotate_with_signs(x, torch.arange(len(x)), -1, 1),
                "You counted 0, 1, 2, ...: the positions are given.",
            ),
            (
                lambda x, p: torch.stack(
                    (x[:, 0] * p.cos() - x[:, 1] * p.sin(), x[:, 0] * p.sin() - x[:, 1] * p.cos()),
                    -1,
                ),
                "A sign is wrong: a rotation keeps the length.",
            ),
            (lambda x, p: rotate_with_signs(x, p, 1, -1), "You rotate clockwise."),
            (
                lambda x, p: rotate_with_signs(x, p * math.pi / 180, -1, 1),
                "The angles are radians, not degrees.",
            ),
            (
                lambda x, p: rotate_with_signs(x, p[0], -1, 1),
                "Every row is rotated by the same angle: each position has its own.",
            ),
            (
                lambda x, p: rotate_with_signs(x, torch.tensor(1.0), -1, 1),
                "Every row is rotated by the same angle: each position has its own.",
            ),
            (
                lambda x, p: (x.T * p.cos()).T,
                "That shrinks the vector: a rotation mixes its coordinates.",
            ),
            (lambda x, p: (x.T + p).T, "You added the angle: rotate the vector by it."),
            (
                lambda x, p: rotate_with_signs(x, p, 1, 1),
                "A sign is wrong: a rotation keeps the length.",
            ),
            (
                rotate_overwriting,
                "You computed the second coordinate from the new first one: use the old one.",
            ),
        ],
    ),
)


# --- Merge ----------------------------------------------------------------------------------


def merged_word_by_word(x):
    B, H, S, d = x.shape
    out = torch.zeros(B, S, H * d)
    for h in range(H):
        out[:, :, h * d : (h + 1) * d] = x[:, h]
    return out


MERGE = Answers(
    right=[
        merge_heads,
        merged_word_by_word,
        lambda x: torch.cat(list(x.unbind(1)), dim=-1),
        lambda x: x.double().permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
        lambda x: torch.einsum("bhsd->bshd", x).flatten(2),
        lambda x: torch.hstack([x[:, h].mT for h in range(x.shape[1])]).mT,
    ],
    wrong=pointing(
        SECTION_1,
        [
            (
                lambda x: x.view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
                "Right shape, but words are mixed: swap the axes before you reshape.",
            ),
            (
                lambda x: sum(x[:, h] for h in range(x.shape[1])) / x.shape[1],
                "An average loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.cat([x.mean(1)] * x.shape[1], dim=-1),
                "An average loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.einsum("bhsd->bsd", x),
                "A sum loses what distinguishes the heads: put them side by side.",
            ),
            (
                lambda x: torch.stack(list(x.unbind(1)), dim=-1).flatten(2),
                "The columns of a head stay together: yours are dealt out one by one.",
            ),
            (
                lambda x: torch.cat(list(x.unbind(1)), dim=1),
                "You put the heads one after the other, as if they were more words.",
            ),
            (
                lambda x: torch.stack(list(x.unbind(1)), dim=2),
                "The axes are swapped; the last two still have to become one.",
            ),
            (
                lambda x: torch.cat(list(x.unbind(1))[::-1], dim=-1),
                "Head 0 comes first: your order is reversed.",
            ),
            (lambda x: x[:, 0], "That is only one head: return all of them."),
            (
                lambda x: x,
                "With x (2, 3, 5, 4) the result has shape (2, 3, 5, 4), expected (2, 5, 12).",
            ),
        ],
    ),
)

# --- Parameters -----------------------------------------------------------------------------

N = 4 * 768**2
ONE_HEAD_ALL = "Each head has only its own 64 columns: 12 heads do not cost 12 times as much."

PARAMETERS_OF_HEADS = Answers(
    right=[
        (2_359_296, 2_359_296),
        (N, N),
        (4 * 768.0 * 768, float(N)),
        (torch.tensor(N), torch.tensor(float(N))),
        (np.int64(N), 12 * 3 * 768 * 64 + 768 * 768),
        (12 * (3 * 768 * 64) + 768**2, 24 * (3 * 768 * 32) + 768**2),
    ],
    wrong=pointing(
        SECTION_1,
        [
            ((N, 2 * N), "Twice the heads are half as wide each: nothing is added."),
            ((N, N // 2), "Half as wide each, but twice as many: nothing is lost."),
            ((12 * N, 24 * N), ONE_HEAD_ALL),
            ((12 * 3 * 768**2, 24 * 3 * 768**2), ONE_HEAD_ALL),
            ((3 * 768**2, 3 * 768**2), "One of the four is missing: W_Q, W_K, W_V and W_O."),
            ((768 * 768, 768 * 768), "That is one matrix: there are W_Q, W_K, W_V and W_O."),
            (
                (3 * 768 * 64, 3 * 768 * 32),
                "Too few: there are twelve heads, and each reads all 768 columns.",
            ),
            ((4 * 768, 4 * 768), "A matrix from 768 to 768 has 768 rows of 768 numbers."),
            ((N + 4 * 768, N + 4 * 768), "You counted biases: these four matrices have none."),
            (
                (N + 12 * 10 * 10, N + 24 * 10 * 10),
                "The count for 12 heads is 2.36e+06, which is not right.",
            ),
        ],
    ),
)

# --- Positions ------------------------------------------------------------------------------


def added_in_a_loop(e, p):
    out = e.clone()
    for i in range(e.shape[1]):
        out[:, i] += p[i]
    return out


def added_in_place(e, p):
    e += p[: e.shape[1]]
    return e


ADD_POSITIONS = Answers(
    right=[
        lambda e, p: e + p[: e.shape[1]],
        added_in_a_loop,
        lambda e, p: e.double() + p.double()[None, : e.shape[1]],
        lambda e, p: e + F.embedding(torch.arange(e.shape[1]), p),
        lambda e, p: torch.stack([sentence + p[: len(sentence)] for sentence in e]),
        lambda e, p: e + F.one_hot(torch.arange(e.shape[1]), len(p)).float() @ p,
    ],
    wrong=pointing(
        SECTION_2,
        [
            (
                lambda e, p: torch.stack([row + p[b] for b, row in enumerate(e)]),
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[: len(e)],
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[: e.shape[0]].unsqueeze(1),
                "Your positions run along the batch: all words of a sentence got the same one.",
            ),
            (
                lambda e, p: e + p[0][None, None],
                "Every word got the same position: row i belongs to word i.",
            ),
            (
                lambda e, p: e + p[e.shape[1]],
                "Every word got the same position: row i belongs to word i.",
            ),
            (
                lambda e, p: e + p,
                "p has more rows than the sentence has words: take the rows you need.",
            ),
            (
                lambda e, p: torch.stack([e[:, i] + p[i + 1] for i in range(e.shape[1])], dim=1),
                "Off by one: the first word is at position 0.",
            ),
            (
                lambda e, p: e + p[len(p) - e.shape[1] :],
                "You started at the wrong end: the first word takes the first row.",
            ),
            (
                lambda e, p: torch.cat([e, p[: e.shape[1]].repeat(len(e), 1, 1)], dim=2),
                "You concatenated the position: add it.",
            ),
            (lambda e, p: e * p[: e.shape[1]], "You multiplied by the position: add it."),
            (
                lambda e, p: e + torch.arange(float(e.shape[1]))[None, :, None],
                "You added the index of the position: its vector is a row of p.",
            ),
            (
                lambda e, p: p[: e.shape[1]].repeat(len(e), 1, 1),
                "Those are the positions alone: the embeddings are gone.",
            ),
        ],
    )
    + [(added_in_place, "The numbers are right, but you overwrite the input e.")],
)

# --- A key that is liked from afar ----------------------------------------------------------

Q = torch.tensor([1.0, 0.5])


def turned(x, angle):
    c, s = math.cos(angle), math.sin(angle)
    return x @ torch.tensor([[c, s], [-s, c]])


FAR_KEY = Answers(
    right=[
        turned(Q, 5),
        turned(Q, 5).double() * 3,
        torch.tensor([1.0, -1.0]),
        -Q,
        (-Q).bfloat16(),
        torch.nn.Parameter(torch.tensor([0.0, -1.0])),
    ],
    wrong=pointing(
        SECTION_3,
        [
            (Q, "Distance is not all, the near key leads: here 1.25, five positions away 0.35."),
            (
                torch.tensor([2.0, 0.0]),
                "Distance is not all, the near key leads: here 2.00, five positions away 1.53.",
            ),
            (
                torch.zeros(2),
                "A key of zeros scores 0 at every distance: here 0.00, five positions away 0.00.",
            ),
            (
                turned(Q, -5),
                "That key scores higher after the query, not before it: "
                "here 0.35, five positions away -1.05.",
            ),
            (
                torch.tensor([0.0, 1.0]),
                "That key scores higher after the query, not before it: "
                "here 0.50, five positions away -0.82.",
            ),
            (
                0.1 * turned(Q, 5),
                "The far key leads by less than 0.5: here 0.04, five positions away 0.13.",
            ),
            (
                torch.tensor([0.0, -0.1]),
                "The far key leads by less than 0.5: here -0.05, five positions away 0.08.",
            ),
        ],
    )
    + [
        ([1.0, -1.0], "Expected a torch.Tensor, got list."),
        (torch.tensor([1, -1]), "key holds int64, expected floats: use .float()."),
        (torch.tensor([[1.0, -1.0]]), "key has shape (1, 2), expected (2,)."),
    ],
)

# --- Attention with RoPE --------------------------------------------------------------------


def roped(q, k, v, positions, in_q=1, in_k=1, in_v=0, **more):
    q, k, v = (
        rope(x, n * positions, **more) if n else x for x, n in ((q, in_q), (k, in_k), (v, in_v))
    )
    return (q @ k.T / math.sqrt(q.shape[1])).softmax(dim=-1) @ v


def turned_word_by_word(q, k, v, positions):
    scores = torch.zeros(len(q), len(k))
    for i, m in enumerate(positions.tolist()):
        for j, n in enumerate(positions.tolist()):
            for pair in range(0, q.shape[1], 2):
                speed = 10000 ** (-pair / q.shape[1])
                key = turned(k[j, pair : pair + 2], (n - m) * speed)  # only the distance counts
                scores[i, j] += q[i, pair : pair + 2] @ key
    return (scores / q.shape[1] ** 0.5).softmax(1) @ v


def turned_as_complex_numbers(q, k, v, positions):
    speeds = 10000 ** (-torch.arange(0, q.shape[1], 2).double() / q.shape[1])
    turns = torch.polar(torch.ones(()).double(), positions[:, None] * speeds)
    q, k = (
        torch.view_as_real(torch.view_as_complex(x.double().unflatten(1, (-1, 2))) * turns)
        for x in (q, k)
    )
    return attention(q.flatten(1), k.flatten(1), v.double()).output


ROPE_ATTENTION = Answers(
    right=[
        roped,
        turned_word_by_word,
        turned_as_complex_numbers,
        lambda q, k, v, p: attention(rope(q, p), rope(k, p), v).output,
        lambda q, k, v, p: attention(rope(q, p + 100), rope(k, p + 100), v).output,
        lambda q, k, v, p: F.scaled_dot_product_attention(
            rope(q, p)[None], rope(k, p)[None], v[None]
        )[0],
    ],
    wrong=pointing(
        SECTION_3,
        [
            (
                lambda q, k, v, p: (
                    attention(rope(q, p), rope(k, p), v, scale=1 / q.shape[1]).output
                ),
                "You divided by d_k, not by its square root.",
            ),
            (
                lambda *a: roped(*a, in_v=1),
                "You rotated the values too: rotate only queries and keys.",
            ),
            (
                lambda q, k, v, p: rope(roped(q, k, v, p), p),
                "You rotated the output: rotate only queries and keys.",
            ),
            (
                lambda *a: roped(*a, in_k=0),
                "Only one side is rotated: the score needs the angle between both.",
            ),
            (
                lambda *a: roped(*a, in_q=0),
                "Only one side is rotated: the score needs the angle between both.",
            ),
            (
                lambda *a: roped(*a, in_q=0, in_k=0),
                "Nothing is rotated: this attention ignores the order.",
            ),
            (
                lambda *a: roped(*a, in_q=0, in_k=0, in_v=1),
                "You rotated the values instead of queries and keys.",
            ),
            (
                lambda *a: roped(*a, in_k=-1),
                "Query and key rotate in opposite directions: rotate both the same way.",
            ),
            (lambda *a: roped(*a, in_q=-1, in_k=-1), "You rotate clockwise."),
            (
                lambda q, k, v, p: roped(q, k, v, torch.arange(len(q))),
                "You counted 0, 1, 2, ...: the positions are given, and they have gaps.",
            ),
            (
                lambda q, k, v, p: roped(q + p[:, None], k + p[:, None], v, p, 0, 0),
                "You added the positions: RoPE rotates.",
            ),
            (
                lambda *a: roped(*a, layout="half"),
                "Here neighbouring columns form a pair: yours come from the two halves.",
            ),
            (
                lambda q, k, v, p: (rope(q, p) @ rope(k, p).T).softmax(-1) @ v,
                "The scores are not scaled.",
            ),
            (
                lambda q, k, v, p: roped(k, q, v, p),
                "Queries are rows and keys are columns: yours are swapped.",
            ),
        ],
    ),
)

ANSWERS = {
    "multi_head": MULTI_HEAD,
    "rms_norm": RMS_NORM,
    "swiglu": SWIGLU,
    "block": BLOCK,
    "transformer": TRANSFORMER,
    "split": SPLIT,
    "rotate_pair": ROTATE_PAIR,
    "merge": MERGE,
    "parameters_of_heads": PARAMETERS_OF_HEADS,
    "add_positions": ADD_POSITIONS,
    "far_key": FAR_KEY,
    "rope_attention": ROPE_ATTENTION,
}
