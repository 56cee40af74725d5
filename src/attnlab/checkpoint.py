"""Checkpoints of ``train``, written atomically and validated before anything is loaded."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

NAMES = {"model", "optimizer", "generator", "learns", "seed", "losses"}


def prepare_checkpoint(path: str | os.PathLike) -> None:
    """Refuse a path that cannot be written to; remove what a killed run left beside it."""
    check_path("checkpoint", path)
    folder = Path(path).parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"checkpoint {path} is not a file in a folder that can be written to")
    _partial(path).unlink(missing_ok=True)


def save_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    seed: int,
    losses: list[float],
) -> None:
    """Write all that a run needs to continue. A crash or Ctrl-C leaves the old file unchanged."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": generator.get_state(),
        "learns": trainable_names(model),
        "seed": seed,
        "losses": losses,
    }
    # Serialized in memory first: PyTorch's C++ writer would call Python to write to a file, and
    # Ctrl-C within such a call ends the process.
    content = io.BytesIO()
    torch.save(state, content)
    partial = _partial(path)
    try:
        with open(partial, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    seed: int,
    steps: int | None,
) -> list[float]:
    """Restore model, optimizer and generator from a checkpoint; return the losses so far.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or of another run. The model is unchanged.
    """
    check_path("resume", path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"resume {path} does not exist") from None
    saved = _parse(content)
    if saved is None:
        raise ValueError(f"resume {path} is damaged, or not what checkpoint wrote")
    expected, found = shapes(model.state_dict()), shapes(saved["model"])
    for name in expected | found:
        here, there = expected.get(name, "absent"), found.get(name, "absent")
        if here != there:
            raise ValueError(f"resume {path} holds another model: {name} is {there}, not {here}")
    if saved["learns"] != trainable_names(model):
        there, here = ", ".join(saved["learns"]), ", ".join(trainable_names(model))
        raise ValueError(f"resume {path} is of a run that trains {there}, not {here}")
    if saved["seed"] != seed:
        raise ValueError(f"resume {path} was written with seed {saved['seed']}, not {seed}")
    done = len(saved["losses"])
    if steps is not None and done > steps:
        raise ValueError(f"resume {path} has done {done} steps, more than steps {steps}")
    optimizer.load_state_dict(saved["optimizer"])
    generator.set_state(saved["generator"])
    model.load_state_dict(saved["model"])
    return saved["losses"]


def _parse(content: bytes) -> dict[str, Any] | None:
    """The state that ``save_checkpoint`` wrote; ``None`` if the content is anything else."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            flipped = file.testzip()  # torch.load does not compare the checksums
        # weights_only: tensors and numbers are loaded, and no code is run
        saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        shapes(saved["model"])
        return saved if flipped is None and saved.keys() == NAMES else None
    except Exception:  # there is no end to what other content can lead to
        return None


def _partial(path: str | os.PathLike) -> Path:
    """Where a checkpoint is written before it replaces the old one, in the same folder."""
    return Path(f"{path}.partial")


def check_path(name: str, path: Any) -> None:
    """Refuse what is not a path."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a path, not {type(path).__name__}")


def shapes(state: dict[str, torch.Tensor]) -> dict[str, str]:
    """Dtype and shape of every tensor, as text."""
    return {name: f"{x.dtype} {tuple(x.shape)}" for name, x in state.items()}


def trainable_names(model: nn.Module) -> list[str]:
    """Names of the parameters that are not frozen."""
    return [name for name, p in model.named_parameters() if p.requires_grad]
