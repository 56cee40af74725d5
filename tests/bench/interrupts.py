"""A run that writes a checkpoint after every step, interrupted at random moments.

Counted are the moments after which the process or kernel was alive with a ``History``, and those
after which the file could be loaded.
"""

import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from attnlab import TinyTransformer, train

LONGEST = 0.03  # seconds of writing before the signal: some steps, most of them spent on writing
RUN = """
import torch
from attnlab import TinyTransformer, train
torch.set_num_threads(1)
ids = torch.zeros(1, 2).long()
model = TinyTransformer(11, 96, 6, 2, 12)
def say(step, loss):
    if step == 2:
        print("writing", flush=True)
def run(path):
    history = train(model, ids, ids, steps=20_000, lr=1e-4, on_step=say,
                    checkpoint=path, checkpoint_every=1)
    print("stopped", history.interrupted, len(history.losses) > 2, flush=True)
"""
STOPPED = "stopped True True"


def loadable(path: Path) -> bool:
    """Whether a run goes on from a copy of the file, which may be replaced meanwhile."""
    model, ids = TinyTransformer(11, 96, 6, 2, 12), torch.zeros(1, 2).long()
    copy = shutil.copy(path, path.with_name("copy.pt"))
    try:
        done = len(torch.load(copy, weights_only=True)["losses"])
        return len(train(model, ids, ids, steps=done + 1, lr=1e-4, resume=copy).losses) > done
    except Exception as error:
        print(f"not loadable: {error}")
        return False
    finally:
        Path(copy).unlink()


def process(path: Path) -> subprocess.Popen:
    """A plain Python that runs again and again."""
    alive = f"os.getppid() == {os.getpid()}"  # it must not outlive this script
    code = f"import os\n{RUN}\nwhile {alive}: run({str(path)!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, encoding="utf-8")


def by_signal(path: Path, times: int, chance: random.Random) -> tuple[int, int]:
    """Ctrl-C in a plain Python, in one process for as long as it is alive."""
    alive = whole = 0
    python = process(path)
    try:
        for _ in range(times):
            python.stdout.readline()
            time.sleep(chance.uniform(0, LONGEST))
            python.send_signal(signal.SIGINT)
            survived = python.stdout.readline().strip() == STOPPED
            alive, whole = alive + survived, whole + loadable(path)
            if not survived:
                python.kill()
                python.wait()
                python = process(path)
    finally:
        python.kill()
        python.wait()
    return alive, whole


def by_kill(path: Path, times: int, chance: random.Random) -> int:
    """Kill -9, a new process each time."""
    whole = 0
    for _ in range(times):
        python = process(path)
        python.stdout.readline()
        time.sleep(chance.uniform(0, LONGEST))
        python.kill()
        python.wait()
        whole += loadable(path)
    return whole


def in_a_kernel(path: Path, times: int, chance: random.Random) -> tuple[int, int]:
    """The Stop button: an interrupt of a Jupyter kernel while a cell runs."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    client.execute_interactive(RUN, timeout=60)
    alive = whole = 0
    for _ in range(times):
        client.execute(f"run({str(path)!r})")
        heard = ""
        while "writing" not in heard:
            heard += client.get_iopub_msg(timeout=60)["content"].get("text", "")
        time.sleep(chance.uniform(0, LONGEST))
        manager.interrupt_kernel()
        try:
            reply = client.get_shell_msg(timeout=30)["content"]["status"]
            while STOPPED not in heard:
                heard += client.get_iopub_msg(timeout=10)["content"].get("text", "")
        except queue.Empty:
            reply = "none"
        survived = reply == "ok" and manager.is_alive()
        alive, whole = alive + survived, whole + loadable(path)
        if not manager.is_alive():
            manager.restart_kernel(now=True)
            client.wait_for_ready(timeout=60)
            client.execute_interactive(RUN, timeout=60)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return alive, whole


def run(repeats: int = 50) -> None:
    """Print the counts, with so many interrupts of each kind."""
    torch.set_num_threads(1)
    chance = random.Random()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        for name, interrupt in (("Ctrl-C", by_signal), ("Stop in a kernel", in_a_kernel)):
            alive, whole = interrupt(path, repeats, chance)
            counts = f"alive with a History {alive}/{repeats}, file loadable {whole}/{repeats}"
            print(f"  {name}: {counts}", flush=True)
        print(f"  kill -9: file loadable {by_kill(path, repeats, chance)}/{repeats}", flush=True)
        once(path)
        print("  left beside the file:", ", ".join(sorted(p.name for p in path.parent.iterdir())))


def once(path: Path) -> None:
    """One more run, which removes what killed ones left."""
    ids = torch.zeros(1, 2).long()
    train(TinyTransformer(11, 96, 6, 2, 12), ids, ids, steps=1, lr=1e-4, checkpoint=path)
