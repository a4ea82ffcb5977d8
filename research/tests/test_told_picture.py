"""Told starts are read back as they were written, and drawn."""

from forecast_scores import ToldStart, write_told
from told_picture import draw, read_told

TOLD = [
    ToldStart(1, 60.0, 0.0, 3660.0, 7260.0, 3000.0, 2000.0, 4000.0, is_first=True),
    ToldStart(2, 60.0, 30.0, 7260.0, None, 9000.0, None, None, is_first=True),
    ToldStart(1, 90.0, 0.0, 3660.0, None, 3600.0, 2000.0, 4000.0, is_first=False),
]


def test_told_starts_are_read_as_they_were_written_and_drawn(tmp_path):
    write_told(tmp_path / "told.csv", TOLD)
    assert read_told(tmp_path / "told.csv") == TOLD
    draw(TOLD, tmp_path / "told.svg")
    drawn = (tmp_path / "told.svg").read_text("utf-8")
    assert "Slurm told 1 of 2 jobs" in drawn
    assert "walltimed told 2 of 2 jobs" in drawn
