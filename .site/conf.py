"""Settings of Sphinx. Its sources are assembled by ``__main__.py``; nothing is executed."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = html_title = "Self-attention"
author = copyright = ""
extensions = ["myst_nb"]
root_doc = "index"
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # an explorer's heading may skip a level

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_show_sourcelink = html_show_sphinx = html_show_copyright = False
html_copy_source = html_use_index = False
html_permalinks_icon = "#"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"


def inline(translator, node):
    """Write a formula within a line as MathML, so that a page loads nothing for it."""
    translator.body.append(convert(node.astext()))
    raise SkipNode


def block(translator, node):
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    """Sphinx's hook."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
