"""The course's JupyterLab, started as `make edit` starts it, in a copy of the repository."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for the scripts that import this
from support import ROOT, run  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = [
    "--no-sandbox",  # root, in a container
    "--disable-gpu",
    # It has nothing to fetch.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def git(folder, *words):
    """What git says in a folder."""
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    return run("git", *who, *words, cwd=folder)


def copy_repository(target):
    """Copy what git tracks or would track, as it is now, and commit it there."""
    for name in git(ROOT, "ls-files", "-z", "-co", "--exclude-standard").split("\0"):
        if name and (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    git(target, "init", "--quiet")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "--message=copy")
    return target


def open_browser(playwright):
    """Debian's Chromium: Playwright's own would have to be downloaded."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)


# Settings of a learner's own, with which no server, no kernel and no code would run.
SERVER = ".jupyter/jupyter_server_config.py"
STARTUP = ".ipython/profile_default/startup/trap.py"
KERNEL = ".local/share/jupyter/kernels/python3/kernel.json"
TRAPS = {
    SERVER: "raise SystemExit('the settings in ~/.jupyter are read')",
    STARTUP: "import os\n\nos._exit(3)",
    KERNEL: '{"argv": ["false"], "display_name": "Theirs", "language": "python"}',
}


def set_traps(home, names=TRAPS):
    """Write these settings into a home, or only some of them."""
    for name in names:
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(TRAPS[name], encoding="utf-8")
    return home


def environment(home):
    """Environment of a user with that home; not ours, in which make leaves its variables."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "JUPYTER_PATH": str(home / ".local/share/jupyter"),
        "JUPYTER_CONFIG_PATH": str(home / ".jupyter"),
    }


@contextmanager
def running_lab(folder, home, *more):
    """Run `make edit` in a folder with this Python, for a user whose home is `home`.

    Yields its address, which has the token in it.
    """
    python = shlex.quote(sys.executable)
    arguments = " ".join(["--no-browser", "--expose-app-in-browser", *more])
    command = ["make", "edit", "SETUP=", f"PY={python}", f"ARGS={arguments}"]
    log = home / "lab.log"
    with log.open("w", encoding="utf-8") as output:
        lab = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 60
        while not (
            address := re.search(
                r"http://127\.0\.0\.1:\S+token=\w+", log.read_text(encoding="utf-8")
            )
        ):
            assert lab.poll() is None, f"make edit ended:\n{log.read_text(encoding='utf-8')}"
            assert time.monotonic() < deadline, (
                f"make edit gave no address:\n{log.read_text(encoding='utf-8')}"
            )
            time.sleep(0.1)
        yield address[0]
    finally:
        os.killpg(lab.pid, signal.SIGTERM)  # make, its shell and the server, which ends its kernels
        try:
            lab.wait(timeout=30)
        except subprocess.TimeoutExpired:  # a server that is busy with a dying kernel
            os.killpg(lab.pid, signal.SIGKILL)  # its kernels end when they miss it
            lab.wait()


# Lab's own commands rather than clicks: their promises tell when all is done, and no sooner. One
# that waits for somebody to answer a question would wait for ever: such a question is an error.
PATIENCE = """
async argument => {
    let asked = 0, seconds = 0;
    const answer = (async () => { BODY })();
    const trouble = new Promise((_, reject) => setInterval(() => {
        const question = document.querySelector(".jp-Dialog");
        asked = question ? asked + 1 : 0;
        if (asked > 3) reject(new Error(`Lab asks: ${question.textContent}`));
        if (++seconds > SECONDS) reject(new Error("Lab gave no answer in SECONDS seconds"));
    }, 1000));
    return Promise.race([answer, trouble]);
}
"""


def ask(page, body, argument=None, seconds=60):
    """Run the body of a JavaScript function in Lab's page and return what it returns."""
    code = PATIENCE.replace("BODY", body).replace("SECONDS", str(seconds))
    return page.evaluate(code, argument)


def open_file(page, address, path, viewer="default"):
    """Open a file in Lab, as a double click does or, with another viewer, as Open With does."""
    # A workspace of its own, so that Lab does not open what an earlier page had open.
    page.goto(re.sub(r"/lab[^?]*", f"/lab/workspaces/{uuid.uuid4().hex}", address))
    page.wait_for_function("window.jupyterapp")
    ask(
        page,
        """
        await jupyterapp.restored;
        window.panel = await jupyterapp.commands.execute("docmanager:open", argument);
        await panel.context.ready;
        """,
        {"path": path, "factory": viewer},
    )


def run_all(page):
    """Run All Cells in the notebook that was opened; return it as Lab now has it."""
    return ask(
        page,
        """
        await panel.sessionContext.ready;
        await jupyterapp.commands.execute("notebook:run-all-cells");
        return panel.context.model.toJSON();
        """,
        seconds=300,
    )


def save(page):
    """Save the file that was opened, as Ctrl+S does."""
    ask(page, "await jupyterapp.commands.execute('docmanager:save');")


# Height of the output of each explorer, scrolled to, and of the place that a notebook has.
EXPLORERS = """
const found = [], cells = panel.content.widgets;
for (const [at, cell] of cells.entries()) {
    const tags = cell.model.getMetadata("tags") ?? [];
    if (!tags.includes("explorer") || tags.includes("further") !== argument) continue;
    const height = () => {
        const output = cell.node.isConnected && cell.node.querySelector(".jp-OutputArea");
        const drawn = output && output.querySelector(".attnlab-screen img, .attnlab-step svg");
        return drawn ? output.getBoundingClientRect().height : 0;
    };
    for (let still = 0, last = 0, tries = 0; still < 8 && tries < 150; tries++) {
        panel.content.scrollToItem(at, "start");
        await new Promise(done => setTimeout(done, 100));
        still = height() > 0 && height() === last ? still + 1 : 0;
        last = height();
    }
    found.push([cell.model.getMetadata("title"), height()]);
}
return [panel.content.node.getBoundingClientRect().height, found];
"""


def explorers(page):
    """The height that a notebook has to show, and the title and height of each explorer's output.

    Those under *Further* come last: what stands between them and the others is folded.
    """
    room, core = ask(page, EXPLORERS, False)
    return room, [*core, *ask(page, EXPLORERS, True)[1]]
