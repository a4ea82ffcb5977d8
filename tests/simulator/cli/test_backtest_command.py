"""``walltimed backtest``, through the same door as the shell's."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from workloads import log_of, synthetic

from simulator.traces.swf import write_swf
from terminal.words import listed

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Users, applications, a queue and 400 jobs."""
    return synthetic(tmp_path_factory.mktemp("logs") / "log.swf.gz", jobs=400, seed=5)


@pytest.fixture
def page_of(walltimed):
    """Tests a log against last-two without repetitions; gives the page."""

    def run(*arguments):
        code, _, complaint = walltimed("backtest", *arguments, "-m", "last-two", "--shake", 0)
        assert code == 0, complaint
        return Path("backtest.html").read_text()

    return run


def test_the_verdict_is_the_first_word_on_the_page_and_the_rules_the_last(walltimed, log):
    code, out, _ = walltimed("backtest", log, "-m", "last-two", "--shake", 3, "-o", "page.html")
    assert code == 0
    page = Path("page.html").read_text()
    body = page[page.index("<main>") :]
    assert re.match(r'<main>\s*<section class="verdict [a-z-]+"><strong>', body)
    order = [
        'class="verdict', "Average wait", "Every method against", "All methods",
        "Who gains, who loses", "Can this be believed?", "How this was computed", "Reservations",
    ]  # fmt: skip
    assert sorted(order, key=body.index) == order
    assert not re.search(r'(src|href)="(?!#)', page)
    assert out.partition(".")[0] in page


def test_the_text_fits_eighty_columns(walltimed, log):
    _, out, _ = walltimed("backtest", log, "-m", "last-two", "--shake", 3)
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"^auto \*", out, re.MULTILINE)


def test_json_has_schema_2(walltimed, log):
    arguments = ("-m", "last-two", "-m", "max-usage", "--shake", 3, "--json")
    code, out, _ = walltimed("backtest", log, *arguments)
    assert code == 0
    document = json.loads(out)
    assert list(document) == [
        "schema", "verdict", "reason", "scheduler", "in_force", "order",
        "job_pairs_in_order", "believability", "today",
        "ordered_by_request", "methods", "exact", "sampling", "harm", "a_year",
        "weeks_until_predictions_are_good", "first_week", "way_back", "jobs", "users",
        "from_unix_seconds", "to_unix_seconds",
    ]  # fmt: skip
    assert document["schema"] == 2
    assert document["verdict"] in {
        "turn-on",
        "observe",
        "not-worth-it",
        "indication",
        "too-little-data",
    }
    assert document["in_force"] == {"method": "auto", "profile": "order"}
    assert document["order"] is None
    assert [each["method"] for each in document["methods"]] == ["auto", "last-two", "max-usage"]
    for each in document["methods"]:
        assert list(each) == [
            "method", "wait_seconds", "longest_wait_seconds", "bounded_slowdown",
            "mean_error_seconds", "underestimation_rate", "idle_processor_hours", "change",
            "change_beyond_order_by_request", "choice",
        ]  # fmt: skip
        wait = each["wait_seconds"]
        assert wait["low"] <= wait["mean"] <= wait["high"]
    auto, *others = (each["choice"] for each in document["methods"])
    assert others == [None, None]
    assert 0 < sum(auto["users"].values()) <= document["users"]
    assert auto["users"].keys() <= auto["costs"].keys()
    assert next(iter(auto["costs"].values())) == 0
    assert document["jobs"] == 400
    assert document["from_unix_seconds"] < document["to_unix_seconds"]


def test_the_verdict_is_about_the_setting_and_not_about_what_won(walltimed, log, monkeypatch):
    monkeypatch.setenv("WALLTIMED_METHOD", "knn")
    code, out, _ = walltimed("backtest", log, "-m", "last-two", "--shake", 2, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["in_force"]["method"] == "knn"
    assert "knn" in document["reason"]
    assert "last-two" not in document["reason"]


def test_processes_beside_each_other_find_the_same(walltimed, log):
    arguments = ("backtest", log, "-m", "last-two", "--shake", 2, "--json", "--processes")
    _, alone, _ = walltimed(*arguments, 1)
    _, beside, _ = walltimed(*arguments, 2)
    assert alone == beside


def test_a_table_has_the_waits_behind_the_verdict_beside_a_page(walltimed, log, tmp_path):
    table, page = tmp_path / "jobs.parquet", tmp_path / "page.html"
    code, out, complaint = walltimed(
        "backtest", log, "-m", "last-two", "--shake", 0, "-o", table, "-o", page, "--json"
    )
    assert code == 0, complaint
    frame = pd.read_parquet(table)
    today = frame[frame.estimates == "requested"]
    document = json.loads(out)
    assert today.simulated_wait.mean() == pytest.approx(document["today"]["wait_seconds"]["mean"])
    assert today.job.is_unique
    assert len(frame) == len(today) * len({*frame.estimates})
    assert page.exists()
    page.unlink()
    walltimed("backtest", log, "-m", "last-two", "--shake", 0, "-o", tmp_path / "jobs.csv")
    assert not [*tmp_path.rglob("*.html")]
    assert len(pd.read_csv(tmp_path / "jobs.csv")) == len(frame)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--scheduler", "lottery"), "policy 'lottery'"),
        (("--method", "oracle"), "method 'oracle'"),
        (("--method", "requested"), "a method"),
        (("--profile", "bold"), "adjustment 'bold'"),
        (("--output", "nowhere/page.html"), "directory nowhere"),
        (("--output", "."), "is a directory"),
        (("-o", "-"), "Standard output"),
        (("-o", "a.csv", "-o", "b.csv"), "one table"),
        (("-o", "a.html", "-o", "b.html"), "one page"),
        (("-o", "nowhere/a.parquet"), "directory nowhere"),
    ],
)
def test_what_cannot_be_tested_is_said_in_a_sentence(refused, log, options, complaint):
    assert complaint in refused("backtest", log, *options)


def test_a_setting_that_predicts_nothing_cannot_be_judged(refused, log, monkeypatch):
    monkeypatch.setenv("WALLTIMED_METHOD", "requested")
    assert "nothing is predicted" in refused("backtest", log)


def test_a_log_without_a_job_that_can_run_is_refused(refused, tmp_path):
    write_swf(log_of([(0, 9, 1, 1)], 4), tmp_path / "wide.swf")
    assert "(1 too-wide)" in refused("backtest", tmp_path / "wide.swf")


@pytest.mark.parametrize(
    ("file", "options", "left_out"),
    [
        ("slurm/sacct.txt", ("--time-zone", "Europe/Istanbul"), "2 no time limit was requested"),
        ("slurm/sacct_24.11.json", (), "1 the run has not ended"),
        ("pbs/accounting.txt", (), "1 unknown start time"),
    ],
)
def test_records_of_resource_managers_are_tested_as_they_are(walltimed, file, options, left_out):
    arguments = (DATA / file, "--processors", 64, "-m", "max-usage", "--shake", 0, *options)
    code, out, _ = walltimed("backtest", *arguments, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["jobs"] > 0
    assert document["verdict"] == "too-little-data"
    assert "300" in document["reason"]
    page = Path("backtest.html").read_text()
    assert "Records left out" in page
    assert left_out in page


def records_of(tmp_path, users, clusters=("hill",)):
    """What sacct prints of twelve jobs for each user and cluster, one after the other."""
    head, row, *_ = (DATA / "slurm/sacct.txt").read_text().splitlines()
    lines = [
        row.replace("901\x1f901\x1fhill\x1fcarol", "\x1f".join([f"{number}"] * 2 + [cluster, user]))
        for number, (user, cluster) in enumerate((u, c) for u in users for c in clusters)
        for _ in range(12)
    ]
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([head, *lines]) + "\n")
    return file


def test_users_of_records_keep_their_names_on_the_page(page_of, tmp_path):
    page = page_of(records_of(tmp_path, ("carol", "dave")), "--processors", 16)
    assert "<td>carol</td>" in page or "Of 2 users" in page


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-f", "lsf", "--processors", "16"), "format 'lsf'"),
        (("-f", "sacct", "--time-zone", "Mars/Olympus"), "no time zone 'Mars/Olympus'"),
    ],
)
def test_what_the_records_do_not_say_is_asked_for(refused, tmp_path, options, complaint):
    assert complaint in refused("backtest", records_of(tmp_path, ("carol",)), *options)


def test_records_of_two_clusters_are_two_schedules(refused, tmp_path):
    file = records_of(tmp_path, ("carol",), clusters=("hill", "dale"))
    assert "dale, hill" in refused("backtest", "-f", "sacct", file, "--processors", 16)


def test_damaged_records_are_refused_or_left_out(walltimed, tmp_path):
    file = records_of(tmp_path, ("carol",))
    file.write_text(file.read_text() + "999|hill\n")
    arguments = ("backtest", "-f", "sacct", file, "--processors", 16, "-m", "last-two")
    code, _, complaint = walltimed(*arguments)
    assert code == 2
    assert "1 malformed line" in complaint
    assert walltimed(*arguments, "--on-error", "skip", "--shake", 0)[0] == 3
    assert "<dd>1 skipped</dd>" in Path("backtest.html").read_text()


def test_what_was_left_out_of_a_log_is_said_on_the_page(page_of, tmp_path):
    write_swf(log_of([(0, 2, 10, 20), (1, 9, 10, 20), (2, 1, -1, 20)], 4), tmp_path / "log.swf")
    page = page_of(tmp_path / "log.swf")
    assert "1 never ran; 1 were wider than the machine" in page


def test_a_month_whose_jobs_never_ran_is_a_gap_in_the_picture(walltimed, tmp_path):
    month = 30 * 86400
    jobs = [(0, 4, 10, 20), (1, 4, 10, 20), (month, 1, -1, 20), (2 * month, 1, 10, 20)]
    write_swf(log_of(jobs, 4), tmp_path / "log.swf")
    assert walltimed("backtest", tmp_path / "log.swf", "-m", "last-two", "--shake", 1)[0] == 0
    assert "Month by month" in Path("backtest.html").read_text()


def test_queues_with_processors_of_their_own_are_machines_of_their_own(page_of, tmp_path, log):
    (tmp_path / "partitions").write_text("1 96\n0 32\n")
    page = page_of(log, "--partitions", tmp_path / "partitions")
    assert "1: 96 processors; 0: 32 processors" in page


def test_queues_of_the_log_are_machines_where_nothing_else_is_known(page_of, tmp_path):
    """Both queues are full at once; each runs on what its own jobs held."""
    jobs = [(0, 4, 100, 100, 1), (1, 3, 100, 100, 1)]
    log = replace(log_of(jobs, 8), queue=np.array([1, 2]), wait=np.array([0.0, 1.0]))
    write_swf(log, tmp_path / "log.swf")
    page = page_of(tmp_path / "log.swf", "--partitions", "queues")
    assert "1: 4 processors; 2: 3 processors" in page


def test_partitions_that_no_job_knows_are_refused(refused, tmp_path, log):
    (tmp_path / "partitions").write_text("gpu 96\n")
    assert "partition" in refused("backtest", log, "--partitions", tmp_path / "partitions")


def test_logs_of_resource_managers_are_played_by_their_twins(walltimed):
    words = ("--processors", 64, "-m", "max-usage", "--shake", 0, "--json")
    slurm, pbs = (
        json.loads(walltimed("backtest", DATA / file, *words)[1])
        for file in ("slurm/sacct.txt", "pbs/accounting.txt")
    )
    assert (slurm["scheduler"], pbs["scheduler"]) == ("slurm", "pbs")
    assert slurm["in_force"]["profile"] == pbs["in_force"]["profile"] == "order"


SITES = {
    "slurm": {
        "config": "Configuration data as of 2026-11-21T17:30:00\nSLURM_VERSION = 26.05.5\n",
        "partition": "PartitionName=all\n   Nodes=n[1-2] OverSubscribe=EXCLUSIVE\n",
        "node": "NodeName=n1 CPUTot=4 State=IDLE\n\nNodeName=n2 CPUTot=4 State=IDLE\n",
    },
    "pbs": {
        "server": "create queue all\nset server scheduling = True\n",
        "nodes": "n1\n     resources_available.ncpus = 4\n\nn2\n     pcpus = 4\n",
        "sched_config": "strict_ordering: true ALL\n",
    },
}


@pytest.mark.parametrize("scheduler", SITES)
def test_a_sites_configuration_names_its_scheduler_and_its_nodes(page_of, tmp_path, scheduler):
    for name, text in SITES[scheduler].items():
        (tmp_path / name).write_text(text)
    write_swf(log_of([(0, 8, 60, 100), (1, 4, 60, 100)], 8), tmp_path / "log.swf")
    page = page_of(tmp_path / "log.swf", f"--{scheduler}-config", tmp_path)
    assert "2 nodes of 4 CPUs; partitions all (2 nodes, tier" in page
    assert f"{scheduler}: starts jobs as" in page


@pytest.mark.parametrize(
    ("options", "largest"),
    [
        ((), "140,000"),
        (("--profile", "aged-order"), "100"),
        (("--site-factor", 5000), "5,000"),
    ],
)
def test_an_order_is_a_site_factor_beside_the_sites_own(page_of, tmp_path, options, largest):
    fair = "PriorityType = priority/multifactor\nPriorityWeightAge = 700\n"
    for name, text in {**SITES["slurm"], "config": SITES["slurm"]["config"] + fair}.items():
        (tmp_path / name).write_text(text)
    write_swf(log_of([(0, 8, 60, 100), (1, 4, 60, 100)], 8), tmp_path / "log.swf")
    page = page_of(tmp_path / "log.swf", "--slurm-config", tmp_path, *options)
    assert f"as a SiteFactor of up to {largest}" in page


NO_ACCOUNTS = "AccountingStorageType = accounting_storage/none\n"
MULTIFACTOR = "PriorityType = priority/multifactor\n"
FAIR_SHARE = "PriorityWeightFairShare = 100000\n"
AGED = ("--profile", "aged-order")


@pytest.fixture
def ordered(walltimed, tmp_path, log):
    """Tests the log under lines of a Slurm's configuration; gives the document or the text."""

    def run(lines, *options):
        config = SITES["slurm"]["config"] + lines
        nodes = SITES["slurm"]["node"].replace("CPUTot=4", "CPUTot=64")
        for name, text in {**SITES["slurm"], "config": config, "node": nodes}.items():
            (tmp_path / name).write_text(text)
        words = ("--slurm-config", tmp_path, "-m", "last-two", "--shake", 0, *options)
        code, out, complaint = walltimed("backtest", log, *words)
        assert code == 0, complaint
        return json.loads(out) if "--json" in options else out

    return run


@pytest.mark.parametrize(
    ("lines", "obstacle", "played_with"),
    [
        (
            "PriorityType = priority/basic\n",
            "PriorityType=priority/basic",
            ["PriorityType=priority/multifactor", "PriorityWeightAge=604800"],
        ),
        (MULTIFACTOR, "PriorityWeightAge=0", ["PriorityWeightAge=604800"]),
        (
            f"{MULTIFACTOR}PriorityWeightAge = 10000\n{FAIR_SHARE}",
            "at most 1,428 is 1.4% of PriorityWeightFairShare=100000",
            ["largest_site_factor=100000"],
        ),
    ],
)
def test_an_order_that_cannot_act_is_no_verdict_on_predictions(
    ordered, lines, obstacle, played_with
):
    text = " ".join(ordered(lines, *AGED).split())
    assert text.startswith("No verdict. The order ")
    assert f"All but today is played with {listed(played_with)} (docs/slurm.md" in text
    assert "with the advised lines the order is a SiteFactor of at most" in text
    found = ordered(lines, *AGED, "--json")
    assert found["verdict"] == "order-cannot-act"
    assert obstacle in found["order"]["obstacle"]
    assert found["order"]["obstacle"] in found["reason"]
    assert found["order"]["played_with"] == played_with
    assert found["exact"]["change"]["wait_share"]["mean"] != 0, "what is advised acts"


@pytest.mark.parametrize(
    ("lines", "options", "largest"),
    [
        (MULTIFACTOR, ("--site-factor", 86400), 86400),
        (f"{MULTIFACTOR}PriorityWeightAge = 10000\n{FAIR_SHARE}{NO_ACCOUNTS}", (), 1428),
    ],
)
def test_site_factors_that_the_filter_would_set_are_played_and_named(
    ordered, lines, options, largest
):
    options = (*AGED, *options)
    found = ordered(lines, *options, "--json")
    assert found["verdict"] != "order-cannot-act"
    assert found["order"]["largest_site_factor"] == largest
    assert (found["order"]["obstacle"], found["order"]["played_with"]) == ("", [])
    assert found["exact"]["change"]["wait_share"]["mean"] != 0
    text = " ".join(ordered(lines, *options).split())
    assert ("nothing bounds how long a job is passed over" in text) is (NO_ACCOUNTS in lines)
    assert (
        f"Played by slurm, profile aged-order; the order is a SiteFactor of at most {largest:,}"
        in text
    )


@pytest.mark.parametrize(
    ("lines", "largest", "played_with"),
    [
        (MULTIFACTOR, 10_000, []),
        (f"{MULTIFACTOR}PriorityWeightAge = 1000\n", 200_000, []),
        (f"{MULTIFACTOR}{NO_ACCOUNTS}", 10_000, []),
        (f"{MULTIFACTOR}PriorityWeightAge = 1000\n{FAIR_SHARE}", 100_000, []),
        ("PriorityType = priority/basic\n", 10_000, ["PriorityType=priority/multifactor"]),
    ],
)
def test_an_order_by_the_ratio_needs_no_age(ordered, lines, largest, played_with):
    found = ordered(lines, "--json")
    assert found["order"]["largest_site_factor"] == largest
    assert found["order"]["played_with"] == played_with
    assert found["exact"]["change"]["wait_share"]["mean"] != 0
    pairs = found["job_pairs_in_order"]
    assert (pairs["method"], pairs["jobs"]) == ("auto", 400)
    assert 0.5 < pairs["requests"] < pairs["mean"] < 1
    text = " ".join(ordered(lines).split())
    assert f"told by requests for {pairs['requests']:.1%}, mean runtimes by auto for" in text
    assert "nothing bounds how long" not in text


def test_a_backtest_says_after_which_wait_a_job_goes_first(walltimed, tmp_path):
    day = 86400
    jobs = [(0, 1, 60, 100), (100 * day, 1, 60, 100), (101 * day, 1, 60, 100)]
    waits = np.array([90_000.0, 36_000.0, -1.0])
    write_swf(replace(log_of(jobs, 4), wait=waits), tmp_path / "log.swf")
    words = ("backtest", tmp_path / "log.swf", "-m", "last-two", "--shake", 0)
    first = "--first-after 7.5, or T = 27000 in the formula of docs/pbs.md"
    assert first in " ".join(walltimed(*words)[1].split())
    assert "--first-after" not in walltimed(*words, *AGED)[1]
    own = ("--ratio", "3600,60,7200")
    assert "--first-after 7.5 --ratio 3600,60,7200, or" in " ".join(
        walltimed(*words, *own)[1].split()
    )
    code, _, complaint = walltimed(*words, *own, *AGED)
    assert (code, "--ratio acts on the order response-ratio" in complaint) == (2, True)
    code, _, complaint = walltimed(*words, "--ratio", "4h")
    assert (code, "such as 14400,600,43200, not '4h'" in complaint) == (2, True)


def test_scheduler_profile_and_what_they_assume_are_in_the_text_and_on_the_page(walltimed, log):
    words = ("backtest", log, "-m", "last-two", "--shake", 0)
    _, easy, _ = walltimed(*words)
    _, slurm, _ = walltimed(*words, "--scheduler", "slurm", *AGED)
    _, by_ratio, _ = walltimed(*words, "--scheduler", "slurm", "-o", "ratio.html")
    assert "slurm-updater --order response-ratio" in " ".join(by_ratio.split())
    assert "Played by easy, profile order." in easy
    assumption = "this assumes PriorityType=priority/multifactor and PriorityWeightAge=604800"
    assert assumption in " ".join(slurm.split())
    assert assumption in Path("backtest.html").read_text()


def test_means_over_fewer_plays_do_not_stand_beside_those_over_all(walltimed, log):
    _, out, _ = walltimed("backtest", log, "-m", "last-two", "--shake", 3)
    table = out[out.index("----------") : out.index("Mean wait")].splitlines()[1:]
    rows = {line.split()[0]: line.split() for line in table if line}
    assert rows["requested"][2] in {"s", "min", "h"}
    assert rows["auto"][3] in {"s", "min", "h"}
    assert rows["exact"][1].endswith("%")


def test_a_directory_without_the_texts_of_a_site_is_told_how_to_write_them(refused, tmp_path, log):
    (tmp_path / "slurm.conf").write_text("ClusterName=hill\n")
    complaint = refused("backtest", log, "--slurm-config", tmp_path).replace("\n", " ")
    assert "slurm.conf is not read" in complaint
    for what in ("config", "partition", "node", "reservation"):
        assert f"scontrol show {what} > " in complaint
