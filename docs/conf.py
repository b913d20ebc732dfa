"""The documentation: `python3 dev.py docs` builds it into build/docs, offline."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import nystrom

project = "nystrom"
author = "the nystrom developers"
release = version = nystrom.__version__
#: pyproject.toml is beside this folder, or one further up for a copy in build/.
PYPROJECT = next(
    folder / "pyproject.toml"
    for folder in Path(__file__).resolve().parents
    if (folder / "pyproject.toml").exists()
)
PUBLISHED = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["nystrom"]["published"]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",  # marks formulas; KaTeX draws them
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = [("katex/katex.min.js", {"defer": "defer", "priority": 400})]
mathjax_path = "math.js"
mathjax_options = {"defer": "defer"}
myst_enable_extensions = ["dollarmath"]

html_theme = "pydata_sphinx_theme"
html_title = "nystrom"
html_show_sourcelink = False
html_copy_source = False
# Excerpts would be fetched, which a browser refuses for pages that are files.
html_show_search_summary = False
# Without it the theme complains once of a mode that nobody has set.
html_context = {"default_mode": "auto"}
# Pages of the first level have no section of their own: they get the list of all.
html_sidebars = {"*": ["pages.html"]}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 3,
}

# Links into other projects need their inventories, which are fetched only on request:
# the site builds offline.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}
if not os.environ.get("NYSTROM_ONLINE"):
    intersphinx_mapping = {}

# Pages link to files of the repository, which have no page here.
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 3
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the sections of the docstrings say more
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "py:obj"

sphinx_gallery_conf = {
    "examples_dirs": str(Path(__file__).parents[1] / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 10,
    # For examples that print and draw nothing.
    "default_thumb_file": str(Path(__file__).parent / "images" / "uneven_clusters.png"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),  # what an example prints, and no objects
    "write_computation_times": False,
}


def _skip(app, what, name, thing, skip, options):
    """Skip methods that scikit-learn generates for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def _plain_roles(app, what, name, thing, options, lines):
    """Make code that is no name literal, and links into scikit-learn's guide text."""
    role = re.compile(r":(?:ref|term):`(?:([^`<]*?) *<[^`]*>|([^`]*))`")
    code = re.compile(r"(?<![`:\w])`(?![A-Za-z_][\w.]*`)([^`]+)`(?![`_])")
    lines[:] = [code.sub(r"``\1``", role.sub(r"\1\2", line)) for line in lines]


def _published(app, name, source):
    """Install from PyPI instead of a checkout once pyproject.toml says so."""
    if PUBLISHED:
        source[0] = re.sub(r"pip install \.(?=\s)", "pip install nystrom", source[0])
        source[0] = re.sub(r"(?<=[`\"])\.\[(\w+)\]", r"nystrom[\1]", source[0])


def setup(app):
    """Register the handlers; Sphinx calls this."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _plain_roles)
    app.connect("source-read", _published)
