"""The command ``attnlab``: what it starts, what it says, and how little it loads."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import attnlab
from attnlab.editions import command
from attnlab.editions.copies import LearnersCopy


@pytest.fixture
def lab(learner, course):
    """``lab("--option")``: the arguments JupyterLab would get, and the variables beside them."""
    before = dict(os.environ)
    yield lambda *more: command.lab(learner.path, course.path, list(more))
    os.environ.clear()
    os.environ.update(before)


def test_a_copy_that_is_up_to_date_loads_the_standard_library_only(learner, figure):
    report = """
import atexit, sys, time
start = time.process_time()
def report():
    others = {name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names
    print(round(1000 * (time.process_time() - start)), *sorted(others))
atexit.register(report)
"""
    ran = learner.process(before_main=report)
    said = ran.communicate(timeout=60)[0]
    state, numbers = said.splitlines()
    milliseconds, *others = numbers.split()
    assert state == f"{learner.path} is up to date."
    # A virtual environment may load something for itself when Python starts.
    bare = [sys.executable, "-c", "import sys; print(*{n.split('.')[0] for n in sys.modules})"]
    there = subprocess.run(bare, capture_output=True, encoding="utf-8", check=True).stdout.split()
    assert set(others) - set(there) == {"attnlab"}
    figure(f"a copy that is up to date: {milliseconds} ms of processor time before JupyterLab")


def test_jupyterlab_starts_in_the_copy_with_settings_of_its_own(learner, lab):
    options = lab("--no-browser", "--port=9000")
    assert options == [
        f"--ServerApp.root_dir={learner.path.resolve()}",
        "--LabApp.default_url=/lab/tree/01_a.ipynb",
        "--allow-root",
        "--no-browser",
        "--port=9000",
    ]
    hidden = str(learner.path / ".attnlab")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        assert os.environ[name].startswith(hidden)
    settings = Path(os.environ["JUPYTER_CONFIG_PATH"])
    server = json.loads((settings / "jupyter_server_config.json").read_text(encoding="utf-8"))
    assert server["ServerApp"]["ip"] == "127.0.0.1"
    page = json.loads((settings / "labconfig/page_config.json").read_text(encoding="utf-8"))
    assert page["disabledExtensions"]["@jupyterlab/apputils-extension:announcements"]
    assert "JUPYTER_PATH" not in os.environ


@pytest.mark.parametrize(
    "option",
    [
        "--ip=0.0.0.0",
        "--ip",
        "--ServerApp.ip=0.0.0.0",
        "--IdentityProvider.token=",
        "--ServerApp.token=",
        "--ServerApp.password=",
    ],
)
def test_root_starts_it_on_the_loopback_address_with_a_token_only(lab, option):
    assert "--allow-root" in lab("--no-browser")
    assert "--allow-root" not in lab(option)


class Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("what", ["nobody", "another program", "a damaged file"])
def test_what_a_crashed_jupyterlab_left_is_not_taken_for_a_running_one(learner, what):
    runtime = learner.path / ".attnlab/jupyter/data/runtime"
    runtime.mkdir(parents=True)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        left = {"url": f"http://127.0.0.1:{server.server_port}/", "token": "x"}
        if what == "nobody":
            server.shutdown()
            server.server_close()
        text = "{" if what == "a damaged file" else json.dumps(left)
        (runtime / "jpserver-7.json").write_text(text, encoding="utf-8")
        assert command.running_server(LearnersCopy(learner.path)) is None
        if what != "nobody":
            server.shutdown()
        thread.join()


def test_a_folder_without_the_course_or_with_a_damaged_one_is_said(learner, course, tmp_path):
    before = learner.everything()
    (course.path / "02_b.ipynb").write_text("<<<<<<< HEAD", encoding="utf-8")
    damaged = f"{course.path / '02_b.ipynb'} is damaged. Nothing can be made from it.\n"
    assert learner.update(status=1) == damaged
    learner.course = type(learner.course)(tmp_path / "elsewhere")
    nothing = f"There are no notebooks of the course in {tmp_path / 'elsewhere'}.\n"
    assert learner.update(status=1) == nothing
    assert learner.everything() == before


def test_the_course_itself_is_never_taken_for_a_copy(course, capsys):
    before = course.everything()
    words = ["copy", str(course.path), f"--course={course.path}"]
    assert command.main(words) == 1
    assert (
        capsys.readouterr().err == f"{course.path} is the course itself. Choose another folder.\n"
    )
    assert course.everything() == before


def test_a_terminal_without_the_letters_of_a_title_stops_nothing(learner, course):
    learner.add("01_a.ipynb", "Rows", "# mine")
    learner.edit("01_a.ipynb", lambda cells: cells[3]["metadata"].update(title="√d_k"))
    course.add("01_a.ipynb", "Rows", "# new")
    course.edit("01_a.ipynb", lambda cells: cells[3]["metadata"].update(title="√d_k"))
    process = learner.process(encoding="ascii")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "'?d_k' has a new version." in said


def test_an_installed_package_brings_its_own_course(tmp_path):
    package = tmp_path / "site/attnlab"
    shutil.copytree(Path(attnlab.__file__).parent / "editions", package / "editions")
    (package / "__init__.py").touch()
    code = "from attnlab.editions.command import default_course; print(default_course())"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(package.parent)},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert ran.stdout.strip() == str(package / "course")


@pytest.mark.parametrize(
    "words, why",
    [
        (["handout"], "name the folder for the hand-out"),
        (["copy", "x", "--port=9"], "--port=9 is not an option of attnlab copy"),
        (["open"], "invalid choice: 'open'"),
    ],
)
def test_a_wrong_call_shows_the_right_ones(words, why, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert why in said and "attnlab lab [FOLDER]" in said
