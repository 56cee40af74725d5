"""Settings of the JupyterLab in a learner's copy that JSON cannot hold."""

from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager


class LearnersFiles(AsyncLargeFileManager):
    """The files of a learner's copy."""

    # Not a pre_save_hook: settings are read twice, and setting the hook again prints a warning.
    def run_pre_save_hooks(self, model: dict[str, Any], path: str, **more: Any) -> None:
        """Save no output of a ``reveal`` cell.

        Opened without a kernel there is no widget to wait for a vote, and its text has the answer.
        """
        notebook = model.get("content") if model["type"] == "notebook" else None
        for cell in notebook["cells"] if notebook else []:
            if "reveal" in (cell.get("metadata", {}).get("tags") or []):
                cell.update(outputs=[], execution_count=None)
        super().run_pre_save_hooks(model, path, **more)


get_config().ServerApp.contents_manager_class = LearnersFiles  # type: ignore[name-defined] # noqa: F821
