"""The follower of the accounting log: everything once, whatever happens in between."""

import json
import os

import pytest
import site_scripts
from fake_service import GARBAGE, MOST_TAKEN, fake_service, http
from site_scripts import Looks

JSON = "Content-Type: application/json"
OK = http(200, b'{"accepted": 1, "duplicates": 0}', JSON)


@pytest.fixture
def follower():
    return site_scripts.loaded(site_scripts.FOLLOWER)


def accounting(follower):
    """Its part for the accounting log."""
    return follower.walltimed_accounting


@pytest.fixture
def log(tmp_path):
    """A directory of logs, with one record of a day."""
    directory = tmp_path / "accounting"
    directory.mkdir()
    (directory / "20310203").write_text(record(1))
    return directory


def record(job, kind="E"):
    return f"02/03/2031 04:15:06;{kind};{job}.hill;user=carol\n"


def words(log, service, **options):
    """The options of the follower of this log."""
    options = {"directory": log, "url": service.url, "state": log.parent / "state.json"} | options
    given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
    return ["--without-queue", "--since", "20310203", *(word for pair in given for word in pair)]


def look(follower, log, service, **options):
    return follower.main([*words(log, service, **options), "--once"])


def after_a_look(follower, log, text=None, answer=OK, **options):
    """The service after a look at a log with this text, by default one record."""
    if text is not None:
        (log / "20310203").write_text(text)
    with fake_service(answer, hangs_up=True) as service:
        service.code = look(follower, log, service, **options)
    return service


def jobs(service):
    text = "".join(request["text"] for request in service.requests)
    return [line.split(";")[2].removesuffix(".hill") for line in text.splitlines()]


def test_every_run_that_ended_is_reported_once(follower, log, capsys):
    day = log / "20310203"
    day.write_text(record(1, "Q") + record(1, "S") + record(1) + record(2, "R"))
    with fake_service(OK, hangs_up=True) as service:
        assert look(follower, log, service) == 0
        with day.open("a") as file:
            file.write(record(3))
        (log / "20310204").write_text(record(4))
        look(follower, log, service)
        look(follower, log, service)
    texts = [request["text"] for request in service.requests]
    assert texts == [record(1) + record(2, "R"), record(3), record(4)]
    told = "reported 2 records\nreported 2 records\n"
    assert capsys.readouterr().err == told, "the third look found nothing"
    assert service.headers[0].startswith("POST /v1/adapters/pbs/accounting?cluster=default&")


def test_a_line_that_is_still_being_written_waits(follower, log):
    day = log / "20310203"
    day.write_text(record(1) + record(2)[:30])
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
        day.write_text(record(1) + record(2))
        look(follower, log, service)
    assert jobs(service) == ["1", "2"]


@pytest.mark.parametrize("answer", [http(503, b"{}"), GARBAGE["HTML"]], ids=["503", "a page"])
def test_what_was_not_acknowledged_is_sent_again(follower, log, answer):
    with fake_service(answer, hangs_up=True) as service:
        assert look(follower, log, service) == 1
        service.answer = OK
        assert look(follower, log, service) == 0
    assert jobs(service) == ["1", "1"]


def sizes(service):
    """How many records came in each batch."""
    return [request["text"].count("\n") for request in service.requests]


def test_a_long_log_is_sent_in_batches(follower, log):
    service = after_a_look(follower, log, "".join(record(job) for job in range(1001)))
    assert sizes(service) == [500, 500, 1]


@pytest.mark.parametrize(("most", "expected"), [(0, [3, 3, 1]), (-1, [2, 2, 2, 1])])
def test_a_batch_ends_with_the_record_that_makes_it_too_large(
    follower, log, monkeypatch, most, expected
):
    monkeypatch.setattr(accounting(follower), "MOST_BYTES", 2 * len(record(1)) + most)
    service = after_a_look(follower, log, "".join(map(record, range(1, 8))))
    assert sizes(service) == expected


def of_length(job, length):
    return record(job)[:-1].ljust(length - 1, "x") + "\n"


def test_a_record_has_at_most_512_kib_and_a_batch_begins_none_after_4_mib(follower, log):
    """As long as the service takes them, and half as much as it takes at a time."""
    longest = 2**19
    too_long = of_length(0, longest + 1)
    (log / "20310203").write_text(
        too_long + "".join(of_length(job, longest) for job in range(1, 11))
    )
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
    assert sizes(service) == [9, 1]
    assert jobs(service) == [str(job) for job in range(1, 11)]


def test_days_before_the_first_and_other_files_are_left_out(follower, log):
    for name in ("20310202", "20310203.gz", "README", "20310203"):
        (log / name).write_text(record(1))
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
    assert jobs(service) == ["1"]


def test_the_token_is_read_from_a_file(follower, log, tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    service = after_a_look(follower, log, token_file=tmp_path / "token")
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]


def follow(follower, log, service, looks, **options):
    chosen = follower.parsed(words(log, service, **options))
    return accounting(follower).follow(chosen, looks)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_is_told_once_and_clearly_and_a_new_one_is_taken_up(
    follower, log, tmp_path, capsys, status
):
    token = tmp_path / "token"
    token.write_text("wt_1_old\n")
    with fake_service(http(status, b"{}"), hangs_up=True) as service:

        def issue(look):
            if look == 5:
                token.write_text("wt_2_new\n")
                service.answer = OK

        follow(follower, log, service, Looks(7, issue), token_file=token)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert str(token) in told[0]
    assert "--scope ingest" in told[0]
    assert told[1] == "reported 1 records"
    assert jobs(service) == ["1"] * 6
    assert "Authorization: Bearer wt_2_new\r\n" in service.headers[-1]


def test_a_missing_token_is_told_as_one(follower, log, capsys):
    with fake_service(http(401, b"{}"), hangs_up=True) as service:
        follow(follower, log, service, Looks(3))
    (told,) = capsys.readouterr().err.splitlines()
    assert "without a token" in told


def test_trouble_of_another_kind_is_told_again(follower, log, capsys):
    with fake_service(http(503, b"{}"), hangs_up=True) as service:

        def change(look):
            service.answer = http(500 if look == 2 else 503, b"{}")

        follow(follower, log, service, Looks(5, change))
    told = capsys.readouterr().err
    assert [told.count(f"HTTP Error {status}") for status in (503, 500)] == [2, 1]


def test_after_failures_the_follower_waits_ever_longer_up_to_a_minute(follower, log):
    with fake_service(http(503, b"{}"), hangs_up=True) as service:

        def recover(look):
            if look == 5:
                service.answer = OK

        looks = Looks(6, recover)
        assert follow(follower, log, service, looks) == 0
    assert looks.waits == [11, 23, 47, 60, 60, 5]


def test_something_else_at_the_services_address_ends_nothing(follower, log, capsys):
    assert after_a_look(follower, log, answer=GARBAGE["no HTTP"]).code == 1
    assert "220 mail.example.org" in capsys.readouterr().err


def test_the_offset_is_that_of_the_look(follower, log, monkeypatch):
    day, offset = log / "20310203", "+0100"
    day.write_text(record(1))
    monkeypatch.setattr(
        accounting(follower).time,
        "strftime",
        lambda form: {"%z": offset}.get(form, "20310203"),
    )
    with fake_service(OK, hangs_up=True) as service:

        def change_to_summer(_):
            nonlocal offset
            offset = "+0200"
            day.write_text(record(1) + record(2))

        follow(follower, log, service, Looks(2, change_to_summer))
    assert ["utc_offset=%2B0100" in head for head in service.headers] == [True, False]
    assert "utc_offset=%2B0200" in service.headers[1]


def test_a_log_that_may_not_be_read_is_told_with_what_to_do(follower):
    told = accounting(follower).advice_about(PermissionError(13, "Permission denied"), None)
    assert "docs/pbs.md" in told
    assert accounting(follower).advice_about(OSError(5, "Input/output error"), None) == (
        "[Errno 5] Input/output error"
    )


@pytest.mark.parametrize(
    ("mark", "sent"),
    [
        ("0b7c-42", " Resource_List.walltimed_prediction=0b7c-42"),
        ("0b7c-42.old_1", " Resource_List.walltimed_prediction=0b7c-42.old_1"),
        ("a" * 64, " Resource_List.walltimed_prediction=" + "a" * 64),
        ("a" * 65, ""),
        ("a" * 60_000, ""),
        ("x;wtp=1", ""),
        ('"quoted text"', ""),
        ("", ""),
        ("../../etc", ""),
        ("a.b.c", ""),
    ],
)
def test_a_mark_that_the_hook_cannot_have_written_is_not_passed_on(follower, log, mark, sent):
    line = (
        f"02/03/2031 04:15:06;E;1.hill;user=carol Resource_List.walltimed_prediction={mark} end=1"
    )
    service = after_a_look(follower, log, f"{line}\n")
    assert service.requests[0]["text"] == f"02/03/2031 04:15:06;E;1.hill;user=carol{sent} end=1\n"


def test_an_endless_line_is_passed_over(follower, log):
    endless = "02/03/2031 04:15:06;E;2.hill;user=" + "x" * 2**20 + "\n"
    first_piece = of_length(4, 2**19)[:-1] + "x"
    looks_like_one = first_piece + record(4)  # the rest of a line is none
    (log / "20310203").write_text(record(1) + endless + record(3) + looks_like_one + endless[:-1])
    with fake_service(OK, hangs_up=True) as service:
        look(follower, log, service)
        look(follower, log, service)
    assert jobs(service) == ["1", "3"]


def test_an_answer_that_never_ends_is_not_read(follower, log):
    with fake_service(http(200, b"", JSON, length=10**12), forever=b"x" * 1000) as service:
        assert look(follower, log, service) == 0
    assert service.sent < MOST_TAKEN


def test_a_service_that_is_gone_loses_nothing(follower, log):
    with fake_service() as service:
        pass
    assert look(follower, log, service) == 1
    assert not (log.parent / "state.json").exists()


def test_the_position_survives(follower, log):
    after_a_look(follower, log)
    kept = json.loads((log.parent / "state.json").read_text())
    assert kept == {"day": "20310203", "offset": len(record(1))}


def test_a_look_that_finds_nothing_writes_nothing(follower, log):
    after_a_look(follower, log, "")
    assert not (log.parent / "state.json").exists()


def test_a_position_is_on_the_disk_before_it_replaces_the_old_one(follower, log, monkeypatch):
    """A machine that loses power would else begin with an empty file."""
    state = log.parent / "state.json"
    seen = []

    def fsync(number):
        seen.append((os.fstat(number).st_size, state.exists()))

    monkeypatch.setattr(accounting(follower).os, "fsync", fsync)
    after_a_look(follower, log)
    assert seen == [(state.stat().st_size, False)]


def test_it_runs_until_it_is_told_to_stop(log):
    with fake_service(OK, hangs_up=True) as service:
        line = site_scripts.first_line_until_sigterm(site_scripts.FOLLOWER, *words(log, service))
    assert line == "reported 1 records\n"
    assert jobs(service) == ["1"]
