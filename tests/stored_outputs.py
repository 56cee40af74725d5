"""Comparing what a cell stores with what it gives now: the part of the nbval run that is ours.

nbval passes over pictures, metadata, the order of outputs and whether one is a result or a display.
conftest.py puts `differences` in the place of its comparison.
"""

import difflib
import json
import platform
import re

from support import ROOT, load

notebooks = load(ROOT / ".jupyter/attnlab_notebooks.py")

# The machines on which the stored pictures were drawn. Others draw text a little differently, which
# is printed and fails nothing.
PICTURES_FAIL = platform.system() == "Linux" and platform.machine() == "x86_64"


def differences(stored, computed, pictures_fail=PICTURES_FAIL):
    """Compare the outputs of one cell.

    Returns:
        What is wrong, one sentence each; and which pictures differ without being wrong.
    """
    stored, computed = ([normal(output) for output in joined(each)] for each in (stored, computed))
    kinds = [[output["kind"] for output in outputs] for outputs in (stored, computed)]
    if kinds[0] != kinds[1]:
        return [f"stored are {kinds[0]}, computed were {kinds[1]}"], []
    wrong, tolerated = [], []
    for number, (old, new) in enumerate(zip(stored, computed, strict=True), start=1):
        where = f"output {number}"
        if old["metadata"] != new["metadata"]:
            wrong.append(f"{where}, metadata: {changed_lines(old['metadata'], new['metadata'])}")
        for mime in old["data"]:
            text, other = old["data"][mime], new["data"][mime]
            if text == other:
                continue
            pngs = [[text], [other]]
            if mime != "image/png":
                pngs = [notebooks.EMBEDDED.findall(each) for each in (text, other)]
                text, other = (notebooks.EMBEDDED.sub("", each) for each in (text, other))
                if text != other:
                    wrong.append(f"{where}, {mime}: {changed_lines(text, other)}")
            for pair in zip(*pngs, strict=False):
                found = notebooks.picture_difference(*pair)
                fine = isinstance(found, notebooks.Difference) and found.tolerated
                (tolerated if fine or not pictures_fail else wrong).append(
                    f"{where}, picture: {found}"
                )
    return wrong, tolerated


def joined(outputs):
    """Join what was printed to one stream in one go but arrived in several messages."""
    result = []
    for output in outputs:
        last = result[-1] if result else {}
        if output["output_type"] == "stream" and output["name"] == last.get("name"):
            result[-1] = last | {"text": last["text"] + output["text"]}
        else:
            result.append(dict(output))
    return result


def normal(output):
    """The parts of an output that must not change: its kind, its data and its metadata."""
    match output["output_type"]:
        case "stream":
            kind, data, metadata = output["name"], {"text": output["text"]}, {}
        case "error":
            kind, metadata = "error", {}
            data = {"text": f"{output['ename']}: {output['evalue']}"}
        case other:
            data, metadata = (
                {key: value for key, value in output[part].items() if key != notebooks.WIDGET_VIEW}
                for part in ("data", "metadata")
            )
            data = {mime: as_text(value) for mime, value in data.items()}
            kind = f"{other} of {', '.join(sorted(data))}"
    return {"kind": kind, "data": data, "metadata": as_text(metadata)}


def as_text(value):
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, indent=1)


def changed_lines(stored, computed):
    """The lines that differ: - stored, + computed."""
    lines = difflib.unified_diff(stored.splitlines(), computed.splitlines(), n=0, lineterm="")
    return "\n" + "\n".join(line for line in lines if not re.match(r"---|\+\+\+|@@", line))
