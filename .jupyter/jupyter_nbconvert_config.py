"""How `make notebooks` executes: the file it leaves is the one that JupyterLab would save."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
from attnlab_notebooks import after_executing  # noqa: E402

c = get_config()  # noqa: F821

c.ExecutePreprocessor.record_timing = False
c.ExecutePreprocessor.store_widget_state = False
# Two prints may arrive as one message or as two; JupyterLab joins them too.
c.CoalesceStreamsPreprocessor.enabled = True
c.NotebookExporter.preprocessors = [
    "nbconvert.preprocessors.CoalesceStreamsPreprocessor",
    after_executing,
]
