"""Checkpoints: a run that was stopped goes on exactly as if it had not been, or is refused."""

import errno
import os
import signal
import subprocess
import sys

import pytest
import torch
from torch import nn

from attnlab import TinyCausalAttention, TinyTransformer, train
from attnlab import checkpoint as saving
from attnlab.training import seeded, training_steps


class Forgetful(nn.Module):
    """A transformer with dropout."""

    def __init__(self):
        super().__init__()
        self.body, self.dropout = TinyTransformer(5, 12, 3, 2, 8), nn.Dropout(0.2)

    def forward(self, ids):
        return self.dropout(self.body(ids))


def words(step, generator):
    ids = torch.randint(5, (4, 6), generator=generator)
    return ids[:, :-1], ids[:, 1:]


def cool_down(step):
    return 1 / (1 + step)


OPTIONS = {"lr": 0.02, "seed": 3, "schedule": cool_down, "clip": 1.0}


def run(model, steps, **options):
    return train(model, words, steps=steps, **OPTIONS | options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.pt"


@pytest.fixture
def stopped(path):
    """A checkpoint after six of ten steps."""
    run(seeded(Forgetful, 1), 6, checkpoint=path)
    return path


@pytest.mark.parametrize("stop", [1, 6, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_resumed_run_is_the_uninterrupted_run_to_the_last_digit(path, stop, dtype):
    whole, first, second = (seeded(Forgetful, start).to(dtype) for start in (1, 1, 2))
    expected = run(whole, 10)
    run(first, stop, checkpoint=path)
    torch.rand(5)  # the global random state has no part in it
    history = run(second, 10, resume=str(path))
    assert history == expected and len(history.losses) == 10
    for ours, theirs in zip(second.parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_run_can_be_resumed_from_its_own_file_many_times(path):
    expected = run(seeded(Forgetful, 1), 9, checkpoint=path, every=2)
    path.unlink()
    for steps in (2, 5, 9):
        resume = path if path.exists() else None
        history = run(seeded(Forgetful, 1), steps, checkpoint=path, resume=resume, every=2)
    assert history == expected


def test_a_checkpoint_is_written_every_so_many_steps_and_at_the_end(path):
    seen = []

    def on_step(step, loss):
        seen.append(len(torch.load(path, weights_only=True)["losses"]) if path.exists() else 0)

    run(seeded(Forgetful, 1), 8, checkpoint=path, every=3, on_step=on_step)
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6]
    assert len(torch.load(path, weights_only=True)["losses"]) == 8
    assert sorted(p.name for p in path.parent.iterdir()) == ["run.pt"]


def test_a_run_that_is_done_is_done(stopped):
    model = seeded(Forgetful, 2)
    history = run(model, 6, resume=stopped, on_step=lambda *_: pytest.fail("a step was made"))
    assert len(history.losses) == 6


def test_after_ctrl_c_a_run_goes_on_from_its_last_checkpoint(path):
    def on_step(step, loss):
        if step == 5:
            raise KeyboardInterrupt

    stopped = run(seeded(Forgetful, 1), 9, checkpoint=path, every=2, on_step=on_step)
    assert stopped.interrupted and len(stopped.losses) == 6
    history = run(seeded(Forgetful, 1), 9, resume=path)
    assert history == run(seeded(Forgetful, 1), 9)


def test_frozen_parameters_stay_frozen_across_a_checkpoint(path):
    def make(seed):
        model = seeded(Forgetful, seed)
        model.body.emb.requires_grad_(False)
        return model

    whole, second = make(1), make(2)
    expected = run(whole, 8)
    run(make(1), 5, checkpoint=path)
    assert run(second, 8, resume=path) == expected
    assert torch.equal(second.body.emb.weight, make(1).body.emb.weight)


# --- A write that fails ---------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "no space left")])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    stopped, monkeypatch, error
):
    before = stopped.read_bytes()
    real = torch.save

    def half(state, file):
        file.write(b"half of it")
        raise error

    monkeypatch.setattr(torch, "save", half)
    options = {"resume": stopped, "checkpoint": stopped}
    if error is KeyboardInterrupt:
        history = run(seeded(Forgetful, 1), 8, **options)
        assert history.interrupted
    else:
        with pytest.raises(OSError, match="no space left") as caught:
            run(seeded(Forgetful, 1), 8, **options)
        history = caught.value.history
    assert len(history.losses) == 8
    assert stopped.read_bytes() == before
    assert [p.name for p in stopped.parent.iterdir()] == ["run.pt"]
    monkeypatch.setattr(torch, "save", real)
    assert run(seeded(Forgetful, 1), 8, resume=stopped) == run(seeded(Forgetful, 1), 8)


KILLED = """
import sys, torch
from attnlab import TinyCausalAttention, train
torch.set_num_threads(1)
ids = torch.tensor([[0, 2], [1, 2]])
while True:
    train(TinyCausalAttention(), ids, ids, steps=50, lr=0.01, checkpoint=sys.argv[1], every=1,
          on_step=lambda step, loss: print(step, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_process_killed_at_any_moment_leaves_a_whole_file(path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
    for _ in range(60):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    ids = torch.tensor([[0, 2], [1, 2]])
    assert train(TinyCausalAttention(), ids, ids, steps=51, lr=0.01, resume=path).losses


# --- A file that does not fit ---------------------------------------------------------------


def refused(refuses, error, sentence, path, model=None, steps=10, **options):
    """It is refused in one sentence, and neither the model nor the file is touched."""
    model = seeded(Forgetful, 2) if model is None else model
    before = {name: x.clone() for name, x in model.state_dict().items()}
    content = path.read_bytes() if path.exists() else None
    history = {"checkpoint": path, "resume": path}
    refuses(error, sentence, run, model, steps, **history | options)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert content == (path.read_bytes() if path.exists() else None)


def test_a_file_that_is_not_there(refuses, path):
    refused(refuses, FileNotFoundError, f"resume {path} does not exist", path)


def foreign(kind, content):
    match kind:
        case "empty":
            return b""
        case "text":
            return b"losses: none so far\n" * 99
        case "the first half":
            return content[: len(content) // 2]
        case "without its end":
            return content[:-1]


@pytest.mark.parametrize("kind", ["empty", "text", "the first half", "without its end"])
def test_a_damaged_file(refuses, stopped, kind):
    stopped.write_bytes(foreign(kind, stopped.read_bytes()))
    sentence = f"resume {stopped} is damaged, or not what checkpoint wrote"
    refused(refuses, ValueError, sentence, stopped)


def test_one_flipped_bit_in_any_of_the_numbers_is_noticed(refuses, stopped):
    content = stopped.read_bytes()
    emb = torch.load(stopped, weights_only=True)["model"]["body.emb.weight"]
    at = content.index(emb.numpy().tobytes())
    for place in (at, at + 50, at + emb.nbytes - 1):
        spoilt = bytearray(content)
        spoilt[place] ^= 1
        stopped.write_bytes(spoilt)
        sentence = f"resume {stopped} is damaged, or not what checkpoint wrote"
        refused(refuses, ValueError, sentence, stopped)


class Program:
    """Unpickling it runs a command."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("what", [{}, [1, 2], torch.zeros(3), Program(), {"model": Program()}])
def test_a_file_of_something_else(refuses, path, what, monkeypatch):
    monkeypatch.chdir(path.parent)
    torch.save(what, path)
    sentence = f"resume {path} is damaged, or not what checkpoint wrote"
    refused(refuses, ValueError, sentence, path)
    assert not (path.parent / "ran").exists()  # numbers only: no program of a file is run


def test_the_parameters_alone_are_not_a_run(refuses, path):
    torch.save(seeded(Forgetful, 1).state_dict(), path)
    sentence = f"resume {path} is damaged, or not what checkpoint wrote"
    refused(refuses, ValueError, sentence, path)


def test_another_run(refuses, stopped):
    at = f"resume {stopped}"
    refused(refuses, ValueError, f"{at} was written with seed 3, not 4", stopped, seed=4)
    refused(refuses, ValueError, f"{at} has done 6 steps, more than steps 5", stopped, steps=5)
    wide = seeded(Forgetful, 1)
    wide.body.lm_head = nn.Linear(12, 7, bias=False)
    sentence = f"{at} holds another model: body.lm_head.weight is torch.float32 (5, 12), "
    refused(refuses, ValueError, sentence + "not torch.float32 (7, 12)", stopped, wide)
    double = seeded(Forgetful, 1).double()
    sentence = f"{at} holds another model: body.norm is torch.float32 (12,), "
    refused(refuses, ValueError, sentence + "not torch.float64 (12,)", stopped, double)
    bare = seeded(TinyCausalAttention, 1)
    sentence = f"{at} holds another model: emb.weight is not there, not torch.float32 (5, 12)"
    refused(refuses, ValueError, sentence, stopped, bare)
    frozen = seeded(Forgetful, 1)
    for name, p in frozen.named_parameters():
        p.requires_grad_("norm" in name)
    learned = "is of a run in which body.norm, body.emb.weight, .* may learn, not"
    with pytest.raises(ValueError, match=learned):
        run(frozen, 10, resume=stopped)


@pytest.mark.parametrize("place", ["nowhere/run.pt", "."])
def test_a_place_where_nothing_can_be_written_is_refused_at_once(refuses, tmp_path, place):
    path = tmp_path / place
    sentence = f"checkpoint {path} is not a file in a folder that exists"
    history = seeded(Forgetful, 1)
    refuses(ValueError, sentence, run, history, 3, checkpoint=path)
    for name in ("checkpoint", "resume"):
        sentence = f"{name} must be a path, not int"
        refuses(TypeError, sentence, run, history, 3, **{name: 3})


def test_what_was_saved_holds_numbers_only(stopped):
    assert torch.load(stopped, weights_only=True).keys() == saving.NAMES


def test_the_loop_by_itself_can_be_resumed_too(stopped):
    steps = [step for step, _ in training_steps(
        seeded(Forgetful, 1), words, steps=8, resume=stopped, **OPTIONS
    )]  # fmt: skip
    assert steps == [6, 7]
