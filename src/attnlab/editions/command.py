"""The command ``attnlab``: a learner's copy of the course, JupyterLab in it, hand-outs."""

import argparse
import contextlib
import errno
import http.client
import json
import os
import re
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

from attnlab.editions import notebooks
from attnlab.editions.copies import CopyError, LearnersCopy, course_files, read_course_file, write

SETTINGS = Path(__file__).resolve().parent / "jupyter"
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


def default_course() -> Path:
    """The course of a clone, which lies beside ``src``; else the one that came with the package."""
    package = Path(__file__).resolve().parents[1]
    clone = package.parents[1] / "course"
    in_clone = package.parent.name == "src" and any(clone.glob("0*.ipynb"))
    return clone if in_clone else package / "course"


def copy(folder: Path, course: Path) -> LearnersCopy:
    """Make the learner's copy or bring it up to date, and say what happened.

    Raises:
        CopyError: if JupyterLab is open in the folder while there is something to update.
    """
    learners = LearnersCopy(folder)
    if running_server(learners) and not learners.is_up_to_date(course):
        raise CopyError(
            f"JupyterLab is open in {folder}, and there is an update. Nothing was changed. "
            "Save your work, choose File > Shut Down in JupyterLab, and try again."
        )
    is_new = not learners.handed_out.exists()
    said = learners.update(course)
    if is_new:
        print(f"Your copy of the course is in {folder.resolve()}.")
    print("\n".join(said) or f"{folder} is up to date.")
    return learners


def lab(folder: Path, course: Path, arguments: list[str]) -> None:
    """Open JupyterLab in the learner's copy, on the notebook that was worked in last."""
    learners = LearnersCopy(folder)
    if address := running_server(learners):
        print(f"The course is open already: {address}")
        if "--no-browser" not in arguments:
            webbrowser.open(address)
        return
    copy(folder, course)
    # Jupyter and IPython keep their files in the copy: nobody's own settings are read or changed.
    jupyter = learners.hidden.resolve() / "jupyter"
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_NO_CONFIG"):
        os.environ.pop(name, None)
    os.environ["JUPYTER_CONFIG_PATH"] = str(SETTINGS)
    os.environ["JUPYTER_CONFIG_DIR"] = str(jupyter / "config")
    os.environ["JUPYTER_DATA_DIR"] = str(jupyter / "data")
    os.environ["IPYTHONDIR"] = str(jupyter / "ipython")
    try:  # not before: it reads these variables on import
        from jupyterlab.labapp import LabApp
    except ModuleNotFoundError:
        raise CopyError("JupyterLab is not installed: pip install 'attnlab[lab]'.") from None
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
    LabApp.launch_instance([*options, *arguments])


def running_server(learners: LearnersCopy) -> str | None:
    """The address of the JupyterLab that ``attnlab lab`` has open in a copy."""
    for file in learners.hidden.glob("jupyter/data/runtime/jpserver-*.json"):
        # After a crash the file is still there, and another program may have the port.
        with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
            server = json.loads(file.read_bytes())
            address = urlsplit(server["url"])
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=3)
            connection.request("GET", f"{address.path}api/status?token={server['token']}")
            if connection.getresponse().status == 200:
                return f"{server['url']}lab?token={server['token']}"
    return None


def handout(folder: Path, course: Path) -> None:
    """Write the edition for a class: the learner's, without solutions and hints.

    Raises:
        CopyError: if the folder holds a notebook of that name with something else in it.
    """
    files = {
        folder / path.name: notebooks.serialize(notebooks.for_class(read_course_file(path)))
        for path in course_files(course)
    }
    different = [one for one, data in files.items() if one.exists() and one.read_bytes() != data]
    if different:
        raise CopyError(
            f"{different[0]} is there already, and it is different. Choose another folder, "
            "or move the old notebooks away. Nothing was written."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        write(path, data)
    print(f"{len(files)} notebooks without solutions and hints are in {folder.resolve()}.")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser("attnlab", description=__doc__, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in [
        ("copy", "make your copy of the course, or bring it up to date"),
        ("lab", "do that, and open JupyterLab there; JupyterLab's options may follow: --port=9000"),
        ("handout", "write the notebooks for a class, without solutions and hints"),
    ]:
        one = verbs.add_parser(verb, help=text, description=text, allow_abbrev=False)
        optional = {} if verb == "handout" else {"nargs": "?", "default": Path("my_course")}
        one.add_argument("folder", type=Path, metavar="FOLDER", **optional)
        one.add_argument("--course", type=Path, default=default_course(), metavar="COURSE")
    options, more = parser.parse_known_args(arguments)
    if more and options.verb != "lab":
        parser.error(f"unknown option: {more[0]}")
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a title's letters
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        if options.verb == "lab":
            lab(options.folder, options.course, more)
        else:
            {"copy": copy, "handout": handout}[options.verb](options.folder, options.course)
    except CopyError as problem:
        print(problem, file=sys.stderr)
        return 1
    except OSError as problem:
        print(_in_words(problem, options.folder), file=sys.stderr)
        return 1
    return 0


def _in_words(problem: OSError, folder: Path) -> str:
    reason = f"{problem.strerror or problem}: {problem.filename or folder}."
    if problem.errno in NO_ROOM:
        reason = "There is no room left on the disk."
    elif problem.errno in NOT_ALLOWED:
        reason = f"You may not write here: {problem.filename or folder}."
    return f"{reason} Nothing that you typed was lost. Mend this, then try again."
