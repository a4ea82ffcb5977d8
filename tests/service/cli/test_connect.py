"""`walltimed connect` and `disconnect`: what they write, print and refuse, without a Slurm."""

import json
import stat

import pytest

from service.cli import pbs_connecting
from service.cli.host_files import with_lua_values
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
        "job_submit.lua": 0o644,
    }
    assert 'mode = "advise"' in (root / "etc/slurm/walltimed_config.lua").read_text()


def test_a_second_run_keeps_tokens_and_settings_and_prints_nothing_for_slurm_conf(
    walltimed, slurm, tmp_path
):
    root = slurm()
    lines, _ = lines_for(walltimed, root)
    token = (root / "etc/walltimed/filter-token").read_text()
    slurm(CONF + "\n".join(lines) + "\n")
    config = root / "etc/slurm/walltimed_config.lua"
    config.write_text('return { mode = "soft", budget_ms = 100 }')
    assert lines_for(walltimed, root, "--mode", "advise")[0] == []
    assert config.read_text() == 'return { mode = "advise", budget_ms = 100 }'
    assert (root / "etc/walltimed/filter-token").read_text() == token
    store = open_store(f"sqlite:///{tmp_path / 'walltimed.sqlite3'}")
    assert len(store.tokens.read_all()) == 2
    store.close()


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
    config = (root / "etc/slurm/walltimed_config.lua").read_text()
    assert 'host = "192.0.2.1",' in config
    assert "port = 9000," in config
    options = (root / "etc/walltimed/slurm-forwarder").read_text()
    assert options == "OPTIONS=--user root --url http://192.0.2.1:9000\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--mode", "limit"], "it is one of off, observe, advise, order, soft, default-limit"),
        (["--url", "https://192.0.2.1"], "For TLS let a proxy"),
        (["--url", "http://service:8580"], "a number as the address"),
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


def test_off_is_written_into_the_filters_settings_and_their_time_is_new(
    walltimed, tmp_path, monkeypatch
):
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setattr(pbs_connecting, "is_here", lambda: False)
    config, script = tmp_path / "walltimed_config.lua", tmp_path / "job_submit.lua"
    config.write_text('return {\n  mode = "soft", -- the rung\n}')
    script.write_text("--")
    changed = script.stat().st_mtime_ns
    code, printed, _ = walltimed("connect", "--off")
    assert code == 0
    assert "mode off, which was soft" in " ".join(printed.split())
    assert "slurm-updater --reset" in printed
    assert config.read_text() == 'return {\n  mode = "off", -- the rung\n}'
    assert script.stat().st_mtime_ns > changed
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "elsewhere" / "slurm.conf"))
    assert walltimed("connect", "--off")[0] == 1


def test_the_lines_and_what_is_left_to_do_are_printed_as_json(walltimed, slurm):
    code, printed, _ = walltimed("connect", "slurm", "--root", slurm(), "--dry-run", "--json")
    report = json.loads(printed)
    assert code == 0
    assert report["lines"][0] == "JobSubmitPlugins=lua"
    assert report["steps"][-1] == "systemctl restart slurmctld"
    assert report["files"][0] == {
        "path": "/etc/walltimed/jobcomp-token",
        "action": "would be written",
        "scope": "ingest",
    }


def test_the_way_back_is_printed_as_json(walltimed, tmp_path, monkeypatch):
    conf, config = tmp_path / "slurm.conf", tmp_path / "walltimed_config.lua"
    monkeypatch.setenv("SLURM_CONF", str(conf))
    monkeypatch.setattr(pbs_connecting, "is_here", lambda: False)
    conf.write_text(CONF)
    config.write_text('return { mode = "soft" }')
    code, printed, _ = walltimed("connect", "--off", "--json")
    assert json.loads(printed)["filters"] == [{"path": str(config), "mode": "soft"}]
    code, printed, _ = walltimed("disconnect", "slurm", "--dry-run", "--json")
    assert code == 0
    removed = {"path": str(config), "action": "would be removed"}
    assert removed in json.loads(printed)["files"]


def test_a_commented_setting_is_left_and_the_value_is_put_first():
    text = 'return {\n  -- host = "192.0.2.9",\n}'
    assert with_lua_values(text, {"host": "192.0.2.1"}) == (
        'return {\n  host = "192.0.2.1",\n  -- host = "192.0.2.9",\n}'
    )
