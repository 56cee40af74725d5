"""How the course's JupyterLab reads and writes files: as pairs, and clean."""

import math
from copy import deepcopy
from pathlib import Path

import attnlab_notebooks as notebooks
import nbformat
from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyter_server.utils import ensure_async
from jupytext.async_contentsmanager import build_async_jupytext_contents_manager_class
from nbformat.v4.rwbase import rejoin_lines

JupytextContents = build_async_jupytext_contents_manager_class(AsyncLargeFileManager)


class CourseContents(JupytextContents):
    """Jupytext's pairs, with three differences.

    Only files that are two already are a pair. What a notebook is cleaned of on its way to the disk
    comes back when the page is reloaded while its kernel runs. No edit to one file of a pair is
    overwritten by the other.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Script of a pair: (process of the kernel, {cell id: (outputs as stored, as in the page)})
        self.outputs_in_page = {}

    def script(self, path):
        """The .py of a pair, given either of its files; None for any other file."""
        path = Path(self._get_os_path(path.strip("/")))
        return path.with_suffix(".py") if notebooks.is_pair(path) else None

    async def get_config(self, path, use_cache=False):
        """Jupytext's settings, with the formats of a pair for a pair and of a notebook else."""
        config = await super().get_config(path, use_cache)
        config.formats = "ipynb,py:percent" if self.script(path) else ""
        # `get` has settled which of the two files counts: their age is no reason to refuse them.
        config.outdated_text_notebook_margin = math.inf
        return config

    async def get(self, path, content=True, type=None, **more):
        """Read a file; see the class for what is special about a pair."""
        script = self.script(path)
        is_notebook = script and (type == "notebook" or (type is None and path.endswith(".ipynb")))
        if not (is_notebook and content):
            return await super().get(path, content=content, type=type, **more)
        self.settle(script)
        model = await super().get(path, content=content, type=type, **more)
        # As the kernel will report it; otherwise opening a notebook would change it.
        model["content"].metadata.setdefault("language_info", dict(IPythonKernel.language_info))
        process, shown = self.outputs_in_page.get(script, (None, {}))
        if process and process == await self.kernel_process(path):
            for cell in model["content"].cells:
                stored, in_page = shown.get(cell.get("id"), (None, None))
                if stored is not None and cell.get("outputs") == stored:
                    cell.outputs = in_page
        return model

    async def save(self, model, path=""):
        """Write a file; see the class for what is special about a pair."""
        script = self.script(path)
        if model["type"] == "notebook":
            # Not nbformat.reads: it would drop that the page's outputs are trusted.
            notebook = rejoin_lines(nbformat.from_dict(model["content"]))
            in_page = {cell.get("id"): deepcopy(cell.get("outputs")) for cell in notebook.cells}
            file = script or Path(self._get_os_path(path.strip("/")))
            notebooks.clean(notebook, notebooks.read(file.with_suffix(".ipynb")))
            if script:
                self.outputs_in_page[script] = (
                    await self.kernel_process(path),
                    {
                        cell.get("id"): (deepcopy(cell.get("outputs")), in_page[cell.get("id")])
                        for cell in notebook.cells
                    },
                )
            return await super().save(model | {"content": notebook}, path)
        if not script or model["type"] != "file":
            return await super().save(model, path)
        # A .py that is saved in the text editor.
        if notebooks.holds_edits(script):
            copy = notebooks.keep_copy(script.with_suffix(".ipynb"))
            self.log.warning("%s.ipynb differed from its .py. A copy: %s", script.stem, copy)
        saved = await super().save(model, path)
        notebooks.write_notebook(script)
        return saved

    async def rename_file(self, old_path, new_path):
        """Rename this file and no other: torch.ipynb must not get a torch.py beside it."""
        self.drop_paired_notebook(old_path.strip("/"))
        await self.super.rename_file(old_path, new_path)

    def settle(self, script):
        """Let the newer file of a pair count where the .ipynb has edits; keep the other."""
        notebook = script.with_suffix(".ipynb")
        if not notebooks.read(notebook) or not notebooks.holds_edits(script):
            return
        newer, older = sorted((script, notebook), key=lambda path: -path.stat().st_mtime)
        copy = notebooks.keep_copy(older)
        if newer == notebook:
            notebooks.write_script(script)
        self.log.warning("%s differs from %s and is newer. A copy: %s", newer, older.name, copy)

    async def kernel_process(self, path):
        """Number of the process that runs the kernel of a notebook; None if none does."""
        for session in await ensure_async(self.parent.session_manager.list_sessions()):
            if Path(session["path"]).with_suffix("") == Path(path.strip("/")).with_suffix(""):
                kernel = self.parent.kernel_manager.get_kernel(session["kernel"]["id"])
                return kernel.provisioner.pid
        return None
