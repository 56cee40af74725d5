"""From a knob's new value to new PNG bytes, in the kernel: retained against drawn afresh."""

import itertools

import matplotlib
import torch
from IPython.core.pylabtools import print_figure
from report import alternate, line, show

from attnlab.lab import Explorer, plots, slider

WORDS = "the cat sat on the mat".split()


def data(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A heat map's weights (6, 6) and a curve's losses (200,), other ones for every n."""
    generator = torch.Generator().manual_seed(n)
    weights = torch.softmax(2 * torch.randn(6, 6, generator=generator), dim=-1)
    return weights, torch.linspace(1, 0, 200) ** (1 + n % 5) + 0.02 * torch.rand(200)


def drawings(n: int) -> tuple[plots.Picture, plots.Heatmap, plots.Curves]:
    """Both panels, by the course's own means."""
    picture, (left, right) = plots.panels(2)
    heat = plots.heatmap(left, WORDS, WORDS)
    curve = plots.curves(right, ["loss"], "Training", xlim=(0, 200), ylim=(0, 1.1))
    return picture, heat, curve


def by_pyplot(n: int) -> bytes:
    """The same content in a fresh figure, saved as the inline backend saves it."""
    import matplotlib.pyplot as plt

    weights, losses = data(n)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
    left.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, row in enumerate(weights.tolist()):
        for j, weight in enumerate(row):
            left.text(j, i, f"{weight:.2f}", ha="center", va="center",
                      color="white" if weight > 0.55 else "black")  # fmt: skip
    left.set_xticks(range(6), WORDS)
    left.set_yticks(range(6), WORDS)
    left.set(title="Attention weights", xlabel="key", ylabel="query")
    left.spines[:].set_visible(False)
    right.plot(losses.numpy(), lw=2)
    right.set(title="Training", xlabel="step", ylabel="loss", xlim=(0, 200), ylim=(0, 1.1))
    right.grid(color="#eeeeee")
    right.spines[["top", "right"]].set_visible(False)
    png = print_figure(figure, "png", bbox_inches="tight")
    plt.close(figure)
    return png


def by_fresh_picture(n: int) -> bytes:
    """The same content in a fresh picture of the course."""
    picture, heat, curve = drawings(n)
    weights, losses = data(n)
    heat.update(weights)
    curve.update(loss=losses)
    return picture.frame()


def run(repeats: int = 40) -> None:
    """Three ways to the same picture, in turn."""
    matplotlib.use("agg")
    torch.set_num_threads(1)
    picture, heat, curve = drawings(0)

    def redraw(n):
        weights, losses = data(n)
        heat.update(weights)
        curve.update(loss=losses)
        return f"The largest weight is {weights.max():.2f}."

    explorer = Explorer(picture, redraw, goal="Move it.", n=slider(0, 10_000, 0))
    image = explorer.screen
    counters = [itertools.count(1) for _ in range(3)]

    def by_explorer():
        explorer.knobs["n"].value = next(counters[0])

    seconds = alternate(
        repeats,
        explorer=by_explorer,
        pyplot=lambda: by_pyplot(next(counters[1])),
        picture=lambda: by_fresh_picture(next(counters[2])),
    )
    assert not explorer.error, explorer.error
    line("fresh pyplot figure / redraw", seconds["pyplot"], seconds["explorer"],
         "at least 5", lambda ratio: ratio >= 5)  # fmt: skip
    line("fresh picture / redraw", seconds["picture"], seconds["explorer"],
         "at least 5", lambda ratio: ratio >= 5)  # fmt: skip
    slowest = sorted(seconds["explorer"])[-1 - repeats // 20]
    print(f"  19 of 20 redraws are done within {show(slowest)}")
    sizes = [len(image.frame), len(by_pyplot(1)), len(by_fresh_picture(1))]
    print(
        "  bytes of a frame: {:,} redrawn, {:,} by pyplot, {:,} by a fresh picture".format(*sizes)
    )
