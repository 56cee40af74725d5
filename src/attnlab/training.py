"""One training loop, short enough to read, and what it remembers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab import require

Batches = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


@dataclass
class History:
    """What a run of ``train`` remembers.

    Attributes:
        losses: loss before each update, in nats; ``losses[0]`` is that of the untrained model.
        interrupted: ``True`` if Ctrl-C (or Lab's Stop button) ended the run early.
    """

    losses: list[float] = field(default_factory=list)
    interrupted: bool = False


class Step(NamedTuple):
    """One step of ``training_steps``: its number and the loss before its update, in nats."""

    step: int
    loss: float


def train(
    model: nn.Module,
    inputs: Tensor | Batches,
    targets: Tensor | None = None,
    *,
    steps: int,
    lr: float,
    seed: int = 0,
    on_step: Callable[[int, float], Any] | None = None,
    schedule: Callable[[int], float] | None = None,
) -> History:
    """Train with Adam and cross-entropy, and return the losses.

    Args:
        model: ids ``(B, S)`` -> logits ``(B, S, vocab)``. Parameters with
            ``requires_grad=False`` stay as they are.
        inputs: ids ``(B, S)``; or a callable ``(step, generator) -> (inputs, targets)``.
        targets: ``(B,)`` for the loss at the last position only, or ``(B, S)`` for the mean
            over all positions; ``None`` with a callable.
        steps: number of updates.
        lr: learning rate.
        seed: of the generator handed to a callable; the global random state is not touched.
        on_step: called as ``on_step(step, loss)`` before each update, so the model is the one
            that had that loss.
        schedule: factor for the learning rate at each step, 1 throughout if omitted.

    Returns:
        ``History``; after Ctrl-C what there is so far, with the model as it was left.

    Raises:
        TypeError, ValueError: bad arguments or shapes, before the first update.
        FloatingPointError: the loss became NaN or infinite; names the step.
    """
    steps = require.whole("steps", steps, 1)
    history = History()
    try:
        for step, loss in training_steps(
            model, inputs, targets, steps=steps, lr=lr, seed=seed, schedule=schedule
        ):
            history.losses.append(loss)
            if on_step is not None:
                on_step(step, loss)
    except KeyboardInterrupt:
        history.interrupted = True
    return history


def training_steps(
    model: nn.Module,
    inputs: Tensor | Batches,
    targets: Tensor | None = None,
    *,
    steps: int | None = None,
    lr: float,
    seed: int = 0,
    schedule: Callable[[int], float] | None = None,
) -> Iterator[Step]:
    """The loop itself: yields each loss, and updates when it is resumed.

    Arguments and errors are those of ``train``; without ``steps`` it has no end. Whoever iterates
    decides when to stop, so a picture can be drawn between two steps without a thread.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if not 0 < require.number("lr", lr) < float("inf"):
        raise ValueError(f"lr must be above 0, and finite, but is {lr}")
    if callable(inputs) == (targets is not None):
        raise TypeError("targets go with a tensor of inputs; a callable returns its own targets")
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ValueError("the model has no parameter that may learn: all are frozen")
    optimizer = torch.optim.Adam(trainable, lr=lr, fused=True)
    generator = torch.Generator().manual_seed(require.whole("seed", seed, 0))
    for step in count() if steps is None else range(steps):
        x, y = inputs(step, generator) if callable(inputs) else (inputs, targets)
        loss = next_token_loss(model(x), y)
        if not loss.isfinite():
            raise FloatingPointError(f"the loss is {loss.item()} at step {step}: lower lr {lr}?")
        yield Step(step, loss.item())
        optimizer.zero_grad()
        loss.backward()
        if schedule is not None:
            optimizer.param_groups[0]["lr"] = lr * schedule(step)
        optimizer.step()


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, at the last position or at all.

    Args:
        logits: ``(B, S, vocab)``.
        targets: ids ``(B,)`` for the last position or ``(B, S)`` for every one.

    Raises:
        ValueError: targets of another shape or outside the vocabulary.
    """
    require.tensor("targets", targets, 1)
    batch, length, vocab_size = logits.shape
    if targets.shape not in ((batch,), (batch, length)):
        raise ValueError(
            f"targets of shape {tuple(targets.shape)} fit neither ({batch},) nor "
            f"({batch}, {length})"
        )
    if targets.ndim == 1:
        logits, targets = logits[:, -1:], targets[:, None]  # (B, 1, vocab), (B, 1)
    require.ids("targets", targets, vocab_size)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long())


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """``make()`` with PyTorch's random state set to ``seed``, and put back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def train_seeds(
    make: Callable[[], nn.Module],
    inputs: Tensor,
    targets: Tensor,
    *,
    seeds: Sequence[int],
    steps: int,
    lr: float,
) -> tuple[list[nn.Module], Tensor]:
    """Train the same small model from several starts, all at once.

    Parameters are stacked along a new first axis and the forward pass is mapped over it
    (``torch.func.vmap``). Adam works entry by entry, so each model is trained as alone.

    Args:
        make: builds one model from PyTorch's random state.
        inputs, targets, steps, lr: as in ``train``; tensors only.
        seeds: one model for each.

    Returns:
        The trained models, and their losses before each update, ``(n_seeds, steps)``.
    """
    steps = require.whole("steps", steps, 1)
    models = [seeded(make, seed) for seed in seeds]
    if not models:
        raise ValueError("seeds is empty")
    parameters, buffers = torch.func.stack_module_state(models)
    optimizer = torch.optim.Adam(parameters.values(), lr=lr, fused=True)

    def loss_of(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        logits = torch.func.functional_call(models[0], (parameters, buffers), (inputs,))
        return next_token_loss(logits, targets)

    losses = []
    for _ in range(steps):
        loss = torch.func.vmap(loss_of)(parameters, buffers)  # (n_seeds,)
        losses.append(loss.detach())
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    with torch.no_grad():
        for name, stacked in parameters.items():
            for model, values in zip(models, stacked, strict=True):
                model.get_parameter(name).copy_(values)
    return models, torch.stack(losses, dim=1)
