"""Attention as plain functions: by hand, against PyTorch, by property."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.testing import assert_close

from attnlab import (
    attention,
    causal_mask,
    merge_heads,
    padding_mask,
    rope,
    sinusoidal_positions,
    split_heads,
)
from attnlab.core import rope_at

RIVER, MONEY, BANK = [2.0, 0.0], [0.0, 2.0], [1.0, 0.0]
RIVER_BANK = torch.tensor([RIVER, BANK])
MONEY_BANK = torch.tensor([MONEY, BANK])
LN3 = math.log(3.0)
INF = float("inf")
few = settings(max_examples=20, derandomize=True, deadline=None)


def qkv(*batch, n_queries=3, n_keys=5, d_k=7, d_v=2, dtype=torch.float32):
    """Random q, k, v whose sizes are all different."""
    q = torch.randn(*batch, n_queries, d_k, dtype=dtype)
    k = torch.randn(*batch, n_keys, d_k, dtype=dtype)
    v = torch.randn(*batch, n_keys, d_v, dtype=dtype)
    return q, k, v


# --- Attention by hand ----------------------------------------------------------------------


def test_bank_beside_river_step_by_step(close):
    steps = attention(RIVER_BANK, RIVER_BANK, RIVER_BANK, causal_mask(2))
    assert steps._fields == ("raw", "scaled", "masked", "weights", "output")
    close(steps.raw, [[4, 2], [2, 1]])
    close(steps.scaled, [[2.8284, 1.4142], [1.4142, 0.7071]])
    close(steps.masked, [[2.8284, -INF], [1.4142, 0.7071]])
    close(steps.weights, [[1, 0], [0.6698, 0.3302]])
    close(steps.output, [[2, 0], [1.6698, 0]])


def test_bank_beside_money_gets_another_output_from_the_same_embedding(close):
    steps = attention(MONEY_BANK, MONEY_BANK, MONEY_BANK, causal_mask(2))
    close(steps.weights, [[1, 0], [0.3302, 0.6698]])
    close(steps.output[1], [0.6698, 0.6605])


def test_bank_in_a_phrase_of_three(close):
    x = torch.tensor([RIVER, MONEY, BANK])
    steps = attention(x, x, x, causal_mask(3))
    close(steps.weights[2], [0.5760, 0.1400, 0.2840])
    close(steps.output[2], [1.4359, 0.2801])


@pytest.mark.parametrize("strength, weight", [(0.0, 0.3302), (1.0, 0.6698), (3.0, 0.9717)])
def test_one_entry_of_w_q_teaches_bank_to_look_for_money(strength, weight, close):
    w_q = torch.tensor([[1.0, strength], [0.0, 1.0]])
    beside_money = attention(MONEY_BANK @ w_q, MONEY_BANK, MONEY_BANK)
    beside_river = attention(RIVER_BANK @ w_q, RIVER_BANK, RIVER_BANK)
    close(beside_money.weights[1, 0], weight)
    close(beside_river.weights[1, 0], 0.6698)


def test_w_v_changes_what_is_handed_over_and_not_where_it_looks(close):
    values = RIVER_BANK @ torch.tensor([[0.5, 0.2], [0.3, 0.8]])
    close(values, [[1.0, 0.4], [0.5, 0.2]])
    steps = attention(RIVER_BANK, RIVER_BANK, values, causal_mask(2))
    close(steps.weights[1], [0.6698, 0.3302])
    close(steps.output[1], [0.8349, 0.3340])


def test_the_scale_can_be_replaced(close):
    close(attention(RIVER_BANK, RIVER_BANK, RIVER_BANK, scale=1.0).weights[1], [0.7311, 0.2689])
    steps = attention(*qkv(), scale=0)
    close(steps.weights, torch.full((3, 5), 1 / 5))
    assert_close(attention(q := torch.eye(3), q, q, scale=2).scaled, 2 * torch.eye(3))


def test_softmax_goes_along_the_keys(close):
    """Scores [[0, 0], [0, ln 3]]: the columns of the right answer do not sum to 1."""
    q = torch.tensor([[0.0], [LN3]])
    k = torch.tensor([[0.0], [1.0]])
    close(attention(q, k, k, scale=1.0).weights, [[0.5, 0.5], [0.25, 0.75]])


def test_a_published_example_that_divided_by_the_sum(close):
    q = torch.tensor([[0.8, 0.5, -0.2, 0.9]])
    mask = torch.tensor([[True, True, False, False]])
    close(
        attention(q, torch.eye(4), torch.eye(4), mask, scale=1.0).weights, [[0.5744, 0.4256, 0, 0]]
    )


def test_huge_scores_do_not_overflow(close):
    q = torch.tensor([[1000.0, 0.0]])
    close(attention(q, torch.eye(2), torch.eye(2), scale=1.0).weights, [[1, 0]], atol=0)


def test_a_single_token_attends_to_itself():
    q, k, v = qkv(n_queries=1, n_keys=1)
    steps = attention(q, k, v, causal_mask(1))
    assert steps.weights.tolist() == [[1.0]]
    assert_close(steps.output, v)


# --- Attention against PyTorch --------------------------------------------------------------

MASKS = {
    "none": None,
    "causal": causal_mask(3, 5),
    "padding": padding_mask([5, 2], 5)[:, None],
    "one row for all": torch.tensor([True, False, True, True, False]),
    "per head": torch.rand(1, 7, 3, 5, generator=torch.Generator().manual_seed(1)) > 0.3,
    "one for all heads": causal_mask(3, 5)[None],
    "with a fully masked row": torch.tensor(
        [[True] * 5, [False] * 5, [False, True, False, True, True]]
    ),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_equals_scaled_dot_product_attention(mask):
    for dtype, atol, scale in [
        (torch.float64, 1e-12, None),
        (torch.float32, 1e-5, 0.3),
        (torch.float16, 5e-3, None),
        (torch.bfloat16, 3e-2, 0.3),
    ]:
        q, k, v = qkv(2, 7, d_k=12, d_v=12, dtype=dtype)
        steps = attention(q, k, v, mask, scale)
        assert {x.dtype for x in steps} == {dtype}
        wide = None if mask is None else mask.broadcast_to(2, 7, 3, 5)
        q, k, v = (x.double() for x in (q, k, v))
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=wide, scale=scale)
        assert_close(steps.output.double(), expected, atol=atol, rtol=0)


def test_every_step_has_its_formula():
    q, k, v = qkv(2, dtype=torch.float64)
    mask = causal_mask(3, 5)
    steps = attention(q, k, v, mask)
    assert_close(steps.raw, torch.einsum("bqd,bkd->bqk", q, k))
    assert_close(steps.scaled, steps.raw / math.sqrt(7))
    assert_close(steps.masked, steps.scaled + torch.where(mask, 0.0, -INF))
    assert_close(steps.weights, steps.masked.softmax(-1))
    assert_close(steps.output, torch.einsum("bqk,bkv->bqv", steps.weights, v))
    unmasked = attention(q, k, v)
    assert torch.equal(unmasked.masked, unmasked.scaled)


def test_leading_axes_are_broadcast():
    q, k, v = torch.randn(2, 1, 3, 7), torch.randn(5, 12, 7), torch.randn(12, 2)
    output = attention(q, k, v).output
    assert output.shape == (2, 5, 3, 2)
    assert_close(output[1, 4], attention(q[1, 0], k[4], v).output)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(dtype, close):
    """Products beyond the largest half (65504), differences below its rounding."""
    q = torch.tensor([[256.0, 1.0]], dtype=dtype)
    k = torch.tensor([[256.0, 0.0], [256.0, LN3]], dtype=dtype)
    weights = attention(q, k, torch.eye(2, dtype=dtype), scale=1.0).weights
    close(weights, [[0.25, 0.75]], atol=5e-3)


# --- Attention by property ------------------------------------------------------------------


@few
@given(data=st.data())
def test_rows_sum_to_one_or_are_zero(data):
    seed = data.draw(st.integers(0, 999))
    torch.manual_seed(seed)
    mask = torch.rand(3, 5) < data.draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    steps = attention(*qkv(2), mask)
    assert_close(steps.weights.sum(-1), mask.any(-1).float().expand(2, 3))
    assert (steps.weights >= 0).all()
    assert (steps.weights[:, ~mask] == 0).all()
    assert (steps.output[:, ~mask.any(-1)] == 0).all()


@few
@given(order=st.permutations(range(5)))
def test_order_of_keys_does_not_matter(order):
    q, k, v = qkv(2)
    mask = padding_mask([3, 5], 5)
    expected = attention(q, k, v, mask).output
    order = list(order)
    assert_close(attention(q, k[:, order], v[:, order], mask[..., order]).output, expected)


def test_the_future_changes_nothing():
    q, k, v = qkv(2, n_queries=5)
    before = attention(q, k, v, causal_mask(5)).output
    for changed in (4, 3, 2, 1):
        k[:, changed:], v[:, changed:] = 9.0, -9.0
        after = attention(q, k, v, causal_mask(5)).output
        assert torch.equal(after[:, :changed], before[:, :changed])
        assert not torch.isclose(after[:, changed:], before[:, changed:]).any()


def test_changing_the_last_word_reaches_back_only_without_a_mask(close):
    edited = torch.tensor([RIVER, MONEY])
    close(attention(RIVER_BANK, RIVER_BANK, RIVER_BANK).output[0], [1.804, 0.0], atol=5e-4)
    close(attention(edited, edited, edited).output[0], [1.888, 0.112], atol=5e-4)
    for x in (RIVER_BANK, edited):
        close(attention(x, x, x, causal_mask(2)).output[0], RIVER, atol=0)


def test_padding_changes_nothing_even_if_it_is_huge():
    q, k, v = qkv(2)
    mask = padding_mask([5, 2], 5)
    before = attention(q, k, v, mask).output
    k[1, 2:], v[1, 2:] = 1e30, -1e30
    assert torch.equal(attention(q, k, v, mask).output, before)
    assert_close(before[1], attention(q[1], k[1, :2], v[1, :2]).output)


# --- A query that may attend to nothing -----------------------------------------------------

NONE_FOR_THE_SECOND = torch.tensor([[True, False], [False, False]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_a_fully_masked_row_is_zero_and_not_an_average(dtype):
    ones, v = torch.ones(2, 4, dtype=dtype), torch.arange(8, dtype=dtype).view(2, 4)
    steps = attention(-5 * ones, ones, v, NONE_FOR_THE_SECOND)
    assert steps.weights.tolist() == [[1, 0], [0, 0]]
    assert steps.output.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]
    assert steps.masked[1].tolist() == [-INF, -INF]


def test_the_gradient_of_a_fully_masked_row_is_zero(close):
    q = torch.zeros(2, 2, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False]])
    attention(
        q, torch.eye(2), torch.tensor([[1.0], [2.0]]), mask, scale=1.0
    ).output.sum().backward()
    close(q.grad, [[-0.25, 0.25], [0, 0]], atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_a_fully_masked_row_leaves_the_gradients_of_the_others_alone(dtype):
    def gradients(q, k, v, mask):
        inputs = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            (attention(*inputs, mask).output ** 2).sum().backward()
        return [x.grad for x in inputs]

    q, k, v = qkv(2, dtype=dtype)
    mask = torch.tensor([[True, True, False, False, True], [False] * 5, [True] * 5])
    dq, dk, dv = gradients(q, k, v, mask)
    others = gradients(q[:, [0, 2]], k, v, mask[[0, 2]])
    assert (dq[:, 1] == 0).all()
    assert_close([dq[:, [0, 2]], dk, dv], others)
    assert all(x.any() for x in others)
    all_masked = gradients(q, k, v, mask[1])
    assert not any(x.any() for x in all_masked)  # zero, and NaN would count as True


# --- Gradients ----------------------------------------------------------------------


def test_gradients_flow_where_they_are_asked_for():
    for which in range(3):
        inputs = list(qkv())
        inputs[which].requires_grad_()
        steps = attention(*inputs, causal_mask(3, 5))
        asked = [x.requires_grad for x in steps]
        assert asked == ([True] * 5 if which < 2 else [False] * 4 + [True])
        steps.output.sum().backward()
        assert inputs[which].grad.abs().sum() > 0


def test_no_argument_is_changed():
    inputs = (*qkv(), causal_mask(3, 5))
    copies = [x.clone() for x in inputs]
    attention(*inputs)
    assert all(torch.equal(x, copy) for x, copy in zip(inputs, copies, strict=True))


# --- Masks ----------------------------------------------------------------------------------


def test_a_mask_of_true_means_may_attend(close):
    mask = torch.tensor([[True, True, False]])
    close(attention(*qkv(n_queries=1, n_keys=3), mask).weights[0, 2], 0.0, atol=0)


@pytest.mark.parametrize("n_queries, expected", [(1, [2.0]), (2, [1.5, 2.0])])
def test_the_last_query_sees_every_key(n_queries, expected, close):
    """A causal mask aligned at the top left would give 1.0 and [1.0, 1.5]."""
    q, k, v = torch.zeros(n_queries, 1), torch.ones(3, 1), torch.tensor([[1.0], [2.0], [3.0]])
    close(attention(q, k, v, causal_mask(n_queries, 3)).output[:, 0], expected)


@pytest.mark.parametrize("n_queries, n_keys", [(3, 3), (1, 7), (3, 5)])
def test_causal_mask_by_its_definition(n_queries, n_keys):
    mask = causal_mask(n_queries, n_keys)
    assert mask.dtype == torch.bool
    past = n_keys - n_queries
    assert mask.tolist() == [[j <= i + past for j in range(n_keys)] for i in range(n_queries)]
    assert n_queries < n_keys or torch.equal(causal_mask(n_queries), mask)


def test_padding_mask_by_hand():
    for kind in (list, tuple, torch.tensor, torch.IntTensor):
        mask = padding_mask(kind([5, 2, 1]), 5)
        assert mask.dtype == torch.bool
        assert mask.tolist() == [[[True] * n + [False] * (5 - n)] for n in (5, 2, 1)]


# --- Heads ----------------------------------------------------------------------------------


def test_each_head_gets_its_own_columns_of_every_token():
    x = torch.arange(12.0).view(1, 3, 4)
    heads = split_heads(x, 2)
    assert heads[0, 0].tolist() == [[0, 1], [4, 5], [8, 9]]
    assert heads[0, 1].tolist() == [[2, 3], [6, 7], [10, 11]]
    assert torch.equal(merge_heads(heads), x)


@pytest.mark.parametrize("n_heads, width", [(3, 12), (1, 5), (5, 5)])
def test_merging_undoes_splitting(n_heads, width):
    for batch in ((), (2, 7)):
        x = torch.randn(*batch, 7, width)
        heads = split_heads(x, n_heads)
        assert heads.shape == (*batch, n_heads, 7, width // n_heads)
        assert torch.equal(merge_heads(heads), x)


# --- Positions ------------------------------------------------------------------------------


def test_sinusoidal_positions_by_the_formula_of_the_paper(close):
    positions = sinusoidal_positions(7, 12)
    assert (positions.shape, positions.dtype) == ((7, 12), torch.float32)
    for position in range(7):
        for i in range(6):
            angle = position / 10000 ** (2 * i / 12)
            close(positions[position, 2 * i : 2 * i + 2], [math.sin(angle), math.cos(angle)], 1e-6)


BY_LAYOUT = {
    "interleaved": [-1.14264, 1.92208, 2.95985, 4.02980],
    "half": [-1.98411, 1.95990, 2.46238, 4.01980],
}
both_layouts = pytest.mark.parametrize("layout", BY_LAYOUT)


@both_layouts
def test_rope_by_hand(layout, close):
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    close(rope(x, torch.tensor([1]), layout=layout)[0], BY_LAYOUT[layout], 1e-5)
    assert torch.equal(rope(x, torch.tensor([0]), layout=layout), x)


def test_rope_pairs_neighbours_unless_told_otherwise():
    x = torch.randn(3, 12)
    positions = torch.arange(3)
    assert torch.equal(rope(x, positions), rope(x, positions, 10000.0, "interleaved"))


def test_rope_is_a_multiplication_of_complex_numbers():
    x, positions = torch.randn(5, 12, dtype=torch.float64), torch.arange(7, 12)
    frequencies = 500.0 ** (-torch.arange(6, dtype=torch.float64) / 6)
    rotations = torch.exp(1j * positions[:, None] * frequencies)
    rotated = torch.view_as_real(torch.view_as_complex(x.view(5, 6, 2)) * rotations).flatten(-2)
    assert_close(rope(x, positions, 500.0), rotated)


def test_both_layouts_agree_up_to_the_order_of_columns():
    x, positions = torch.randn(2, 5, 12), torch.arange(5)
    order = torch.arange(12).view(6, 2).T.flatten()  # 0, 2, 4, ..., 1, 3, 5, ...
    assert_close(
        rope(x[..., order], positions, layout="half"),
        rope(x, positions, layout="interleaved")[..., order],
    )


@both_layouts
def test_rope_keeps_norms_and_depends_on_distance_only(layout):
    def score(m, n):
        at = [rope(x, torch.tensor([p]), layout=layout) for x, p in ((q, m), (k, n))]
        assert_close([x.norm() for x in at], [q.norm(), k.norm()])
        return (at[0] @ at[1].T).item()

    q, k = torch.randn(2, 1, 12, dtype=torch.float64)
    assert score(3, 1) == pytest.approx(score(10, 8), abs=1e-10)
    assert score(3, 1) == pytest.approx(score(103, 101), abs=1e-10)
    assert score(3, 1) != pytest.approx(score(4, 1), abs=1e-2)
    assert score(3, 1) != pytest.approx(score(1, 3), abs=1e-2)


@both_layouts
def test_rope_rotates_every_head_alike(layout):
    """The sequence is the axis before the last: (B, H, S, d), not (B, S, H, d)."""
    x = torch.randn(2, 1, 5, 12).expand(2, 3, 5, 12)
    rotated = rope(x, torch.arange(5), layout=layout)
    assert torch.equal(rotated[:, 0], rotated[:, 2])
    assert_close(rotated[1, 2], rope(x[1, 2], torch.arange(5), layout=layout))


def test_rope_takes_positions_per_row():
    x = torch.randn(2, 3, 5, 12)
    starts = torch.tensor([0, 7])
    positions = (starts[:, None] + torch.arange(5))[:, None]  # (B, 1, S)
    rotated = rope(x, positions)
    assert rotated.shape == x.shape
    for row, start in enumerate(starts):
        assert_close(rotated[row], rope(x[row], torch.arange(5) + start))
    assert_close(rope(x, positions.expand(2, 3, 5)), rotated)
    assert_close(rope(x, positions.double()), rotated)


@both_layouts
def test_angles_are_exact_far_away(layout, close):
    """float32 angles are wrong by 2.7e-3 at 100,000; 16-bit ones take 257 for 256."""
    x = torch.ones(1, 32)
    for at in (257, 100_000, 16_777_217):
        position = torch.tensor([at])
        close(rope(x, position, layout=layout)[0, 0], math.cos(at) - math.sin(at), 1e-6)
        exact = rope(x.double(), position, layout=layout)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            rotated = rope(x.to(dtype), position, layout=layout)
            assert rotated.dtype == dtype
            assert_close(rotated, exact.float().to(dtype), atol=1e-6, rtol=0)


def test_gradients_flow_through_rope():
    x = torch.randn(5, 12, requires_grad=True)
    (rope(x, torch.arange(5)) ** 2).sum().backward()
    assert_close(x.grad, 2 * x)  # norms do not change


@both_layouts
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_rope_at_a_position_is_rope_at_the_positions_after_it(layout, dtype):
    """The table of angles grows to the next power of two, and no position falls off its end."""
    x = torch.randn(2, 3, 5, 12, dtype=dtype)
    for start in (0, 1, 2, 3, 4, 27, 28, 2043, 2044, 100_000):
        rotated = rope_at(start, x, layout)
        assert_close(rotated, rope(x, torch.arange(start, start + 5), layout=layout))
        assert rotated.dtype == dtype
