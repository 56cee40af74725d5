"""How the course's JupyterLab reads and writes the two files of a notebook."""

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
    """Jupytext's contents manager with three changes.

    An .ipynb and a .py are a pair only if both exist: no second file is created. Outputs that are
    removed on saving, such as widgets, are restored when the page is reloaded while the kernel
    runs. An edit to one file of a pair is never overwritten by the other file without a copy.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Script of a pair: (process of the kernel, {cell id: (outputs as stored, as in the page)})
        self.outputs_in_page = {}

    def script(self, path):
        """The .py of a pair, given the path of either file; None for all other files."""
        path = Path(self._get_os_path(path.strip("/")))
        return path.with_suffix(".py") if notebooks.is_pair(path) else None

    async def get_config(self, path, use_cache=False):
        """Jupytext's settings for a file; the two formats only if it is one of a pair."""
        config = await super().get_config(path, use_cache)
        config.formats = "ipynb,py:percent" if self.script(path) else ""
        # `get` resolves differences: a newer .ipynb is no reason to refuse to open the pair.
        config.outdated_text_notebook_margin = math.inf
        return config

    async def get(self, path, content=True, type=None, **more):
        """Read a file; for a pair, as the class says."""
        script = self.script(path)
        is_notebook = script and (type == "notebook" or (type is None and path.endswith(".ipynb")))
        if not (is_notebook and content):
            return await super().get(path, content=content, type=type, **more)
        self.resolve(script)
        model = await super().get(path, content=content, type=type, **more)
        # JupyterLab would add it when the kernel starts, and then ask to save the notebook.
        model["content"].metadata.setdefault("language_info", dict(IPythonKernel.language_info))
        process, shown = self.outputs_in_page.get(script, (None, {}))
        if process and process == await self.kernel_process(path):
            for cell in model["content"].cells:
                stored, in_page = shown.get(cell.get("id"), (None, None))
                if stored is not None and cell.get("outputs") == stored:
                    cell.outputs = in_page
        return model

    async def save(self, model, path=""):
        """Write a file; for a pair, as the class says."""
        script = self.script(path)
        if not script:
            return await super().save(model, path)
        if model["type"] == "notebook":
            # nbformat.reads would join the lines, too, but forget that the outputs are trusted.
            notebook = rejoin_lines(nbformat.from_dict(model["content"]))
            in_page = {cell.get("id"): deepcopy(cell.get("outputs")) for cell in notebook.cells}
            notebooks.clean(notebook, notebooks.read(script.with_suffix(".ipynb")))
            stored = {cell.get("id"): deepcopy(cell.get("outputs")) for cell in notebook.cells}
            self.outputs_in_page[script] = (
                await self.kernel_process(path),
                {cell_id: (stored[cell_id], in_page[cell_id]) for cell_id in stored},
            )
            return await super().save(model | {"content": notebook}, path)
        # A .py that is saved in the text editor.
        if notebooks.holds_edits(script):
            copy = notebooks.keep_copy(script.with_suffix(".ipynb"))
            self.log.warning("%s.ipynb differed from its .py. A copy: %s", script.stem, copy)
        saved = await super().save(model, path)
        notebooks.write_notebook(script)
        return saved

    async def rename_file(self, old_path, new_path):
        """Rename this file only: a torch.py beside torch.ipynb would hide the package."""
        self.drop_paired_notebook(old_path.strip("/"))
        await self.super.rename_file(old_path, new_path)

    def resolve(self, script):
        """If the .ipynb of a pair has edits, open the newer file and keep a copy of the older."""
        notebook = script.with_suffix(".ipynb")
        if not notebooks.read(notebook) or not notebooks.holds_edits(script):
            return
        newer, older = sorted((script, notebook), key=lambda path: -path.stat().st_mtime)
        copy = notebooks.keep_copy(older)
        if newer == notebook:
            notebooks.write_script(script)
        self.log.warning("%s differs from %s and is newer. A copy: %s", newer, older.name, copy)

    async def kernel_process(self, path):
        """Process id of a notebook's kernel; None if it has none."""
        for session in await ensure_async(self.parent.session_manager.list_sessions()):
            if Path(session["path"]).with_suffix("") == Path(path.strip("/")).with_suffix(""):
                kernel = self.parent.kernel_manager.get_kernel(session["kernel"]["id"])
                return kernel.provisioner.pid
        return None
