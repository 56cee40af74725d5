"""One training loop, short enough to read, and its history."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab import validation
from attnlab.checkpoint import load_checkpoint, prepare_checkpoint, save_checkpoint
from attnlab.generation import evaluating

Batches = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
IGNORE = -100  # a target that is not counted, as in PyTorch's cross_entropy
LARGEST_SEED = 2**64 - 1


@dataclass
class History:
    """The record of a run of ``train``.

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
    checkpoint_every: int = 100,
    resume: str | os.PathLike | None = None,
) -> History:
    """Train with Adam and cross-entropy, and return the losses.

    Args:
        model: ids ``(B, S)`` -> logits ``(B, S, vocab)``. Parameters with
            ``requires_grad=False`` stay as they are.
        inputs: ids ``(B, S)``; or a callable ``(step, generator) -> (inputs, targets)``.
        targets: ``(B,)`` for the loss at the last position only, or ``(B, S)`` for the mean
            over all positions; ``None`` with a callable. A target of -100 is not counted: use
            it for the padding of sequences padded at the right.
        steps: number of updates, those of a resumed run included.
        lr: learning rate.
        seed: decides everything random: what a callable draws from its generator or from
            PyTorch's, and dropout on the CPU. The global random state is left unchanged.
        on_step: called as ``on_step(step, loss)`` before each update, so the model is the one
            that had that loss.
        schedule: factor for the learning rate at each step, 1 throughout if omitted.
        clip: maximum gradient norm; larger gradients are scaled down to it.
        checkpoint: file to write the whole state of the run to, every ``checkpoint_every`` steps
            and at the end. Written atomically: it holds the old state or the new one, even after
            a crash.
        checkpoint_every: see ``checkpoint``.
        resume: file that ``checkpoint`` wrote, to continue from exactly as if the run had never
            stopped. A callable must depend on its arguments only.

    Returns:
        ``History``; after Ctrl-C the losses so far, with the model as it was at that moment.

    Raises:
        TypeError, ValueError: bad arguments or shapes, before the first update.
        OSError: a checkpoint cannot be read or written.
        FloatingPointError: the loss, or the gradient norm with ``clip``, became NaN or infinite;
            names the step and the likely cause. No update was made with it. As with every error
            once the loop has begun, ``error.history`` is the history so far.
    """
    steps, history = validation.check_int("steps", steps, 1), History()
    _check_callable("on_step", on_step)
    options: dict[str, Any] = {"lr": lr, "seed": seed, "schedule": schedule, "clip": clip}
    options |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "resume": resume}
    options |= {"steps": steps, "history": history}
    try:
        for step, loss in training_steps(model, inputs, targets, **options):
            if on_step is not None:
                on_step(step, loss)
    except KeyboardInterrupt:
        history.interrupted = True
    except Exception as error:
        error.__dict__["history"] = history  # works even if the class refuses new attributes
        raise
    return history


@torch.inference_mode(False)  # which enables gradients, too, whatever the caller's mode
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
    checkpoint_every: int = 100,
    resume: str | os.PathLike | None = None,
    history: History | None = None,
) -> Iterator[Step]:
    """The loop itself: yields each loss, and updates when it is resumed.

    The caller's loop decides when to stop, so a picture can be drawn between two steps without a
    thread.

    Args:
        model, inputs, targets, lr, seed, schedule, clip: as in ``train``.
        checkpoint, checkpoint_every, resume: as in ``train``.
        steps: as in ``train``; without it the loop has no end.
        history: the losses are appended to it.
    """
    seed = validation.check_int("seed", seed, 0, LARGEST_SEED)
    checkpoint_every = validation.check_int("checkpoint_every", checkpoint_every, 1)
    parameters = _check_run(model, inputs, targets, lr, clip, schedule)
    optimizer = torch.optim.Adam(parameters, lr=lr, fused=True)
    generator = torch.Generator().manual_seed(seed)
    run = (model, optimizer, generator, seed)
    losses = [] if history is None else history.losses
    if checkpoint is not None:
        prepare_checkpoint(checkpoint)
    if resume is not None:
        losses[:] = load_checkpoint(resume, *run, steps)
    done = len(losses)
    for step in count(done) if steps is None else range(done, steps):
        with random_seed((seed * 1_000_003 + step) % 2**63):  # another one at every step
            batch = inputs(step, generator) if callable(inputs) else (inputs, targets)
            x, y = _check_batch(batch, parameters[0])
            loss = next_token_loss(model(x), y)
        _check_finite("loss", loss, step, model, lr)
        losses.append(loss.item())
        yield Step(step, loss.item())
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            norm = nn.utils.clip_grad_norm_(parameters, clip)
            _check_finite("gradient norm", norm, step, model, lr)
        factor = 1.0 if schedule is None else schedule(step)
        optimizer.param_groups[0]["lr"] = lr * validation.check_number("schedule", factor)
        optimizer.step()
        if checkpoint is not None and ((step + 1) % checkpoint_every == 0 or step + 1 == steps):
            save_checkpoint(checkpoint, *run, losses)


def _check_run(
    model: Any, inputs: Any, targets: Any, lr: Any, clip: Any, schedule: Any
) -> list[nn.Parameter]:
    """Refuse what ``train`` cannot work with; return the parameters that are not frozen."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    validation.check_number("lr", lr, above=0)
    validation.check_number("clip", 1.0 if clip is None else clip, above=0)
    _check_callable("schedule", schedule)
    if callable(inputs) == (targets is not None):
        raise TypeError("targets go with a tensor of inputs; a callable returns its own targets")
    if any(p.is_meta for p in model.parameters()):
        raise ValueError("the model is on the meta device, which holds no data")
    if any(p.is_inference() for p in model.parameters()):
        raise ValueError("the model was made in inference mode and cannot be trained")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the model has no trainable parameter: all are frozen")
    return parameters


def _check_callable(name: str, function: Any) -> None:
    """Refuse what cannot be called; ``None`` stands for no function."""
    if function is not None and not callable(function):
        raise TypeError(f"{name} must be callable, not {type(function).__name__}")


def _check_batch(batch: Any, parameter: Tensor) -> tuple[Any, Any]:
    """Return ``(inputs, targets)`` if it is a pair on the device of the model."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"inputs must return (inputs, targets), not {type(batch).__name__}")
    inputs, targets = batch
    for name, x in (("inputs", inputs), ("targets", targets)):
        if isinstance(x, Tensor):
            validation.check_device(name, x, parameter.device, "the model")
    return inputs, targets


def _check_finite(name: str, value: Tensor, step: int, model: nn.Module, lr: float) -> None:
    """Stop a run whose loss or gradient is NaN or infinite, with the step and the likely cause."""
    if math.isfinite(value.item()):
        return
    broken = [name for name, p in model.named_parameters() if not p.isfinite().all()]
    if broken and step:
        after = "so the previous step was too large"
        cause = f"{broken[0]} is no longer finite, {after}: lower lr {lr}"
    elif broken:
        cause = f"{broken[0]} was not finite to begin with"
    else:
        cause = "every parameter is finite, so look at what the model computes from them"
    raise FloatingPointError(f"the {name} is {value.item()} at step {step}: {cause}")


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, at the last position or at all positions.

    Args:
        logits: ``(B, S, vocab)``.
        targets: ids ``(B,)`` for the last position or ``(B, S)`` for all of them; those that are
            -100 (``IGNORE``) are not counted, and the mean is over the others.

    Raises:
        TypeError: logits that are not floats, targets that are not integers.
        ValueError: targets of another shape, on another device, outside the vocabulary, or all
            ignored.
    """
    _check_targets(targets, logits)
    if targets.ndim == 1:
        logits, targets = logits[:, -1:], targets[:, None]  # (B, 1, vocab), (B, 1)
    flat = targets.flatten().long()  # (B * S,)
    return F.cross_entropy(logits.flatten(0, 1), flat, ignore_index=IGNORE)


def _check_targets(targets: Tensor, logits: Tensor) -> None:
    """Refuse targets that are not ``(B,)`` or ``(B, S)`` for logits ``(B, S, vocab)``."""
    validation.check_tensor("targets", targets, 1)
    if validation.check_floats("logits", logits).ndim != 3:
        raise ValueError(f"logits have shape {tuple(logits.shape)}, not (B, S, vocab)")
    validation.check_device("targets", targets, logits.device, "the logits")
    batch, length, vocab_size = logits.shape
    if targets.shape not in ((batch,), (batch, length)):
        fitting = f"({batch},) nor ({batch}, {length})"
        raise ValueError(f"targets of shape {tuple(targets.shape)} fit neither {fitting}")
    if validation.value_range(targets) == (IGNORE, IGNORE):
        raise ValueError(f"targets are all {IGNORE}, which is not counted")
    counted = targets.where(targets != IGNORE, 0)
    validation.check_ids("targets", counted.reshape(batch, -1), vocab_size)


def evaluate(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The loss of ``train`` on other data: in eval mode, without gradients."""
    with evaluating(model):
        return next_token_loss(model(inputs), targets).item()


@contextmanager
def random_seed(seed: int) -> Iterator[None]:
    """Within it, PyTorch's CPU random state starts from ``seed``; then it is restored."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """``make()`` with PyTorch's random state set to ``seed``, and restored afterwards."""
    with random_seed(validation.check_int("seed", seed, 0, LARGEST_SEED)):
        return make()


@torch.inference_mode(False)  # as in ``training_steps``
def train_seeds(
    make: Callable[[], nn.Module],
    inputs: Tensor,
    targets: Tensor,
    *,
    seeds: Sequence[int],
    steps: int,
    lr: float,
) -> tuple[list[nn.Module], Tensor]:
    """Train the same small model from several seeds, all at once.

    Parameters are stacked along a new first axis and the forward pass is mapped over it
    (``torch.func.vmap``). Adam is elementwise, so each model is trained as it would be alone.

    Args:
        make: builds one model from PyTorch's random state.
        inputs, targets, steps, lr: as in ``train``; tensors only.
        seeds: one model for each.

    Returns:
        The trained models, and their losses before each update, ``(n_seeds, steps)``.
    """
    steps, lr = validation.check_int("steps", steps, 1), validation.check_number("lr", lr, above=0)
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
