"""The follower of the accounting log: everything once, whatever happens in between."""

import importlib.util
import json
from pathlib import Path

import pytest
from fake_service import fake_service, http

FOLLOWER = Path(__file__).parents[2] / "integrations" / "pbs" / "walltimed_accounting.py"
OK = http(200, b'{"accepted": 1, "duplicates": 0}')


@pytest.fixture
def follower():
    spec = importlib.util.spec_from_file_location("walltimed_accounting", FOLLOWER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def log(tmp_path):
    directory = tmp_path / "accounting"
    directory.mkdir()
    return directory


def record(job, kind="E"):
    return f"02/03/2031 04:15:06;{kind};{job}.hill;user=carol\n"


def look(follower, log, service, **options):
    arguments = ["--directory", str(log), "--url", f"http://127.0.0.1:{service.port}", "--once"]
    arguments += ["--state", str(log.parent / "state.json"), "--since", "20310203"]
    for option, value in options.items():
        arguments += [f"--{option.replace('_', '-')}", str(value)]
    return follower.main(arguments)


def jobs(service):
    text = "".join(request["text"] for request in service.requests)
    return [line.split(";")[2].removesuffix(".hill") for line in text.splitlines()]


def test_every_run_that_ended_is_reported_once(follower, log):
    day = log / "20310203"
    day.write_text(record(1, "Q") + record(1, "S") + record(1) + record(2, "R"))
    with fake_service(OK, hangs_up=True) as service:
        assert look(follower, log, service) == 0
        with day.open("a") as file:
            file.write(record(3))
        (log / "20310204").write_text(record(4))
        look(follower, log, service)
        look(follower, log, service)
    assert jobs(service) == ["1", "2", "3", "4"]
    assert service.headers[0].startswith("POST /v1/adapters/pbs/accounting?cluster=default&")


def test_a_line_that_is_still_being_written_waits(follower, log):
    day = log / "20310203"
    day.write_text(record(1) + record(2)[:30])
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
        day.write_text(record(1) + record(2))
        look(follower, log, service)
    assert jobs(service) == ["1", "2"]


def test_what_was_not_acknowledged_is_sent_again(follower, log):
    (log / "20310203").write_text(record(1))
    with fake_service(http(503, b"{}"), hangs_up=True) as service:
        assert look(follower, log, service) == 1
        service.answer = OK
        assert look(follower, log, service) == 0
    assert jobs(service) == ["1", "1"]


def test_a_long_log_is_sent_in_batches(follower, log):
    (log / "20310203").write_text("".join(record(job) for job in range(1201)))
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
    assert [request["text"].count("\n") for request in service.requests] == [500, 500, 201]


def test_days_before_the_first_and_other_files_are_left_out(follower, log):
    for name in ("20310202", "20310203.gz", "README", "20310203"):
        (log / name).write_text(record(1))
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
    assert jobs(service) == ["1"]


def test_the_token_is_read_from_a_file(follower, log, tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    (log / "20310203").write_text(record(1))
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service, token_file=tmp_path / "token")
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]


def test_a_service_that_is_gone_loses_nothing(follower, log):
    (log / "20310203").write_text(record(1))
    with fake_service() as service:
        pass
    assert look(follower, log, service) == 1
    assert not (log.parent / "state.json").exists()


def test_the_position_survives(follower, log):
    (log / "20310203").write_text(record(1))
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
    kept = json.loads((log.parent / "state.json").read_text())
    assert kept == {"day": "20310203", "offset": len(record(1))}
