"""What is left when cells run again, and what a kernel holds after Run All, in real kernels.

python tests/bench growth               all notebooks (some minutes)
python tests/bench/growth.py 03 06      only these
"""

import statistics
import sys
from pathlib import Path

import jupytext
import psutil
from jupyter_client.manager import start_new_kernel

COURSE = Path(__file__).parents[2] / "course"
REPEATS, FROM = 30, 10  # runs of each explorer's cell, and the first one that counts
BARE = "import ipywidgets, matplotlib.pyplot, torch"
# Memory that is free but not given back by C's allocator is no growth.
SETTLE = """
import ctypes, gc
gc.collect()
getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: 0)(0)
"""
WIDGETS = "len(__import__('ipywidgets').widgets.widget._instances)"


class Kernel:
    """A kernel whose cells run as JupyterLab runs them, each with its id."""

    def __init__(self):
        self.manager, self.client = start_new_kernel(cwd=str(COURSE))
        self.process = psutil.Process(int(self.run("pass", "pid", "__import__('os').getpid()")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str, cell: str, expression: str = "0") -> str:
        """Run a cell; the value of an expression after it."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False,
                   "user_expressions": {"after": expression}, "stop_on_error": True}  # fmt: skip
        message = self.client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": cell}
        self.client.shell_channel.send(message)
        while True:
            answer = self.client.get_iopub_msg(timeout=300)
            if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if answer["msg_type"] == "error":
                raise RuntimeError("\n".join(answer["content"]["traceback"]))
            if answer["content"].get("execution_state") == "idle":
                break
        reply = self.client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            reply = self.client.get_shell_msg(timeout=60)
        return reply["content"]["user_expressions"]["after"]["data"]["text/plain"]

    def memory(self) -> float:
        """Resident megabytes."""
        return self.process.memory_info().rss / 2**20

    def state(self) -> tuple[float, int]:
        """Megabytes in use and open widgets."""
        widgets = int(self.run(SETTLE, "settle", WIDGETS))
        return self.memory(), widgets


def cells_of(notebook: Path) -> list[tuple[str, str, bool]]:
    """The code cells of a notebook: its id, its source, and whether it is an explorer's."""
    cells = [cell for cell in jupytext.read(notebook).cells if cell.cell_type == "code"]
    return [
        (f"{notebook.stem} {n}", cell.source, "explorer" in cell.metadata.get("tags", []))
        for n, cell in enumerate(cells)
    ]


def growth(states: list[tuple[float, int]]) -> str:
    """Median and mean growth a run, from the first state to the last."""
    sizes, widgets = zip(*states, strict=True)
    steps = [after - before for before, after in zip(sizes, sizes[1:], strict=False)]
    median, more = statistics.median(steps), (widgets[-1] - widgets[0]) / len(steps)
    verdict = "met" if median < 1 and more <= 3 else "MISSED"
    return f"{median:6.2f} {statistics.mean(steps):6.2f} MB {more:5.1f} widgets  {verdict}"


def run(repeats: int = REPEATS, notebooks: tuple[str, ...] = ()) -> None:
    """Print the growth of each explorer's cell and of Run All, and the memory after Run All."""
    with Kernel() as kernel:
        kernel.run(BARE, "bare")
        bare = kernel.memory()
    print(f"  bare imports: {bare:.0f} MB")
    print("  growth a run, median and mean; targets: median below 1 MB, at most 3 widgets")
    for path in sorted(COURSE.glob("0*.py")):
        if notebooks and path.name[:2] not in notebooks:
            continue
        cells, states = cells_of(path), []
        with Kernel() as kernel:
            for _ in range(5):
                for cell, source, _ in cells:
                    kernel.run(source, cell)
                if not states:
                    first = kernel.memory()
                states.append(kernel.state())
            ratio, target = first / bare, 1.6 if path.name.startswith("06") else 1.35
            print(path.stem)
            print(
                f"  after Run All {first:.0f} MB, {ratio:.2f} of the bare imports; "
                f"target {target}: {'met' if ratio <= target else 'MISSED'}"
            )
            print(f"  Run All, 5 times   {growth(states)}")
            for cell, source, explorer in cells:
                if explorer:
                    states = []
                    for _ in range(repeats):
                        kernel.run(source, cell)
                        states.append(kernel.state())
                    name = f"cell {cell.split()[-1]}, {repeats} times"
                    print(f"  {name:18} {growth(states[min(FROM, repeats - 2) - 1 :])}", flush=True)


if __name__ == "__main__":
    run(notebooks=tuple(sys.argv[1:]))
