"""Decks of slides for a room, one a notebook, made from the proved edition.

    python .slides [--to FOLDER]    write build/slides/NN_name.html and what they need: make slides
    python .slides mark             give each cell of the sources a slide type, if it has none

Nothing is executed, and a deck fetches nothing. reveal.js is the copy that sphinx-revealjs brings.
"""

import argparse
import json
import re
import shutil
import time
from pathlib import Path

import jupytext
import lecture
import nbformat
import sphinx_revealjs
from nbconvert import SlidesExporter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
REVEAL = Path(sphinx_revealjs.__file__).parent / "_static/revealjs"


def build(course: Path, target: Path) -> None:
    """Write a deck of every notebook, and the files that they share."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for part in ("dist/reveal.js", "dist/reveal.css", "dist/reset.css", "dist/theme/white.css",
                 "plugin/notes/notes.js", "plugin/notes/speaker-view.html", "LICENSE"):  # fmt: skip
        (target / "reveal" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REVEAL / part, target / "reveal" / part)
    shutil.copy(HERE / "deck.css", target)
    exporter = SlidesExporter(
        extra_template_basedirs=[str(HERE)], template_name="deck", reveal_url_prefix="reveal",
        reveal_theme="white",
    )  # fmt: skip
    for path in sorted(course.glob("0*.ipynb")):
        slides = lecture.deck(json.loads(path.read_text(encoding="utf-8")))
        cells = [
            nbformat.v4.new_markdown_cell(html, metadata={"slideshow": {"slide_type": kind}})
            for kind, html in slides
        ]
        deck = nbformat.v4.new_notebook(cells=cells, metadata={"title": path.stem})
        html, _ = exporter.from_notebook_node(deck)
        (target / f"{path.stem}.html").write_text(html, encoding="utf-8")
        shown = sum(kind != "notes" for kind, _ in slides)
        print(f"{path.stem}: {shown} slides, {len(html) / 1000:.0f} kB")
    # The theme would fetch its letters.
    theme = target / "reveal/dist/theme/white.css"
    theme.write_text(
        re.sub(r"@import[^;]*;", "", theme.read_text(encoding="utf-8")), encoding="utf-8"
    )


def mark(course: Path) -> None:
    """Write the slide type of each cell that has none into the line that the cell begins with."""
    for path in sorted(course.glob("0*.py")):
        lines, section = path.read_text(encoding="utf-8").split("\n"), ""
        starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
        for start, cell in zip(starts, jupytext.read(path).cells, strict=True):
            if cell.cell_type == "markdown" and (heading := re.match(r"## (.*)", cell.source)):
                section = heading[1]
            if "slideshow" not in cell.metadata:
                kind = json.dumps({"slide_type": lecture.rule(cell, section)})
                # Before the tags, where JupyterLab would put it.
                head, tags, rest = lines[start].partition(" tags=")
                lines[start] = f"{head} slideshow={kind}{tags}{rest}"
        path.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", nargs="?", choices=["build", "mark"], default="build")
    parser.add_argument("--course", type=Path, default=ROOT / "course")
    parser.add_argument("--to", type=Path, default=ROOT / "build/slides")
    asked = parser.parse_args()
    start = time.monotonic()
    if asked.verb == "mark":
        mark(asked.course)
    else:
        build(asked.course, asked.to)
        size = sum(file.stat().st_size for file in asked.to.rglob("*") if file.is_file())
        print(f"{asked.to}: {size / 1e6:.1f} MB, {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
