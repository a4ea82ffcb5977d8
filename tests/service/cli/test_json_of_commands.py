"""Every command with ``--json`` has a schema, and prints what it says."""

import json
from dataclasses import fields

import jsonschema_rs
import pytest
import typer
from command_schemas import SCHEMAS, check_printed, schema_file
from workloads import synthetic

from service.cli import app, slurm_updating
from service.contract.queue_answers import (
    EndedJobAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
    WhatIfAnswer,
)
from service.contract.reports import RequestsReportAnswer
from service.slurm_updater.updater import JobChange, QueueUpdate


def commands_with_json():
    """The words of every command that prints JSON."""

    def walk(command, words):
        inner = getattr(command, "commands", None)
        if inner is None:
            if any("--json" in option.opts for option in command.params):
                yield " ".join(words)
            return
        for name, each in inner.items():
            yield from walk(each, [*words, name])

    return list(walk(typer.main.get_command(app), []))


COMMANDS = commands_with_json()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_json_has_a_schema_of_its_version(command):
    file = schema_file(command.split())
    assert file is not None
    schema = json.loads(file.read_text())
    jsonschema_rs.validator_for(schema)
    assert schema["title"] in {
        f"walltimed {command} --json",
        f"walltimed {command.split()[0]} --json",
    }
    for part in schema.get("oneOf", [schema]) if "properties" not in schema else [schema]:
        assert part["properties"]["schema"] in ({"const": 1}, {"const": 2})
        assert "schema" in part["required"]


def test_every_schema_is_that_of_a_command():
    known = {schema_file(command.split()).name for command in COMMANDS} | {"error.json"}
    assert {file.name for file in SCHEMAS.glob("*.json")} == known


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("ask", [WhatIfAnswer]),
        ("queue", [QueueAnswer, LiveJobDetailAnswer, EndedJobAnswer]),
        ("report", [RequestsReportAnswer]),
    ],
)
def test_schemas_of_answers_have_the_fields_of_the_service(name, answers):
    text = (SCHEMAS / f"{name}.json").read_text()
    schema = json.loads(text)
    found = [schema, *schema.get("oneOf", []), *schema.get("$defs", {}).values()]
    known = [set(each.get("properties", {})) - {"schema"} for each in found]
    for answer in answers:
        assert {field.name for field in fields(answer)} in known


LOG = "log.swf"

ARGUMENTS = {
    "config": [],
    "check-config": ["-d", "{url}"],
    "doctor": ["-d", "{url}", "--url", "http://127.0.0.1:1"],
    "token issue": ["portal", "-s", "read", "-d", "{url}"],
    "token list": ["-d", "{url}"],
    "import": [LOG, "-d", "{url}"],
    "forget": ["--user", "user1", "--dry-run", "-d", "{url}"],
    "db upgrade": ["-d", "{url}"],
    "db check": ["-d", "{url}"],
    "db backup": ["copy.sqlite3", "-d", "{url}"],
    "db restore": ["copy.sqlite3", "-d", "{url}"],
    "replay": [LOG, "--in-process", "-m", "requested"],
    "simulate": [LOG],
    "backtest": [LOG, "-m", "max-usage", "--shake", "0"],
}
"""Of commands that need nothing but a history and a log."""

ELSEWHERE = {
    "warm-up": "test_warm_up",
    "token revoke": "test_cli",
    "token stop-requiring": "test_cli",
    "ask": "test_user_commands",
    "queue": "test_user_commands",
    "report": "test_user_commands",
    "reconcile": "test_cli_accounting",
    "tune": "test_tune_command",
    "verify": "test_simulate_command",
}
"""Where the others run, whose output the fixture ``walltimed`` checks too."""


@pytest.fixture
def log(tmp_path):
    synthetic(tmp_path / LOG, jobs=260, seed=2, load=0.7)


@pytest.mark.usefixtures("log")
def test_every_command_prints_what_its_schema_says(walltimed, sqlite_url):
    for command, options in ARGUMENTS.items():
        given = [option.format(url=sqlite_url) for option in options]
        code, printed, complaint = walltimed(*command.split(), *given, "--json")
        assert printed, (command, complaint)
        assert code == (1 if command == "doctor" else 0), (command, complaint)


def test_what_runs_nowhere_else_runs_here():
    assert set(COMMANDS) == {*ARGUMENTS, *ELSEWHERE, "slurm-updater"}


def test_a_round_over_slurms_queue_is_as_its_schema_says(capsys):
    change = JobChange(job_id="4", target="4", settings={"TimeMin": "00:10:00"}, time_min=10)
    done = QueueUpdate(jobs=2, asked=1, planned=[change], refused={"5": "no"}, warnings=["old"])
    slurm_updating.show(done, dry_run=True, as_json=True)
    check_printed(["slurm-updater"], 0, capsys.readouterr().out)
