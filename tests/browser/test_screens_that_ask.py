"""On the screen that asks a question, nothing answers it: the learner's edition at 1280 x 720."""

import ast

from support import NOTEBOOKS, call, gives_away

from attnlab.editions import notebooks

from .lab_server import ask, open_file

# For each question at the top of the screen: its source, and the text below it on the screen,
# up to the next heading.
SCREENS = """
const found = [], cells = panel.content.widgets;
const box = panel.content.node.getBoundingClientRect();
const place = cell => cell.node.isConnected ? cell.node.getBoundingClientRect() : {top: Infinity};
for (const [at, cell] of cells.entries()) {
    if (!(cell.model.getMetadata("tags") ?? []).includes("predict")) continue;
    const ready = () => Math.abs(place(cell).top - box.top) < 200
        && cells[at + 1].node.isConnected && cells[at + 1].node.innerText.trim();
    for (let tries = 0; !ready() && tries < 50; tries++) {
        panel.content.scrollToItem(at, "start");
        await new Promise(done => setTimeout(done, 100));
    }
    const later = cells.slice(at + 1);
    const heading = later.findIndex(one => one.node.querySelector("h1, h2, h3, h4"));
    const seen = later.slice(0, heading).filter(one => place(one).top < box.bottom);
    const text = seen.map(one => one.node.innerText).join("\\n");
    found.push([cell.model.sharedModel.getSource(), place(cell).top - box.top, text]);
}
return found;
"""


def test_no_screen_answers_the_question_it_asks(page, address, copy, figure):
    page.set_viewport_size({"width": 1280, "height": 720})
    asked, spoiled = 0, []
    for path in NOTEBOOKS:
        edition = notebooks.learners(notebooks.parse(path.read_bytes()))
        (copy / path.name).write_bytes(notebooks.serialize(edition))
        open_file(page, address, path.name)
        ask(page, "await jupyterapp.commands.execute('application:toggle-left-area');")
        for source, top, seen in ask(page, SCREENS):
            _, made = call(source, "predict")
            [key] = [ast.literal_eval(k.value) for k in made.keywords if k.arg == "key"]
            asked += 1
            assert abs(top) <= 200 and seen, (top, source)
            if gives_away(key, seen):
                spoiled.append((path.stem, key, seen))
    assert not spoiled, spoiled
    assert asked >= 30
    figure(f"{asked} questions in the learner's edition: no screen of 1280 x 720 answers its own")
