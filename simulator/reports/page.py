"""HTML pages for reports: a title, facts, and sections with tables and pictures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from terminal.files import write_whole

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


def lines_of(facts: Mapping[str, str]) -> str:
    """Return facts as lines of text."""
    return "".join(f"{name}: {fact}\n" for name, fact in facts.items())


@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """The files of a report.

    Attributes:
        data: for ``report.json``; None: there is no such file.
    """

    title: str
    facts: Mapping[str, str]
    text: str
    sections: Iterable[str]
    data: Mapping[str, Any] | None = None

    def write(self, directory: Path) -> None:
        """Write ``index.html``, ``table.txt`` and, with data, ``report.json``."""
        text = f"{self.title}\n{lines_of(self.facts)}\n{self.text}"
        write_whole(directory / "table.txt", text)
        if self.data is not None:
            document = msgspec.json.encode({"title": self.title, **self.data})
            write_whole(directory / "report.json", msgspec.json.format(document, indent=2) + b"\n")
        write_whole(directory / "index.html", page(self.title, self.facts, self.sections))


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


def note(text: str) -> str:
    """A small paragraph that explains."""
    return f'<p class="note">{escape(text)}</p>'


def picture(title: str, path: Path, explanation: str) -> str:
    """A section with a picture beside the page; empty if the picture was not drawn."""
    if not path.exists():
        return ""
    return section(title, f'<img src="{path.name}" alt="{escape(title)}">\n{note(explanation)}')
