"""The pages and settings for contributors: the commands in them are the ones that exist."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GITHUB = ROOT / ".github"
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


def jobs():
    """The jobs of the workflow by name."""
    text = (GITHUB / "workflows/ci.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["jobs"]


def commands(job):
    """The commands that a job runs."""
    return [step["run"] for step in job["steps"] if "run" in step]


def make(*words):
    """What make prints."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ran = subprocess.run(
        ["make", *words], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8"
    )
    return ran.stdout


@needs_make
def test_windows_runs_what_make_test_stands_for():
    # with echo in place of Python, make prints the arguments of each command
    stands_for = re.findall(r"^-m (.*)$", make("test", "SETUP=", "PY=echo"), re.MULTILINE)
    install, *tests = commands(jobs()["windows"])
    assert install == 'python -m pip install --editable ".[lab,test]"'
    assert tests == [f"python -m {command.strip()}" for command in stands_for]
    assert any("--nbval" in command for command in tests)


def test_linux_and_macos_run_the_readme_s_command():
    for name in ("linux", "macos"):
        assert commands(jobs()[name])[-1] == "make test"
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_workflow_covers_the_oldest_and_the_newest_python():
    allowed = SpecifierSet(PROJECT["requires-python"])
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert f"3.{int(named[0][2:]) - 1}" not in allowed and named[0] in allowed
    for name, job in jobs().items():
        matrix = job["strategy"]["matrix"]
        pythons = matrix.get("python") or [row["python"] for row in matrix["include"]]
        assert {named[0], named[-1]} == set(pythons), name
    rows = jobs()["linux"]["strategy"]["matrix"]["include"]
    assert {row["dependencies"] for row in rows} == {"oldest", "exact", "newest"}


@needs_make
def test_the_contributing_page_names_commands_and_files_that_exist():
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    verbs = {line.split()[1] for line in make().splitlines()}
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
    assert {"check", "test", "notebooks", "bench"} <= named <= verbs
    for path in re.findall(r"`((?:src|tests|\.ci|\.github)/[\w./]*)`", text):
        assert (ROOT / path).exists(), path
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (GITHUB / link).exists(), link


def test_pre_commit_runs_the_tools_of_this_project():
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = settings["repos"]
    assert repository["repo"] == "local"  # nothing is fetched
    for hook in repository["hooks"]:
        python, _, module, *arguments = shlex.split(hook["entry"])
        assert python == ".venv/bin/python" and hook["language"] == "system"
        assert any(one.startswith(module) for one in PROJECT["optional-dependencies"]["test"])
        assert all((ROOT / path).exists() for path in arguments if "/" in path)
