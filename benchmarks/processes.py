"""Which processes a program has started, and how much memory they hold."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

KIBIBYTE, MEGABYTE = 1024, 1_000_000


def family(process_id: int) -> Iterator[int]:
    """A process and all that it has started, except what ends meanwhile."""
    yield process_id
    children: list[str] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process_id}/task").iterdir():
            children += (task / "children").read_text().split()
    for child in children:
        yield from family(int(child))


def megabytes(process_id: int) -> float:
    """A process's memory: of pages that it shares with others it has its part; 0 once it ended."""
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return sum(sizes) * KIBIBYTE / MEGABYTE
