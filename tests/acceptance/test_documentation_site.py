"""The documentation builds as a site that works without a network, and all its links lead on."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.acceptance


class Read(HTMLParser):
    """What a page loads, links to, and can be linked to at."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors |= {named[key] for key in ("id", "name") if named.get(key)}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif address := named.get("src") or (tag == "link" and named.get("href")):
            self.loads.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built by what ``make docs`` calls."""
    folder = tmp_path_factory.mktemp("site")
    command = re.search(r"^\t\$\(BIN\)/python (-m sphinx .*) build/docs$",
                        (ROOT / "Makefile").read_text(), re.MULTILINE)[1]  # fmt: skip
    built = subprocess.run(
        [sys.executable, *command.split(), folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """Every page of the site that was made from one of ours."""
    found = [
        page
        for folder in ("", "docs", "results")
        for page in (site / folder).glob("**/*.html" if folder else "*.html")
    ]
    return {page: Read(page) for page in found}


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for page, read in pages.items():
        for address in read.loads:
            assert not urlsplit(address).netloc, f"{page} loads {address}"
            assert (page.parent / unquote(urlsplit(address).path)).exists(), f"{page}: {address}"
    for sheet in site.rglob("*.css"):
        outside = r"@import|url\(\s*[\"']?(?:https?:)?//"
        assert not re.search(outside, sheet.read_text("utf-8")), sheet


def test_every_link_and_anchor_leads_somewhere(pages):
    for page, read in pages.items():
        for link in read.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{page}: {link}"


def test_every_page_is_in_the_site_and_can_be_searched(site):
    index = (site / "searchindex.js").read_text("utf-8")
    for page in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "results").rglob("*.md"),
    ]:
        name = page.relative_to(ROOT).with_suffix("")
        assert (site / f"{name}.html").exists(), page
        assert f'"{name}"' in index, page
    assert "url=docs/index.html" in (site / "index.html").read_text("utf-8").replace(" ", "")
