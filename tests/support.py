"""What several test modules share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "course"
NOTEBOOKS = sorted(COURSE.glob("0*.ipynb"))
SOURCES = sorted(COURSE.glob("0*.py"))
