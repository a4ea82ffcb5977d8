"""HTML pages for reports: a title, facts, and sections with tables and pictures."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; max-width: 62rem;
         margin: 2rem auto; padding: 0 1rem; }}
  h1 {{ font-size: 1.5rem; }}
  h2 {{ font-size: 1.15rem; margin-top: 2.5rem; }}
  pre {{ overflow-x: auto; background: #f6f6f6; padding: 1rem; font-size: 0.8rem; }}
  img {{ max-width: 100%; height: auto; }}
  dt {{ float: left; clear: left; width: 11rem; color: #5a5a5a; }}
  dd {{ margin: 0 0 0 11rem; }}
  p.note {{ color: #5a5a5a; font-size: 0.9rem; }}
</style>
<h1>{title}</h1>
<dl>{facts}</dl>
{sections}
</html>
"""


def page(title: str, facts: Mapping[str, str], sections: Iterable[str]) -> str:
    """A whole page."""
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items()
    )
    return _PAGE.format(title=escape(title), facts=listed, sections="\n".join(sections))


def section(title: str, content: str) -> str:
    """A heading with the content below it."""
    return f"<h2>{escape(title)}</h2>\n{content}"


def preformatted(text: str) -> str:
    """Text as it is, such as a table."""
    return f"<pre>{escape(text)}</pre>\n"


def paragraph(text: str) -> str:
    """A paragraph of the report itself."""
    return f"<p>{escape(text)}</p>\n"


def note(text: str) -> str:
    """A small paragraph that explains."""
    return f'<p class="note">{escape(text)}</p>'


def picture(title: str, path: Path, explanation: str, *, embedded: bool = False) -> str:
    """A section with a picture beside or inside the page; empty if the picture was not drawn."""
    if not path.exists():
        return ""
    source = path.name
    if embedded:
        source = f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}"
    return section(title, f'<img src="{source}" alt="{escape(title)}">\n{note(explanation)}')
