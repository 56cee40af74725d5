"""What is printed for a class: a worksheet with its key, letters for votes, an address as QR code.

Each is a page of its own, without scripts; Chromium, where it is there, makes PDFs of the first
three. Every number is computed here by ``attnlab``.
"""

import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import segno
import torch
from torch import Tensor

from attnlab import attention, causal_mask
from attnlab.data import embed

HERE = Path(__file__).resolve().parent
PHRASE = "money bank"
PARAMETERS = {
    "W_Q": torch.tensor([[1.0, 1.0], [0.0, 1.0]]),
    "W_K": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
    "W_V": torch.tensor([[1.0, 0.0], [0.0, 0.5]]),
}
OTHER_W_V = torch.tensor([[2.0, 0.0], [0.0, 0.5]])  # for the last question
SQUARE = ("scores", "scaled", "masked", "weights")
TITLES = {
    "scores": "scores = Q Kᵀ",
    "scaled": "scaled = scores / √2",
    "masked": "masked",
    "weights": "attention weights",
    "output": "output = weights · V",
} | {name: f"{name} = X W_{name}" for name in "QKV"}


# --- The worksheet's numbers ----------------------------------------------------------------------


def worksheet(**changed: Tensor) -> dict[str, Tensor]:
    """Every grid of the worksheet, by its name; ``changed`` parameters instead of its own."""
    parameters = PARAMETERS | changed
    _, x = embed(PHRASE)  # (S, D)
    q, k, v = (x @ parameters[name] for name in PARAMETERS)  # (S, d_k) or (S, d_v)
    raw, scaled, masked, weights, output = attention(q, k, v, causal_mask(len(x)))
    steps = {"scores": raw, "scaled": scaled, "masked": masked, "weights": weights}
    return {"X": x, "Q": q, "K": k, "V": v, **steps, "output": output}


def number(x: float) -> str:
    """A number as it is written with a pencil: two decimals at most."""
    return "−∞" if x == -math.inf else f"{round(x, 2):g}".replace("-", "−")


def answers() -> list[str]:
    """The answers to the worksheet's three questions, from its numbers."""
    grids, other = worksheet(), worksheet(W_V=OTHER_W_V)
    words = PHRASE.split()
    row = grids["weights"][1]
    most = words[int(row.argmax())]
    identity = worksheet(W_Q=torch.eye(2))["weights"][1]
    moved = [name for name in grids if not torch.equal(grids[name], other[name])]
    return [
        f"{most}: {number(float(row.max()))} against {number(float(row.min()))}. "
        f"With 0 in place of W_Q[0, 1] it would be {number(float(identity[0]))} for {words[0]}.",
        f"{' and '.join(moved)}. W_Q and W_K decide where a word looks, W_V what it carries away.",
        f"Its score is 0, and e<sup>0</sup> = {number(math.exp(0))}: it would get a share.",
    ]


# --- Pages ----------------------------------------------------------------------------------------


def grid(name: str, values: Tensor, shown: bool = True) -> str:
    """A table of numbers, or of empty boxes."""
    words = PHRASE.split()
    rows = list(words) if len(name) == 1 or name not in PARAMETERS else ["", ""]
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in words)
    lines = [f"<tr><td></td>{head}</tr>"] if name in SQUARE else []
    for word, row in zip(rows, values.tolist(), strict=True):
        label = f'<th scope="row">{word}</th>' if word else ""
        boxes = "".join(f'<td class="box">{number(x) if shown else ""}</td>' for x in row)
        lines.append(f"<tr>{label}{boxes}</tr>")
    return f"<table><caption>{escape(TITLES.get(name, name))}</caption>{''.join(lines)}</table>"


def worksheet_page(key: bool) -> str:
    """The worksheet, or the same filled in."""
    grids = worksheet()
    x, w, q = grids["X"], PARAMETERS["W_Q"], grids["Q"]
    words = PHRASE.split()
    products = " + ".join(
        f"{number(float(a))} × {number(float(b))}" for a, b in zip(x[1], w[:, 1], strict=True)
    )
    worked = f"{words[1]}, second number of Q: {products} = {number(float(q[1, 1]))}"
    exps = sorted({s for s in grids["masked"][1].tolist()}, reverse=True)
    table = ", ".join(f"e<sup>{number(s)}</sup> = {number(math.exp(s))}" for s in exps)

    def boxes(*names: str) -> str:
        return f'<div class="grids">{"".join(grid(n, grids[n], key) for n in names)}</div>'

    given = "".join(grid(n, v) for n, v in ({"X": x} | PARAMETERS).items())
    steps = [
        ("Project. A row of X times a matrix: multiply with each column and add. "
         f"For example {worked}.", boxes("Q", "K", "V")),
        ("Score: row of Q · row of K. Rows are queries (who asks), columns are keys. "
         f"Then divide by √d_k = √2 ≈ {math.sqrt(2):.3f}.", boxes("scores", "scaled")),
        ("Mask: a word does not look at words after it: write −∞ there. Softmax: e to each score, "
         f"divided by the sum of its row. {table}, e<sup>−∞</sup> = 0.",
         boxes("masked", "weights")),
        ("Mix: each value times its attention weight, added.", boxes("output")),
    ]  # fmt: skip
    asked = [
        f"Which word does {words[1]} look at more?",
        f"W_V[0, 0] becomes {number(float(OTHER_W_V[0, 0]))}. Which of your grids change?",
        f"Somebody writes 0 in place of −∞. Why is {words[1]} not hidden from {words[0]} then?",
    ]
    lines = '<p class="line"></p>' * 2
    said = answers() if key else [""] * len(asked)
    questions = "".join(
        f"<li>{question}{f'<p><b>{answer}</b></p>' if key else lines}</li>"
        for question, answer in zip(asked, said, strict=True)
    )
    head = "key" if key else "ten minutes with a pencil"
    name = "" if key else '<p class="name">Name <span></span></p>'
    return page(
        f"One step of attention, by hand: {head}",
        f"{name}<p>The phrase is “{PHRASE}”. Round to two decimals.</p>"
        f'<div class="grids given">{given}</div>'
        f'<ol class="steps">{"".join(f"<li><p>{text}</p>{part}</li>" for text, part in steps)}</ol>'
        f"<h2>Think</h2><ol>{questions}</ol>",
    )


def letters_page() -> str:
    """One sheet for each student: folded twice, it shows one letter."""
    cards = "".join(f'<div class="card {x}">{x}</div>' for x in "ABCD")
    return page(
        "Letters for votes",
        '<p class="screen">One for each student, to be folded twice: each side shows a letter.</p>'
        f'<div class="cards">{cards}</div>',
        "letters",
    )


def qr_page(url: str) -> str:
    """The address of the class's page, to be projected or printed."""
    if url:
        address = f"{url}/play/"
        code = segno.make(address, error="m").svg_inline(scale=12, border=4, light="white")
        code = code.replace("<svg ", f'<svg role="img" aria-label="QR code of {escape(address)}" ')
        body = f'<p class="address">{escape(address)}</p>{code}'
    else:
        body = (
            "<p>There is no QR code yet, as this site does not know its address. "
            "Build it with <code>make site SITE_URL=https://its.address</code>, "
            "or hand out the file <code>play/index.html</code>: it needs no network.</p>"
        )
    return page("Move the numbers: open this on your phone", body, "qr")


def page(title: str, body: str, kind: str = "sheet") -> str:
    """A page for paper, with its style in it."""
    style = (HERE / "print.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="data:,"><style>{style}</style></head>'
        f'<body class="{kind}"><main><h1>{title}</h1>{body}</main></body></html>\n'
    )


# --- Files ----------------------------------------------------------------------------------------


def write(site: Path, url: str) -> list[str]:
    """Write all of it; return the names of the PDFs."""
    pages = {
        "worksheet": worksheet_page(key=False),
        "key": worksheet_page(key=True),
        "letters": letters_page(),
    }
    for name, text in pages.items():
        (site / f"{name}.html").write_text(text, encoding="utf-8")
    (site / "play/qr.html").write_text(qr_page(url), encoding="utf-8")
    return [name for name in pages if print_pdf(site / f"{name}.html")]


def browsers() -> Iterator[str]:
    """Chromium, by the names under which systems install it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    yield from filter(None, map(shutil.which, names))


def print_pdf(path: Path) -> bool:
    """Print a page to PDF beside it; whether there is a Chromium that did."""
    for chromium in browsers():
        with tempfile.TemporaryDirectory() as profile:
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
            options += ["--disable-background-networking", f"--user-data-dir={profile}"]
            options += ["--no-pdf-header-footer", f"--print-to-pdf={path.with_suffix('.pdf')}"]
            run = subprocess.run(
                [chromium, *options, path.as_uri()], capture_output=True, timeout=120
            )
        return run.returncode == 0 and path.with_suffix(".pdf").exists()
    return False
