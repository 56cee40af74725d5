"""Every page of the site in a real browser, from file:// and without a network."""

import re
import shutil
from html import unescape
from urllib.parse import unquote, urlsplit

import play
import pytest
from browser import lab_server
from support import NOTEBOOKS, code_cells, read

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHAPTERS = [f"{path.stem}.html" for path in NOTEBOOKS]
PAPER = ["worksheet.html", "key.html", "letters.html", "play/qr.html"]
PAGES = ["index.html", "teach.html", "search.html", "play/index.html", *PAPER, *CHAPTERS]
THEMES = ["light", "dark"]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}

# rule of axe: (selector of what is let off, why)
EXCEPTIONS: dict[str, tuple[str, str]] = {}


@pytest.fixture(scope="module")
def chromium():
    """Debian's Chromium. Closed with this file's tests: others run an event loop of their own."""
    if not lab_server.CHROMIUM:
        pytest.skip("no Chromium here: on Debian or Ubuntu, apt install chromium")
    with playwright.sync_playwright() as started:
        browser = lab_server.open_browser(started)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, site):
    """Opens a page of the site, which may log nothing and ask for nothing outside the site."""
    contexts, trouble = [], []

    def asked(request):
        if not request.url.startswith((site.as_uri(), "data:")):
            trouble.append(request.url)

    def logged(message):
        if message.type in ("error", "warning"):
            trouble.append(message.text)

    def open_page(name, theme="light", viewport=DESKTOP, **options):
        context = chromium.new_context(color_scheme=theme, viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", asked)
        page.on("requestfailed", lambda request: trouble.append(request.url))
        page.on("console", logged)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.goto((site / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(x => { x.open = true; })")


# --- Every page -----------------------------------------------------------------------------------


def test_every_page_is_looked_at(site):
    assert sorted(str(path.relative_to(site)) for path in site.rglob("*.html")) == sorted(PAGES)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(visit, name, theme):
    page = visit(name, theme)
    unfold(page)
    found = axe.Axe().run(page, options={"preload": False}).response["violations"]
    violations = [
        f"{rule['id']}: {rule['help']}\n  {node['target']} {node['html'][:200]}"
        f"\n  {node.get('failureSummary')}"
        for rule in found
        for node in rule["nodes"]
        if not _let_off(page, rule["id"], node["target"][0])
    ]
    assert violations == [], "\n".join(violations)


def _let_off(page, rule, target):
    selector, _ = EXCEPTIONS.get(rule, ("", ""))
    return selector and page.locator(target).first.evaluate("(x, s) => x.matches(s)", selector)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", PAGES)
def test_a_phone_does_not_scroll_sideways(visit, name, theme):
    page = visit(name, theme, PHONE, is_mobile=True, has_touch=True)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    wide = page.evaluate(
        """width => [...document.querySelectorAll("article *, main *")]
            .filter(x => x.getBoundingClientRect().right > width + 1)
            .filter(x => !x.closest("pre, table, math, .math, svg, .unseen"))
            .map(x => x.outerHTML.slice(0, 80))""",
        PHONE["width"],
    )
    assert wide == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_picture_has_the_words_that_its_notebook_stores(visit, path):
    page = visit(f"{path.stem}.html")
    outputs = [output for cell in code_cells(read(path)) for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    stored = {" ".join(output.metadata["image/png"]["alt"].split()) for output in pictures}
    for picture in page.locator("img").all():
        assert " ".join(picture.get_attribute("alt").split()) in stored
        assert picture.evaluate("async x => { await x.decode(); return x.naturalWidth; }") > 1


def test_no_other_page_has_a_picture(visit):
    for name in set(PAGES) - set(CHAPTERS):
        assert visit(name).locator("img").count() == 0, name


def test_every_link_leads_somewhere(site):
    texts = {name: (site / name).read_text(encoding="utf-8") for name in PAGES}
    for name, text in texts.items():
        shown = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
        for link in re.findall(r'(?:href|src)="([^"]+)"', shown):
            parts = urlsplit(unescape(link))
            if parts.scheme:
                continue
            target = ((site / name).parent / unquote(parts.path)) if parts.path else site / name
            assert target.is_file(), f"{name}: {link}"
            if parts.fragment:
                there = texts[str(target.resolve().relative_to(site.resolve()))]
                assert f'id="{parts.fragment}"' in there, f"{name}: {link}"


# --- Chapters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_chapter_has_all_of_its_notebook_and_gives_no_answer_away(visit, path):
    page, cells = visit(f"{path.stem}.html"), code_cells(read(path))
    tagged = {
        tag: sum(tag in cell.metadata.get("tags", []) for cell in cells)
        for tag in ("predict", "reveal", "solution", "exercise")
    }
    assert page.locator(".vote").count() == tagged["predict"]
    assert page.locator("details.reveal").count() == tagged["reveal"]
    solutions = page.locator("details.hide > summary", has_text="Solution")
    assert solutions.count() == tagged["solution"]
    pictures = sum("image/png" in x.get("data", {}) for cell in cells for x in cell.outputs)
    live = page.locator(".attnlab-step").count()
    assert page.locator("article img").count() == pictures - live
    assert page.locator("details[open]").count() == 0
    assert "Not done yet" not in page.locator("article").text_content()
    for cell in cells:
        if "proof" in cell.metadata.get("tags", []):
            line = max(cell.source.splitlines(), key=len)
            assert line not in page.locator("article").text_content()


def test_a_vote_is_marked_among_the_reasons(visit):
    page = visit(CHAPTERS[0])
    vote = page.locator(".vote").first
    vote.get_by_role("radio").nth(1).check()
    page.locator("details.reveal summary").first.click()
    rows = page.locator("details.reveal").first.locator("li")
    assert [*map(lambda x: x.get_attribute("class") or "", rows.all())].count("right yours") <= 1
    assert "yours" in rows.nth(1).get_attribute("class")
    vote.get_by_role("radio").nth(0).check()
    assert "yours" not in (rows.nth(1).get_attribute("class") or "")


def test_formulas_need_no_script(visit, site):
    page = visit(next(name for name in CHAPTERS if name.startswith("04")))
    assert page.locator("math[display=block] mfrac").count() >= 1
    assert not [path for path in site.rglob("*") if "mathjax" in path.name.lower()]
    assert "$$" not in page.locator("article").text_content()


def test_the_search_works_from_a_file(visit):
    page = visit("index.html")
    page.get_by_role("textbox", name="Search").fill("softmax")
    page.get_by_role("textbox", name="Search").press("Enter")
    results = page.locator("#search-results li")
    playwright.expect(results.first).to_be_visible()
    playwright.expect(page.get_by_text("4 · Softmax and values").first).to_be_visible()


def test_the_toggle_of_the_theme_reaches_the_step(visit):
    page = visit("index.html")
    paper = "getComputedStyle(document.querySelector('.attnlab-step')).backgroundColor"
    before = page.evaluate(paper)
    toggle = page.locator("button.theme-toggle:visible").first
    for _ in range(3):
        toggle.click()
        if page.evaluate(paper) != before:
            return
    pytest.fail("the step kept its colours in all three themes")


# --- The live step --------------------------------------------------------------------------------


def entry(page, name, i, j):
    return page.get_by_label(f"{name} row {i} column {j}", exact=True)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_visitor_sees_a_number_to_move_and_moves_it(visit, viewport):
    page = visit("index.html", viewport=viewport)
    box = entry(page, "W_Q", 0, 1).bounding_box()
    assert box["y"] + box["height"] < viewport["height"]
    slider = page.get_by_label("W_Q row 0 column 1, slider")
    before = page.locator(".sentence").text_content()
    slider.focus()
    slider.press("ArrowRight")
    assert page.locator(".sentence").text_content() != before
    slider.press("End")
    playwright.expect(page.locator(".reached")).to_be_visible()


def reach(page, answer):
    """Move the knobs of the page's step as somebody would."""
    for name, value in answer.items():
        if name == "temperature":
            page.get_by_label("temperature").fill(str(value))
        elif name == "causal":
            page.get_by_label("causal mask").set_checked(value)
        else:
            for i, row in enumerate(value):
                for j, x in enumerate(row):
                    entry(page, name, i, j).fill(str(x))
                    entry(page, name, i, j).press("Enter")


@pytest.mark.parametrize("theme", THEMES)
def test_every_goal_of_the_page_for_a_class_can_be_reached(visit, theme):
    page = visit("play/index.html", theme, PHONE, is_mobile=True, has_touch=True)
    for n, goal in enumerate(play.GOALS):
        page.locator("ol button").nth(n).click()
        playwright.expect(page.locator(".attnlab-step .reached")).to_be_hidden()
        reach(page, goal.answer)
        playwright.expect(page.locator(".attnlab-step .reached")).to_be_visible()
        playwright.expect(page.locator("#count")).to_have_text(f"{n + 1} of {len(play.GOALS)}")
        assert page.locator("ol button").nth(n).get_attribute("aria-label").endswith("reached")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_everything_is_large_enough_for_a_finger(visit):
    page = visit("play/index.html", viewport=PHONE, is_mobile=True, has_touch=True)
    for n in range(len(play.GOALS)):
        page.locator("ol button").nth(n).click()
        small = page.evaluate(
            """() => [...document.querySelectorAll("a, button, select, input")]
                .map(x => [x.outerHTML.slice(0, 80), x.getBoundingClientRect()])
                .filter(([_, box]) => box.width < 24 || box.height < 24).map(([html]) => html)"""
        )
        assert small == []


def test_a_phone_loads_less_than_100_kilobytes(site, figure):
    size = (site / "play/index.html").stat().st_size
    assert size < 100_000
    text = (site / "play/index.html").read_text(encoding="utf-8")
    assert not re.search(r'<(?:script|img|link)[^>]*(?:src|href)="(?!data:)', text)
    figure(f"the page for a class: {size:,} bytes in one file")


# --- Paper ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium here")
@pytest.mark.parametrize("name", ["worksheet", "key", "letters"])
def test_what_is_printed_fits_on_one_sheet(site, name):
    pdf = (site / f"{name}.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_printed_chapters_lose_the_side_bars(visit):
    page = visit(CHAPTERS[0])
    assert page.locator(".sidebar-drawer").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".sidebar-drawer").is_visible()


def test_what_the_site_weighs(built, figure):
    site, said = built
    pages = sum(path.stat().st_size for path in site.glob("0*.html"))
    pictures = sum(path.stat().st_size for path in site.glob("_images/*"))
    figure(said.strip().splitlines()[-1])
    figure(f"chapters {pages / 1e6:.1f} MB, pictures {pictures / 1e6:.1f} MB")
