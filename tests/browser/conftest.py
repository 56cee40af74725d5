"""A JupyterLab for these tests, in a copy of the repository, and a page of a real browser."""

import os

import pytest

from . import lab_server


@pytest.fixture(scope="package")
def browser():
    """Debian's Chromium. Without it the tests are skipped; CI says that it must be there."""
    if not lab_server.CHROMIUM:
        reason = "no Chromium here: on Debian or Ubuntu, apt install chromium"
        required = os.environ.get("ATTNLAB_REQUIRE_BROWSER") == "1"
        (pytest.fail if required else pytest.skip)(reason)
    playwright = pytest.importorskip("playwright.sync_api")
    # Ended with this folder's tests: while it runs, no other test can run an event loop.
    with playwright.sync_playwright() as started:
        browser = lab_server.open_browser(started)
        # One context for all pages, so that Lab's scripts come from the cache after the first.
        yield browser.new_context(viewport={"width": 1280, "height": 900})
        browser.close()


@pytest.fixture(scope="package")
def home(tmp_path_factory):
    """The home of a learner whose own Jupyter and IPython are set up so as to break the course."""
    return lab_server.set_traps(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="package")
def copy(tmp_path_factory):
    """The repository as it is now, committed, in a folder whose path has a space."""
    return lab_server.copy_repository(tmp_path_factory.mktemp("a copy"))


@pytest.fixture(scope="package")
def address(browser, copy, home):
    """Where Lab serves the copy."""
    with lab_server.running_lab(copy, home) as address:
        yield address


@pytest.fixture
def page(browser, address, copy):
    """A new page. What a test leaves behind is taken back: its kernels and its changes."""
    page = browser.new_page()
    page.set_default_timeout(30_000)
    yield page
    page.evaluate("window.jupyterapp?.serviceManager.sessions.shutdownAll()")
    page.close()
    lab_server.git(copy, "reset", "--hard", "--quiet")
    lab_server.git(copy, "clean", "-fdq")
