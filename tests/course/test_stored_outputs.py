"""The comparison in the nbval run: nothing that is stored can be changed without being noticed."""

import base64
import io
import re

import nbformat
import pytest
import stored_outputs
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from stored_outputs import differences
from support import NOTEBOOKS, ROOT, code_cells, load, read, run

tamper = load(ROOT / "tests/course/tamper.py")


def png(*pixels, size=(3, 2)):
    """A picture in base64: black, but for the pixels given as (x, y, colour)."""
    picture = Image.new("RGB", size)
    for *place, colour in pixels:
        picture.putpixel(place, colour)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def picture(data, alt="a black map"):
    return new_output(
        "display_data",
        {"image/png": data, "text/plain": "a map"},
        metadata={"image/png": {"alt": alt}},
    )


def text(words, kind="execute_result"):
    return new_output(kind, {"text/plain": words})


def printed(words):
    return new_output("stream", text=words)


def test_another_processors_picture_is_tolerated_up_to_32_of_255_in_any_channel():
    stored = [picture(png())]
    wrong, tolerated = differences(stored, [picture(png((1, 0, (0, 32, 0)), (2, 1, (1, 2, 3))))])
    assert wrong == []
    assert tolerated == [
        "output 1, picture: 2 pixels differ, the largest difference is 32 of 255, "
        "0 pixels are over the tolerance of 32"
    ]
    wrong, tolerated = differences(stored, [picture(png((1, 0, (0, 33, 0)), (2, 1, (1, 2, 3))))])
    assert wrong == [
        "output 1, picture: 2 pixels differ, the largest difference is 33 of 255, "
        "1 pixels are over the tolerance of 32"
    ]
    assert tolerated == []


def test_a_picture_of_another_size_is_wrong_and_so_is_what_is_no_picture():
    (sentence,), _ = differences([picture(png())], [picture(png(size=(3, 5)))])
    assert sentence == "output 1, picture: the stored one has 3 x 2 pixels, the new one 3 x 5"
    (sentence,), _ = differences([picture(png())], [picture("abcd")])
    assert sentence.startswith("output 1, picture: not a PNG")


def test_on_other_machines_a_wrong_picture_is_said_and_fails_nothing():
    other = png((1, 0, (0, 200, 0)))
    wrong, said = differences([picture(png())], [picture(other)], pictures_fail=False)
    assert wrong == []
    assert "1 pixels are over the tolerance" in said[0]
    # All else fails everywhere.
    assert differences([picture(png())], [picture(other, "another")], pictures_fail=False)[0]


def test_a_picture_inside_html_is_compared_as_one():
    def html(data, word):
        source = f'<img src="data:image/png;base64,{data}">{word}'
        return [new_output("display_data", {"text/html": source})]

    stored = html(png(), "a")
    assert differences(stored, html(png((1, 0, (9, 9, 9))), "a"))[0] == []
    assert differences(stored, html(png((1, 0, (99, 9, 9))), "a"))[0] != []
    assert differences(stored, html(png(), "b"))[0] != []
    assert differences(stored, html(png() + '"><img src="data:image/png;base64,' + png(), "a"))[0]


def test_what_was_printed_in_one_go_may_arrive_in_pieces_and_widgets_have_new_ids():
    widget = text("a slider", "display_data")
    widget.data[stored_outputs.notebooks.WIDGET_VIEW] = {"model_id": "1"}
    stored = [printed("1\n2\n"), text("a slider", "display_data"), printed("3\n")]
    assert differences(stored, [printed("1\n"), printed("2\n"), widget, printed("3\n")]) == ([], [])


def test_the_message_shows_the_lines_that_differ():
    (sentence,), _ = differences([printed("1\n2\n3\n")], [printed("1\n5\n3\n")])
    assert sentence == "output 1, text: \n-2\n+5"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_change_of_any_output_of_the_course_is_noticed(path, figure):
    """A sample; tamper.py makes every change. Here the stored notebook stands for the executed."""
    notebook = read(path)
    others = tamper.pictures([notebook])
    made, missed = tamper.count(notebook, notebook, others, sample=5)
    figure(f"{path.stem}: {sum(made.values())} changes of stored outputs, {len(missed)} unnoticed")
    assert missed == []
    assert made["text"] > 100 and made["picture"] >= 3 and made["alt text"] >= 3 and made["kind"]
    # Most of its cells have an output to compare.
    assert len(tamper.compared_cells(notebook)) > len(code_cells(notebook)) / 2


# --- In a real run of nbval ---------------------------------------------------------------------

DISPLAY = """\
import base64
from IPython.display import Image, display
print("before")
display(Image(base64.b64decode("{}"), alt="a black map", format="png"))
print("after")
"""
HTML = "from IPython.display import HTML\nHTML('<b>12</b>')"


def test_nbval_compares_in_our_way_and_only_what_was_run(tmp_path):
    sources = ["x = 0.25\nprint(x)", "3 * x", HTML, "8 * x", "8 * x", *[DISPLAY.format(png())] * 5]
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    notebook = tamper.execute(notebook)
    stream, result, html, kind, stripped, *displays = code_cells(notebook)
    stream.outputs[0].text = "0.26\n"
    result.outputs[0].data["text/plain"] = "0.76"
    html.outputs[0].data["text/html"] = "<b>13</b>"
    kind.outputs[0] = text("2.0", "display_data")
    # Nobody compares what was never run: hence the test that refuses such notebooks.
    stripped.outputs, stripped.execution_count = [], None
    true, near, far, alt, order = (cell.outputs for cell in displays)
    near[1].data["image/png"] = png((1, 0, (0, 32, 0)))
    far[1].data["image/png"] = png((1, 0, (0, 33, 0)))
    alt[1].metadata["image/png"]["alt"] = "a white map"
    order[1:] = order[:0:-1]
    path = tmp_path / "small.ipynb"
    nbformat.write(notebook, path)
    # -n 2: the cells stay together, and what the end of the run prints comes from another process.
    said = run(
        *tamper.NBVAL, "-n2", "--tb=short", ROOT / "tests/conftest.py", path, cwd=ROOT, ok=(1,)
    )
    red = [int(number) for number in re.findall(r"^FAILED .*::Cell (\d+)", said, re.M)]
    far_is_wrong = [7] if stored_outputs.PICTURES_FAIL else []
    assert red == [0, 1, 2, 3, *far_is_wrong, 8, 9]
    assert "the largest difference is 33 of 255, 1 pixels are over the tolerance of 32" in said
    assert "small, Cell 6, output 2, picture: 1 pixels differ, the largest" in said
