"""JupyterHub for a class on one machine: every student gets a learner's copy of the course.

    pip install -e '.[lab]' 'jupyterhub>=5.3,<7' jupyterhub-idle-culler
    npm install configurable-http-proxy
    jupyterhub --config .hub/jupyterhub_config.py

As it stands it authenticates the users of the machine (PAM), on all its addresses and without TLS:
put it behind a web server that has a certificate. JupyterHub's documentation says how.
"""

import sys
from pathlib import Path

c = get_config()  # noqa: F821
here = Path(__file__).resolve().parent

c.JupyterHub.bind_url = "http://:8000"
c.Authenticator.allow_all = True  # every user of this machine
c.Spawner.cmd = [sys.executable, str(here / "singleuser.py")]
c.Spawner.default_url = "/lab/tree/my_course/01_static_embeddings.ipynb"
# One thread a student: the course's tensors are tiny, and threads would only take turns.
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# When a whole class starts at once: everybody waits a little longer, and nobody is turned away
# ("429: too many users"), which with a lower limit happens to all above it.
c.JupyterHub.concurrent_spawn_limit = 100
c.Spawner.http_timeout = c.Spawner.start_timeout = 300

# A server that nobody has used for an hour goes, and with it its 330 MB; the notebooks stay.
c.JupyterHub.services = [
    {"name": "cull", "command": [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]}
]
c.JupyterHub.load_roles = [
    {
        "name": "cull",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["cull"],
    }
]
