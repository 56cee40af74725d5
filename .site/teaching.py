"""What the front page and the teacher's page say about the notebooks, read from them."""
from pathlib import Path
import chapters

def contents(notebooks):
    rows = [f"| [{chapters.title(nb)}]({stem}.ipynb) | {chapters.question(nb)} |" for stem, nb in notebooks.items()]
    return "\n".join(["| chapter | its question |", "|---|---|", *rows])
def minutes(course): return ""
def lessons(notebooks): return ""
def misconceptions(notebooks): return ""
def printed(pdfs): return ""
