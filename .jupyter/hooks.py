"""What happens to a notebook when it is saved, so that `git diff` shows what somebody changed.

JupyterLab (jupyter_server_config.py), `make notebooks` (jupyter_nbconvert_config.py) and the tests
use these same functions.
"""

from pathlib import Path

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def clean(notebook):
    """Drop from a notebook, in place, what differs from run to run and from machine to machine.

    A widget goes, because its id is new at every run; its still picture and its sentence stay, and
    so do all other outputs, except what was said to one person about a prediction. Takes the
    notebook as a dict or as nbformat's node.
    """
    # The version of Python, and the widgets' state, which is of no use without their ids.
    for key in ("language_info", "widgets"):
        notebook["metadata"].pop(key, None)

    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code_cells:
        cell["metadata"].pop("execution", None)  # when it ran
        cell["outputs"] = [
            output
            for output in cell["outputs"]
            if output.get("metadata", {}).get("attnlab") != "vote"
        ]
        for output in cell["outputs"]:
            output.get("data", {}).pop(WIDGET_VIEW, None)
            output.get("metadata", {}).pop(WIDGET_VIEW, None)

    # A second Run All counts on from n + 1. What ran from top to bottom is numbered from 1, so that
    # it is no change; any other order is kept, for the tests to refuse.
    counts = [cell["execution_count"] for cell in code_cells]
    if None not in counts and counts == sorted(set(counts)):
        for number, cell in enumerate(code_cells, start=1):
            cell["execution_count"] = number
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = number


def before_saving(model, **_):
    """Clean what JupyterLab is about to save."""
    if model["type"] == "notebook":
        clean(model["content"])


def after_saving(model, os_path, **_):
    """Write the .ipynb of a .py that was saved in the text editor.

    When it was saved as a notebook, jupytext has done so already, and nothing is left to write.
    """
    from jupytext.cli import jupytext

    source = Path(os_path)
    if source.suffix == ".py" and source.with_suffix(".ipynb").exists():
        jupytext(["--quiet", "--to", "ipynb", "--update", os_path])


def after_executing(notebook, resources):
    """Clean what nbconvert has executed."""
    clean(notebook)
    return notebook, resources
