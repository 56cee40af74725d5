"""The decks for a room: nothing clipped, nothing fetched, large enough, and every vote is there."""

import json
import re
import sys

import pytest
from browser import lab_server
from support import NOTEBOOKS, ROOT, run

playwright = pytest.importorskip("playwright.sync_api")

SLIDES = """Reveal.getSlides().map(slide => {
    const at = Reveal.getIndices(slide);
    return [at.h, at.v || 0];
})"""
# What lies outside 1280 x 720, the smallest text, pictures without words.
LOOK = """() => {
    const slide = Reveal.getCurrentSlide();
    const seen = [...slide.querySelectorAll("*")].filter(node =>
        !node.closest("aside, details pre") && node.getBoundingClientRect().width);
    const boxes = seen.map(node => node.getBoundingClientRect());
    const lettered = seen.filter(node =>
        [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
    return {
        bottom: Math.max(...boxes.map(box => box.bottom)),
        right: Math.max(...boxes.map(box => box.right)),
        smallest: Math.min(99, ...lettered.map(node =>
            node.closest("math") ? 99 : parseFloat(getComputedStyle(node).fontSize))),
        mute: [...slide.querySelectorAll("img:not([alt]), img[alt='']")].length,
        text: slide.innerText,
    };
}"""


@pytest.fixture(scope="module")
def decks(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("decks")
    said = run(sys.executable, ROOT / ".slides", "--to", folder)
    return folder, said


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        yield lab_server.open_browser(started)


def _is_shown_vote(cell):
    """Whether a cell is a vote of the core: what stands under Further is for who reads alone."""
    return {"predict"} == {"predict", "further"} & set(cell["metadata"].get("tags", []))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_slide_is_clipped_small_or_mute_and_nothing_is_fetched(path, decks, browser, figure):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    wrong = []
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda asked: re.match("file|data", asked.url) or wrong.append(asked.url))
    page.goto((decks[0] / f"{path.stem}.html").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    slides, texts = page.evaluate(SLIDES), []
    for h, v in slides:
        page.evaluate(f"Reveal.slide({h}, {v})")
        look = page.evaluate(LOOK)
        texts.append(look["text"])
        if (
            look["bottom"] > 720.5
            or look["right"] > 1280.5
            or look["smallest"] < 20
            or look["mute"]
        ):
            wrong.append((h, v, look))
    assert wrong == []
    notebook = json.loads(path.read_text(encoding="utf-8"))
    votes = [cell for cell in notebook["cells"] if _is_shown_vote(cell)]
    shown = "\n".join(texts)
    for vote in votes:
        question, *choices = "".join(vote["outputs"][0]["data"]["text/plain"]).splitlines()
        asked = [n for n, text in enumerate(texts) if question in text]
        assert len(asked) == 2 and asked[0] < asked[1], f"asked, then answered: {question}"
        listed = [line[4:] for line in choices if line.startswith("( ) ")]
        for letter, choice in zip("ABCDEFGH", listed, strict=False):
            for n in asked:  # with the same letter on both slides
                assert re.search(rf"^{letter}\s+{re.escape(choice)}", texts[n], re.M), (
                    letter,
                    choice,
                )
    assert "Hint" not in shown and "A solution" not in shown
    figure(f"slides | {path.stem}: {len(slides)} slides, {len(votes)} votes, none clipped")
    page.close()


def test_every_vote_has_notes_for_the_speaker(decks):
    for path in NOTEBOOKS:
        html = (decks[0] / f"{path.stem}.html").read_text(encoding="utf-8")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        asked = sum(map(_is_shown_vote, cells))
        assert html.count('<aside class="notes">') == 2 * asked > 0
