"""`walltimed connect`: what it writes, prints and refuses, without a Slurm."""

import json
import os
import stat
from pathlib import Path

import pytest

from service.site import slurm_conf
from service.store import open_store

CONF = "ClusterName=Hill\nSlurmUser=root\n"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A tree with a slurm.conf; gives a function that writes it, and connects."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    root = tmp_path / "root"
    (root / "etc/slurm").mkdir(parents=True)

    def write(conf=CONF):
        (root / "etc/slurm/slurm.conf").write_text(conf)
        return root

    return write


def lines_for(walltimed, root, *options):
    code, printed, said = walltimed("connect", "slurm", "--root", root, *options)
    assert code == 0, said
    return printed.splitlines(), said


def connected_values(root):
    """The settings that the filter reads after the site's own."""
    return json.loads((root / "etc/slurm/walltimed_site.json").read_text())


def states(root):
    """What a change of any file would change."""
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_ctime_ns)
        for path in root.rglob("*")
    }


def test_it_writes_the_files_and_prints_the_lines_that_are_missing(walltimed, slurm):
    root = slurm()
    lines, said = lines_for(walltimed, root, "--mode", "advise")
    assert lines == [
        "JobSubmitPlugins=lua",
        "JobCompType=jobcomp/elasticsearch",
        "JobCompLoc=http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster=hill",
    ]
    assert "wt_" not in said
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file() and path.name != "slurm.conf"
    }
    assert modes == {
        "jobcomp-token": 0o640,
        "filter-token": 0o600,
        "slurm-forwarder": 0o644,
        "walltimed.lua": 0o644,
        "walltimed_config.lua": 0o644,
        "walltimed_site.json": 0o644,
        "job_submit.lua": 0o644,
    }
    assert connected_values(root) == {"mode": "advise"}


def test_a_second_run_keeps_tokens_and_settings_and_prints_nothing_for_slurm_conf(
    walltimed, slurm, tmp_path
):
    root = slurm()
    lines, _ = lines_for(walltimed, root)
    token = (root / "etc/walltimed/filter-token").read_text()
    slurm(CONF + "\n".join(lines) + "\n")
    config = root / "etc/slurm/walltimed_config.lua"
    own = "return { mode = 'soft', budget_ms = 100 }"
    config.write_text(own)
    assert lines_for(walltimed, root, "--mode", "advise")[0] == []
    assert config.read_text() == own
    assert connected_values(root) == {"mode": "advise"}
    lines_for(walltimed, root, "--url", "http://192.0.2.1:9000")
    assert connected_values(root) == {"mode": "advise", "host": "192.0.2.1", "port": 9000}
    lines_for(walltimed, root, "--url", "unix:/run/walltimed/walltimed.sock")
    assert connected_values(root) == {
        "mode": "advise",
        "unix_socket": "/run/walltimed/walltimed.sock",
    }
    assert (root / "etc/walltimed/filter-token").read_text() == token
    store = open_store(f"sqlite:///{tmp_path / 'walltimed.sqlite3'}")
    assert len(store.tokens.read_all()) == 2
    store.close()


def test_files_that_need_no_change_are_kept_with_their_times(walltimed, slurm):
    root = slurm()
    lines_for(walltimed, root, "--mode", "advise")
    before = states(root)
    _, said = lines_for(walltimed, root, "--mode", "advise")
    assert states(root) == before
    assert said.count("kept: ") == 7
    assert "written" not in said
    filter_ = root / "etc/slurm/job_submit.lua"
    os.utime(filter_, (5, 5))
    lines_for(walltimed, root, "--mode", "observe")
    assert filter_.stat().st_mtime > 5  # slurmctld reads the settings again


def test_a_token_that_others_may_read_is_written_anew_and_stays_the_same(walltimed, slurm):
    root = slurm()
    lines_for(walltimed, root)
    token = root / "etc/walltimed/filter-token"
    secret = token.read_text()
    token.chmod(0o644)
    _, said = lines_for(walltimed, root)
    assert "written: /etc/walltimed/filter-token" in said
    assert (token.read_text(), stat.S_IMODE(token.stat().st_mode)) == (secret, 0o600)


def test_a_new_directory_may_be_entered_whatever_the_umask(walltimed, slurm):
    root = slurm()
    before = os.umask(0o077)
    try:
        lines_for(walltimed, root)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "etc/walltimed").stat().st_mode) == 0o755


def test_the_service_at_the_url_is_diagnosed(walltimed, slurm):
    _, said = lines_for(walltimed, slurm(), "--url", "http://127.0.0.1:1")
    assert "No service answers at http://127.0.0.1:1:" in said


def test_nothing_is_asked_for_a_tree_of_another_host_unless_a_url_is_given(
    walltimed, slurm, monkeypatch
):
    asked = []
    monkeypatch.setattr("service.cli.connect.diagnosed", lambda *_, **told: asked.append(told))
    lines_for(walltimed, slurm())
    assert asked == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as root does")
def test_a_file_that_is_kept_keeps_its_owner_and_its_mode(walltimed, slurm):
    root = slurm()
    own = root / "etc/slurm/job_submit.lua"
    own.write_text("-- password = hunter2")
    own.chmod(0o600)
    os.chown(own, 1, 1)
    before = states(own.parent)[own]
    lines_for(walltimed, root, "--dry-run")
    assert states(own.parent)[own] == before
    lines_for(walltimed, root)
    status = own.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1, 1, 0o600)


@pytest.mark.parametrize("name", ["job_submit.lua", "walltimed_config.lua", "walltimed.lua"])
@pytest.mark.parametrize("is_hard", [False, True])
def test_no_link_is_followed(refused, slurm, tmp_path, name, is_hard):
    root, victim = slurm(), tmp_path / "victim"
    victim.write_text("secret")
    victim.chmod(0o600)
    link = root / "etc/slurm" / name
    if is_hard:
        link.hardlink_to(victim)
    else:
        link.symlink_to(victim)
    said = refused("connect", "slurm", "--root", root)
    assert f"{link} {'has another name, a hard link' if is_hard else 'is a link'}" in said
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("secret", 0o600)
    assert not (root / "etc/walltimed").exists()


def test_a_directory_behind_a_link_is_refused(refused, slurm, tmp_path):
    root = slurm()
    (root / "etc/walltimed").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    assert "etc/walltimed is a link" in refused("connect", "slurm", "--root", root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("directory", "mode"),
    [*(("etc/slurm", mode) for mode in (0o757, 0o775, 0o1777)), ("etc", 0o757), ("etc", 0o775)],
)
def test_a_directory_that_others_may_write_is_refused(refused, slurm, directory, mode):
    root = slurm()
    (root / directory).chmod(mode)
    said = refused("connect", "slurm", "--root", root)
    assert f"{directory} may be written by others than its owner ({mode:04o})" in said
    assert [path.name for path in (root / "etc/slurm").iterdir()] == ["slurm.conf"]


def test_a_new_file_of_somebody_else_is_not_written_into(walltimed, slurm, tmp_path):
    root, victim = slurm(), tmp_path / "victim"
    victim.write_text("secret")
    (root / "etc/slurm/walltimed.lua.new").symlink_to(victim)
    lines_for(walltimed, root)
    assert victim.read_text() == "secret"


def test_a_slurm_user_that_is_no_name_is_refused(refused, slurm):
    root = slurm("ClusterName=Hill\nSlurmUser=slurm --token-file /etc/shadow\n")
    said = refused("connect", "slurm", "--root", root)
    assert "SlurmUser 'slurm --token-file /etc/shadow' is no name of a user" in said


def test_a_dry_run_changes_nothing(walltimed, slurm, tmp_path):
    root = slurm()
    lines, said = lines_for(walltimed, root, "--dry-run")
    assert len(lines) == 3
    assert "would be written: /etc/walltimed/filter-token" in said
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["slurm.conf"]
    assert not (tmp_path / "walltimed.sqlite3").exists()


def test_what_a_site_has_of_its_own_stays(walltimed, slurm):
    root = slurm(CONF + "JobSubmitPlugins=throttle\nJobCompType=jobcomp/filetxt\n")
    own = root / "etc/slurm/job_submit.lua"
    own.write_text("-- the site's own")
    lines, said = lines_for(walltimed, root)
    assert lines[0] == "JobSubmitPlugins=throttle,lua"
    assert "take out of slurm.conf: JobCompType=jobcomp/filetxt" in said
    assert "take the two marked parts" in said
    assert own.read_text() == "-- the site's own"


def test_a_service_elsewhere_is_named_to_filter_and_forwarder(walltimed, slurm):
    root = slurm()
    lines_for(walltimed, root, "--url", "http://192.0.2.1:9000")
    assert connected_values(root) == {"host": "192.0.2.1", "port": 9000}
    options = (root / "etc/walltimed/slurm-forwarder").read_text()
    assert options == "OPTIONS=--user root --url http://192.0.2.1:9000\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--mode", "limit"], "it is one of off, observe, advise, order, soft, default-limit"),
        (["--url", "https://192.0.2.1"], "For TLS let a proxy"),
        (["--url", "http://service:8580"], "a number as the address"),
        (["--url", 'unix:/run/"'], "or unix:FILE"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(refused, slurm, options, complaint):
    root = slurm()
    assert complaint in refused("connect", "slurm", "--root", root, *options)
    assert not (root / "etc/walltimed").exists()


@pytest.mark.parametrize("has_weight", [False, True])
def test_an_order_needs_a_weight_of_age(walltimed, slurm, has_weight):
    root = slurm()
    if has_weight:
        with (root / "etc/slurm/slurm.conf").open("a") as conf:
            conf.write("PriorityWeightAge=1000\n")
    _, _, said = walltimed("connect", "slurm", "--root", root, "--mode", "order")
    assert ("PriorityWeightAge=604800" in said) is not has_weight


def test_an_order_needs_more_than_a_weight_of_age_under_priority_basic():
    values = {"prioritytype": "priority/basic", "priorityweightage": "1000"}
    site = slurm_conf.SlurmSite(
        conf=Path("/etc/slurm/slurm.conf"), cluster="hill", user="slurm", values=values
    )
    assert slurm_conf.order_lines(site) == ["PriorityType=priority/multifactor"]
    values["prioritytype"] = "priority/multifactor"
    assert slurm_conf.order_lines(site) == []


@pytest.mark.parametrize(
    ("version", "parameters", "said"),
    [
        ("slurm 22.05.8", "", "this Slurm is 22.05.8, where mode soft does what order does"),
        ("slurm 25.05.4", "bf_window=60", "SchedulerParameters=bf_window=60,time_min_as_soft"),
        ("slurm 26.05.0", "time_min_as_soft_limit", None),
        ("", "", "mode soft needs Slurm 25.05.4 or newer"),
    ],
)
def test_mode_soft_says_what_it_does_on_this_slurm(version, parameters, said):
    site = slurm_conf.SlurmSite(
        conf=Path("/etc/slurm/slurm.conf"),
        cluster="hill",
        user="slurm",
        values={"schedulerparameters": parameters},
    )
    steps = slurm_conf.soft_steps(site, version)
    assert (said in steps[0]) if said else steps == []


def test_connecting_in_mode_soft_names_the_release(walltimed, slurm, monkeypatch):
    monkeypatch.setattr("service.cli.connect.output_of", lambda *_: "slurm 22.05.8")
    _, _, told = walltimed("connect", "slurm", "--root", slurm(), "--mode", "soft", "--dry-run")
    assert "this Slurm is 22.05.8" in told
    assert "PriorityWeightAge=604800" in told, "it orders there"


def test_without_a_slurm_conf_the_cluster_has_to_be_named(refused, tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert "give --cluster" in refused("connect", "slurm", "--root", tmp_path)


def test_a_hook_for_another_host_has_its_settings_and_its_commands_are_said(walltimed, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    options = ["--cluster", "hill", "--mode", "soft", "--url", "http://192.0.2.1:8580"]
    code, _, said = walltimed("connect", "pbs", "--root", root, *options)
    assert code == 0
    assert json.loads((root / "etc/walltimed/pbs-hook.json").read_text()) == {
        "mode": "soft",
        "host": "192.0.2.1",
        "port": 8580,
        "cluster": "hill",
    }
    assert (root / "etc/walltimed/pbs").read_text() == (
        "CLUSTER=hill\nOPTIONS=--url http://192.0.2.1:8580\n"
    )
    assert "qmgr < /usr/share/walltimed/pbs/walltimed.qmgr" in said
