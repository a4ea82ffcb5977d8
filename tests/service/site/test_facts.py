"""Facts about a resource manager, from stand-ins of its commands and files."""

import os
import time

import pytest
from runs import a_run, reported

from service.site import facts
from service.site.facts import (
    SEPARATOR,
    filter_modes,
    known_jobs,
    queues_of,
    unknown_runs,
    updater_without_rights,
)

NOW = time.time()
HOUR = 3600.0


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Puts a command into PATH, alone there, that prints a text, or one by its first argument."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    (tmp_path / "pbs.conf").write_text(f"PBS_HOME={tmp_path}\n")
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))

    def put(name, *, any_argument="", **printed):
        for argument, text in {"any": any_argument, **printed}.items():
            (folder / f"{name}-{argument.replace('_', '-')}").write_text(text)
        at = f"{folder}/{name}"
        script = f'#!/bin/sh\n[ -e "{at}-$1" ] && exec /bin/cat "{at}-$1"\nexec /bin/cat {at}-any\n'
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    return put


def ended(job, ago, cluster="hill", user="ada"):
    return a_run(job, start=NOW - ago - 600, cluster=cluster, user=user)


def unknown(store):
    since = NOW - 24 * HOUR
    return unknown_runs(store, known_jobs(since), since, NOW)


def rows(*jobs):
    """Rows of sacct: the raw id, the id, the cluster and the end."""
    return "".join(
        SEPARATOR.join([raw, job, cluster, str(int(NOW - ago))]) + "\n"
        for raw, job, cluster, ago in jobs
    )


def test_runs_that_sacct_does_not_know_are_found(store, commands):
    store.write([reported(ended("1", HOUR), ended("7_2", HOUR), ended("99", HOUR, user="eve"))])
    commands("sacct", any_argument=rows(("1", "1", "hill", HOUR), ("8", "7_2", "hill", 2 * HOUR)))
    assert unknown(store) == {"hill": [("99", "eve")]}


@pytest.mark.parametrize(
    ("ago", "known"),
    [
        (60, ("1", "1", "hill", HOUR)),  # slurmdbd may not have heard of it yet
        (3 * HOUR, ("1", "1", "hill", 2 * HOUR)),  # slurmdbd may have purged it
        (HOUR, ("5", "5", "hill", 2 * HOUR)),  # of a cluster of which sacct shows nothing
        (HOUR, ("1", "1", "dale", 2 * HOUR)),
    ],
)
def test_runs_of_which_sacct_cannot_tell_are_left_in_peace(store, commands, ago, known):
    store.write([reported(ended("1", HOUR), ended("99", ago))])
    commands("sacct", any_argument=rows(known))
    assert unknown(store) == {}


@pytest.mark.usefixtures("commands")
def test_runs_that_the_accounting_of_pbs_does_not_know_are_found(store, tmp_path):
    folder = tmp_path / "server_priv" / "accounting"
    folder.mkdir(parents=True)
    day = folder / time.strftime("%Y%m%d", time.localtime(NOW - HOUR))
    day.write_text("01/01/2026 00:00:00;E;1.hill;user=ada\n01/01/2026 00:00:00;S;2.hill;user=ada\n")
    store.write([reported(ended("1.hill", HOUR), ended("2.hill", HOUR, user="eve"))])
    assert unknown(store) == {"hill": [("2.hill", "eve")]}


@pytest.mark.parametrize(
    ("level", "enabled", "user"),
    [("None", "enabled", "wt"), ("", "enabled", "wt"), ("Operator", "enabled", None),
     ("None", "disabled", None)],
)  # fmt: skip
def test_an_updater_that_slurm_lets_change_no_jobs_is_found(commands, level, enabled, user):
    commands("scontrol", show="SlurmUser               = slurm(64030)\n")
    commands("sacctmgr", any_argument=level + "\n")
    commands("systemctl", is_enabled=enabled + "\n", show="wt\n")
    assert updater_without_rights() == user


@pytest.fixture
def filters(tmp_path, monkeypatch):
    """A host with the settings of a filter and of a hook; gives the place of the switch."""
    (tmp_path / "walltimed_site.json").write_text('{"mode": "soft"}')
    (tmp_path / "pbs-hook.json").write_text('{"mode": "observe"}')
    os.utime(tmp_path / "pbs-hook.json", (5.0, 5.0))
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setattr(facts, "HOOK_CONFIG", tmp_path / "pbs-hook.json")
    monkeypatch.setattr(facts, "OFF_SWITCH", tmp_path / "walltimed.off")
    return tmp_path / "walltimed.off"


@pytest.mark.usefixtures("filters")
def test_the_modes_in_the_files_of_filters_are_read(tmp_path):
    lua, pbs = filter_modes()
    assert (lua.filter, lua.mode) == ("walltimed.lua", "soft")
    assert (pbs.filter, pbs.mode, pbs.changed_at) == ("walltimed_hook.py", "observe", 5.0)
    (tmp_path / "walltimed_site.json").write_text("{}")
    (tmp_path / "pbs-hook.json").write_text("no object")
    assert list(filter_modes()) == []


def test_a_switch_that_is_there_is_the_mode_of_every_filter_and_is_noted(filters, store):
    filters.write_text("")
    os.utime(filters, (NOW - HOUR, NOW - HOUR))
    assert {(mode.path, mode.mode) for mode in filter_modes()} == {(str(filters), "off")}
    found = next(facts.site_faults(store, [], since=NOW - HOUR, now=NOW, oldest=600.0))
    assert (found.name, found.is_wrong, found.remedy) == (
        "switched-off",
        False,
        "walltimed connect --on",
    )


@pytest.mark.usefixtures("commands")
def test_without_a_resource_manager_nothing_is_said(store, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    store.write([reported(ended("99", HOUR))])
    assert unknown(store) == {}
    assert updater_without_rights() is None
    assert list(queues_of(store)) == []
