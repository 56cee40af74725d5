"""An explorer is seen whole, from its goal to its picture, in a learner's Lab at 1280 x 720."""

import pytest
from support import NOTEBOOKS

from attnlab.editions import notebooks

from .lab_server import ask, open_file, run_all

# Height of the output of each explorer, scrolled to, and of the place that a notebook has.
HEIGHTS = """
const found = [], cells = panel.content.widgets;
for (const [at, cell] of cells.entries()) {
    const tags = cell.model.getMetadata("tags") ?? [];
    if (!tags.includes("explorer") || tags.includes("further") !== argument) continue;
    const height = () => {
        const output = cell.node.isConnected && cell.node.querySelector(".jp-OutputArea");
        const drawn = output && output.querySelector(".attnlab-screen img, .attnlab-step svg");
        return drawn ? output.getBoundingClientRect().height : 0;
    };
    for (let still = 0, last = 0, tries = 0; still < 8 && tries < 150; tries++) {
        panel.content.scrollToItem(at, "start");
        await new Promise(done => setTimeout(done, 100));
        still = height() > 0 && height() === last ? still + 1 : 0;
        last = height();
    }
    found.push([cell.model.getMetadata("title"), height()]);
}
return [panel.content.node.getBoundingClientRect().height, found];
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_explorer_is_on_one_screen(page, address, copy, figure, path):
    page.set_viewport_size({"width": 1280, "height": 720})
    edition = notebooks.learners(notebooks.parse(path.read_bytes()))
    (copy / path.name).write_bytes(notebooks.serialize(edition))
    open_file(page, address, path.name)
    ask(page, "await jupyterapp.commands.execute('application:toggle-left-area');")
    run_all(page)
    measured = []
    for further in (False, True):
        room, found = ask(page, HEIGHTS, further)
        measured += found
    explorers = [c for c in edition["cells"] if "explorer" in c["metadata"].get("tags", [])]
    assert len(measured) == len(explorers) > 0
    highest = max(height for _, height in measured)
    figure(
        f"{path.stem}: {len(measured)} explorers, the highest {highest:.0f} of {room:.0f} pixels"
    )
    assert [(title, height) for title, height in measured if not 250 < height <= room] == []
