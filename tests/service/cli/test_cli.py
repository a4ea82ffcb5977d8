"""The commands that neither serve nor replay, through the same door as the shell's."""

import json
import re
import tomllib

import pytest

from service.settings import Settings
from service.store import open_store

SWF = """; UnixStartTime: 1000000000
; MaxProcs: 64
1 0 10 600 4 -1 -1 4 3600 -1 1 7 1 3 1 -1 -1 -1
2 60 0 1200 4 -1 -1 4 3600 -1 1 7 1 3 1 -1 -1 -1
3 90 0 -1 4 -1 -1 4 3600 -1 5 8 1 3 1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path):
    """Three jobs, one of which never ran."""
    file = tmp_path / "three.swf"
    file.write_text(SWF)
    return file


@pytest.fixture
def broken_trace(trace):
    """The same with two lines that are no jobs."""
    trace.write_text(f"{SWF}4 oops\n5 0 0 nan 4 -1 -1 4 3600 -1 1 7 1 3 1 -1 -1 -1\n")
    return trace


def test_version_is_printed(walltimed):
    code, printed, _ = walltimed("--version")
    assert code == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", printed)


def test_help_names_the_values_of_an_option_unbroken(walltimed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, text, _ = walltimed("slurm-updater", "--help")
    for value in ("none", "psp", "shortest-first", "sjf-aging", "observe", "soft"):
        assert re.search(rf"\b{value}\b", text)
    assert "<none|" not in text


def test_every_setting_is_described_with_value_and_source(walltimed, monkeypatch):
    monkeypatch.setenv("WALLTIMED_PORT", "9000")
    code, printed, _ = walltimed("config", "--json")
    settings = {setting["name"]: setting for setting in json.loads(printed)["settings"]}
    assert code == 0
    assert settings.keys() == Settings.model_fields.keys()
    assert all(setting["description"] for setting in settings.values())
    assert settings["port"]["value"] == 9000
    assert settings["port"]["source"] == "environment"
    assert settings["host"]["source"] == "default"


def test_a_setting_from_the_file_says_so_and_the_environment_wins(walltimed, monkeypatch, tmp_path):
    file = tmp_path / "walltimed.toml"
    file.write_text("port = 1234\nworkers = 3\n")
    monkeypatch.setenv("WALLTIMED_PORT", "9000")
    _, printed, _ = walltimed("config", "--config", str(file), "--json")
    settings = {setting["name"]: setting for setting in json.loads(printed)["settings"]}
    assert (settings["port"]["value"], settings["port"]["source"]) == (9000, "environment")
    assert (settings["workers"]["value"], settings["workers"]["source"]) == (3, "file")


def test_the_template_holds_every_default(walltimed):
    _, printed, _ = walltimed("config", "--toml")
    uncommented = re.sub(r"^# (\w+ = )", r"\1", printed, flags=re.MULTILINE)
    values = {name: value for name, value in tomllib.loads(uncommented).items() if value != ""}
    # Where the history is depends on who asks; the template says it for the service.
    assert values.pop("database_url") == "sqlite:////var/lib/walltimed/walltimed.sqlite3"
    assert Settings(**values) == Settings()
    values["database_url"] = ""
    assert Settings.model_fields.keys() - values.keys() == {
        "config",
        "proxy_groups_header",
        "proxy_user_header",
        "pseudonym_key_file",
        "underestimation_rate",
        "unix_socket",
    }


@pytest.mark.parametrize("options", [(), ("--json",), ("--toml",)])
@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://ada:s3cret@db/history",
        "postgresql+psycopg://ada@db/history?password=s3cret&sslpassword=s3cret",
    ],
)
def test_a_password_is_never_printed(walltimed, monkeypatch, options, url):
    monkeypatch.setenv("WALLTIMED_DATABASE_URL", url)
    code, printed, complained = walltimed("config", *options)
    assert code == 0
    assert "s3cret" not in printed + complained


@pytest.mark.parametrize(
    ("variables", "arguments", "complaint"),
    [
        ({"WALLTIMED_PORT": "70000"}, ("config",), "port"),
        ({"WALLTIMED_PREDICTORS": "not JSON"}, ("config",), "predictors"),
        ({"WALLTIMED_METHOD": "odd"}, ("serve",), "odd"),
        ({"WALLTIMED_PREDICTORS": '{"last-two": {"odd": 1}}'}, ("serve",), "odd"),
        ({"WALLTIMED_PREDICTORS": '{"maxusage": {}}'}, ("serve",), "maxusage"),
        ({"WALLTIMED_PREDICTORS": '{"max-usage": {"window": -1}}'}, ("serve",), "window"),
        ({"WALLTIMED_TUNING_PLAN": '{"penalty": -1}'}, ("check-config",), "penalty"),
        ({"WALLTIMED_TUNING_PLAN": '{"odd": 1}'}, ("check-config",), "odd"),
        ({"WALLTIMED_CONFIG": "missing.toml"}, ("config",), "missing.toml"),
        ({}, ("config", "--toml", "--json"), "not both"),
        ({}, ("import", "missing.swf"), "missing.swf"),
        ({}, ("import", "--format", "odd", "missing.swf"), "odd"),
        ({}, ("db", "check", "-d", "mysql://db/history"), "mysql"),
        ({}, ("db", "check", "-d", "nothing"), "URL"),
        (
            {},
            ("token", "issue", "me", "--scope", "everything"),
            "scopes are some of admin, ingest, predict",
        ),
        ({}, ("no-such-command",), "no-such-command"),
    ],
)
def test_a_wrong_use_is_one_sentence_and_exit_code_2(
    refused, monkeypatch, variables, arguments, complaint
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    complained = refused(*arguments)
    assert complaint in complained
    assert "Traceback" not in complained


@pytest.mark.parametrize("command", [("config",), ("db", "check")])
def test_a_password_that_is_taken_for_a_port_is_not_printed(walltimed, monkeypatch, command):
    monkeypatch.setenv("WALLTIMED_DATABASE_URL", "postgresql+psycopg://ada:a@b:s3cret@db/history")
    code, printed, complained = walltimed(*command)
    assert code == (0 if command == ("config",) else 2)
    assert "s3cret" not in printed + complained


def test_a_store_names_itself_without_its_password():
    store = open_store("postgresql+psycopg://ada@127.0.0.1:1/history?password=s3cret")
    store.close()
    assert "s3cret" not in store.name


@pytest.mark.parametrize("name", ["unix_socket", "pseudonym_key_file"])
def test_the_empty_name_of_a_file_is_none(monkeypatch, name):
    monkeypatch.setenv(f"WALLTIMED_{name.upper()}", "")
    assert getattr(Settings(), name) is None


def test_a_settings_file_in_another_encoding_is_refused(refused, tmp_path):
    file = tmp_path / "walltimed.toml"
    file.write_bytes("# für alle\nport = 1\n".encode("latin-1"))
    assert "UTF-8" in refused("config", "--config", str(file))


def test_a_store_that_cannot_be_reached_is_exit_code_4(walltimed, tmp_path):
    url = f"postgresql+psycopg://nobody@/none?host={tmp_path}"
    code, _, complained = walltimed("db", "check", "-d", url)
    assert code == 4
    assert [line.partition(":")[0] for line in complained.splitlines()] == ["History", "error"]


def test_check_fails_until_the_schema_is_upgraded(walltimed, empty_store_url):
    code, _, complained = walltimed("db", "check", "-d", empty_store_url)
    assert code == (4 if empty_store_url.startswith("sqlite") else 1)  # no file, no schema
    assert "walltimed db upgrade" in complained
    assert walltimed("db", "upgrade", "-d", empty_store_url)[0] == 0
    assert walltimed("db", "check", "-d", empty_store_url)[0] == 0
    assert walltimed("db", "upgrade", "-d", empty_store_url)[0] == 0


def test_only_an_embedded_store_is_upgraded_on_the_way(walltimed, empty_store_url):
    code, _, complained = walltimed("token", "list", "-d", empty_store_url)
    if empty_store_url.startswith("sqlite"):
        assert code == 0
        assert "new and empty" in complained
    else:
        assert code == 1
        assert "walltimed db upgrade" in complained


def test_whoever_revokes_the_last_token_is_told_that_nobody_can_call(walltimed, store_url):
    issued = [walltimed("token", "issue", name, "-s", "predict", "-d", store_url) for name in "ab"]
    first, last = (printed.splitlines()[-1].split("_")[1] for _, printed, _ in issued)
    _, printed, _ = walltimed("token", "revoke", first, "-d", store_url)
    assert "last" not in printed
    _, printed, _ = walltimed("token", "revoke", last, "-d", store_url)
    assert "every call is refused" in printed
    assert "walltimed token stop-requiring" in printed


def test_only_an_explicit_command_lets_callers_without_a_token_in_again(walltimed, store_url):
    walltimed("token", "issue", "a", "-s", "predict", "-d", store_url)
    code, _, complained = walltimed("token", "stop-requiring", "-d", store_url)
    assert (code, "--yes" in complained) == (2, True)
    assert len(json.loads(walltimed("token", "list", "--json", "-d", store_url)[1])["tokens"]) == 1
    code, printed, _ = walltimed("token", "stop-requiring", "--yes", "-d", store_url)
    assert (code, "1 tokens deleted" in printed) == (0, True)
    assert json.loads(walltimed("token", "list", "--json", "-d", store_url)[1])["tokens"] == []


def test_a_token_is_shown_once_listed_without_its_secret_and_revoked(walltimed, store_url):
    code, printed, _ = walltimed("token", "issue", "filter", "-s", "predict", "-d", store_url)
    assert code == 0
    secret = printed.splitlines()[-1]
    token_id = secret.split("_")[1]
    _, listed, _ = walltimed("token", "list", "-d", store_url)
    assert token_id in listed
    assert "filter" in listed
    assert secret.split("_", 2)[2] not in listed
    assert walltimed("token", "revoke", token_id, "-d", store_url)[0] == 0
    code, _, complained = walltimed("token", "revoke", token_id, "-d", store_url)
    assert code == 1
    assert token_id in complained
    _, printed, _ = walltimed("token", "list", "-d", store_url, "--json")
    (token,) = json.loads(printed)["tokens"]
    assert token["revoked_at"] >= token["issued_at"]
    assert token["scopes"] == ["predict"]


def test_an_import_stores_what_can_be_learned_from_and_counts_the_rest(walltimed, trace, store_url):
    code, printed, _ = walltimed("import", str(trace), "-d", store_url, "--json")
    (report,) = json.loads(printed)["files"]
    assert code == 0
    assert (report["accepted"], report["duplicates"], report["rejected"]) == (2, 0, [])
    assert report["left_out"] == {"never-ran": 1}
    code, printed, _ = walltimed("import", str(trace), "-d", store_url)
    assert code == 0
    assert "2 duplicates" in printed
    assert "1 never-ran" in printed


def test_an_import_of_a_broken_file_names_the_lines_and_stores_nothing(
    walltimed, broken_trace, sqlite_url
):
    code, _, complained = walltimed("import", str(broken_trace), "-d", sqlite_url)
    assert code == 2
    assert "line 6" in complained
    assert "line 7" in complained
    assert history_length(sqlite_url) == 0


def test_an_import_may_skip_broken_lines_and_says_so(walltimed, broken_trace, sqlite_url):
    skipping = ("import", str(broken_trace), "--on-error", "skip", "-d", sqlite_url)
    code, printed, _ = walltimed(*skipping, "--json")
    (report,) = json.loads(printed)["files"]
    assert code == 3
    assert report["accepted"] == 2
    assert [reject["line"] for reject in report["rejected"]] == [6, 7]
    code, printed, _ = walltimed(*skipping)
    assert code == 3
    assert "line 6" in printed
    assert history_length(sqlite_url) == 2


def history_length(url: str) -> int:
    store = open_store(url)
    try:
        return store.past_runs.count()
    finally:
        store.close()
