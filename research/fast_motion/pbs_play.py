"""Plays a log, or a window of it, twice through a real OpenPBS in fast motion.

    python research/fast_motion/pbs_play.py LOG --from 113 --days 1.5 --site DIR -o DIR

Writes when and where each job started, and prints how far the two plays differ, and how far the
twin of PBS and two policies of papers differ from each. It needs root, gcc, two cores that are
otherwise idle, and the OpenPBS that WALLTIMED_TEST_OPENPBS names (make openpbs).
"""

import argparse
import gzip
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fast_cluster import ClusterError
from fast_pbs import PRINTED, FastPbs
from forecast_play import AskingAsFollower, Means, PlayedLog, score_forecasts
from played_pbs import PlayedServer, plain_server, read_server
from player import PlayJob, Speeds
from private_pbs import PREFIX, reason_to_skip
from recorded_plays import write_play
from recorded_queues import PbsQueueRecord, pbs_queue
from slurm_play import LogJob, fitting, jobs_of, parser_of, play_all, player_of, run, window_of

from predictors.jobs import Completion
from simulator.scheduling.pbs_configuration import read_pbs_configuration
from simulator.scheduling.pbs_formula import LENGTH
from simulator.scheduling.slurm_rules import SlurmCluster

CYCLE_LINE = re.compile(r"^(\S+ \S+?);.*;(Starting|Leaving) Scheduling Cycle", re.MULTILINE)


def play_job(job: LogJob, cluster: SlurmCluster) -> PlayJob:
    """Return what is submitted for a job of the log: whole nodes, or CPUs of as few as can be."""
    queue = cluster.partitions[cluster.place_of(job.queue)]
    largest = max(cpus for _, cpus, _ in cluster.groups)
    if queue.exclusive:
        select = f"{-(-job.size // largest)}:ncpus={largest}"
    elif job.size <= largest:
        select = f"1:ncpus={job.size}"
    else:
        select = f"{job.size}:ncpus=1"
    words = ["-N", f"J{job.job}", "-q", queue.name, "-l", f"select={select}"]
    if job.time_min_minutes:
        words += ["-A", str(60 * job.time_min_minutes)]
    if job.length_minutes:
        words += ["-l", f"{LENGTH}={60 * job.length_minutes}"]
    limit = 60 * job.limit_minutes
    return PlayJob(job.submit, job.run, [*words, "-l", f"walltime={limit}"], longest=limit)


def play_once(
    file: Path, played: PlayedServer, jobs: Sequence[LogJob], options: argparse.Namespace
) -> dict[str, Any]:
    """Play the jobs, write the play and the configuration, and return what is to be said of it."""
    speeds = Speeds(*options.speeds, most_crawled=options.most_crawled)
    with FastPbs(played) as server:
        site = file.parent / "site"
        site.mkdir(exist_ok=True)
        for name, command in PRINTED.items():
            (site / name).write_text(server.run(*command))
        cluster = read_pbs_configuration(site).cluster
        assert cluster is not None  # noqa: S101 - the site has nodes
        fit = fitting(jobs, cluster)
        player = player_of(server, speeds, options, file, shown=partial(pbs_queue, server))
        ids = player.play([play_job(job, cluster) for job in fit])
        rows = list(rows_of(server.accounting_log(), player.zero, ids, fit))
        write_play(file, rows)
        log = server.scheduler_log()
        with gzip.open(str(file).replace(".csv.", ".log."), "wt", encoding="utf-8") as written:
            written.write(log)
        return {
            "openpbs": server.version(),
            "real_seconds": round(player.seconds),
            "crawled": round(player.crawled, 3),
            "cycle_seconds": cycle_seconds(log),
            "not_completed": sum(row["state"] != "0" for row in rows),
            **({"first_after": window_of(options).first_after} if options.site_factor else {}),
        }


def rows_of(
    records: str, zero: int, ids: Sequence[str], jobs: Sequence[LogJob]
) -> Iterator[Mapping[str, Any]]:
    """Yield a row for each job, in the order of submission, from the accounting log."""
    found = {}
    for line in records.splitlines():
        _, kind, job, text = line.split(";", 3)
        if kind == "E":
            found[job] = dict(word.partition("=")[::2] for word in text.split())
    for number, job in zip(ids, jobs, strict=True):
        words = found[number]
        yield {
            "job": job.job, "submit": int(words["qtime"]) - zero,
            "start": int(words["start"]) - zero, "end": int(words["end"]) - zero,
            "size": job.size, "limit_minutes": job.limit_minutes,
            "time_min_minutes": job.time_min_minutes, "length_minutes": job.length_minutes,
            "wanted_run": job.run, "partition": words["queue"], "state": words["Exit_status"],
            "nodes": " ".join(dict.fromkeys(re.findall(r"(n\d+):", words["exec_vnode"]))),
        }  # fmt: skip


def cycle_seconds(log: str) -> float:
    """Return the median duration of scheduling cycles in seconds of the fast clock."""
    found, begin = [], None
    for time, event in CYCLE_LINE.findall(log):
        moment = datetime.strptime(time, "%m/%d/%Y %H:%M:%S.%f").replace(tzinfo=UTC)
        if event == "Starting":
            begin = moment
        elif begin is not None:
            found.append((moment - begin).total_seconds())
    return round(statistics.median(found), 3) if found else 0.0


def play_pbs(options: argparse.Namespace) -> None:
    """Make the plays that are not there yet."""
    if reason := reason_to_skip():
        raise ClusterError(f"A play of PBS {reason}.")
    workload, jobs = jobs_of(options)
    usual = (PREFIX / "etc/pbs_sched_config").read_text()
    nodes = workload.processors_of_machine
    played = read_server(options.site) if options.site else plain_server(nodes, usual)
    if options.site_factor:
        played = played.ordered(window_of(options).first_after)
    for change in played.changes:
        print(f"site: {change}")
    play_all(options, len(jobs), lambda file: play_once(file, played, jobs, options))
    if "forecasts" in vars(options):
        window = window_of(options)
        score_forecasts(
            options.output,
            PlayedLog(window, window.runs(lambda queue: queue, 0)),
            options.forecasts,
            Means("OpenPBS", asking_of, PbsQueueRecord, first_id=0),
        )


def asking_of(runs: Mapping[str, Completion]) -> AskingAsFollower:
    """Return what hands the queues of a play over."""
    return AskingAsFollower({job_id: run.submission for job_id, run in runs.items()})


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--site", type=Path, help="as --pbs-config; default: one FIFO queue")
    parser.add_argument(
        "--soft-walltime", dest="time_min", metavar="METHOD", help="predictions of it are given"
    )
    parser.add_argument(
        "--order", dest="site_factor", metavar="METHOD", help="order by its predictions, as the "
        "hook's mode order and its formula",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    run("pbs-play", parsed(), play_pbs)
