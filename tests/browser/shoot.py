"""Take pictures of a notebook as JupyterLab shows it after Run All, from top to bottom.

    .venv/bin/python tests/browser/shoot.py course/01_static_embeddings.ipynb pictures [--dark]

writes pictures/01_static_embeddings-01.png and so on: one screen each, 1280 pixels wide, the next
beginning a little before the last one ends. Look at them: clipped labels, controls wider than the
page and text that cannot be read fail no test.
"""

import argparse
import json
import tempfile
from pathlib import Path

from lab_server import ask, copy_repository, open_browser, open_file, run_all, running_lab
from playwright.sync_api import sync_playwright

SETTLE = 500  # milliseconds for pictures and formulas that come into view
OVERLAP = 60  # pixels


def use_dark_theme(folder):
    """Choose the theme in the course's Lab, as its Settings menu does."""
    settings = folder / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    theme = json.dumps({"theme": "JupyterLab Dark"})
    (settings / "themes.jupyterlab-settings").write_text(theme, encoding="utf-8")


def shoot(page, stem, folder):
    """Scroll through the open notebook and write one picture for each screen of it."""
    scroller = page.locator(".jp-NotebookPanel:visible .jp-WindowedPanel-outer")
    scroller.evaluate("element => element.scrollTo(0, 0)")
    for number in range(1, 200):
        page.wait_for_timeout(SETTLE)
        page.screenshot(path=folder / f"{stem}-{number:02}.png")
        moved = scroller.evaluate(
            """(element, overlap) => {
                const before = element.scrollTop;
                element.scrollBy(0, element.clientHeight - overlap);
                return element.scrollTop > before;
            }""",
            OVERLAP,
        )
        if not moved:
            return number


def main():
    """Start Lab on a copy of the repository, run each notebook and take its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="+", help="such as course/01_static_embeddings.ipynb")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--dark", action="store_true", help="in JupyterLab's dark theme")
    parser.add_argument("--height", type=int, default=1600, help="of a picture, in pixels")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory() as place:
        copy, home = Path(place) / "copy", Path(place) / "home"
        copy.mkdir()
        home.mkdir()
        copy_repository(copy)
        if chosen.dark:
            use_dark_theme(copy)
        with running_lab(copy, home) as address, sync_playwright() as playwright:
            browser = open_browser(playwright)
            page = browser.new_page(viewport={"width": 1280, "height": chosen.height})
            for notebook in chosen.notebooks:
                open_file(page, address, notebook)
                run_all(page)
                stem = Path(notebook).stem + ("-dark" if chosen.dark else "")
                print(f"{shoot(page, stem, chosen.folder)} pictures of {notebook}", flush=True)
                ask(page, "await jupyterapp.serviceManager.sessions.shutdownAll();")
            browser.close()


if __name__ == "__main__":
    main()
