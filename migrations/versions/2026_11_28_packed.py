"""Further facts of submissions as bytes, with hashes of 32 bits.

Revision: 2026_11_28_packed, after 2026_11_28_extensions
"""

import json
import re
from base64 import b32decode
from collections.abc import Callable
from struct import calcsize, pack, unpack_from
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_packed"
down_revision = "2026_11_28_extensions"
branch_labels = None
depends_on = None

KEYS = {"completions": "seq", "predictions": "prediction_id"}
OWN = 11
COUNTS = frozenset({4, 5, 7})
NAMED = ("rule", "input_bytes")
ROWS_AT_ONCE = 10_000


def upgrade() -> None:
    """Pack the facts that are known."""
    _rewrite(sa.LargeBinary, _packed)


def downgrade() -> None:
    """Write them as JSON again; hashes stay shorter than they were."""
    _rewrite(sa.Text, _unpacked)


def _rewrite(kind: type[sa.types.TypeEngine[Any]], convert: Callable[[Any], Any]) -> None:
    for name, key in KEYS.items():
        op.add_column(name, sa.Column("rewritten", kind))
        table = sa.table(name, sa.column(key), sa.column("facts"), sa.column("rewritten"))
        known = sa.select(table.c[key], table.c.facts).where(table.c.facts.is_not(None))
        known, change = known.order_by(table.c[key]).limit(ROWS_AT_ONCE), table.update()
        change = change.where(table.c[key] == sa.bindparam("of"))
        change = change.values(rewritten=sa.bindparam("new", type_=kind()))
        rows = op.get_bind().execute(known).all()
        while rows:
            op.get_bind().execute(change, [{"of": of, "new": convert(old)} for of, old in rows])
            rows = op.get_bind().execute(known.where(table.c[key] > rows[-1][0])).all()
        op.drop_column(name, "facts")
        op.execute(f"ALTER TABLE {name} RENAME COLUMN rewritten TO facts")


def _number(text: str) -> int:
    """Return the first 32 of the 50 bits of a hash, or those of one that was rewritten before."""
    if re.fullmatch("~[0-9a-f]{8}~", text):
        return int(text[1:-1], 16)
    if re.fullmatch("~[a-z2-7]{10}", text):
        return int.from_bytes(b32decode(text[1:9].upper())[:4], "big")
    return crc32(text.encode("utf-8", "surrogatepass"))


def _packed(content: str) -> bytes:
    *own, interactive, features = json.loads(content)
    known = sum(1 << place for place in range(OWN) if own[place] is not None)
    known |= 0 if interactive is None else 1 << OWN | bool(interactive) << OWN + 1
    numbers = [_number(each) if isinstance(each, str) else each for each in own if each is not None]
    values = b"".join(_feature(*each) for each in features.items())
    return pack(f"<H{len(numbers)}I", known, *numbers) + values


def _feature(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        kind, form, value = 0, "I", _number(value)
    elif abs(value) < 2**31 and value == int(value):
        kind, form, value = 1, "i", int(value)
    else:
        kind, form = 2, "d"
    if name in NAMED:
        return pack(f"<B{form}", kind | NAMED.index(name) + 1 << 2, value)
    text = name.encode("utf-8", "surrogatepass")
    return pack(f"<BH{len(text)}s{form}", kind, len(text), text, value)


def _unpacked(content: bytes) -> str:
    (known,) = unpack_from("<H", content)
    places = [place for place in range(OWN) if known >> place & 1]
    numbers = unpack_from(f"<{len(places)}I", content, 2)
    found: list[Any] = [None] * OWN
    for place, number in zip(places, numbers, strict=True):
        found[place] = number if place in COUNTS else f"~{number:08x}~"
    interactive = bool(known >> OWN + 1 & 1) if known >> OWN & 1 else None
    return json.dumps([*found, interactive, _features(content[2 + 4 * len(places) :])])


def _features(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while content:
        kind, known = content[0] & 3, content[0] >> 2
        end = 1 if known else 3 + int.from_bytes(content[1:3], "little")
        name = NAMED[known - 1] if known else content[3:end].decode("utf-8", "surrogatepass")
        form = f"<{'Iid'[kind]}"
        (value,) = unpack_from(form, content, end)
        found[name] = float(value) if kind else f"~{value:08x}~"
        content = content[end + calcsize(form) :]
    return found
