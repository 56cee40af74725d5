"""Make README's moving picture: notebook 4's explorer, one number of W_Q from 0 to 3 and back.

python .readme/moving_picture.py
"""

import io
import re
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "course/04_softmax_and_values.py"
CELLS = re.split(r"(?m)^# %% ", SOURCE.read_text(encoding="utf-8"))


def main() -> None:
    """Run the two cells that the explorer needs, move the knob, and write the frames."""
    names: dict = {"__name__": "__main__"}
    for title in ("Setup", "Explorer: teach bank to look for money"):
        (cell,) = (cell for cell in CELLS if cell.startswith(title))
        exec(cell.partition("\n")[2], names)
    teach = names["teach"]
    from matplotlib import font_manager

    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 18)
    frames = []
    there = [0.1 * step for step in range(31)]
    for value in [0.0] * 6 + there + [3.0] * 10 + there[::-2]:
        teach.knobs["W_Q"].value = torch.tensor([[1.0, value], [0.0, 1.0]])
        picture = Image.open(io.BytesIO(teach.screen.frame))
        frame = Image.new("RGB", (picture.width, picture.height + 34), "white")
        text = f"W_Q[0, 1] = {value:.1f}    {teach.sentence}"
        ImageDraw.Draw(frame).text((8, 6), text, fill="black", font=font)
        frame.paste(picture, (0, 34))
        frames.append(frame.quantize(48, dither=Image.Dither.NONE))
    target = HERE / "teach_bank.gif"
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=90, loop=0)
    print(f"{target.name}: {len(frames)} frames, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
