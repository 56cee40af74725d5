"""The course's JupyterLab. `make lab` points JUPYTER_CONFIG_DIR to this folder."""

import sys
import warnings
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
from hooks import after_saving, before_saving  # noqa: E402

c = get_config()  # noqa: F821

c.ServerApp.root_dir = str(here.parent)
c.LabApp.default_url = "/lab/tree/course/01_static_embeddings.ipynb"

c.FileContentsManager.pre_save_hook = before_saving
c.FileContentsManager.post_save_hook = after_saving
# The server reads its configuration twice and then warns that a hook takes its own place.
warnings.filterwarnings("ignore", message="Overriding existing p.*_save_hook")

# JupyterLab refuses to start for root, who is the usual user of a container. `make lab` listens on
# the loopback address only and asks for a token, so nobody else gets root's shell.
c.ServerApp.allow_root = True
