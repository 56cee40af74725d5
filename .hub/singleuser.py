"""Start a student's server: bring the student's copy of the course up to date, then JupyterLab.

Whatever happens to the copy, the server starts, and what was said is in the file of its log.
"""

import os
import sys
from pathlib import Path

import attnlab.editions
from attnlab.editions import command

COPY = Path("my_course")

if __name__ == "__main__":
    command.main(["copy", str(COPY)])  # in the home; says what happened, and fails in words only
    settings = Path(attnlab.editions.__file__).parent / "jupyter"
    os.environ["JUPYTER_CONFIG_PATH"] = (
        f"{settings}{os.pathsep}{os.environ.get('JUPYTER_CONFIG_PATH', '')}"
    )
    module = [sys.executable, "-m", "jupyterhub.singleuser"]
    os.execv(sys.executable, [*module, *sys.argv[1:]])
