import io
import json
import logging
import os
import subprocess
import sys

import pytest
import structlog

from service.settings import Settings
from terminal import logs

HOSTILE = 'x\n{"event": "forged"}\r\x1b[2J\u2028\u0085'


@pytest.fixture
def logged(capsys):
    """Configures logging, and gives what was written since."""

    def configure(**options):
        logs.configure(Settings(**options))
        return lambda: capsys.readouterr().err

    return configure


def test_a_record_is_a_sentence_and_fields_on_one_line_of_json(logged):
    written = logged()
    structlog.get_logger().info("store away", reason="gone", seconds=2)
    record = json.loads(written())
    assert record.pop("timestamp").endswith("Z")
    assert record == {"event": "store away", "level": "info", "reason": "gone", "seconds": 2}


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_nobody_can_forge_a_record(logged, log_format):
    written = logged(log_format=log_format)
    structlog.get_logger().warning("a user said", user=HOSTILE)
    text = written()
    assert text.count("\n") == 1
    assert not set("\r\x1b\u2028\u0085") & set(text)


def test_libraries_log_in_the_same_form(logged):
    written = logged()
    logging.getLogger("uvicorn.error").error("it %s", HOSTILE)
    assert json.loads(written())["level"] == "error"


def test_what_is_less_severe_than_wanted_is_not_written(logged):
    written = logged(log_level="warning")
    structlog.get_logger().info("quiet")
    logging.getLogger("library").info("quiet")
    assert written() == ""


def test_a_traceback_is_kept(logged):
    written = logged()
    try:
        int(HOSTILE)
    except ValueError:
        structlog.get_logger().exception("failed")
    text = written()
    assert text.count("\n") == 1
    assert "test_a_traceback_is_kept" in json.loads(text)["exception"]


SAYS_THREE_THINGS = """
import logging, structlog
from terminal import logs
from service.settings import Settings
logs.configure(Settings())
structlog.get_logger().info("well")
structlog.get_logger().error("not well", reason="two\\nlines")
logging.getLogger("library").warning("hm")
"""


def written_to(file, **environment):
    """What a process of its own writes, its standard error being this file."""
    with file.open("wb") as stderr:
        stream = os.fstat(stderr.fileno())
        subprocess.run(
            [sys.executable, "-c", SAYS_THREE_THINGS],
            env=os.environ
            | {name: value.format(stream=stream) for name, value in environment.items()},
            stderr=stderr,
            check=True,
        )
    return file.read_text().splitlines()


def test_the_journal_is_told_severities(tmp_path):
    lines = written_to(tmp_path / "log", JOURNAL_STREAM="{stream.st_dev}:{stream.st_ino}")
    assert [line[:3] for line in lines] == ["<6>", "<3>", "<4>"]
    assert [json.loads(line[3:])["level"] for line in lines] == ["info", "error", "warning"]


@pytest.mark.parametrize("stream", ["", "1:2", "nonsense"])
def test_anybody_else_reads_plain_json(tmp_path, stream):
    lines = written_to(tmp_path / "log", JOURNAL_STREAM=stream)
    assert [json.loads(line)["event"] for line in lines] == ["well", "not well", "hm"]


class Terminal(io.StringIO):
    """Standard error that a person looks at."""

    def isatty(self):
        return True


def test_on_a_terminal_people_read_lines_and_elsewhere_machines_read_json(monkeypatch):
    terminal, pipe = Terminal(), io.StringIO()
    for place in (terminal, pipe):
        monkeypatch.setattr(sys, "stderr", place)
        logs.configure(Settings())
        structlog.get_logger().info("ready")
        structlog.reset_defaults()
    assert json.loads(pipe.getvalue())["event"] == "ready"
    assert not terminal.getvalue().startswith("{")


def test_a_throttle_allows_each_kind_once_in_its_seconds_and_counts_the_others(monkeypatch):
    now = 100.0
    monkeypatch.setattr(logs, "monotonic", lambda: now)
    throttle = logs.Throttle(60.0)
    assert [throttle.count("knn", "observe") for _ in range(3)] == [1, 0, 0]
    assert throttle.count("knn", "answer") == 1
    now += 59.0
    assert throttle.count("knn", "observe") == 0
    now += 1.0
    assert [throttle.count("knn", "observe") for _ in range(2)] == [4, 0]
