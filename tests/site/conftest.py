"""What tests of the site share: its modules, and the site itself."""

import shutil
import sys

import pytest
from support import ROOT, run

sys.path.insert(0, str(ROOT / ".site"))

# Without a network, where this system lets us take it away.
ALONE = ["unshare", "--map-root-user", "--net"]


@pytest.fixture(scope="session")
def built():
    """The folder of the site, built now by the command of `make site`, and what that printed."""
    cut = ALONE if shutil.which("unshare") and run(*ALONE, "true", ok=(0, 1)) == "" else []
    said = run(*cut, sys.executable, ROOT / ".site", cwd=ROOT)
    return ROOT / "build/site", said


@pytest.fixture(scope="session")
def site(built):
    """The folder of the site."""
    return built[0]
