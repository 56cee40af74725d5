"""Run the whole suite on a fresh clone under other processors, locales, users and versions.

    python .ci/everywhere.py                     every row
    python .ci/everywhere.py avx2-1 oldest       some of them
    python .ci/everywhere.py --lowest            print the oldest dependencies as pip constraints

Linux only; the rows `user` and `offline` need root. The environments are made once and used again
(--environments); set TORCH_INDEX to take torch from a package index of its own, as with make.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# An ordinary user. Where the Python is installed in a private home, such as root's, that home is
# replaced, for this process alone, by a folder that holds nothing but the Python.
ORDINARY_USER = """
case "$PYTHON_HOME" in "$HOME"/*)
    mkdir -p "$SCRATCH/python" && mount --bind "$PYTHON_HOME" "$SCRATCH/python"
    mount -t tmpfs -o mode=755 tmpfs "$HOME"
    mkdir -p "$PYTHON_HOME" && mount --bind "$SCRATCH/python" "$PYTHON_HOME"
esac
chown -R 65534:65534 "$SCRATCH"/*copy "$SCRATCH/home"
exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$SCRATCH/home" "$@"
"""
NO_NETWORK = 'ip link set lo up; exec "$@"'  # only the loopback interface

# row: (environment, its variables, how the command is wrapped)
ROWS = {
    f"{capability}-{threads}": (
        "3.11",
        {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        | ({} if capability == "native" else {"ATEN_CPU_CAPABILITY": capability}),
        [],
    )
    for capability in ("native", "avx2", "default")
    for threads in ("1", "2")
} | {
    "c-locale": ("3.11", {"LC_ALL": "C", "PYTHONUTF8": "0"}, []),
    "user": ("3.11", {}, ["unshare", "--mount", "sh", "-c", ORDINARY_USER, "sh"]),
    "offline": ("3.11", {}, ["unshare", "--net", "sh", "-c", NO_NETWORK, "sh"]),
    "python-3.12": ("3.12", {}, []),
    "python-3.13": ("3.13", {}, []),
    "oldest": ("oldest", {}, []),
}


def lowest():
    """The oldest version of every dependency that pyproject.toml allows, as pip constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = sum(project["optional-dependencies"].values(), project["dependencies"])
    return [re.sub(r"^([\w-]+)(?:~=|>=)([\d.]+).*", r"\1==\2", one) for one in named]


def make_environment(name, folder):
    """Return the Python of an environment with everything but the course itself."""
    python, pinned = folder / name / "bin/python", folder / "oldest.txt"
    oldest = "\n".join(lowest())
    changed = name == "oldest" and (
        not pinned.exists() or pinned.read_text(encoding="utf-8") != oldest
    )
    if changed or not python.exists():
        version = "3.11" if name == "oldest" else name
        subprocess.run([f"python{version}", "-m", "venv", folder / name], check=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        if name == "oldest":
            install += ["--constraint", pinned]
            pinned.write_text(oldest, encoding="utf-8")
        if index := os.environ.get("TORCH_INDEX"):
            (torch,) = [one for one in lowest() if one.startswith("torch==")]
            subprocess.run([*install, "--index-url", index, torch], check=True)
        subprocess.run([*install, f"{ROOT}[lab,llama,test]"], check=True)
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "-y", "attnlab"], check=True)
    return python


def run_row(row, folder, command, log):
    """Run one row; return how many tests passed, failed and were skipped, and the exit status."""
    name, variables, wrapper = ROWS[row]
    python = make_environment(name, folder)
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        copy = Path(scratch, "a copy")
        (Path(scratch) / "home").mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*install, "--editable", copy], check=True)
        base = subprocess.run(
            [python, "-c", "import sys; print(sys.base_prefix)"],
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ).stdout.strip()
        with log.open("w", encoding="utf-8") as file:
            finished = subprocess.run(
                [*wrapper, "sh", "-c", command.format(python=shlex.quote(str(python)))],
                cwd=copy,
                env=os.environ | variables | {"SCRATCH": scratch, "PYTHON_HOME": base},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
    text = log.read_text(encoding="utf-8", errors="replace")
    closing = "\n".join(re.findall(r"^.* in \d+\.\d+s\b.*$", text, re.MULTILINE))
    counts = [
        sum(map(int, re.findall(rf"(\d+) {kind}", closing)))
        for kind in ("passed", "(?:failed|error)", "skipped")
    ]
    return *counts, finished.returncode


def main():
    """Run the rows that were asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--environments", type=Path, default=ROOT / "build/environments")
    parser.add_argument("--command", default="make test SETUP= PY={python}")
    parser.add_argument("--lowest", action="store_true", help="print the oldest dependencies")
    asked = parser.parse_args()
    if asked.lowest:
        print("\n".join(lowest()))
        return
    asked.environments.mkdir(parents=True, exist_ok=True)
    logs = ROOT / "build/everywhere"
    logs.mkdir(parents=True, exist_ok=True)
    worst = 0
    print(f"{'row':<12} passed  failed  skipped  seconds  exit", flush=True)
    for row in asked.rows or ROWS:
        start = time.monotonic()
        passed, failed, skipped, status = run_row(
            row, asked.environments.absolute(), asked.command, logs / f"{row}.log"
        )
        seconds = time.monotonic() - start
        figures = f"{passed:>6}  {failed:>6}  {skipped:>7}  {seconds:>7.0f}  {status:>4}"
        print(f"{row:<12} {figures}", flush=True)
        worst = max(worst, abs(status))
    print(f"The output of each row is in {logs.relative_to(ROOT)}.")
    sys.exit(worst)


if __name__ == "__main__":
    main()
