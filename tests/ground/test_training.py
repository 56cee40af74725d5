"""The training loop: the curriculum's figures, and what stays as it was."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnlab import History, TinyCausalAttention, TinyTransformer, generate, train
from attnlab.training import evaluate, next_token_loss, seeded, train_seeds, training_steps

# river 0, money 1, bank 2, shore 3, loan 4
PHRASES = torch.tensor([[0, 2], [1, 2]])
SENSES = torch.tensor([3, 4])
AS_IN_THE_COURSE = {"steps": 201, "lr": 0.03}


def tiny(held_at_zero=None, seed=42):
    model = seeded(TinyCausalAttention, seed)
    if held_at_zero:
        nn.init.zeros_(getattr(model, held_at_zero).weight).requires_grad_(False)
    return model


# --- The curriculum's figures ---------------------------------------------------------------


def test_the_tiny_model_learns_both_senses_of_bank():
    model = tiny()
    losses = train(model, PHRASES, SENSES, **AS_IN_THE_COURSE).losses
    assert len(losses) == 201
    assert losses[0] == pytest.approx(2.0212, abs=5e-5)
    assert losses[13] > 0.01 > max(losses[14:])
    assert losses[-1] == pytest.approx(6e-5, abs=1e-5)
    assert model(PHRASES)[:, -1].argmax(-1).tolist() == SENSES.tolist()


def test_without_values_it_cannot_do_better_than_guessing():
    model = tiny("v")
    losses = train(model, PHRASES, SENSES, **AS_IN_THE_COURSE).losses
    assert losses[-1] == pytest.approx(0.6932, abs=1e-4)
    assert min(losses) >= math.log(2) - 1e-4
    probabilities = model(PHRASES)[:, -1].softmax(-1)
    assert_close(probabilities[:, 3:], torch.full((2, 2), 0.5), atol=5e-3, rtol=0)
    assert not model.v.weight.any()


def test_without_queries_it_learns_as_well():
    model = tiny("q")
    losses = train(model, PHRASES, SENSES, **AS_IN_THE_COURSE).losses
    assert losses[-1] == pytest.approx(7e-5, abs=1e-5)
    assert_close(model.steps(PHRASES).weights[:, 1], torch.full((2, 2), 0.5))


def test_attention_weights_alone_do_not_explain_a_prediction():
    """15 of 20 starts look at the context word in both phrases; 42 is not one of those."""
    seeds = [*range(20), 42]
    models, losses = train_seeds(
        TinyCausalAttention, PHRASES, SENSES, seeds=seeds, **AS_IN_THE_COURSE
    )
    assert losses.shape == (21, 201) and (losses[:, -1] < 1e-3).all()
    to_context = torch.stack([model.steps(PHRASES).weights[:, 1, 0] for model in models])
    assert (to_context[:20] > 0.5).all(dim=1).sum() == 15
    assert_close(to_context[20], torch.tensor([0.0, 1.0]), atol=5e-3, rtol=0)


@pytest.mark.parametrize("held_at_zero", [None, "q"])
def test_many_seeds_at_once_are_the_same_as_one_by_one(held_at_zero):
    """In float64, because Adam blows the rounding of a gradient of zero up to a whole step."""
    seeds, options = [3, 42, 7], {"steps": 12, "lr": 0.03}
    before = torch.get_rng_state()
    models, losses = train_seeds(
        lambda: tiny(held_at_zero, seed=torch.initial_seed()).double(),
        PHRASES,
        SENSES,
        seeds=seeds,
        **options,
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert not losses.requires_grad
    for seed, together, row in zip(seeds, models, losses, strict=True):
        alone = tiny(held_at_zero, seed).double()
        history = train(alone, PHRASES, SENSES, **options)
        assert_close(row, torch.tensor(history.losses, dtype=torch.float64))
        assert_close(together.state_dict(), alone.state_dict(), atol=1e-6, rtol=0)
        for ours, theirs in zip(together.parameters(), alone.parameters(), strict=True):
            assert ours.requires_grad == theirs.requires_grad


# --- The loss -------------------------------------------------------------------------------


class Fixed(nn.Module):
    """Gives the same logits for any ids."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.as_tensor(logits))

    def forward(self, ids):
        return self.logits


TWO_POSITIONS = [[[0.0, 0.0], [0.0, 2.0]]]  # losses 0.6931 and 0.1269 for targets 1, 1


@pytest.mark.parametrize("targets, loss", [([1], 0.1269), ([[1, 1]], 0.4100), ([[1, 0]], 1.4100)])
def test_the_loss_is_at_the_last_position_or_the_mean_of_all(targets, loss):
    targets = torch.tensor(targets)
    assert next_token_loss(torch.tensor(TWO_POSITIONS), targets).item() == pytest.approx(
        loss, abs=1e-4
    )
    history = train(Fixed(TWO_POSITIONS), torch.zeros(1, 2).long(), targets, steps=1, lr=0.1)
    assert history.losses == pytest.approx([loss], abs=1e-4)


def test_loss_axes_are_batch_position_vocabulary():
    logits = torch.randn(2, 3, 5)
    targets = torch.tensor([[0, 4, 2], [3, 1, 0]])
    by_hand = [-logits[b, s].log_softmax(-1)[targets[b, s]] for b in range(2) for s in range(3)]
    assert_close(next_token_loss(logits, targets), torch.stack(by_hand).mean())
    assert_close(next_token_loss(logits, targets[:, 2]), (by_hand[2] + by_hand[5]) / 2)
    assert_close(next_token_loss(logits, targets.int()), next_token_loss(logits, targets))


# --- The loop -------------------------------------------------------------------------------


def test_the_loop_is_adam_and_nothing_else():
    ours, theirs = tiny(), tiny()
    factors = [1.0, 0.5, 0.1, 0.0, 2.0]
    losses = train(ours, PHRASES, SENSES, steps=5, lr=0.03, schedule=lambda i: factors[i]).losses
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.03)
    for loss, factor in zip(losses, factors, strict=True):
        expected = nn.functional.cross_entropy(theirs(PHRASES)[:, -1], SENSES)
        assert loss == pytest.approx(expected.item(), abs=1e-6)
        optimizer.zero_grad()
        expected.backward()
        optimizer.param_groups[0]["lr"] = 0.03 * factor
        optimizer.step()
    assert_close(ours.state_dict(), theirs.state_dict())  # after the last update too


def test_the_loss_belongs_to_the_model_that_on_step_sees():
    model, seen = tiny(), []

    def on_step(step, loss):
        assert next_token_loss(model(PHRASES), SENSES).item() == pytest.approx(loss, abs=1e-6)
        seen.append((step, loss))

    history = train(model, PHRASES, SENSES, steps=7, lr=0.03, on_step=on_step)
    assert seen == list(enumerate(history.losses))
    assert {type(loss) for loss in history.losses} == {float}
    assert not history.interrupted


def test_a_picture_can_be_drawn_between_two_steps():
    endless = training_steps(tiny(), PHRASES, SENSES, lr=0.03)
    assert next(step for step, loss in endless if loss < 0.01) == 14


def random_words(step, generator):
    ids = torch.randint(5, (2, 4), generator=generator)
    return ids[:, :-1], ids[:, 1:]


def test_the_seed_decides_the_batches_and_the_global_state_is_left_alone():
    def losses(**seed):
        return train(tiny(), random_words, steps=5, lr=0.01, **seed).losses

    before = torch.get_rng_state()
    assert losses() == losses(seed=0)
    assert losses(seed=1) == losses(seed=1) != losses(seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    steps = []
    train(tiny(), lambda i, g: steps.append(i) or random_words(i, g), steps=3, lr=0.01)
    assert steps == [0, 1, 2]


def test_what_is_frozen_stays_and_modes_are_left_alone():
    model = tiny()
    model.k.requires_grad_(False)
    model.norm.eval()
    before = {name: p.clone() for name, p in model.named_parameters()}
    train(model, PHRASES, SENSES, steps=3, lr=0.03)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == set(before) - {"k.weight"}
    assert not model.k.weight.requires_grad and model.k.weight.grad is None
    assert model.training and not model.norm.training


# --- What can go wrong ----------------------------------------------------------------------


def interrupt_at(step_to_stop):
    def on_step(step, loss):
        if step == step_to_stop:
            raise KeyboardInterrupt

    return on_step


@pytest.mark.parametrize("at", [0, 5])
def test_ctrl_c_keeps_the_history(at):
    model = tiny()
    whole = train(tiny(), PHRASES, SENSES, steps=9, lr=0.03).losses
    history = train(model, PHRASES, SENSES, steps=9, lr=0.03, on_step=interrupt_at(at))
    assert history == History(whole[: at + 1], interrupted=True)
    now = next_token_loss(model(PHRASES), SENSES).item()
    assert now == pytest.approx(whole[at], abs=1e-6)  # the model that had the last loss


def test_ctrl_c_before_the_first_loss_keeps_an_empty_history():
    def batches(step, generator):
        raise KeyboardInterrupt

    assert train(tiny(), batches, steps=3, lr=0.1) == History([], interrupted=True)


def break_at(step_to_break, parameter, value=math.nan):
    def on_step(step, loss):
        if step == step_to_break:
            parameter.data.fill_(value)

    return on_step


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_a_number_stops_with_the_step_the_cause_and_the_history(value):
    model, ids = Fixed(TWO_POSITIONS), torch.zeros(1, 2).long()
    on_step = break_at(1, model.logits, value)
    with pytest.raises(FloatingPointError) as caught:
        train(model, ids, ids, steps=9, lr=0.1, on_step=on_step)
    assert str(caught.value) == (
        "the loss is nan at step 2: logits is no longer finite, so the previous step was too "
        "large: lower lr 0.1"
    )
    whole = train(Fixed(TWO_POSITIONS), ids, ids, steps=2, lr=0.1)
    assert caught.value.history == whole


def test_a_loss_that_never_was_a_number_is_not_blamed_on_the_learning_rate(refuses):
    ids = torch.zeros(1, 2).long()
    model = Fixed([[[0.0, math.nan], [0.0, 2.0]]])
    sentence = "the loss is nan at step 0: logits was not finite to begin with"
    refuses(FloatingPointError, sentence, train, model, ids, ids, steps=9, lr=0.1)
    overflowing = tiny()
    overflowing.lm_head.weight.data.fill_(3e38)
    sentence = (
        "the loss is nan at step 0: every parameter is finite, so look at what the model "
        "computes from them"
    )
    refuses(FloatingPointError, sentence, train, overflowing, PHRASES, SENSES, steps=9, lr=0.1)


class Root(Fixed):
    """Its derivative at 0 is infinite, its value is not."""

    def forward(self, ids):
        return self.logits.abs().sqrt()


def test_a_gradient_that_is_not_finite_is_noticed_before_it_is_used():
    model, ids = Root(TWO_POSITIONS), torch.zeros(1, 2).long()
    with pytest.raises(FloatingPointError) as caught:
        train(model, ids, ids, steps=9, lr=0.1, clip=1.0)
    assert str(caught.value) == (
        "the gradient norm is nan at step 0: every parameter is finite, so look at what "
        "the model computes from them"
    )
    assert torch.equal(model.logits.data, torch.tensor(TWO_POSITIONS))
    assert len(caught.value.history.losses) == 1


# --- Padding, clipping, evaluation, randomness ----------------------------------------------


def test_padding_at_the_right_changes_nothing():
    """Two sequences of different length, padded, against the same two one by one."""
    model = seeded(lambda: TinyTransformer(5, 12, 3, 2, 8), 0)
    rows = [torch.tensor([[0, 2, 3, 1, 4]]), torch.tensor([[1, 2, 4]])]
    inputs, targets = torch.full((2, 4), 4), torch.full((2, 4), -100)
    for i, row in enumerate(rows):
        inputs[i, : row.shape[1] - 1], targets[i, : row.shape[1] - 1] = row[0, :-1], row[0, 1:]
    padded = next_token_loss(model(inputs), targets)
    sums = [next_token_loss(model(row[:, :-1]), row[:, 1:]) * (row.shape[1] - 1) for row in rows]
    assert_close(padded, sum(sums) / 6)  # the mean over six targets, not over eight
    gradients = torch.autograd.grad(padded, list(model.parameters()))
    alone = torch.autograd.grad(sum(sums) / 6, list(model.parameters()))
    assert_close(gradients, alone)
    assert train(model, inputs, targets, steps=1, lr=0.01).losses == pytest.approx([padded.item()])


def test_a_row_without_a_target_is_left_out():
    logits = torch.randn(3, 2, 5)
    one_missing = next_token_loss(logits, torch.tensor([4, -100, 2]))
    assert_close(one_missing, next_token_loss(logits[[0, 2]], torch.tensor([4, 2])))


def test_a_large_gradient_is_scaled_down_and_a_small_one_is_not():
    ours, theirs, free = tiny(), tiny(), tiny()
    options = {"steps": 4, "lr": 0.03}
    train(ours, PHRASES, SENSES, clip=0.01, **options)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.03)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(theirs(PHRASES)[:, -1], SENSES).backward()
        norm = torch.cat([p.grad.flatten() for p in theirs.parameters()]).norm()
        assert norm > 0.01
        for p in theirs.parameters():
            p.grad *= 0.01 / norm
        optimizer.step()
    assert_close(ours.state_dict(), theirs.state_dict(), atol=1e-5, rtol=0)
    train(free, PHRASES, SENSES, **options)
    assert not torch.allclose(free.emb.weight, ours.emb.weight, atol=1e-4)
    roomy = tiny()
    train(roomy, PHRASES, SENSES, clip=1e6, **options)
    assert_close(roomy.state_dict(), free.state_dict())


class WithDropout(nn.Module):
    """A tiny model with dropout."""

    def __init__(self):
        super().__init__()
        self.body, self.dropout = TinyCausalAttention(), nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(self.body(ids))


def test_evaluation_has_no_gradient_and_no_dropout_and_leaves_no_trace():
    model = seeded(WithDropout, 42).train()
    model.body.norm.eval()
    modes = [module.training for module in model.modules()]
    first = evaluate(model, PHRASES, SENSES)
    assert first == evaluate(model, PHRASES, SENSES) == pytest.approx(2.0212, abs=5e-5)
    assert type(first) is float
    assert [module.training for module in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters()) and torch.is_grad_enabled()
    with pytest.raises(ValueError):
        evaluate(model, PHRASES, SENSES + 9)
    assert [module.training for module in model.modules()] == modes


def test_a_clock_is_a_seed_too():
    assert len(train(tiny(), PHRASES, SENSES, steps=2, lr=0.1, seed=2**63).losses) == 2


def test_a_model_that_returns_no_logits_is_refused(refuses):
    no_logits = nn.Sequential(nn.Embedding(5, 4), nn.Flatten())
    sentence = "logits have shape (2, 8), not (B, S, vocab)"
    refuses(ValueError, sentence, train, no_logits, PHRASES, SENSES, steps=1, lr=0.1)
    no_tensor = nn.LSTM(2, 4)
    sentence = "logits must be a torch.Tensor, not tuple: torch.tensor(...)"
    refuses(TypeError, sentence, train, no_tensor, PHRASES.float(), SENSES, steps=1, lr=0.1)


def test_the_seed_decides_dropout_and_pytorchs_own_random_numbers_too():
    drawn = []

    def losses(seed):
        def batches(step, generator):
            ids = torch.randint(5, (2, 4))  # not from the generator
            drawn.append(ids.tolist())
            return ids[:, :-1], ids[:, 1:]

        return train(seeded(WithDropout, 0), batches, steps=5, lr=0.01, seed=seed).losses

    before = torch.get_rng_state()
    first = losses(3)
    torch.rand(7)
    assert losses(3) == first and losses(4) != first
    torch.set_rng_state(before)
    losses(3)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(drawn[0] != ids for ids in drawn[1:5])  # different at every step


def test_make_sees_the_seed_and_the_global_state_is_restored():
    torch.manual_seed(3)
    first, second = nn.Linear(2, 3), torch.rand(1)
    torch.manual_seed(3)
    nn.Linear(2, 3)
    assert torch.equal(seeded(lambda: nn.Linear(2, 3), 3).weight, first.weight)
    assert torch.equal(torch.rand(1), second)


# --- A transformer on a task half of which can be predicted ---------------------------------


def half_predictable(step, generator):
    """Seven random words, then the first five again: six of eleven predictions are guesses."""
    words = torch.randint(20, (32, 7), generator=generator)
    ids = torch.cat((words, words[:, :5]), dim=1)
    return ids[:, :-1], ids[:, 1:]


def test_a_transformer_learns_to_copy_and_no_more():
    torch.manual_seed(0)
    model = TinyTransformer(20, 24, 3, 2, 12)
    losses = train(model, half_predictable, steps=180, lr=0.01).losses
    guess, floor = math.log(20), 6 / 11 * math.log(20)
    assert losses[0] == pytest.approx(guess, abs=0.5)
    assert floor - 0.1 < sum(losses[-20:]) / 20 < floor + 0.2
    prompt = half_predictable(0, torch.Generator().manual_seed(99))[0][:, :7]
    copied = generate(model, prompt, 5)[:, 7:] == prompt[:, :5]
    assert copied.float().mean() > 0.9
