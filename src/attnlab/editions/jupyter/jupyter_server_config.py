"""Settings of the JupyterLab in a learner's copy that JSON cannot hold."""

from typing import Any


def forget_answers(model: dict[str, Any], **_: Any) -> None:
    """Save no output of a ``reveal`` cell.

    Opened without a kernel there is no widget to wait for a vote, and its text has the answer.
    """
    notebook = model.get("content") if model["type"] == "notebook" else None
    for cell in notebook["cells"] if notebook else []:
        if "reveal" in (cell.get("metadata", {}).get("tags") or []):
            cell.update(outputs=[], execution_count=None)


get_config().FileContentsManager.pre_save_hook = forget_answers  # type: ignore[name-defined] # noqa: F821
