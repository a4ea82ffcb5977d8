"""Sphinx makes a site of the pages: ``make docs``."""

import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

project = "walltimed"
release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

# The sources are the repository itself, so that a link means the same here and in a clone.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "papers/*.md", "research/**.md", "results/**.md"]
exclude_patterns = [".*", "build", "tests", "benchmarks", "deploy", "integrations"]
extensions = ["myst_parser"]
myst_heading_anchors = 6
nitpicky = True
highlight_language = "none"

html_theme = "furo"
html_title = f"walltimed {release}"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_favicon = html_logo = "../service/web/static/icon.svg"
html_copy_source = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}

LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)\.md\)")
DOOR = '<!doctype html><meta charset="utf-8"><title>{0}</title>\
<meta http-equiv="refresh" content="0; url={1}"><a href="{1}">{0}</a>\n'


def with_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put the pages that an index links to, in its order, into the list beside all pages.

    Args:
        page: its name; an index is ``docs/index``, or a README in a folder.
        source: its text, which is changed in place.
    """
    if page != root_doc and not page.endswith("/README"):
        return
    first, *others = re.split(r"^## (.+)\n", source[0], flags=re.MULTILINE)
    parts = [("", first), *zip(others[::2], others[1::2], strict=True)]
    source[0] += "".join(contents(title, links_in(page, text)) for title, text in parts)


def links_in(page: str, text: str) -> dict[str, str]:
    """The pages that a part of an index links to, with their titles.

    Only the first index leads out of its own folder.
    """
    links = {target: title.replace("`", "") for title, target in LINK.findall(text)}
    return {to: title for to, title in links.items() if page == root_doc or to[0] != "."}


def contents(caption: str, links: dict[str, str]) -> str:
    """A list of contents that is shown beside the pages, and not in one."""
    if not links:
        return ""
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    entries = "\n".join(f"{title} <{target}>" for target, title in links.items())
    return f"\n\n```{{toctree}}\n{options}\n{entries}\n```\n"


def with_door(app: Sphinx, failure: Exception | None) -> None:
    """Let the site's own address lead to the index."""
    if failure is None and app.builder.format == "html":
        door = DOOR.format(html_title, f"{root_doc}.html")
        (Path(app.outdir) / "index.html").write_text(door, "utf-8")


def setup(app: Sphinx) -> None:
    """Add our steps to the build."""
    app.connect("source-read", with_contents)
    app.connect("build-finished", with_door)
