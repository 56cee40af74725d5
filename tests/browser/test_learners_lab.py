"""``attnlab lab``: what a learner sees, the first time and the next, and while it is open."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from support import NOTEBOOKS

from . import lab_server

FIRST, SECOND = NOTEBOOKS[0].name, NOTEBOOKS[1].name


def attnlab(verb, folder, course, *more):
    """The command, as words."""
    return [sys.executable, "-m", "attnlab.editions", verb, folder, f"--course={course}", *more]


@contextmanager
def running(folder, course, home, *more):
    """Run ``attnlab lab``; yield its address, which has the token in it."""
    command = attnlab("lab", folder, course, "--no-browser", "--expose-app-in-browser", *more)
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    log = home / "learners.log"
    with log.open("w", encoding="utf-8") as output:
        lab = subprocess.Popen(
            command,
            env=environment | {"LANG": "C.UTF-8", "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 90
        pattern = r"http://127\.0\.0\.1:\S+token=\w+"
        while not (address := re.search(pattern, log.read_text(encoding="utf-8"))):
            said = log.read_text(encoding="utf-8")
            assert lab.poll() is None and time.monotonic() < deadline, said
            time.sleep(0.1)
        yield address[0]
    finally:
        os.killpg(lab.pid, signal.SIGTERM)
        lab.wait(timeout=60)


@contextmanager
def opened(browser, address):
    """A page with Lab in it, when the notebook that it opens is there."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(address)
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady")
    start = """
        await jupyterapp.restored;
        window.panel = jupyterapp.shell.currentWidget;
        await panel.sessionContext.ready;
        await panel.sessionContext.session.kernel.info;
    """
    lab_server.ask(page, start)
    yield page
    page.evaluate("window.jupyterapp?.serviceManager.sessions.shutdownAll()")
    page.close()


def seen(page):
    """What is open, whether the sidebar is closed, and what the file browser would list."""
    code = """
        const browser = [...jupyterapp.shell.widgets("left")].find(one => one.id === "filebrowser");
        return {
            open: [...jupyterapp.shell.widgets("main")].map(widget => widget.title.label),
            current: panel.context.path,
            dirty: panel.context.model.dirty,
            closed: jupyterapp.shell.leftCollapsed,
            files: [...browser.model.items()].map(item => item.name).sort(),
            solutions: panel.content.widgets
                .filter(cell => (cell.model.getMetadata("tags") ?? []).includes("solution"))
                .map(cell => cell.inputHidden && cell.outputHidden),
        };
    """
    return lab_server.ask(page, code)


def test_a_learner_comes_back_to_where_the_work_was(browser, home, tmp_path, figure):
    folder, course = tmp_path / "my course", tmp_path / "course"
    shutil.copytree(NOTEBOOKS[0].parent, course)
    with running(folder, course, home) as address:
        with opened(browser, address) as page:
            there = seen(page)
            assert there.pop("solutions") == [True] * 6
            assert there == {
                "open": [FIRST],
                "current": FIRST,
                "dirty": False,
                "closed": True,
                "files": [path.name for path in NOTEBOOKS],
            }
            # Notebook 2: something typed, a cell with a widget run, and saved.
            work = """
                const open = "docmanager:open";
                window.panel = await jupyterapp.commands.execute(open, {path: argument});
                await panel.context.ready;
                await panel.sessionContext.ready;
                for (const at of [2, 3, 4, 5]) {
                    panel.content.activeCellIndex = at;
                    await jupyterapp.commands.execute("notebook:run-cell");
                }
                panel.content.widgets[0].model.sharedModel.setSource("typed by the learner");
                const reveal = panel.content.widgets.findIndex(
                    cell => (cell.model.getMetadata("tags") ?? []).includes("reveal"));
                panel.content.activeCellIndex = reveal;
                await jupyterapp.commands.execute("notebook:run-all-above");
                await jupyterapp.commands.execute("notebook:run-cell");
                await jupyterapp.commands.execute("docmanager:save");
                return panel.content.widgets[reveal].model.outputs.length;
            """
            assert lab_server.ask(page, work, SECOND) == 1
            # An update does not come while the notebooks are open.
            notebook = json.loads((course / SECOND).read_text(encoding="utf-8"))
            notebook["cells"][1]["source"] = "new in the course"
            (course / SECOND).write_text(json.dumps(notebook), encoding="utf-8")
            before = (folder / SECOND).read_bytes()
            copy = subprocess.run(
                attnlab("copy", folder, course), capture_output=True, encoding="utf-8"
            )
            assert copy.returncode == 1
            assert f"JupyterLab is open in {folder}, and there is an update." in copy.stderr
            assert (folder / SECOND).read_bytes() == before
            again = attnlab("lab", folder, course, "--no-browser")
            again = subprocess.run(again, capture_output=True, encoding="utf-8")
            assert again.stdout.startswith("The course is open already: http://127.0.0.1:")
    saved = json.loads(before)
    assert "widget-view" in json.dumps(saved), "a save keeps the outputs with their widgets"
    assert not list(folder.glob("*.py"))
    reveals = [c for c in saved["cells"] if "reveal" in c["metadata"].get("tags", [])]
    assert reveals and [c["outputs"] for c in reveals] == [[]] * len(reveals), "no answer is saved"
    with running(folder, course, home) as address:
        with opened(browser, address) as page:
            there = seen(page)
            assert (there["current"], there["closed"]) == (SECOND, True)
    texts = [
        "".join(cell["source"])
        for cell in json.loads((folder / SECOND).read_text(encoding="utf-8"))["cells"]
    ]
    assert texts[:2] == ["typed by the learner", "new in the course"]
    figure("update | notebook open in JupyterLab | nothing yet: asks to close it first | all")
