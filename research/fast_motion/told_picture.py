"""Draws the starts that waiting jobs of a play were told against those that came.

.venv/bin/python research/fast_motion/told_picture.py DIR/first.told.csv told-starts.png
"""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from forecast_scores import HOUR, ToldStart
from matplotlib import rc_context
from matplotlib.figure import Figure

from simulator.reports.palette import colours_of
from simulator.reports.pictures import STYLE, save

INCHES = (7.0, 3.5)
TELLERS: dict[str, Callable[[ToldStart], float | None]] = {
    "Slurm": lambda each: each.slurm,
    "walltimed": lambda each: each.ours,
}


def read_told(file: Path) -> list[ToldStart]:
    """Return the told starts that ``forecast_scores.write_told`` has written.

    Raises:
        ValueError: there are none in the file.
    """
    with file.open(encoding="ascii", newline="") as opened:
        reader = csv.DictReader(opened)
        rows = list(reader)
    if reader.fieldnames != list(ToldStart._fields) or not rows:
        raise ValueError(f"{file} has no told starts.")
    names = ToldStart._fields[1:-1]
    return [
        ToldStart._make(
            (
                int(row["job"]),
                *(float(row[name]) if row[name] else None for name in names),
                row["is_first"] == "True",
            )
        )
        for row in rows
    ]


def draw(told: Sequence[ToldStart], file: Path) -> None:
    """Draw a panel for each teller: what each job was first told, by how long it then waited."""
    first = [each for each in told if each.is_first]
    colours = colours_of(["requested", "auto"])
    longest = max(each.to_come for each in first) / HOUR
    with rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        panels = figure.subplots(1, len(TELLERS), sharex=True, sharey=True)
        for axes, (name, teller), colour in zip(panels, TELLERS.items(), colours, strict=True):
            pairs = [(each.to_come, start - each.at) for each in first if (start := teller(each))]
            came, said = np.array(pairs).reshape(-1, 2).T / HOUR
            axes.plot([0, longest], [0, longest], color="#888888", linewidth=1)
            axes.scatter(came, said, s=12, color=colour, alpha=0.7, linewidths=0)
            off = np.median(np.abs(said - came))
            axes.set_title(
                f"{name} told {len(pairs)} of {len(first)} jobs;\nmedian error {off:.1f} h"
            )
            axes.set_xlabel("hours that the job waited")
        panels[0].set_ylabel("hours that it was told")
        save(figure, file)


def main() -> None:
    """Read the told starts of a play, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("told", type=Path, help="written by slurm_play.py --forecasts")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    try:
        draw(read_told(options.told), options.picture)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
