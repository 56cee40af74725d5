"""How fast is the course? Ratios measured in one run, so that they mean the same on any machine.

python tests/bench                      all but the three long ones below (some minutes)
python tests/bench redraw import        only these
python tests/bench soak                 10,000 moves, and what is left of them (some minutes more)
python tests/bench growth               cells run again and again: memory and widgets (some minutes)
python tests/bench interrupts           a checkpointing run, stopped at 50 random moments of a kind
python tests/bench --repeats 5          fewer or more rounds than each part's own
"""

import argparse

import browser
import generation
import growth
import imports
import interrupts
import notebooks
import pages
import redraw
import soak
import step
import training

PARTS = {
    "redraw": redraw.run,
    "import": imports.run,
    "generation": generation.run,
    "training": training.run,
    "browser": browser.run,
    "step": step.run,
    "pages": pages.run,
    "notebooks": notebooks.run,
    "soak": soak.run,
    "growth": growth.run,
    "interrupts": interrupts.run,
}
LONG = {"soak", "growth", "interrupts"}

parser = argparse.ArgumentParser(prog="python tests/bench", description=__doc__.split("\n")[0])
parser.add_argument("parts", nargs="*", metavar="part", help=f"some of: {', '.join(PARTS)}")
parser.add_argument("--repeats", type=int, help="rounds of each part")
chosen = parser.parse_args()
for part in chosen.parts:
    if part not in PARTS:
        parser.error(f"there is no part called {part!r}: {', '.join(PARTS)}")
for part in chosen.parts or [part for part in PARTS if part not in LONG]:
    print(f"\n{part}")
    PARTS[part](**{"repeats": chosen.repeats} if chosen.repeats else {})
