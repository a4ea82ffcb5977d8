"""A study as a directory: its tables, and pictures of the runs that are compared."""

from pathlib import Path

from simulator.reports.page import page, picture, preformatted, section
from simulator.reports.schedule_report import PICTURES
from simulator.studies.simulations import Results
from simulator.traces.files import write_whole


def write_pages(directory: Path, title: str, text: str, results: Results) -> None:
    """Write ``table.txt``, ``index.html`` and one set of pictures for each group of runs."""
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / "table.txt", f"{title}\n\n{text}")
    sections = [section("Tables", preformatted(text))]
    for group in results.groups():
        outcomes = list(results.of(group).values())
        for name, drawn in PICTURES.items():
            path = directory / f"{_file_name(group)}-{name}"
            drawn.draw(outcomes, path)
            sections.append(picture(f"{drawn.title}: {group}", path, drawn.explanation))
    write_whole(directory / "index.html", page(title, {}, sections))


def _file_name(group: str) -> str:
    return group.replace(", ", "-").replace(" ", "-").lower()
