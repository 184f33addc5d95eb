"""The documentation site: `make docs`."""

import compositegp

project = "compositegp"
author = "the compositegp developers"
copyright = author
version = release = compositegp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
suppress_warnings = ["myst.header", "config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "show_memory": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "copyfile_regex": r".*\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "compositegp"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
}
html_show_sourcelink = False


def outside_pages(app: object, name: str, source: list[str]) -> None:
    """Links out of the folder of pages: to the pages of the site that hold the same text."""
    source[0] = (
        source[0].replace("](../CONTRIBUTING.md", "](contributing.md").replace("](../README.md", "](index.md")
    )
    if name in ("contributing", "changelog"):
        source[0] = source[0].replace("](docs/", "](").replace("](CONTRIBUTING.md", "](contributing.md")


def setup(app: object) -> None:
    """Register the rewriting of links."""
    app.connect("source-read", outside_pages)  # type: ignore[attr-defined]
    app.connect("include-read", lambda app, path, name, source: outside_pages(app, name, source))  # type: ignore[attr-defined]
