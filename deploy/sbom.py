"""Writes the software bill of materials of the packages as CycloneDX JSON, from requirements/.

python deploy/sbom.py requirements/runtime.txt > walltimed.cdx.json
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = re.compile(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.IGNORECASE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def main(requirements: Path) -> None:
    """Print the document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": libraries(requirements.read_text("utf-8")),
    }
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")


def libraries(requirements: str) -> list[dict[str, Any]]:
    """Return the packages that a file of requirements names, each with its files' hashes."""
    blocks = re.split(r"\n(?=\S)", requirements)
    return [
        library(named[1], named[2], HASH.findall(block))
        for block in blocks
        if (named := PACKAGE.match(block))
    ]


def library(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    """Return one entry; its hashes are those of the files that may be installed."""
    references = [
        {
            "type": "distribution",
            "url": f"pkg:pypi/{name}@{version}",
            "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
        }
    ]
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "externalReferences": references,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
