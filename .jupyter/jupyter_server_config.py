"""The course's JupyterLab. `make edit` points JUPYTER_CONFIG_DIR to this folder."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.append(str(here))
from attnlab_contents import CourseContents  # noqa: E402

c = get_config()  # noqa: F821

c.ServerApp.root_dir = str(here.parent)
c.LabApp.default_url = "/lab/tree/course/01_static_embeddings.ipynb"
c.ServerApp.contents_manager_class = CourseContents
# A notebook stands in the file browser once: its .py is the same notebook.
c.ContentsManager.hide_globs = ["__pycache__", "*.pyc", ".DS_Store", "*~", "0[1-9]_*.py"]

# JupyterLab refuses to start for root, who is the usual user of a container. The address is this
# machine's own and a token is asked for, so nobody else gets root's shell.
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.allow_root = True
