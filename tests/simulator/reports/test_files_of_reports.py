"""What is broken off leaves the files of the report before."""

from pathlib import Path
from unittest.mock import patch

import pytest
from matplotlib.figure import Figure

from simulator.reports import schedule_report
from simulator.reports.exhibit import Exhibit
from simulator.reports.pictures import save


def of_schedules(directory):
    with patch.multiple(schedule_report, PICTURES={}, tables=lambda _: "none"):
        schedule_report.write_report(directory, "later", {}, [])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("table.txt", of_schedules),
        ("report.json", of_schedules),
        ("index.html", of_schedules),
        ("table-1.csv", lambda path: Exhibit("later", []).write_csv(path / "table-1.csv")),
        ("waits.png", lambda path: save(Figure(), path / "waits.png")),
    ],
)
def test_a_file_that_is_not_finished_takes_no_place(tmp_path, monkeypatch, name, write):
    """Broken off when the file would take its name: until then, what was there stays."""
    write(tmp_path)
    whole = (tmp_path / name).read_bytes()
    assert whole
    (tmp_path / name).write_bytes(b"before")
    replace = Path.replace

    def broken_off(unfinished, target):
        if Path(target).name == name:
            assert unfinished.read_bytes() == whole
            raise KeyboardInterrupt
        return replace(unfinished, target)

    monkeypatch.setattr(Path, "replace", broken_off)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    assert (tmp_path / name).read_bytes() == b"before"
