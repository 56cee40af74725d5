"""A row times a matrix is a weighted sum of the matrix's rows: that sentence as a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from attnlab.lab import plots
from attnlab.lab.pictures import own_settings

TOP = 0.62  # the part of a cell that a bar can fill; its number stands above


class WeightedSum(plots.Drawing):
    """A row of numbers, a matrix, the matrix's rows scaled, and their sum, from left to right.

    Every cell holds a number and a bar of that height in the word's colour; in the sum the bars
    of all words stand on one another.

    Args:
        axes: the axes to draw on: 9.5 inches wide, 0.9 high and 0.6 more for each word.
        words: one for each number of the row, and so for each row of the matrix.
        row: ``(n,)``, such as a one-hot row, equal numbers, attention weights.
        matrix: ``(n, D)``, such as embeddings, or values.
        title: the title above.
        names: what the four parts are called.
        limits: the numbers at the lower and the upper end of every bar.
        colours: of the words, see ``plots.label_colours``.
    """

    @own_settings()
    def __init__(
        self, axes: Any, words: Sequence[Any], row: Any, matrix: Any, title: str = "",
        names: Sequence[str] = ("a row", "a matrix", "its rows, scaled", "their sum"),
        limits: tuple[float, float] = (0.0, 2.0), colours: plots.Colours = None,
    ):  # fmt: skip
        super().__init__(axes, title)
        n, d = self.shape = plots.array(matrix).shape
        self.names, self.limits, inks = names, limits, plots.label_colours(words, colours)
        self.words = [plots.printable(word, 8) for word in words]
        left, top = np.cumsum([0, n + 2.5, d + 2.8, d + 1.1]), 1.2 * (n - 1)  # of the four parts
        axes.axis("off")
        axes.set(xlim=(-0.2, left[3] + d + 0.2), ylim=(-0.1, top + 1.6))
        cells = [(i, top / 2, [ink]) for i, ink in enumerate(inks)]
        cells += [(x + j, top - 1.2 * i, [inks[i]]) for x in left[1:3] for i, j in np.ndindex(n, d)]
        self.cells = [
            self._cell(*c) for c in [*cells, *((left[3] + j, top / 2, inks) for j in range(d))]
        ]
        signs = [(n + 0.4, "@"), (left[2] - 2.2, "="), (left[3] - 0.55, "=")]
        texts = [(x, top / 2 + 0.35, sign, "black") for x, sign in signs]
        middles = left + np.array([n, d, d, d]) / 2
        texts += [(x, top + 1.2, name, plots.GREY) for x, name in zip(middles, names, strict=True)]
        for i, (word, ink) in enumerate(zip(self.words, inks, strict=True)):
            texts += [(i + 0.5, top / 2 - 0.35, word, ink)]
            texts += [(left[1] - 0.7, top - 1.2 * i + 0.4, word, ink)]
        for x, y, text, ink in texts:
            axes.text(x, y, text, color=ink, ha="center")
        place = {"x": left[2] - 0.8, "s": "", "ha": "center", "animated": True}
        self.factors = [axes.text(y=top - 1.2 * i + 0.4, **place) for i in range(n)]
        self.update(row, matrix)

    def _cell(self, x: float, y: float, inks: Sequence[str]) -> tuple[Any, list[Rectangle]]:
        """An empty cell: its number, and below that a bar for each colour."""
        self.axes.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="#999999"))
        bars = [Rectangle((x, y), 1, 0, color=c, alpha=0.6, lw=0, animated=True) for c in inks]
        number = self.axes.text(x + 0.5, y + TOP + 0.06, "", ha="center", animated=True)
        return number, [self.axes.add_patch(bar) for bar in bars]

    @own_settings()
    def update(self, row: Any, matrix: Any) -> None:
        """Show another row ``(n,)`` and another matrix ``(n, D)``."""
        row, matrix = plots.array(row, len(self.words)), plots.array(matrix, *self.shape)
        scaled, (low, high) = row[:, None] * matrix, self.limits
        for i, (factor, number) in enumerate(zip(self.factors, row, strict=True)):
            factor.set_text(f"{'+ ' * (i > 0)}{number:z.2f} ×")
        terms = [*row[:, None], *matrix.reshape(-1, 1), *scaled.reshape(-1, 1), *scaled.T]
        for (number, bars), parts in zip(self.cells, terms, strict=True):
            number.set_text(f"{parts.sum():z.2f}")
            for i, (bar, part) in enumerate(zip(bars, parts, strict=True)):
                start = parts[:i][parts[:i] * part > 0].sum()  # on the bars of the same sign
                y, end = TOP * (np.clip([start, start + part], low, high) - low) / (high - low)
                bar.set(y=number.get_position()[1] - TOP - 0.06 + y, height=end - y)

    def _parts(self) -> list[str]:
        said, (n, d) = [], self.shape
        for number, bars in self.cells:
            drawn = sum(bar.get_height() for bar in bars) * np.ptp(self.limits) / TOP
            near = abs(float(number.get_text()) - drawn) < 0.0051
            said += [number.get_text() + f" with a bar to {drawn:z.2f}" * (not near)]
        parts = np.split(np.array(said, object), np.cumsum([n, n * d, n * d]))
        shapes = zip(self.names, parts, ([n], [n, d], [n, d], [d]), strict=True)
        grids = [f"{name} {part.reshape(shape).tolist()}" for name, part, shape in shapes]
        return [", ".join(self.words), *(grid.replace("'", "") for grid in grids)]
