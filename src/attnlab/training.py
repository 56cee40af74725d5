"""One training loop, short enough to read, and what it remembers."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab import checkpoint as saving
from attnlab import validation as require
from attnlab.generation import evaluating

Batches = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
IGNORE = -100  # a target that is not counted, as in PyTorch's cross_entropy


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
    clip: float | None = None,
    checkpoint: str | os.PathLike | None = None,
    every: int = 100,
    resume: str | os.PathLike | None = None,
) -> History:
    """Train with Adam and cross-entropy, and return the losses.

    Args:
        model: ids ``(B, S)`` -> logits ``(B, S, vocab)``. Parameters with
            ``requires_grad=False`` stay as they are.
        inputs: ids ``(B, S)``; or a callable ``(step, generator) -> (inputs, targets)``.
        targets: ``(B,)`` for the loss at the last position only, or ``(B, S)`` for the mean
            over all positions; ``None`` with a callable. A target of -100 is not counted: give
            it to the filler of sequences padded at the right.
        steps: number of updates, those of a resumed run included.
        lr: learning rate.
        seed: decides all that is random: what a callable draws from its generator or from
            PyTorch's, and dropout on the CPU. The global random state is not touched.
        on_step: called as ``on_step(step, loss)`` before each update, so the model is the one
            that had that loss.
        schedule: factor for the learning rate at each step, 1 throughout if omitted.
        clip: the gradient is shortened to this length if it is longer.
        checkpoint: file to write all of the run's state to, every ``every`` steps and at the end.
            It is replaced at once: whatever happens, it holds the old state or the new one.
        every: see ``checkpoint``.
        resume: file that ``checkpoint`` wrote, to continue from exactly as if the run had never
            stopped. A callable must depend on its arguments only.

    Returns:
        ``History``; after Ctrl-C what there is so far, with the model as it was left.

    Raises:
        TypeError, ValueError: bad arguments or shapes, before the first update.
        FloatingPointError: the loss, or the norm to be clipped, became NaN or infinite; names
            the step and the likely cause. Nothing was updated with it. As with every error once
            the loop has begun, ``error.history`` is the history so far.
    """
    steps, history = require.whole("steps", steps, 1), History()
    options = {"steps": steps, "lr": lr, "seed": seed, "schedule": schedule, "clip": clip}
    options |= {"checkpoint": checkpoint, "every": every, "resume": resume, "history": history}
    try:
        for step, loss in training_steps(model, inputs, targets, **options):
            if on_step is not None:
                on_step(step, loss)
    except KeyboardInterrupt:
        history.interrupted = True
    except Exception as error:
        error.history = history
        raise
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
    clip: float | None = None,
    checkpoint: str | os.PathLike | None = None,
    every: int = 100,
    resume: str | os.PathLike | None = None,
    history: History | None = None,
) -> Iterator[Step]:
    """The loop itself: yields each loss, and updates when it is resumed.

    Whoever iterates decides when to stop, so a picture can be drawn between two steps without a
    thread.

    Args:
        model, inputs, targets, lr, seed, schedule, clip: as in ``train``.
        checkpoint, every, resume: as in ``train``.
        steps: as in ``train``; without it the loop has no end.
        history: where the losses are kept.
    """
    seed, every = require.whole("seed", seed, 0), require.whole("every", every, 1)
    learns = require.trainer(model, inputs, targets, lr, clip)
    optimizer = torch.optim.Adam(learns, lr=lr, fused=True)
    generator = torch.Generator().manual_seed(seed)
    run = (model, optimizer, generator, seed)
    losses = [] if history is None else history.losses
    saving.writable("checkpoint", checkpoint)
    if resume is not None:
        losses[:] = saving.load(resume, *run, steps)
    done = len(losses)
    for step in count(done) if steps is None else range(done, steps):
        with own_randomness((seed * 1_000_003 + step) % 2**63):  # another one at every step
            batch = inputs(step, generator) if callable(inputs) else (inputs, targets)
            x, y = require.batch(batch, learns[0])
            loss = next_token_loss(model(x), y)
        require.finite("loss", loss, step, model, lr)
        losses.append(loss.item())
        yield Step(step, loss.item())
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            length = nn.utils.clip_grad_norm_(learns, clip)
            require.finite("length of the gradient", length, step, model, lr)
        optimizer.param_groups[0]["lr"] = lr if schedule is None else lr * schedule(step)
        optimizer.step()
        if checkpoint is not None and ((step + 1) % every == 0 or step + 1 == steps):
            saving.save(checkpoint, *run, losses)


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, at the last position or at all.

    Args:
        logits: ``(B, S, vocab)``.
        targets: ids ``(B,)`` for the last position or ``(B, S)`` for every one; where they are
            -100 (``IGNORE``) nothing is asked, and the mean is over the others.

    Raises:
        ValueError: targets of another shape, outside the vocabulary, or all to be ignored.
    """
    require.targets(targets, logits, IGNORE)
    if targets.ndim == 1:
        logits, targets = logits[:, -1:], targets[:, None]  # (B, 1, vocab), (B, 1)
    flat = targets.flatten().long()  # (B * S,)
    return F.cross_entropy(logits.flatten(0, 1), flat, ignore_index=IGNORE)


def evaluate(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The loss of ``train`` on other data: in eval mode, without gradients."""
    with evaluating(model):
        return next_token_loss(model(inputs), targets).item()


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Within, PyTorch's random numbers on the CPU start from ``seed``; then all is as before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """``make()`` with PyTorch's random state set to ``seed``, and put back afterwards."""
    with own_randomness(seed):
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
