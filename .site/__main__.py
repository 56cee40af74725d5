"""Build the course's site into build/site, as `make site` does.

    python .site [--url ADDRESS] [--to FOLDER]

Nothing is executed and nothing is fetched. What needs a browser, the PDFs, is made where Chromium
is there.
"""

import argparse
import json
import shutil
import sys
import time
import tomllib
from pathlib import Path

import chapters
import play
import printed
import teaching
from sphinx.cmd.build import main as sphinx

from attnlab.step import AttentionStep, html, script

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def project_url() -> str:
    """The site's address, if the project says where it is published."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Site", "")


def assemble(course: Path, pages: Path, pdfs: list[str]) -> None:
    """Write what Sphinx is to build: the six chapters, the front page and the teacher's page."""
    notebooks = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(course.glob("0*.ipynb"))
    }
    for stem, notebook in notebooks.items():
        made = json.dumps(chapters.chapter(notebook), ensure_ascii=False)
        (pages / f"{stem}.ipynb").write_text(made, encoding="utf-8")
    parts = {
        "step": chapters.LIVE + html(AttentionStep(**play.GOALS[-1].traits)),
        "chapters": teaching.contents(notebooks),
        "toctree": "\n".join(notebooks),
        "printed": teaching.paper_table(pdfs),
        "lessons": teaching.teach(course, notebooks),
    }
    for path in sorted((HERE / "pages").glob("*.md")):
        page = path.read_text(encoding="utf-8")
        for name, part in parts.items():
            page = page.replace(f"{{{{ {name} }}}}", part)
        (pages / path.name).write_text(page, encoding="utf-8")


def named(page: str) -> str:
    """A page of furo's with names for what a screen reader would find nameless."""
    for old, new in {
        '<aside class="sidebar-drawer': '<aside aria-label="All pages" class="sidebar-drawer',
        '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
        '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
        '<th class="head"><p></p></th>': "<td></td>",
    }.items():
        page = page.replace(old, new)
    return page


def main() -> None:
    """Build everything and say what it weighs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="", help="where the site will be published")
    parser.add_argument("--to", type=Path, default=ROOT / "build/site", help="the folder")
    parser.add_argument("--course", type=Path, default=ROOT / "course", help="the notebooks")
    chosen = parser.parse_args()
    started, url = time.perf_counter(), (chosen.url or project_url()).rstrip("/")
    pages, site = chosen.to.parent / f"{chosen.to.name}-pages", chosen.to
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    play.write(site / "play", url)
    pdfs = printed.write(site, url)
    assemble(chosen.course, pages, pdfs)
    options = ["-b", "html", "-E", "-W", "--keep-going", "-q", "-c", HERE, pages, site]
    if failed := sphinx([*map(str, options), "-d", str(pages / "doctrees")]):
        sys.exit(failed)
    for page in site.glob("*.html"):
        page.write_text(named(page.read_text(encoding="utf-8")), encoding="utf-8")
    (site / "_static/step.js").write_text(script(), encoding="utf-8")
    print(report(site, time.perf_counter() - started))


def report(site: Path, seconds: float) -> str:
    """One line: time, files, bytes."""
    sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    return (
        f"{site}: {len([*site.rglob('*.html')])} pages, {len(sizes)} files, "
        f"{sum(sizes) / 1e6:.1f} MB, in {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
