"""Scripts, styles and pictures of the pages, which a browser may keep for ever: all are shipped."""

from hashlib import sha256
from importlib.resources import files

from msgspec import Struct

from simulator.reports import palette

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

PLACE = "/static"


class Asset(Struct, frozen=True):
    """A file as it is answered."""

    content: bytes
    kind: str
    tag: str


class Assets:
    """All assets, in memory. Their addresses change with their content."""

    def __init__(self) -> None:
        folder = files("service.web") / "static"
        found = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        found["palette.css"] = palette.css().encode()
        self._assets = {
            name: Asset(content, f"{kind}; charset=utf-8", sha256(content).hexdigest()[:16])
            for name, content in found.items()
            if (kind := KINDS.get(name.rpartition(".")[2]))
        }

    def address(self, name: str) -> str:
        """Where a browser finds an asset."""
        return f"{PLACE}/{self._assets[name].tag}/{name}"

    def find(self, tag: str, name: str) -> Asset | None:
        """The asset at an address; None if there is none, or not any more."""
        asset = self._assets.get(name)
        return asset if asset is not None and asset.tag == tag else None
