"""``walltimed simulate`` and ``walltimed verify``, through the same door as the shell's."""

import csv
import gzip
import json

import pandas as pd
import pytest
from workloads import log_of, synthetic

from simulator.replay.trace_replay import InProcess
from simulator.reports.schedule_report import PICTURES
from simulator.scheduling.schedule_file import WrittenSchedule
from simulator.traces.swf import read_swf, write_swf

JOBS = [(0, 2, 10, 10), (1, 4, 5, 5), (2, 2, 8, 8), (3, 2, 9, 9)]


@pytest.fixture
def log(tmp_path):
    """Four jobs that can be drawn."""
    file = tmp_path / "log.swf"
    write_swf(log_of(JOBS, 4), file)
    return file


@pytest.fixture
def longer_log(tmp_path):
    """Users, applications and 300 jobs."""
    return synthetic(tmp_path / "longer.swf.gz", jobs=300, seed=2)


@pytest.fixture
def simulations(walltimed):
    """Simulates; gives the records of all combinations."""

    def run(*arguments):
        code, printed, complaint = walltimed("simulate", *arguments, "--json")
        assert code == 0, complaint
        return json.loads(printed)["simulations"]

    return run


def test_every_policy_is_simulated_with_every_source_of_estimates(walltimed, log):
    code, out, _ = walltimed(
        "simulate", log, "--policy", "easy,conservative", "--policy", "fcfs",
        "--estimates", "requested", "--estimates", "exact",
    )  # fmt: skip
    assert code == 0
    lines = [
        line.split()[:3] for line in out.splitlines() if line.startswith(("easy", "fcfs", "con"))
    ]
    table = lines[:6]
    assert [line[:2] for line in table] == [
        [policy, estimates]
        for policy in ("easy", "conservative", "fcfs")
        for estimates in ("requested", "exact")
    ]
    assert [line[2] for line in table] == ["5", "5", "5", "5", "8", "8"]  # mean waits
    assert "Order: fcfs: submission; ties by submission, then job number" in out
    assert "Jobs: 4; nothing left out" in out


def test_json_has_the_measures_and_the_semantics_of_every_combination(walltimed, log):
    code, out, _ = walltimed("simulate", log, "--policy", "easy", "--order", "wfp", "--json")
    assert code == 0
    document = json.loads(out)
    [simulation] = document["simulations"]
    assert (document["jobs"], document["processors"]) == (4, 4)
    assert (simulation["policy"], simulation["estimates"]) == ("easy", "requested")
    assert simulation["wait"] == pytest.approx((0 + 9 + 0 + 12) / 4)
    assert simulation["semantics"]["Order"].startswith("wfp: largest (wait / estimate)^3")


def test_a_schedule_that_is_written_is_verified(walltimed, log, tmp_path):
    file = tmp_path / "easy.swf.gz"
    assert walltimed("simulate", log, "--output", file)[0] == 0
    assert WrittenSchedule.of(read_swf(file)).start.tolist() == [0, 10, 2, 15]
    code, out, _ = walltimed("verify", file)
    assert code == 0
    assert "not delayed: so" in out
    assert "does not apply" in out
    findings = json.loads(walltimed("verify", file, "--json")[1])["checks"]
    assert all(finding["violated"] == 0 for finding in findings)


def test_a_schedule_is_a_table_for_other_programs_too(walltimed, log, tmp_path):
    file = tmp_path / "plan.csv.gz"
    assert walltimed("simulate", log, "--policy", "conservative", "--output", file)[0] == 0
    with gzip.open(file, "rt") as text:
        rows = list(csv.DictReader(text))
    assert [int(row["simulated_start"]) for row in rows] == [0, 10, 2, 15]
    assert [int(row["simulated_end"]) for row in rows] == [10, 15, 10, 24]
    assert [float(row["wait_at_arrival"]) for row in rows] == [0, 9, 0, 12]
    assert [row["backfilled"] for row in rows] == ["False", "False", "True", "False"]


@pytest.mark.parametrize("name", ["plans.parquet", "plans.csv"])
def test_a_table_holds_every_job_under_every_policy_and_source(walltimed, log, tmp_path, name):
    code, _, complaint = walltimed(
        "simulate", log, "--policy", "easy,fcfs", "--estimates", "exact", "--estimates",
        "requested", "--output", tmp_path / name,
    )  # fmt: skip
    assert code == 0, complaint
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    frame = read(tmp_path / name)
    assert len(frame) == 4 * 4
    starts = frame.groupby(["policy", "estimates"]).simulated_start.apply(list)
    assert starts["easy", "requested"] == [0, 10, 2, 15]
    assert starts["fcfs", "exact"][:2] == [0, 10]
    assert frame.user.astype(str).tolist()[:4] == frame.user.astype(str).tolist()[-4:]


def test_a_log_without_jobs_is_said_to_be_one(walltimed, tmp_path):
    (tmp_path / "empty.swf").write_text("; MaxProcs: 4\n")
    code, _, complaint = walltimed("simulate", tmp_path / "empty.swf")
    assert code == 2
    assert str(tmp_path / "empty.swf") in complaint


def test_a_machine_of_unknown_size_is_asked_for_beside_the_widest_job(refused, log):
    log.write_text(log.read_text().replace("MaxProcs", "Machine"))
    assert "--processors" in refused("simulate", log)


def test_a_schedule_that_breaks_a_rule_fails_with_the_job_named(walltimed, log, tmp_path):
    file = tmp_path / "easy.swf"
    walltimed("simulate", log, "--output", file)
    lines = file.read_text().splitlines()
    assert lines[-3].startswith("2 1 9 ")
    lines[-3] = lines[-3].replace("2 1 9 ", "2 1 3 ")
    file.write_text("\n".join(lines) + "\n")
    code, out, _ = walltimed("verify", file)
    assert code == 1
    assert "processors held" in out
    assert "held at 4" in out


def test_a_report_has_a_page_tables_pictures_and_data(walltimed, longer_log, tmp_path):
    directory = tmp_path / "report"
    code, out, _ = walltimed(
        "simulate", longer_log, "--policy", "easy,conservative,fcfs-pinned", "--report", directory,
        "--wide",
    )  # fmt: skip
    assert code == 0
    page = (directory / "index.html").read_text()
    drawn = {picture.name for picture in directory.glob("*.png")}
    assert drawn == set(PICTURES)
    assert all(f'<img src="{name}"' in page for name in drawn)
    table = (directory / "table.txt").read_text()
    assert all(line.rstrip() in table for line in out.splitlines())
    assert len(json.loads((directory / "report.json").read_text())["simulations"]) == 3


def test_a_picture_that_says_nothing_is_left_out(walltimed, longer_log, tmp_path):
    walltimed("simulate", longer_log, "--policy", "easy", "--report", tmp_path / "report")
    drawn = {picture.name for picture in (tmp_path / "report").glob("*.png")}
    nothing = {"wait-errors.png", "node-notices.png", "gains-by-month.png"}
    assert drawn == set(PICTURES) - nothing
    assert "node-notices.png" not in (tmp_path / "report" / "index.html").read_text()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--repeat", 3), "name it too"),
        (("--url", "http://127.0.0.1:1"), "--estimates service"),
        (("--shake", 10**20), "--shake"),
        (("--processors", 10**20), "1,073,741,824 processors"),
    ],
)
def test_options_that_contradict_each_other_or_make_no_sense_are_refused(
    refused, log, options, complaint
):
    assert complaint in refused("simulate", log, *options)


def test_a_schedule_by_predictions_in_a_file_of_any_name_is_written(walltimed, log, tmp_path):
    predictions = tmp_path / "предсказания-Ž.csv"
    walltimed("replay", log, "--in-process", "-m", "requested", "--output", predictions)
    written = tmp_path / "out.swf"
    code, _, _ = walltimed(
        "simulate", log, "--estimates", f"file:{predictions}", "--output", written
    )
    assert code == 0
    assert predictions.name in written.read_text(encoding="utf-8")
    assert walltimed("verify", written)[0] == 0


def test_a_plain_log_cannot_be_verified(refused, log):
    assert "no schedule" in refused("verify", log)


def test_shaking_says_which_differences_are_noise(walltimed, longer_log):
    code, out, _ = walltimed(
        "simulate", longer_log, "--policy", "easy,fcfs", "--shake", 60, "--repeat", 3,
        "--estimates", "requested", "--estimates", "percentile:min_jobs=10000",
    )  # fmt: skip
    assert code == 0
    table = out.split("differs\n")[1].partition("\n\n")[0].splitlines()[1:]
    lines = [words for words in map(str.split, table) if len(words) > 1]  # long labels go on below
    waits = {(policy, estimates[:10]): differs for policy, estimates, measure, *_, differs in lines
             if measure == "wait"}  # fmt: skip
    assert waits["easy", "requested"] == "-"
    assert waits["easy", "percentile"] == "no"
    assert waits["fcfs", "requested"] == "yes"
    assert waits["fcfs", "percentile"] == "yes"


@pytest.mark.parametrize(("repetitions", "differs"), [(2, "-"), (3, "yes")])
def test_one_or_two_repetitions_do_not_tell_a_difference_from_noise(
    walltimed, longer_log, repetitions, differs
):
    arguments = ("simulate", longer_log, "--policy", "easy,fcfs", "--shake", 60, "--repeat")
    lines = walltimed(*arguments, repetitions)[1].splitlines()
    assert [line for line in lines if line.startswith("fcfs")][1].split()[-1] == differs


def test_several_processes_print_what_one_prints(simulations, longer_log):
    arguments = (
        longer_log, "--policy", "easy,fcfs", "--estimates", "requested", "--estimates", "max-usage",
        "--shake", 60, "--repeat", 3,
    )  # fmt: skip
    alone = simulations(*arguments, "--processes", 1)
    beside = simulations(*arguments, "--processes", 2)
    for each in (*alone, *beside):
        del each["seconds"]
    assert beside == alone
    assert len({each["shaken"]["wait"]["mean"] for each in alone}) > 2


@pytest.mark.parametrize(
    "option", [("--processes", "2"), ("--distributed", "dask:tcp://login1:8786")]
)
def test_a_service_is_asked_by_one_process(refused, log, option):
    assert f"no {option[0]}" in refused("simulate", log, "--estimates", "service", *option)


def test_an_engine_that_is_not_dask_is_refused(refused, log):
    complaint = refused("simulate", log, "--policy", "easy,fcfs", "--distributed", "ray:here")
    assert "dask:ADDRESS" in complaint


@pytest.mark.parametrize("method", ["auto", "least-cost"])
@pytest.mark.parametrize("order", ["fcfs", "response-ratio"])
def test_estimates_of_a_live_service_make_the_same_schedule(
    simulations, longer_log, method, order, monkeypatch
):
    # A service hears of no starts from a simulation.
    monkeypatch.setattr(InProcess, "note", lambda *_: None)
    service, in_process = simulations(
        longer_log, "--limit", 250, "--estimates", "service", "--method", method,
        "--estimates", method, "--policy", "easy-sjbf", "--order", order,
    )  # fmt: skip
    assert service["outlived"] > 0
    assert service["backfilled"] > 0
    for name in ("wait", "bounded_slowdown", "outlived", "makespan"):
        assert service[name] == in_process[name]


@pytest.mark.parametrize(
    ("options", "rule", "words"),
    [
        (("--order", "psp-aging"), "Order", "psp-aging: highest priority first, aged"),
        (("--events", "sequential"), "Events", "sequential: of one second estimates outlived"),
        (("--depth", "3"), "Reservations", "3"),
        (("--policy", "conservative", "--compression", "keep"), "Compression", "keep: each job"),
        (("--policy", "fcfs-pinned", "--pinning", "30"), "Pinning", "1800 s before"),
        (("--correction", "tsafrir"), "Correction", "tsafrir"),
        (("--adjust", "selective"), "Estimates act on", "running jobs: request"),
        (("--profile", "order"), "Estimates act on", "order: estimate, backfilling: request"),
        (("--processors", "6"), "Machine", "6 processors"),
        (("--cores-per-node", "2"), "Machine", "2 nodes of 2 processors"),
        (("--overrun", "swap"), "Overruns", "swap"),
        (("--estimates", "last-two"), "Estimates", "last-two, cut to whole seconds"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_every_rule_that_is_chosen_stands_on_the_semantics_card(
    simulations, log, options, rule, words
):
    [simulation] = simulations(log, *options)
    assert words in simulation["semantics"][rule]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--policy", "lottery"), "policy 'lottery'"),
        (("--estimates", "oracle"), "method 'oracle'"),
        (("--order", "random"), "order 'random'"),
        (("--adjust", "never"), "adjustment 'never'"),
        (("--overrun", "forgive"), "treatment 'forgive'"),
        (("--output", "x.swf", "--policy", "easy,fcfs"), "--output"),
        (("--pinning", "nan"), "Invalid value for '--pinning'"),
        (("--pinning", "inf"), "Invalid value for '--pinning'"),
        (("--output", "-", "--json"), "--json"),
        (("--processors", "1"), "(4 too-wide)"),
    ],
)
def test_what_cannot_be_simulated_is_said_in_a_sentence(refused, log, options, complaint):
    assert complaint in refused("simulate", log, *options)


def test_malformed_lines_are_named_and_may_be_skipped(walltimed, refused, log):
    log.write_text(log.read_text() + "no job at all\n")
    assert "line 6" in refused("simulate", log)
    code, out, _ = walltimed("simulate", log, "--on-error", "skip")
    assert code == 3
    assert "Malformed lines: 1: 6" in out


@pytest.mark.parametrize("name", ["p.csv.gz", "p.csv", "p.parquet", "p.arrow"])
def test_estimates_come_from_a_file_of_predictions(
    walltimed, simulations, refused, longer_log, name
):
    """What a replay writes down, as its name says, is what a simulation with it takes."""
    file = longer_log.parent / name
    code, _, _ = walltimed(
        "replay", longer_log, "--in-process", "--method", "requested", "--method", "last-two",
        "--output", file,
    )  # fmt: skip
    assert code == 0
    from_file, requested, guessed = simulations(
        longer_log, "--estimates", f"file:{file}#requested",
        "--estimates", "requested", "--estimates", f"file:{file}#last-two",
    )  # fmt: skip
    assert from_file["wait"] == requested["wait"]
    assert guessed["outlived"] > 0
    assert "#METHOD" in refused("simulate", longer_log, "--estimates", f"file:{file}")


def test_predictions_in_the_place_of_requests_are_what_the_log_says(walltimed, log, tmp_path):
    """Job 2 of 5 s is predicted at 3 s, as pyss swaps it: 3 s of work, and 2 s are gone."""
    file = tmp_path / "predictions.tsv"
    file.write_text("job_id\tmethod\tpredicted\n2\tours\t3.0\n")
    schedule = tmp_path / "schedule.swf"
    code, _, _ = walltimed(
        "simulate", log, "--requests", file, "--overrun", "swap", "--output", schedule
    )
    assert code == 0
    found = read_swf(schedule)
    assert found.run.tolist() == [10, 3, 8, 9]
    assert found.requested_time.tolist() == [10, 5, 8, 9]


@pytest.mark.parametrize(("option", "prefix"), [("--estimates", "file:"), ("--requests", "")])
def test_jobs_without_a_prediction_in_the_file_are_counted(
    walltimed, log, tmp_path, option, prefix
):
    file = tmp_path / "predictions.tsv"
    file.write_text("job_id\tmethod\tpredicted\n2\tours\t3.0\n77\tours\t3.0\n")
    code, _, told = walltimed("simulate", log, option, f"{prefix}{file}")
    assert code == 0
    assert "3 of 4 jobs" in told
    rows = "".join(f"{job}\tours\t3.0\n" for job in range(1, 5))
    file.write_text(f"job_id\tmethod\tpredicted\n{rows}")
    assert "no prediction" not in walltimed("simulate", log, option, f"{prefix}{file}")[2]


@pytest.mark.parametrize("text", ["", "job\tmethod\n", "job_id\tmethod\tpredicted\n2\tx\t-3\n"])
def test_what_is_no_file_of_predictions_is_refused(walltimed, log, tmp_path, text):
    file = tmp_path / "predictions.tsv"
    file.write_text(text)
    code, _, complaint = walltimed("simulate", log, "--estimates", f"file:{file}")
    assert code == 2
    assert str(file.name) in complaint.replace("\n", "")


SITE = {
    "config": "Configuration data as of 2026-11-21T17:30:00\n"
    "SchedulerParameters     = bf_interval=30,bf_busy_nodes\nSLURM_VERSION           = 26.05.5\n",
    "partitions": "PartitionName=1\n   Default=YES Nodes=n[1-2] OverSubscribe=EXCLUSIVE\n",
    "nodes": "NodeName=n1 CPUTot=2 State=IDLE\n\nNodeName=n2 CPUTot=2 State=IDLE\n",
}


@pytest.fixture
def site(tmp_path):
    """A directory with the configuration of two nodes."""
    directory = tmp_path / "site"
    directory.mkdir()
    for name, text in SITE.items():
        (directory / f"{name}.txt").write_text(text)
    return directory


def test_the_twin_of_a_site_is_made_from_its_configuration(walltimed, log, site, tmp_path):
    result = tmp_path / "twin.swf"
    twin = ("simulate", log, "--policy", "slurm", "--slurm-config", site)
    code, out, _ = walltimed(*twin)
    assert code == 0
    plain = " ".join(out.split())
    assert "Cluster: 2 nodes of 2 CPUs; partitions 1 (2 nodes, tier 1, whole nodes)" in plain
    assert "Not modelled: bf_busy_nodes" in plain
    assert walltimed(*twin, "--output", result)[0] == 0
    assert walltimed("verify", result)[0] == 0
    assert WrittenSchedule.of(read_swf(result)).semantics.slurm.cluster.nodes == 2


SERVER = {
    "server": "create queue q\nset queue q queue_type = Execution\nset server default_queue = q\n",
    "nodes": "n1\n     resources_available.ncpus = 2\n\nn2\n     resources_available.ncpus = 2\n",
    "sched_config": "strict_ordering: true ALL\nfair_share: true ALL\n",
}


def test_the_twin_of_a_pbs_server_is_made_from_its_configuration(walltimed, log, tmp_path):
    directory = tmp_path / "pbs"
    directory.mkdir()
    for name, text in SERVER.items():
        (directory / name).write_text(text)
    result = tmp_path / "twin.swf"
    command = ("simulate", log, "--policy", "pbs", "--pbs-config", directory)
    code, out, _ = walltimed(*command)
    assert code == 0
    plain = " ".join(out.split())
    assert "Cluster: 2 nodes of 2 CPUs; partitions q (2 nodes, tier 0)" in plain
    assert "Not modelled: fair_share: true" in plain
    assert walltimed(*command, "--output", result)[0] == 0
    assert walltimed("verify", result)[0] == 0
    assert WrittenSchedule.of(read_swf(result)).semantics.pbs.cluster.nodes == 2


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--policy", "slurm,easy"], "for --policy slurm alone"),
        (["--policy", "slurm", "--cores-per-node", "2"], "no --cores-per-node"),
    ],
)
def test_a_site_is_no_machine_of_another_kind(refused, log, site, options, complaint):
    assert complaint in refused("simulate", log, "--slurm-config", site, *options)


def test_a_site_without_its_texts_is_refused(refused, log, site):
    (site / "nodes.txt").unlink()
    complaint = refused("simulate", log, "--policy", "slurm", "--slurm-config", site)
    assert "no file with what scontrol show node prints" in complaint


RATIOS = [(0, 1, 18000, 18000), (1, 1, 7200, 7200), (14400, 1, 3600, 3600)]


@pytest.mark.parametrize("policy", ["easy", "slurm", "pbs"])
def test_the_numbers_of_the_ratio_order_the_queue(walltimed, simulations, tmp_path, policy):
    write_swf(log_of(RATIOS, 1), tmp_path / "log.swf")
    words = (tmp_path / "log.swf", "--policy", policy, "--order", "response-ratio")
    # After 5 h (5 + 4) / 2 < (1 + 4) / 1, but (5 + 1) / 2 > (1 + 1) / 1.
    usual, own = (simulations(*words, *more)[0] for more in ((), ("--ratio", "3600,600,43200")))
    assert usual["wait"] < own["wait"] - 1000
    _, shown, _ = walltimed("simulate", *words, "--ratio", "3600,600,43200")
    assert "(wait + 1 h) / estimate first, the estimate held between 10 min and 12 h" in " ".join(
        shown.split()
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--ratio", "3600,600,43200"), "--ratio needs --order response-ratio."),
        (("--order", "response-ratio", "--ratio", "1,2"), "OFFSET,SHORTEST,LONGEST in seconds"),
        (("--order", "response-ratio", "--ratio", "0,1,2"), "The offset of waits is 1 to"),
    ],
)
def test_numbers_of_the_ratio_that_do_nothing_or_make_no_sense_are_refused(
    walltimed, log, words, complaint
):
    code, _, found = walltimed("simulate", log, *words)
    assert (code, complaint in " ".join(found.split())) == (2, True)


def test_the_formula_of_pbs_has_the_numbers_of_the_ratio(walltimed, log):
    words = ("--policy", "pbs", "--order", "response-ratio", "--estimates", "last-two")
    _, shown, _ = walltimed("simulate", log, *words, "--ratio", "3600,60,7200")
    formula = "(eligible_time + 3600) / max(60, min(7200, walltimed_length or walltime))"
    assert formula in " ".join(shown.split())
