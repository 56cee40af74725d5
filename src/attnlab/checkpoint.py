"""A run of ``train`` on disk: a file that is whole or not there, and refused if it does not fit."""

import os
import zipfile
from pathlib import Path

import torch
from torch import nn

NAMES = {"model", "optimizer", "generator", "learns", "seed", "losses"}


def a_path(name: str, path: str | os.PathLike) -> None:
    """Refuse what is not a path."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a path, not {type(path).__name__}")


def writable(name: str, path: str | os.PathLike | None) -> None:
    """Refuse at once a path to which nothing can be written later; ``None`` is not one."""
    if path is None:
        return
    a_path(name, path)
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ValueError(f"{name} {path} is not a file in a folder that exists")


def save(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    seed: int,
    losses: list[float],
) -> None:
    """Write all that a run needs to go on. A crash or Ctrl-C leaves the old file as it was."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": generator.get_state(),
        "learns": learning(model),
        "seed": seed,
        "losses": losses,
    }
    partial = Path(f"{path}.partial")  # in the same folder, where renaming takes no time
    try:
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    seed: int,
    steps: int | None,
) -> list[float]:
    """Put model, optimizer and generator where ``save`` found them; return the losses so far.

    Raises:
        FileNotFoundError, ValueError: no file, one that is damaged, or one of another run. Then
            nothing has changed.
    """
    a_path("resume", path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"resume {path} does not exist")
    try:
        with zipfile.ZipFile(path) as file:
            flipped = file.testzip()  # torch.load does not compare the checksums
        saved = torch.load(path, map_location="cpu", weights_only=True)  # numbers, no program
        there = shapes(saved["model"])
        damaged = flipped is not None or saved.keys() != NAMES
    except Exception:  # there is no end to what a file that is something else can lead to
        damaged = True
    if damaged:
        raise ValueError(f"resume {path} is damaged, or not what checkpoint wrote")
    here = shapes(model.state_dict())
    for name in here | there:
        mine, its = here.get(name, "not there"), there.get(name, "not there")
        if mine != its:
            raise ValueError(f"resume {path} holds another model: {name} is {its}, not {mine}")
    if saved["learns"] != learning(model):
        its, mine = ", ".join(saved["learns"]), ", ".join(learning(model))
        raise ValueError(f"resume {path} is of a run in which {its} may learn, not {mine}")
    if saved["seed"] != seed:
        raise ValueError(f"resume {path} was written with seed {saved['seed']}, not {seed}")
    if steps is not None and len(saved["losses"]) > steps:
        raise ValueError(
            f"resume {path} has done {len(saved['losses'])} steps, more than steps {steps}"
        )
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    generator.set_state(saved["generator"])
    return saved["losses"]


def shapes(state: dict[str, torch.Tensor]) -> dict[str, str]:
    """Dtype and shape of every tensor, in words."""
    return {name: f"{x.dtype} {tuple(x.shape)}" for name, x in state.items()}


def learning(model: nn.Module) -> list[str]:
    """Names of the parameters that are not frozen."""
    return [name for name, p in model.named_parameters() if p.requires_grad]
