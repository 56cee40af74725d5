"""Checkpoints: a run that was stopped goes on exactly as if it had not been, or is refused."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from attnlab import TinyCausalAttention, TinyTransformer, train
from attnlab.training import seeded, training_steps


class WithDropout(nn.Module):
    """A transformer with dropout."""

    def __init__(self):
        super().__init__()
        self.body, self.dropout = TinyTransformer(5, 12, 3, 2, 8), nn.Dropout(0.2)

    def forward(self, ids):
        return self.dropout(self.body(ids))


def batches(step, generator):
    ids = torch.randint(5, (4, 6), generator=generator)
    return ids[:, :-1], ids[:, 1:]


def cool_down(step):
    return 1 / (1 + step)


OPTIONS = {"lr": 0.02, "seed": 3, "schedule": cool_down, "clip": 1.0}


def run(model, steps, **options):
    return train(model, batches, steps=steps, **OPTIONS | options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.pt"


@pytest.fixture
def stopped(path):
    """A checkpoint after six of ten steps."""
    run(seeded(WithDropout, 1), 6, checkpoint=path)
    return path


# --- Going on -------------------------------------------------------------------------------


@pytest.mark.parametrize("stop, dtype", [(1, torch.float32), (9, torch.float64)], ids=str)
def test_a_resumed_run_is_the_uninterrupted_run_to_the_last_digit(path, stop, dtype):
    whole, first, second = (seeded(WithDropout, start).to(dtype) for start in (1, 1, 2))
    for model in (whole, first, second):
        model.body.emb.requires_grad_(False)
    second.body.emb.load_state_dict(first.body.emb.state_dict())
    expected = run(whole, 10)
    run(first, stop, checkpoint=path)
    torch.rand(5)  # the global random state has no part in it
    history = run(second, 10, resume=str(path))
    assert history == expected and len(history.losses) == 10
    for ours, theirs in zip(second.parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_run_can_be_resumed_from_its_own_file_many_times(path):
    expected = run(seeded(WithDropout, 1), 9)
    for steps in (2, 5, 9):
        resume = path if path.exists() else None
        options = {"checkpoint": path, "resume": resume, "checkpoint_every": 2}
        history = run(seeded(WithDropout, 1), steps, **options)
    assert history == expected
    done = run(seeded(WithDropout, 2), 9, resume=path, on_step=lambda *_: pytest.fail("a step"))
    assert done == expected
    loop = training_steps(seeded(WithDropout, 2), batches, steps=11, resume=path, **OPTIONS)
    assert [step for step, _ in loop] == [9, 10]


def test_a_checkpoint_is_written_every_so_many_steps_and_at_the_end(path):
    seen = []

    def on_step(step, loss):
        seen.append(len(torch.load(path, weights_only=True)["losses"]) if path.exists() else 0)

    run(seeded(WithDropout, 1), 8, checkpoint=path, checkpoint_every=3, on_step=on_step)
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6]
    assert len(torch.load(path, weights_only=True)["losses"]) == 8
    assert [p.name for p in path.parent.iterdir()] == ["run.pt"]


# --- Interrupts and writes that fail --------------------------------------------------------


def test_after_ctrl_c_a_run_goes_on_from_its_last_checkpoint(path):
    def on_step(step, loss):
        if step == 5:
            raise KeyboardInterrupt

    options = {"checkpoint": path, "checkpoint_every": 2}
    stopped = run(seeded(WithDropout, 1), 9, **options, on_step=on_step)
    assert stopped.interrupted and len(stopped.losses) == 6
    assert run(seeded(WithDropout, 1), 9, resume=path) == run(seeded(WithDropout, 1), 9)


CHECKPOINTING = """
import sys, torch
from attnlab import TinyTransformer, train
torch.set_num_threads(1)
ids = torch.zeros(1, 2).long()
model = TinyTransformer(11, 96, 6, 2, 12)  # so large that most of the time goes into writing
def say(step, loss):
    if step == 2:
        print("writing", flush=True)
while True:
    history = train(model, ids, ids, steps=10**6, lr=1e-4, on_step=say,
                    checkpoint=sys.argv[1], checkpoint_every=1)
    print("stopped", history.interrupted, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to a single process")
def test_neither_ctrl_c_nor_a_kill_costs_the_checkpoint_that_is_being_written(path):
    chance = random.Random(0)
    command = [sys.executable, "-c", CHECKPOINTING, path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for _ in range(12):
            assert process.stdout.readline() == b"writing\n"
            time.sleep(chance.uniform(0, 0.02))
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == b"stopped True\n"
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.02))
    finally:
        process.kill()
        process.communicate()
    model, ids = TinyTransformer(11, 96, 6, 2, 12), torch.zeros(1, 2).long()
    done = len(torch.load(path, weights_only=True)["losses"])
    assert len(train(model, ids, ids, steps=done + 1, lr=1e-4, resume=path).losses) > 1


def test_what_a_killed_run_left_is_removed_by_the_next(path):
    partial, seen = Path(f"{path}.partial"), []
    partial.write_bytes(b"half of it")
    on_step = lambda *_: seen.append(partial.exists())  # noqa: E731
    run(seeded(WithDropout, 1), 1, checkpoint=path, on_step=on_step)
    assert seen == [False]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_says_so_and_leaves_the_old_file(stopped):
    before = stopped.read_bytes()
    partial = Path(f"{stopped}.partial")
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(
            seeded(WithDropout, 1),
            8,
            resume=stopped,
            checkpoint=stopped,
            on_step=lambda step, loss: step == 7 and partial.symlink_to("/dev/full"),
        )
    assert len(caught.value.history.losses) == 8
    assert stopped.read_bytes() == before
    assert [p.name for p in stopped.parent.iterdir()] == ["run.pt"]


class Closed(Exception):
    """An error that takes no attributes."""

    def __setattr__(self, name, value):
        raise RuntimeError("closed")


def test_no_error_is_hidden_by_the_history_it_carries():
    def on_step(step, loss):
        raise Closed

    with pytest.raises(Closed) as caught:
        run(seeded(WithDropout, 1), 3, on_step=on_step)
    assert len(caught.value.history.losses) == 1


# --- A file that cannot be used -------------------------------------------------------------


@pytest.fixture
def refused(refuses):
    """``refused(error, sentence, path)``: in one sentence, with model and file unchanged."""

    def check(error, sentence, path, model=None, steps=10, **options):
        model = seeded(WithDropout, 2) if model is None else model
        before = {name: x.clone() for name, x in model.state_dict().items()}
        content = path.read_bytes() if path.exists() else None
        options = {"checkpoint": path, "resume": path} | options
        refuses(error, sentence, run, model, steps, **options)
        assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
        assert content == (path.read_bytes() if path.exists() else None)

    return check


def test_a_file_that_is_not_there(refused, path):
    refused(FileNotFoundError, f"resume {path} does not exist", path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="another kind of permissions")
def test_a_file_that_must_not_be_read_is_not_called_damaged(stopped):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        os.chmod(folder, 0o755)
        path = Path(shutil.copy(stopped, folder))
        path.chmod(0)
        was_root = os.geteuid() == 0  # who may read everything
        if was_root:
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError):
                run(seeded(WithDropout, 2), 10, resume=path)
        finally:
            if was_root:
                os.seteuid(0)


class Program:
    """Unpickling it runs a command."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("part", [0, 0.5, -1], ids=["nothing", "one half", "all but one byte"])
def test_a_damaged_file(refused, stopped, part):
    content = stopped.read_bytes()
    stopped.write_bytes(content[: int(part * len(content)) if part >= 0 else part])
    refused(ValueError, f"resume {stopped} is damaged, or not what checkpoint wrote", stopped)


def test_a_single_wrong_bit_in_any_of_the_numbers_is_noticed(refused, stopped):
    content = stopped.read_bytes()
    emb = torch.load(stopped, weights_only=True)["model"]["body.emb.weight"]
    at = content.index(emb.numpy().tobytes())
    for place in (at, at + emb.nbytes - 1):
        changed = bytearray(content)
        changed[place] ^= 1
        stopped.write_bytes(changed)
        refused(ValueError, f"resume {stopped} is damaged, or not what checkpoint wrote", stopped)


@pytest.mark.parametrize(
    "content",
    [[1, 2], torch.zeros(3), Program(), {"model": Program()}, TinyCausalAttention().state_dict()],
    ids=["list", "tensor", "program", "program inside", "parameters alone"],
)
def test_a_file_of_something_else(refused, path, content, monkeypatch):
    monkeypatch.chdir(path.parent)
    torch.save(content, path)
    refused(ValueError, f"resume {path} is damaged, or not what checkpoint wrote", path)
    assert not (path.parent / "ran").exists()  # no code of a file is run


def test_another_run(refused, stopped):
    at = f"resume {stopped}"
    refused(ValueError, f"{at} was written with seed 3, not 4", stopped, seed=4)
    refused(ValueError, f"{at} has done 6 steps, more than steps 5", stopped, steps=5)
    wide = seeded(WithDropout, 1)
    wide.body.lm_head = nn.Linear(12, 7, bias=False)
    sentence = f"{at} holds another model: body.lm_head.weight is torch.float32 (5, 12), "
    refused(ValueError, sentence + "not torch.float32 (7, 12)", stopped, wide)
    double = seeded(WithDropout, 1).double()
    sentence = f"{at} holds another model: body.norm is torch.float32 (12,), "
    refused(ValueError, sentence + "not torch.float64 (12,)", stopped, double)
    bare = seeded(TinyCausalAttention, 1)
    sentence = f"{at} holds another model: emb.weight is absent, not torch.float32 (5, 12)"
    refused(ValueError, sentence, stopped, bare)
    frozen = seeded(WithDropout, 1)
    for name, p in frozen.named_parameters():
        p.requires_grad_("norm" in name)
    with pytest.raises(ValueError, match="is of a run that trains body.norm, body.emb.weight, .*"):
        run(frozen, 10, resume=stopped)


@pytest.mark.parametrize("place", ["nowhere/run.pt", "."])
def test_a_place_where_nothing_can_be_written_is_refused_at_once(refuses, tmp_path, place):
    path = tmp_path / place
    sentence = f"checkpoint {path} is not a file in a folder that can be written to"
    model = seeded(WithDropout, 1)
    refuses(ValueError, sentence, run, model, 3, checkpoint=path)
    for name in ("checkpoint", "resume"):
        refuses(TypeError, f"{name} must be a path, not int", run, model, 3, **{name: 3})
