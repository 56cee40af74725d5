"""The course, to work in or to hand out.

attnlab copy [FOLDER]      make your copy of the course (my_course), or bring it up to date
attnlab lab [FOLDER]       do that, and open JupyterLab there on the notebook you worked in last;
                           options for JupyterLab may follow, such as --port=9000
attnlab handout FOLDER     write the notebooks for a class, without solutions and hints;
                           with --for=nbgrader an nbgrader course of them, to be graded

With --course=COURSE the notebooks come from that folder.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

from attnlab.editions import nbgrader, notebooks
from attnlab.editions.copies import CopyError, LearnersCopy, make, write
from attnlab.editions.notebooks import serialize

NOTHING_LOST = "Nothing that you typed was lost. Put this right, then try again."
SETTINGS = Path(__file__).resolve().parent / "jupyter"


def default_course() -> Path:
    """The course of a clone, which lies beside ``src``; else the one that came with the package."""
    package = Path(__file__).resolve().parents[1]
    clone = package.parents[1] / "course"
    in_clone = package.parent.name == "src" and any(clone.glob("0*.ipynb"))
    return clone if in_clone else package / "course"


def copy(folder: Path, course: Path) -> LearnersCopy:
    """Make the learner's copy or bring it up to date, and say what happened.

    Raises:
        CopyError: if the folder is the course's, or if JupyterLab is open in it and there is an
            update.
    """
    if folder.resolve() == course.resolve():
        raise CopyError(f"{folder} is the course itself. Choose another folder.")
    learners, new = LearnersCopy(folder), make(course, notebooks.learners)
    if running_server(learners) and learners.to_update(new):
        raise CopyError(
            f"JupyterLab is open in {folder}, and there is an update. Nothing was changed. "
            "Save your work, choose File > Shut Down in JupyterLab, and try again."
        )
    where = [] if learners.hidden.exists() else [f"Your copy is in {folder.resolve()}."]
    said = where + learners.update(new) or [f"{folder} is up to date."]
    print("\n".join(said), flush=True)
    return learners


def lab(folder: Path, course: Path, arguments: list[str]) -> list[str] | None:
    """Make everything ready for JupyterLab in the learner's copy.

    Returns:
        The arguments to start it with; None if it is open there already.

    Raises:
        CopyError: if JupyterLab is not installed.
    """
    learners = LearnersCopy(folder)
    if address := running_server(learners):
        print(f"The course is open already: {address}")
        if "--no-browser" not in arguments:
            import webbrowser

            webbrowser.open(address)
        return None
    if not importlib.util.find_spec("jupyterlab"):
        raise CopyError("JupyterLab is not installed: pip install 'attnlab[lab]'.")
    copy(folder, course)
    # Jupyter and IPython keep their files in the copy: nobody's own settings are read or changed.
    jupyter = learners.hidden.resolve() / "jupyter"
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_NO_CONFIG"):
        os.environ.pop(name, None)
    os.environ["JUPYTER_CONFIG_PATH"] = str(SETTINGS)
    os.environ["JUPYTER_CONFIG_DIR"] = str(jupyter / "config")
    os.environ["JUPYTER_DATA_DIR"] = str(jupyter / "data")
    os.environ["IPYTHONDIR"] = str(jupyter / "ipython")
    # JupyterLab remembers its layout in a workspace. The first one has the sidebar closed.
    workspace = jupyter / "config/lab/workspaces/default-37a8.jupyterlab-workspace"
    if not workspace.exists():
        workspace.parent.mkdir(parents=True, exist_ok=True)
        layout = {"left": {"collapsed": True, "visible": True}}
        data = {"data": {"layout-restorer:data": layout}, "metadata": {"id": "default"}}
        write(workspace, json.dumps(data).encode())

    options = [f"--ServerApp.root_dir={learners.folder.resolve()}"]
    if first := learners.last_worked_in():
        options.append(f"--LabApp.default_url=/lab/tree/{first.name}")
    # JupyterLab refuses to start for root, the usual user of a container. As long as it listens on
    # the loopback address only and asks for a token, nobody else gets root's shell.
    if not any(re.match(r"--([\w.]+\.)?(ip|token|password)\b", one, re.I) for one in arguments):
        options.append("--allow-root")
    return [*options, *arguments]


def running_server(learners: LearnersCopy) -> str | None:
    """The address of the JupyterLab that ``attnlab lab`` has open in a copy."""
    for file in learners.hidden.glob("jupyter/data/runtime/jpserver-*.json"):
        import http.client  # slow, and seldom needed
        from urllib.parse import urlsplit

        # After a crash the file is still there, and another program may have the port.
        with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
            server = json.loads(file.read_bytes())
            address = urlsplit(server["url"])
            connection = http.client.HTTPConnection(address.netloc, timeout=3)
            connection.request("GET", f"{address.path}api/status?token={server['token']}")
            if connection.getresponse().status == 200:
                return f"{server['url']}lab?token={server['token']}"
    return None


def handout(folder: Path, course: Path, graded: bool) -> None:
    """Write the edition for a class: the learner's, without solutions and hints.

    Graded, it is an nbgrader course: each notebook is an assignment.

    Raises:
        CopyError: if the folder holds a file of that name with something else in it.
    """
    edition = make(course, nbgrader.for_nbgrader if graded else notebooks.for_class)
    files = {
        folder / (f"source/{name.partition('.')[0]}/{name}" if graded else name): serialize(
            notebook
        )
        for name, notebook in edition.items()
    }
    if graded:
        files[folder / "nbgrader_config.py"] = nbgrader.CONFIG.encode()
    for path, data in files.items():
        if path.exists() and path.read_bytes() != data:
            raise CopyError(
                f"{path} is there already, and it is different. Choose another folder, "
                "or move the old notebooks away. Nothing was written."
            )
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, data)
    what = "assignments for nbgrader" if graded else "notebooks without solutions and hints"
    print(f"{len(edition)} {what} are in {folder.resolve()}.")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser("attnlab", usage=__doc__, allow_abbrev=False)
    parser.add_argument("verb", choices=["copy", "lab", "handout"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--course", type=Path, default=default_course())
    parser.add_argument("--for", dest="audience", choices=["nbgrader"])
    options, more = parser.parse_known_args(arguments)
    if more and options.verb != "lab":
        parser.error(f"{more[0]} is not an option of attnlab {options.verb}")
    if options.folder is None and options.verb == "handout":
        parser.error("name the folder for the hand-out")
    folder, start = options.folder or Path("my_course"), None
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a title's letters
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        if options.verb == "lab":
            start = lab(folder, options.course, more)
        elif options.verb == "handout":
            handout(folder, options.course, graded=options.audience == "nbgrader")
        else:
            copy(folder, options.course)
    except (CopyError, OSError) as problem:
        said = str(problem)
        if isinstance(problem, OSError):
            said = f"{problem.strerror or said}: {problem.filename or folder}. {NOTHING_LOST}"
        print(said, file=sys.stderr)
        return 1
    if start is not None:  # imported here, for it reads the environment when it is
        from jupyterlab.labapp import LabApp

        LabApp.launch_instance(start)
    return 0
