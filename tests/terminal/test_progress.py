"""Progress of long work: on a terminal, in a log, and silent."""

import io

import pytest
from patience import eventually
from rich.console import Console
from rich.progress import Progress

from terminal import progress
from terminal.progress import line_of, progress_bar, rest, waiting


@pytest.fixture
def shown(monkeypatch):
    """Makes standard error a terminal, or none, and returns what is written to it."""

    def on(*, is_terminal):
        file = io.StringIO()
        console = Console(file=file, force_terminal=is_terminal, width=120, highlight=False)
        monkeypatch.setattr(progress, "err", console)
        monkeypatch.setattr(progress, "SECONDS_A_LINE", 0.01)
        return file

    return on


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def task_at(seconds, done, total):
    clock = Clock()
    bars = Progress(get_time=clock, disable=True)
    number = bars.add_task("log.swf", total=total)
    clock.now = seconds
    bars.update(number, completed=done)
    return bars.tasks[0]


@pytest.mark.parametrize(
    ("seconds", "done", "total", "line"),
    [
        (60, 1_000, 4_000, "log.swf: 1,000 of 4,000 jobs, after 60 s, about 3 min left"),
        (60, 0, 4_000, "log.swf: 0 of 4,000 jobs, after 60 s"),
        (7200, 1, 3, "log.swf: 1 of 3 jobs, after 2.0 h, about 4.0 h left"),
        (60, 4_000, 4_000, "log.swf: 4,000 of 4,000 jobs, after 60 s"),
        (60, 0, None, "log.swf: after 60 s"),
        (60, 12, None, "log.swf: 12 jobs, after 60 s"),
        (60, 0, 0, "log.swf: 0 of 0 jobs, after 60 s"),
    ],
)
def test_a_line_says_how_far_it_is_and_how_long_it_takes(seconds, done, total, line):
    assert line_of(task_at(seconds, done, total), "jobs").replace("1 min", "60 s") == line


def test_steps_of_minutes_have_a_rest_too():
    """The speed of the last half minute, which a bar usually shows, is none here."""
    assert rest(task_at(600, 2, 12)) == "about 50 min left"


def test_a_terminal_shows_a_bar_that_vanishes(shown):
    file = shown(is_terminal=True)
    with progress_bar("jobs") as bar:
        task = bar.add_task("log.swf", total=10)
        bar.advance(task, 5)
        bar.refresh()
        drawn = file.getvalue()
        assert "5 of 10 jobs" in drawn
        assert "left" in drawn
        assert "\n\n" not in drawn
    assert file.getvalue().endswith("\x1b[2K"), "the line is cleared"


def test_a_bar_of_which_nothing_is_known_yet_is_drawn(shown):
    file = shown(is_terminal=True)
    with waiting("starting [a] service"):
        eventually(lambda: "starting [a] service" in file.getvalue())


def test_bars_within_bars_are_drawn(shown):
    file = shown(is_terminal=True)
    with progress_bar("exhibits") as outer:
        outer.add_task("tang", total=2)
        with progress_bar("plays") as inner:
            inner.add_task("", total=9)
            inner.refresh()
    assert "of 2 exhibits" in file.getvalue()
    assert "of 9 plays" in file.getvalue()


def test_a_log_gets_a_line_again_and_again_even_if_nothing_advances(shown):
    file = shown(is_terminal=False)
    with progress_bar("jobs") as bar:
        task = bar.add_task("log.swf", total=10)
        eventually(lambda: file.getvalue().count("log.swf: 0 of 10 jobs") > 1)
        bar.advance(task, 10)
        assert bar.lines() == [], "what is done is not said again"
    assert bar._writer is not None
    assert not bar._writer.is_alive()
    assert "\x1b" not in file.getvalue()


def test_short_work_says_nothing_in_a_log(shown, monkeypatch):
    file = shown(is_terminal=False)
    monkeypatch.setattr(progress, "SECONDS_A_LINE", 60.0)
    with progress_bar("jobs") as bar:
        bar.add_task("log.swf", total=10)
    assert file.getvalue() == ""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_quiet_is_silent(shown, is_terminal):
    file = shown(is_terminal=is_terminal)
    with progress_bar("jobs", quiet=True) as bar, waiting("for it", quiet=True):
        bar.add_task("log.swf", total=10)
        assert bar._writer is None
        bar.refresh()
    assert file.getvalue() == ""


def test_a_bar_that_was_stopped_goes_on(shown):
    file = shown(is_terminal=False)
    with progress_bar("jobs") as bar:
        bar.add_task("log.swf", total=10)
        bar.stop()
        before = file.getvalue()
        bar.start()
        eventually(lambda: len(file.getvalue()) > len(before))
