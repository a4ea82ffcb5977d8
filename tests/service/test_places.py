"""Where the history and the settings are for root, for the service's user, and for anybody else."""

import os

import pytest

from service import settings
from service.settings import Settings


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of its own, on which an ordinary user asks and no service is installed."""
    monkeypatch.setattr(settings, "SYSTEM_DIRECTORY", tmp_path / "var")
    monkeypatch.setattr(settings, "SYSTEM_SETTINGS", tmp_path / "etc" / "walltimed.toml")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    for name in ("STATE_DIRECTORY", "XDG_DATA_HOME", "WALLTIMED_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "etc").mkdir()
    return tmp_path


def test_an_ordinary_user_s_history_is_among_their_data(machine, monkeypatch):
    assert settings.data_directory() == machine / "home" / ".local" / "share" / "walltimed"
    monkeypatch.setenv("XDG_DATA_HOME", str(machine / "data"))
    assert settings.data_directory() == machine / "data" / "walltimed"


def test_root_and_the_service_s_user_share_the_system_s(machine, monkeypatch):
    (machine / "var").mkdir()
    monkeypatch.setattr(os, "geteuid", (machine / "var").stat().st_uid.__int__)
    assert settings.data_directory() == machine / "var"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert settings.data_directory() == machine / "var"


def test_systemd_s_word_is_taken(machine, monkeypatch):
    monkeypatch.setenv("STATE_DIRECTORY", str(machine / "state"))
    url = f"sqlite:///{machine / 'state' / 'walltimed.sqlite3'}"
    assert Settings().database_url.get_secret_value() == url


@pytest.mark.usefixtures("machine")
def test_a_token_is_not_issued_into_a_second_history(machine, walltimed, monkeypatch):
    """It was: `token issue` as the docs print it made a token that the service refused."""
    monkeypatch.delenv("STATE_DIRECTORY")
    (machine / "var").mkdir()
    code, _, said = walltimed("token", "issue", "filter", "--scope", "predict")
    assert code == 2
    assert "sudo -u walltimed" in said
    assert not (machine / "home").exists()


@pytest.mark.usefixtures("machine")
def test_a_history_of_one_s_own_is_made_and_named(machine, walltimed, monkeypatch):
    monkeypatch.delenv("STATE_DIRECTORY")
    code, _, said = walltimed("token", "list")
    file = machine / "home" / ".local" / "share" / "walltimed" / "walltimed.sqlite3"
    assert code == 0
    assert f"History: {file}" in said
    assert "is new and empty" in said
    assert file.exists()


@pytest.mark.parametrize("command", [("check-config",), ("doctor",), ("db", "check")])
def test_commands_that_change_nothing_make_no_directory(machine, walltimed, monkeypatch, command):
    """As root they made the system's, and from then on other users' commands were refused."""
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code, _, said = walltimed(*command)
    assert f"History: {machine / 'var'}" in said
    assert not (machine / "var").exists()
    assert code == (0 if command == ("check-config",) else 4)


def test_a_place_that_cannot_be_made_is_said(machine, walltimed, monkeypatch):
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setattr(os, "access", lambda place, _: place != machine)
    code, _, said = walltimed("check-config")
    assert code == 4
    assert "No history can be made in" in said


def test_the_system_s_settings_are_read_when_they_exist(machine, monkeypatch):
    assert Settings().port == 8580
    (machine / "etc" / "walltimed.toml").write_text("port = 17\n")
    assert Settings().port == 17
    assert Settings().config == machine / "etc" / "walltimed.toml"
    monkeypatch.setenv("WALLTIMED_PORT", "18")
    assert Settings().port == 18
    monkeypatch.setenv("WALLTIMED_CONFIG", "")
    monkeypatch.delenv("WALLTIMED_PORT")
    assert Settings().port == 8580


def test_settings_that_may_not_be_read_are_not_passed_over(machine, walltimed, monkeypatch):
    (machine / "etc" / "walltimed.toml").write_text("port = 17\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, _, said = walltimed("check-config")
    assert code == 2
    assert "you may not read it" in said


def test_processes_that_are_started_anew_read_no_other_file(machine, monkeypatch):
    environment = Settings(port=9).environment()
    (machine / "etc" / "walltimed.toml").write_text("port = 17\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Settings().port == 9
    assert Settings().config is None
