"""`walltimed connect --off` and `--on`: one file, and what they say of each part of a host."""

import os
import shutil
import stat

import pytest
from slurm_scripts import LUAS, VARIANTS

from service.cli import connect
from service.site import pbs_conf, switch
from service.site.host_files import HostFile, script
from terminal.console import CommandError


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host without systemd and PBS; gives the directory of its slurm.conf."""
    off = tmp_path / "etc" / "walltimed.off"
    off.parent.mkdir()
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    for module in (switch, connect):
        monkeypatch.setattr(module, "OFF_SWITCH", off)
    monkeypatch.setenv("SLURM_CONF", str(slurm / "slurm.conf"))
    monkeypatch.setattr(pbs_conf, "is_here", lambda: False)
    monkeypatch.setattr(switch, "is_installed", lambda _unit: False)
    return slurm


@pytest.fixture
def connected(host):
    """The host with our filter."""
    for name in ("walltimed.lua", "job_submit.lua"):
        shutil.copy(script(f"slurm/{name}"), host)
    return host


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_off_makes_one_file_and_edits_none_of_the_sites(walltimed, connected, config):
    own, filter_ = connected / "walltimed_config.lua", connected / "job_submit.lua"
    own.write_text(config)
    os.utime(filter_, (5, 5))
    code, printed, _ = walltimed("connect", "--off")
    assert code == 0
    assert f"off: {connected / 'walltimed.lua'}" in printed
    assert "slurm-updater --reset" in printed
    assert own.read_text() == config
    assert switch.OFF_SWITCH.read_text().startswith("off since ")
    assert stat.S_IMODE(switch.OFF_SWITCH.stat().st_mode) == 0o644
    assert filter_.stat().st_mtime > 5
    again = switch.OFF_SWITCH.read_text()
    assert walltimed("connect", "--off")[0] == 0
    assert switch.OFF_SWITCH.read_text() == again


@pytest.mark.usefixtures("connected")
def test_on_removes_the_file(walltimed):
    walltimed("connect", "--off")
    assert "removed: filters do again" in walltimed("connect", "--on")[1]
    assert not switch.OFF_SWITCH.exists()
    assert "was not there" in walltimed("connect", "--on")[1]
    assert walltimed("connect", "--on", "--off")[0] == 2


@pytest.mark.parametrize("text", ["-- looks for nothing", '-- if exists("walltimed.off")', ""])
def test_a_filter_that_is_not_this_release_s_is_replaced(walltimed, connected, text):
    ours = connected / "walltimed.lua"
    ours.write_text(text)
    assert walltimed("connect", "--off")[0] == 0
    assert ours.read_text() == script("slurm/walltimed.lua").read_text()


def test_a_filter_that_cannot_be_replaced_may_go_on_and_that_is_said(walltimed, connected):
    old = connected / "old.lua"
    old.write_text("-- looks for nothing")
    (connected / "walltimed.lua").unlink()
    (connected / "walltimed.lua").symlink_to(old)
    code, printed, said = walltimed("connect", "--off")
    assert code == 1
    assert f"Could not turn off {connected / 'walltimed.lua'}" in said
    assert "is a link" in said
    assert "\noff: " not in printed
    assert switch.OFF_SWITCH.exists()


@pytest.mark.usefixtures("connected")
def test_a_directory_into_which_slurm_may_not_look_is_told(walltimed):
    switch.OFF_SWITCH.parent.chmod(0o750)
    code, _, said = walltimed("connect", "--off")
    assert code == 1
    assert f"chmod o+x {switch.OFF_SWITCH.parent}" in said


@pytest.mark.skipif(not LUAS, reason="needs Lua")
@pytest.mark.parametrize(
    ("installed", "says"),
    [
        ("is_off = function() return false end", "does not find"),
        ("is_off = function() error('no such thing') end", "no such thing"),
        ("", "attempt to call"),
    ],
)
def test_what_lua_says_is_read_back(walltimed, connected, monkeypatch, installed, says):
    """Of a filter that calls itself this release's and looks for something else."""
    other = HostFile(path=connected / "walltimed.lua", text=f"return {{ {installed} }}")
    monkeypatch.setattr(switch, "our_filter", lambda _directory: other)
    code, printed, said = walltimed("connect", "--off")
    assert code == 1
    assert f"Could not turn off {other.path}" in said
    assert says in said
    assert "\noff: " not in printed


@pytest.mark.skipif(not LUAS, reason="needs Lua")
def test_lua_is_asked_as_the_user_of_slurmctld(walltimed, connected):
    (connected / "slurm.conf").write_text("SlurmUser=no-such-user\n")
    code, _, said = walltimed("connect", "--off")
    assert code == 1
    assert "this host knows no SlurmUser no-such-user" in said


def test_a_host_without_lua_is_not_asked_for_it(connected, monkeypatch):
    monkeypatch.setattr(switch, "LUAS", ("no-such-lua",))
    assert switch.lua_obstacle(connected / "walltimed.lua", "root") is None


@pytest.mark.usefixtures("host")
def test_a_host_without_a_filter_is_told_so(walltimed):
    code, _, said = walltimed("connect", "--off")
    assert code == 1
    assert "run this on the controller" in said
    assert switch.OFF_SWITCH.exists()


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(("error", "code"), [("", 0), ("Interactive authentication required.", 1)])
def test_a_running_updater_is_restarted_or_the_reason_is_said(
    walltimed, monkeypatch, tmp_path, error, code
):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(
        f"#!/bin/sh\necho $@ >> {tmp_path}/told\necho {error} >&2\nexit {code}\n"
    )
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setattr(switch, "is_installed", lambda _unit: True)
    ended, printed, said = walltimed("connect", "--off")
    assert ended == code
    assert error in said
    assert (tmp_path / "told").read_text() == "try-restart walltimed-slurm-updater.service\n"
    assert ("off: walltimed-slurm-updater.service" in printed) is (code == 0)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("takes", [False, True])
def test_the_hook_is_read_back_from_the_server_and_an_old_one_replaced(
    walltimed, monkeypatch, is_old, takes
):
    ours = script("pbs/walltimed_hook.py").read_text()
    server = {"script": "# looks for nothing" if is_old else ours, "told": []}

    def qmgr(commands, **_):
        server["told"].append(commands)
        if commands.startswith("import") and takes:
            server["script"] = ours
        return {"list": "Hook walltimed", "expo": server["script"]}.get(commands[:4], "")

    monkeypatch.setattr(pbs_conf, "is_here", lambda: True)
    monkeypatch.setattr(pbs_conf, "qmgr", qmgr)
    code, printed, said = walltimed("connect", "--off")
    is_off = takes or not is_old
    assert code == (0 if is_off else 1)
    assert ("off: the hook walltimed of PBS" in printed) is is_off
    assert "--reset" not in printed
    assert ("Could not turn off the hook" in said) is not is_off
    assert any(each.startswith("import") for each in server["told"]) is is_old


@pytest.mark.usefixtures("connected")
def test_a_server_of_pbs_that_does_not_answer_keeps_nothing_else_on(walltimed, monkeypatch):
    def qmgr(_commands, **_):
        raise CommandError("qmgr cannot be run: it timed out.")

    monkeypatch.setattr(pbs_conf, "is_here", lambda: True)
    monkeypatch.setattr(pbs_conf, "qmgr", qmgr)
    code, printed, said = walltimed("connect", "--off")
    assert code == 1
    assert "walltimed.lua" in printed
    assert "Could not turn off the hook walltimed of PBS: qmgr cannot be run" in said
