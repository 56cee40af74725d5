"""From key press to new pixels on the site's own pages, from file://, and what they weigh."""

import statistics

import lab_server
from report import show
from step import KEYS, RATE, WATCH, Subject
from support import ROOT

SITE = ROOT / "build/site"
PAGES = {"the front page": "index.html", "the page for a class": "play/index.html"}


def run(repeats: int = 40) -> None:
    """The live step of the front page and of the page for a class."""
    if not (lab_server.CHROMIUM and SITE.exists()):
        print("  skipped: it needs Chromium, and the site that `make site` builds")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = lab_server.open_browser(playwright)
        for name, path in PAGES.items():
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            loaded = []
            page.on("request", lambda request, into=loaded: into.append(request.url))
            page.goto((SITE / path).as_uri())
            files = {SITE.parent / url.split("?")[0].partition("/build/")[2] for url in loaded}
            weight = sum(file.stat().st_size for file in files if file.is_file())
            page.evaluate(WATCH)
            knob = page.get_by_label("W_Q row 0 column 1, slider")
            subject = Subject(page, knob, page.locator(".attnlab-step .sentence"), False)
            subject.focus()
            seconds = [subject.press() for _ in range(repeats + 2)][2:]
            low, middle, high = (show(s) for s in statistics.quantiles(seconds, n=4))
            print(
                f"  {name}: {middle} from key press to new pixels (the middle half: {low} to "
                f"{high}), {subject.burst()} frames of {KEYS} keys in a burst, {RATE} a second; "
                f"{weight:,} bytes"
            )
        browser.close()
