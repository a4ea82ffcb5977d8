"""The schemas of what commands print with ``--json``."""

import json
from pathlib import Path

import jsonschema_rs

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

PRINTS_IN_SPITE_OF_FAILURE = {"doctor", "verify"}
"""Commands whose exit code says what they found."""


def schema_file(words):
    """The file of a command: every study has the same one."""
    names = ["-".join(words[:2]), words[0]]
    return next((SCHEMAS / f"{n}.json" for n in names if (SCHEMAS / f"{n}.json").exists()), None)


def check_printed(arguments, code, printed):
    """What a command printed is as its schema says."""
    words = [str(each) for each in arguments]
    document = json.loads(printed)
    assert next(iter(document)) == "schema"
    failed = code not in {0, 3} and words[0] not in PRINTS_IN_SPITE_OF_FAILURE
    file = SCHEMAS / "error.json" if failed or "error" in document else schema_file(words)
    assert file is not None, f"docs/schemas has no file for walltimed {words[0]}"
    jsonschema_rs.validate(json.loads(file.read_text()), document)
