"""Mistakes that people make with commands, and what they are told."""

import json
from pathlib import Path

import pytest
import typer
from fake_service import fake_service, http
from workloads import synthetic

from service.cli import app
from service.cli.options import refuse_misspelt
from service.settings import Settings

ROOT = Path(__file__).parents[3]

LONGEST_NAME = 24
"""Characters of an option that help in 80 columns shows whole."""

LONGEST_EXAMPLE = 77
"""Characters of an example that stays on one line, so that it can be copied."""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return synthetic(tmp_path_factory.mktemp("logs") / "log.swf", jobs=30, seed=5)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("replay", "LOG", "--output", "no/where.csv"), "directory no"),
        (("replay", "LOG", "--report", "file"), "file is a file"),
        (("simulate", "LOG", "--output", "no/where.swf"), "directory no"),
        (("simulate", "LOG", "--report", "file/below"), "cannot be written"),
        (("backtest", "LOG", "-o", "no/page.html"), "directory no"),
        (("serve", "--unix-socket", "no/socket"), "no/socket"),
    ],
)
def test_a_path_that_cannot_be_written_is_told_before_the_work(
    walltimed, tmp_path, log, arguments, complaint
):
    (tmp_path / "file").write_text("")
    code, printed, told = walltimed(*(str(log) if each == "LOG" else each for each in arguments))
    assert code == 2
    assert complaint in told
    assert printed == ""


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("WALLTIMED_PORTT", "WALLTIMED_PORT"),
        ("WALLTIMED_METHODS", "WALLTIMED_METHOD"),
        ("WALLTIMED_DATABASE_URI", "WALLTIMED_DATABASE_URL"),
    ],
)
def test_a_misspelt_variable_of_the_environment_is_refused(refused, monkeypatch, variable, meant):
    monkeypatch.setenv(variable, "1")
    assert f"mean {meant}?" in refused("check-config")


def test_variables_of_others_with_our_prefix_are_theirs(walltimed, monkeypatch):
    monkeypatch.setenv("WALLTIMED_TOKEN", "secret")
    monkeypatch.setenv("WALLTIMED_PORT_8580_TCP_ADDR", "10.0.0.1")
    assert walltimed("check-config")[0] == 0


def test_a_variable_that_a_command_for_users_takes_is_in_no_other_commands_way():
    taken = {
        option.envvar for _, command in commands() for option in command.params if option.envvar
    }
    assert {"WALLTIMED_URL", "WALLTIMED_TOKEN_FILE", "WALLTIMED_CLUSTER"} <= taken
    refuse_misspelt(taken, Settings.model_fields)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("prot = 3", "mean 'port'?"),
        ("tuning_plan = {penality = 2}", "mean 'penalty'?"),
        ("method = 'max-usages'", "mean 'max-usage'?"),
        ("port = 'x'", "port: "),
        ("port = 99999", "port: "),
        ("port = = 1", "TOML"),
        ("predictors.percentile.percentile = 900", "percentile"),
    ],
)
def test_a_misspelt_line_of_the_settings_file_is_refused(refused, tmp_path, line, told):
    (tmp_path / "walltimed.toml").write_text(line)
    assert told in refused("check-config", "-c", "walltimed.toml")


def test_a_misspelt_parameter_of_a_method_is_named_without_python(refused, log):
    told = refused("replay", log, "-m", "max-usage:widow=3", "--in-process")
    assert "mean 'window'?" in told
    assert "__init__" not in told


def test_a_file_s_name_is_no_database_url_and_the_right_one_is_said(refused):
    told = refused("token", "list", "-d", "history.db")
    assert "write sqlite:///history.db" in told
    assert "SQLAlchemy" not in told


def test_a_file_of_no_known_format_is_refused_with_what_there_is(refused, tmp_path, sqlite_url):
    (tmp_path / "jobs.txt").write_text("JobId=901 JobName=train\n   UserId=carol(1001)\n")
    told = refused("import", "jobs.txt", "-d", sqlite_url)
    assert "--format swf | sacct | pbs" in told


@pytest.mark.parametrize("header", ["JobID|User|State", "State|User|JobIDRaw"])
def test_sacct_without_the_columns_of_a_run_names_file_and_columns(
    refused, tmp_path, sqlite_url, header
):
    (tmp_path / "three.txt").write_text(f"{header}\n1|ada|COMPLETED\n")
    told = refused("import", "three.txt", "-d", sqlite_url)
    assert all(word in told for word in ("three.txt", "Submit", "Start", "End", "Timelimit"))


@pytest.mark.parametrize("content", ["junk\n", "; Version: 2\n"])
def test_a_file_that_is_no_schedule_is_named(refused, tmp_path, content):
    (tmp_path / "junk.txt").write_text(content)
    told = refused("verify", "junk.txt")
    assert "junk.txt" in told
    assert "simulate --output" in told


def test_a_file_of_the_wrong_format_prints_five_lines_and_a_count(walltimed, tmp_path, sqlite_url):
    (tmp_path / "broken.swf").write_text("; SWF\n" + "1 2 3\n" * 40)
    code, _, told = walltimed("import", "broken.swf", "-d", sqlite_url)
    assert code == 2
    assert told.count("3 fields instead of 18") == 5
    assert "40 malformed lines" in told


def test_an_import_of_an_empty_file_is_noticed_by_its_exit_code(walltimed, tmp_path, sqlite_url):
    (tmp_path / "empty.swf").write_text("")
    code, printed, _ = walltimed("import", "empty.swf", "-d", sqlite_url)
    assert code == 3
    assert "no job" in printed


def test_a_dry_run_of_an_import_stores_nothing(walltimed, log, tmp_path):
    url = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    code, printed, _ = walltimed("import", log, "-d", url, "--dry-run")
    assert code == 0
    assert printed.endswith("log.swf: 30 readable, 0 malformed lines\n")
    assert not (tmp_path / "new.sqlite3").exists()


def test_a_dry_run_counts_odd_records_by_reason_as_the_kept_results_say(walltimed, monkeypatch):
    monkeypatch.chdir(ROOT / "tests/data/odd")
    kinds = ("pbs-*", "sacct-*", "swf-*", "xdmod-*")
    names = [file.name for kind in kinds for file in sorted(Path().glob(kind))]
    code, printed, _ = walltimed("import", "--dry-run", *names)
    kept = (ROOT / "results/odd-records.txt").read_text()
    assert (code, printed) == (3, kept.partition("\n")[2])


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("backtest", "missing.swf"), 2, "usage"),
        (("config", "--bogus"), 2, "usage"),
        (("replay",), 2, "usage"),
        (("db", "check", "-d", "sqlite:////nowhere/at/all.sqlite3"), 4, "unavailable"),
    ],
)
def test_errors_under_json_are_json(walltimed, arguments, code, error):
    ended, printed, _ = walltimed(*arguments, "--json")
    document = json.loads(printed)
    assert ended == document["exit_code"] == code
    assert document["schema"] == 1
    assert document["error"] == error
    assert document["detail"]


def commands():
    """Every command with its words."""
    for name, command in typer.main.get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield (name,), command
        else:
            yield from (((name, each), below) for each, below in inner.items())


@pytest.mark.parametrize("command", [command for _, command in commands()])
def test_help_in_80_columns_shows_whole_options_and_whole_examples(command):
    names = [name for parameter in command.params for name in parameter.opts]
    secondary = [name for parameter in command.params for name in parameter.secondary_opts]
    assert all(len(name) <= LONGEST_NAME for name in names), names
    assert all(len(name) <= LONGEST_NAME for name in secondary), secondary
    for line in (command.help or "").splitlines():
        if line.startswith("    walltimed"):
            assert len(line.strip()) <= LONGEST_EXAMPLE, line


def test_config_fits_eighty_columns_with_its_meanings(walltimed):
    _, printed, _ = walltimed("config")
    assert "port = 8580  [default]\n    Port to listen on" in printed
    meanings = [line for line in printed.splitlines() if line.startswith("    ")]
    assert len(meanings) > 30
    assert max(map(len, meanings)) <= 80


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 257])
@pytest.mark.parametrize("command", [("import", "LOG"), ("reconcile",)])
def test_a_cluster_that_nobody_could_ask_about_is_refused(refused, log, command, name):
    arguments = (str(log) if each == "LOG" else each for each in command)
    assert "--cluster" in refused(*arguments, "--cluster", name)


@pytest.mark.parametrize("zone", ["Europe", "", "Mars/Olympus"])
def test_a_time_zone_that_is_none_is_named(refused, log, zone):
    assert f"time zone {zone!r}" in refused("import", "--time-zone", zone, log)


SECRET = "wt_0123456789ab_" + "5ec2e7" * 10


@pytest.mark.parametrize(
    "content",
    [f"Token 0123456789ab for x, shown only now:\n{SECRET}\n".encode(), b"\xff\xfe", b"\n"],
)
@pytest.mark.parametrize("command", [("doctor",), ("queue",), ("slurm-updater", "--once")])
def test_a_file_that_holds_more_than_a_token_is_told_without_what_it_holds(
    walltimed, tmp_path, command, content
):
    file = tmp_path / "token"
    file.write_bytes(content)
    code, printed, told = walltimed(*command, "--token-file", file)
    assert code == 2
    assert str(file) in told
    assert SECRET not in printed + told


@pytest.mark.parametrize("url", ["http://host:high", "http://host:99999", "http://[::1", "host"])
def test_an_address_that_is_none_is_refused_with_a_sentence(refused, url):
    assert f"{url!r} is not" in refused("queue", "--url", url)


@pytest.mark.parametrize(("command", "expected"), [("doctor", 1), ("queue", 1)])
def test_a_page_of_something_else_is_not_taken_for_the_service(walltimed, command, expected):
    with fake_service(http(200, b"<p>It works!</p>")) as service:
        code, _, told = walltimed(command, "--url", f"http://127.0.0.1:{service.port}")
    assert code == expected
    assert "Something else" in told


def test_no_time_that_an_option_takes_is_endless():
    endless = [
        (words, option.opts[0])
        for words, command in commands()
        for option in command.params
        if option.bare_type is float and option.min is not None and option.max is None
    ]
    assert endless == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", "--days", "1e300"),
        ("reconcile", "--days", "inf"),
        ("slurm-updater", "--once", "--interval", "inf"),
    ],
)
def test_an_endless_time_is_refused_with_its_bounds(refused, arguments):
    assert f"Invalid value for '{arguments[-2]}'" in refused(*arguments)
