"""The course on other people's machines: Binder's script, and a class on a real JupyterHub."""

import os
import re
import sys
from pathlib import Path

import yaml
from browser.lab_server import copy_repository
from support import NOTEBOOKS, ROOT, run


def test_binder_installs_what_conda_does():
    ours, binders = (
        yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
        for name in ("environment.yml", ".binder/environment.yml")
    )
    *packages, pip = ours["dependencies"]
    assert binders == ours | {"dependencies": packages}
    [installed] = pip["pip"]
    script = (ROOT / ".binder/postBuild").read_text(encoding="utf-8")
    assert installed.replace(".[lab]", "'.[lab]'") in script


def test_binder_opens_the_learners_edition(tmp_path):
    """The script itself, in a copy of the repository; pip and attnlab are this environment's."""
    copy_repository(tmp_path / "repository")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, command in {
        "python": f'test "$3" = install && exec "{sys.executable}" -c "print(\'installed\')"',
        "attnlab": f'exec "{sys.executable}" -m attnlab.editions "$@"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    script = tmp_path / "repository/.binder/postBuild"
    said = run(script, cwd=tmp_path / "repository", env=os.environ | {"PATH": path})
    assert said.startswith("installed\n") and "01_static_embeddings.ipynb is new." in said
    copied = sorted(p.name for p in (tmp_path / "repository/my_course").glob("*.ipynb"))
    assert copied == [path.name for path in NOTEBOOKS]


def test_students_on_a_real_hub_move_a_knob(figure):
    """The load test itself, for two students and some seconds; its table is made by hand."""
    said = run(sys.executable, ROOT / "tests/site/hub_load.py", "--seconds", "5", "2", cwd=ROOT)
    row = said.splitlines()[-1].split()
    assert row[0] == "2" and int(row[3]) >= 4, said
    assert re.fullmatch(r"[\d.]+%", row[-1])
    figure(f"JupyterHub, N = 2: {said.splitlines()[-1]}")


def test_the_hubs_settings_start_the_servers_that_stand_beside_them():
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("jupyterhub_config.py", str(ROOT / ".hub")).load_config()
    python, script = config.Spawner.cmd
    assert python == sys.executable and Path(script) == ROOT / ".hub/singleuser.py"
    assert config.Spawner.default_url.endswith(NOTEBOOKS[0].name)
    assert {service["name"] for service in config.JupyterHub.services} == {
        name for role in config.JupyterHub.load_roles for name in role["services"]
    }
