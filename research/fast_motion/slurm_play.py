"""Plays a log, or a window of it, twice through a real Slurm in fast motion.

    python research/fast_motion/slurm_play.py LOG --from 113 --days 1.5 --conf slurm.conf -o DIR

Writes when and where each job started, and prints how far the two plays differ, which is the noise
of the real Slurm, and how far the twin of Slurm and two policies of papers differ from each. It
needs Slurm, gcc and two cores that are otherwise idle; as root where --root names another tree.
"""

import argparse
import gzip
import json
import re
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fast_clock import NoCompilerError
from fast_cluster import ClusterError, FastCluster, check_slurm, mount_into, unix_of
from forecast_play import AskingAsUpdater, Means, PlayedLog, score_forecasts
from installation import Installation, Window, as_submitted, words_of
from installed_cluster import InstalledCluster, add_users, check_installed
from played_conf import PlayedConf, plain_conf, read_conf
from player import Cluster, Player, PlayJob, Speeds, TooFastError
from recorded_plays import (
    CYCLE,
    PLAYS,
    Likeness,
    RecordedPlay,
    interval_of,
    logged_times,
    played_in,
    read_play,
    rules_of,
    starts_under,
    twin_starts,
    write_play,
)
from recorded_queues import QueueRecord, RecordingPlayer, slurm_queue

from predictors.aged_length import site_factor
from predictors.jobs import Submission
from predictors.response_ratio import largest_ratio_factor
from service.slurm_updater.slurm import settings_in
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_cluster import partition_names
from simulator.scheduling.slurm_configuration import COMMANDS, read_configuration
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmRules
from simulator.scheduling.workload import Workload, WorkloadError, prepare
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers

DAY = 86400

PLAIN = ("easy", "conservative")

WHAT_IS_PLAYED = (
    "log", "first_day", "days", "most_jobs", "conf", "site", "root", "time_min", "site_factor",
    "installed", "cpus",
)  # fmt: skip
"""Options, of this or that command, that a directory of plays is made for."""

AGE_OF_A_DAY = DAY
"""Priority that a job gains by a day of waiting, where site factors order the queue."""

LONGEST_WINDOW = 100 * DAY
"""Seconds."""


class LogJob(NamedTuple):
    """A job of the log; times are seconds, minutes are whole ones, 0 is none."""

    job: int
    submit: int
    size: int
    run: int
    limit_minutes: int
    time_min_minutes: int
    length_minutes: int
    queue: str
    logged: Submission


def window_of(options: argparse.Namespace) -> Window:
    """Return the jobs of the window, in the order of submission.

    Raises:
        WorkloadError: the window has no jobs.
    """
    workload = prepare(read_swf(options.log), overrun="keep")  # Slurm itself ends jobs
    begin = round(DAY * options.first_day)
    submit = workload.submit - begin
    chosen = np.flatnonzero((submit >= 0) & (submit < DAY * options.days))[: options.most_jobs]
    if not len(chosen):
        raise WorkloadError(f"{options.log} has no jobs in that window.")
    return Window(workload, chosen, begin)


def jobs_of(options: argparse.Namespace) -> tuple[Workload, list[LogJob]]:
    """Return the log and the jobs of the window, in the order of submission.

    Raises:
        WorkloadError: the window has no jobs.
    """
    workload, chosen, begin = window_of(options)
    submit = workload.submit - begin
    limits = -(-workload.request // 60)
    time_min = predicted_minutes(workload, options.time_min, chosen[-1])
    length = predicted_minutes(workload, options.site_factor, chosen[-1], profile="order")
    queues = partition_names(workload)
    logged = [run.submission for run in completions(workload.trace.select(chosen))]
    return workload, [
        LogJob(
            int(workload.trace.job[place]), int(submit[place]), int(workload.processors[place]),
            int(workload.runtime[place]), int(limits[place]),
            int(time_min[place]) if time_min[place] < limits[place] else 0,
            min(int(length[place]), int(limits[place])), queues[place], job,
        )
        for place, job in zip(chosen, logged, strict=True)
    ]  # fmt: skip


def predicted_minutes(
    workload: Workload, method: str | None, last: int, profile: str = "regular"
) -> Integers:
    """Return what a method predicts at each submission up to the last one, in whole minutes.

    Without a method there are zeros. Under the profile "order" means are returned.
    """
    if method is None:
        return np.zeros(len(workload), np.int64)
    log = prepare(workload.trace.select(slice(last + 1)), overrun="keep")
    found = simulate(log, Semantics.adjusted(profile), Estimates.named(method))
    return -(-np.where(found.length, found.length, found.estimate) // 60)


def fitting(jobs: Sequence[LogJob], cluster: SlurmCluster) -> list[LogJob]:
    """Return the jobs that their partition can hold, and say how many it cannot."""
    partitions = [cluster.partitions[cluster.place_of(job.queue)] for job in jobs]
    pairs = zip(jobs, partitions, strict=True)
    found = [job for job, partition in pairs if job.size <= cluster.cpus_of(partition)]
    if len(found) < len(jobs):
        print(f"{len(jobs) - len(found)} jobs are larger than their partition, and left out.")
    return found


def play_job(
    job: LogJob, cluster: SlurmCluster, over_time_limit: int, *, named: bool = False
) -> PlayJob:
    """Return what is submitted for a job of the log, under the names in it or as root's."""
    partition = cluster.partitions[cluster.place_of(job.queue)]
    size = ["-n", str(job.size)]
    if takes_equal_nodes(cluster):
        size = ["-N", str(-(-job.size // cluster.groups[0][1]))]
    names = words_of(as_submitted(job.logged, partition.name)) if named else ["-J", str(job.job)]
    words = [*names, "-p", partition.name, "-t", str(job.limit_minutes), *size]
    if job.time_min_minutes:
        words.append(f"--time-min={job.time_min_minutes}")
    factor = played_factor(job) if job.length_minutes else None
    return PlayJob(job.submit, job.run, words, factor, 60 * job.limit_minutes + over_time_limit)


def played_factor(job: LogJob) -> int:
    """Return the site factor that the updater sets, and the age at the end of a long window.

    Slurm ignores PriorityWeightAge where it has no accounts (slurmdbd), as in a play. Waiting jobs
    age alike, so their order by factor and age is that by the sum at any one time.
    """
    return site_factor(60 * job.length_minutes, AGE_OF_A_DAY) + LONGEST_WINDOW - job.submit


def takes_equal_nodes(cluster: SlurmCluster) -> bool:
    """Whether jobs take whole nodes, which are all equal."""
    kinds = {cpus for _, cpus, _ in cluster.groups}
    return len(kinds) == 1 and all(each.exclusive for each in cluster.partitions)


def play_once(
    file: Path,
    conf: PlayedConf,
    jobs: Sequence[LogJob],
    options: argparse.Namespace,
    installation: Installation | None,
) -> dict[str, Any]:
    """Play the jobs, write the play and the configuration, and return what is to be said of it."""
    speeds = Speeds(*options.speeds, most_crawled=options.most_crawled)
    with cluster_of(conf, options.root, installation) as cluster:
        site = file.parent / "site"
        site.mkdir(exist_ok=True)
        for name, command in COMMANDS.items():
            (site / f"{name}.txt").write_text(cluster.run(*command.split()))
        rules = read_configuration(site)
        assert rules.cluster is not None  # noqa: S101 - the site has one
        played, over = fitting(jobs, rules.cluster), rules.over_time_limit
        named = installation is not None or bool(vars(options).get("forecasts"))
        shown = partial(slurm_queue, cluster)
        player = player_of(cluster, speeds, options, file, shown=shown, zero=cluster.zero)
        ended = play_as_far(
            player, [play_job(job, rules.cluster, over, named=named) for job in played]
        )
        ids, played = player.ids, played[: len(player.ids)]
        shown = cluster.run("scontrol", "-o", "show", "jobs") if ended else cluster.shown_jobs()
        rows = list(rows_of(shown, player.zero, ids, played))
        found = compared(cluster, ids, played, rows, rules)
        write_play(file, rows)
        log = cluster.log()
        with gzip.open(str(file).replace(".csv.", ".log."), "wt", encoding="utf-8") as written:
            written.write(log)
        return {
            "slurm": cluster.version,
            **({"ended": ended} if ended else {}),
            "real_seconds": round(player.seconds),
            "crawled": round(player.crawled, 3),
            "cycle_seconds": cycle_seconds(log),
            "not_completed": sum(row["state"] != "COMPLETED" for row in rows),
            **found,
        }


def player_of(  # noqa: PLR0913 - those of a player, and what is shown
    cluster: Cluster,
    speeds: Speeds,
    options: argparse.Namespace,
    file: Path,
    *,
    shown: Callable[[float], dict[str, Any]],
    zero: int | None = None,
) -> Player:
    """Return a player, which records the queue where forecasts are wanted.

    Args:
        cluster: a cluster without jobs.
        speeds: of the clock.
        options: of the command.
        file: of the play.
        shown: returns the queue; see ``RecordingPlayer``.
        zero: see ``Player``.
    """
    longest = 60 * options.longest
    if not vars(options).get("forecasts"):
        return Player(cluster, speeds, longest, zero)
    queues = file.with_name(file.name.replace(".csv.", ".queue."))
    return RecordingPlayer(cluster, speeds, longest, zero, file=queues, shown=shown)


def play_as_far(player: Player, jobs: Sequence[PlayJob]) -> str:
    """Play the jobs; return why the play ended early, or nothing.

    Raises:
        TooFastError: it ended early, and no queues were recorded that could be of use.
    """
    try:
        player.play(jobs)
    except TooFastError as error:
        if not isinstance(player, RecordingPlayer) or not player.has_recorded:
            raise
        print(error)
        return str(error)
    return ""


def cluster_of(conf: PlayedConf, root: Path, installation: Installation | None) -> FastCluster:
    """Return a cluster that has not started, with walltimed beside it or without."""
    return FastCluster(conf, root) if installation is None else InstalledCluster(conf, installation)


def compared(
    cluster: FastCluster,
    ids: Sequence[str],
    jobs: Sequence[LogJob],
    rows: Sequence[dict[str, Any]],
    rules: SlurmRules,
) -> dict[str, Any]:
    """Add to the rows what the filter set, and return what is to be said of filter and updater."""
    if not isinstance(cluster, InstalledCluster):
        return {}
    for row, number in zip(rows, ids, strict=True):
        row["site_factor"] = cluster.factors.get(number, "")
    others = sum(rules.weights_beside_age.values())
    largest = largest_ratio_factor(rules.priority_weight_age, others)
    submissions = [
        as_submitted(job.logged, row["partition"]) for job, row in zip(jobs, rows, strict=True)
    ]
    found = cluster.installation.compared(rows, submissions, largest)
    after = cluster.installation.first_after
    return {"filter": found, "updater": cluster.rounds(), "first_after": after}


def rows_of(
    records: str, zero: int, ids: Sequence[str], jobs: Sequence[LogJob]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each job, in the order of submission, from what scontrol shows."""
    found = {}
    for line in records.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        found[words["JobId"]] = words
    for number, job in zip(ids, jobs, strict=True):
        words = found[number]
        if words["JobState"] == "PENDING":  # in a play that ended early
            continue
        times = {
            name: round(unix_of(words[f"{name.title()}Time"]) - zero)
            for name in ("submit", "start", "end")
        }
        yield {
            "job": job.job, **times, "size": job.size, "limit_minutes": job.limit_minutes,
            "time_min_minutes": job.time_min_minutes, "length_minutes": job.length_minutes,
            "wanted_run": job.run, "partition": words["Partition"], "nodes": words["NodeList"],
            "state": words["JobState"],
        }  # fmt: skip


def cycle_seconds(log: str) -> float:
    """Return the median duration of backfill cycles in seconds of the fast clock."""
    found = [int(each) / 1e6 for each in re.findall(r"completed testing .*usec=(\d+)", log)]
    return round(statistics.median(found), 3) if found else CYCLE


def play_all(
    options: argparse.Namespace, jobs: int, play: Callable[[Path], Mapping[str, Any]]
) -> None:
    """Make the plays that are not there yet.

    Args:
        options: of the command line.
        jobs: number of jobs.
        play: makes one play, in a file, and returns what is to be said of it.

    Raises:
        ClusterError: the directory has plays of something else.
    """
    directory: Path = options.output
    directory.mkdir(parents=True, exist_ok=True)
    notes_file = directory / "play.json"
    notes = json.loads(notes_file.read_text()) if notes_file.exists() else {}
    given = vars(options)
    played = {name: str(given[name]) for name in WHAT_IS_PLAYED if name in given}
    if notes.setdefault("played", played) != played:
        raise ClusterError(f"{directory} has plays of something else: {notes['played']}")
    for name in PLAYS[: vars(options).get("plays", 2)]:
        if name in notes:
            continue
        print(f"{name} play: {jobs} jobs", flush=True)
        notes[name] = play(directory / f"{name}.csv.gz")
        notes_file.write_text(json.dumps(notes, indent=1) + "\n")


def twins_of(directory: Path) -> Iterator[tuple[str, RecordedPlay, Integers]]:
    """Yield the name of each play, the play, and the starts of its twin."""
    notes = json.loads((directory / "play.json").read_text())
    for name in played_in(notes):
        play = read_play(directory / f"{name}.csv.gz")
        rules = rules_of(directory / "site", notes[name]["cycle_seconds"])
        log = directory / f"{name}.log.gz"
        if isinstance(rules, SlurmRules) and log.exists():
            text = gzip.decompress(log.read_bytes()).decode("utf-8", "replace")
            rules = replace(rules, logged=logged_times(text, play, rules))
        assert rules.cluster is not None  # noqa: S101 - the site has one
        after = notes[name].get("first_after")
        yield name, play, twin_starts(play, rules, rules.cluster.cpus, first_after=after)


def comparisons(directory: Path) -> Iterator[tuple[str, Likeness]]:
    """Yield each pair of schedules and their likeness."""
    names = played_in(json.loads((directory / "play.json").read_text()))
    plays = [read_play(directory / f"{name}.csv.gz") for name in names]
    rules = rules_of(directory / "site")
    assert rules.cluster is not None  # noqa: S101 - the site has one
    interval = interval_of(rules)
    if len(plays) > 1:
        first, second = plays
        yield "first, second play", Likeness.of(first, second.start, interval, second.submit)
    for name, play, twin in twins_of(directory):
        yield f"{name} play, twin", Likeness.of(play, twin, interval)
        for policy in PLAIN if not (play.time_min.any() or play.length.any()) else ():
            starts = starts_under(policy, play, rules.cluster.cpus)
            yield f"{name} play, {policy}", Likeness.of(play, starts, interval)


def print_report(directory: Path) -> None:
    """Print what the plays were like, and the likeness of each pair of schedules."""
    notes = json.loads((directory / "play.json").read_text())
    for name in played_in(notes):
        play, note = read_play(directory / f"{name}.csv.gz"), notes[name]
        print(f"{name} play: {said_of(play, note)}")
        if "filter" in note:
            print(f"  {said_of_installed(note)}")
    if any((directory / f"{name}.queue.gz").exists() for name in PLAYS):
        return  # forecasts were scored
    print(Likeness.HEADS)
    for name, likeness in comparisons(directory):
        print(likeness.row(name))
    for line in rules_of(directory / "site").unmodelled:
        print(f"not modelled by the twin: {line}")


def release_of(note: Mapping[str, Any]) -> str:
    """Return the resource manager of a play, with its release."""
    return f"OpenPBS {note['openpbs']}" if "openpbs" in note else f"Slurm {note['slurm']}"


def said_of(play: RecordedPlay, note: Mapping[str, Any]) -> str:
    """Return a line about a play: its size, its pace and how far it is to be believed."""
    over = play.overrun
    return (
        f"{release_of(note)}, {len(play.submit)} jobs, {play.end.max() / 3600:.1f} h in "
        f"{note['real_seconds'] / 60:.1f} min; ran longer than wanted: median {np.median(over):.0f}"
        f" s, 95% {np.quantile(over, 0.95):.0f} s; the clock crawled {note['crawled']:.0%} of the "
        f"time; {note['not_completed']} jobs not completed"
    )


def said_of_installed(note: Mapping[str, Any]) -> str:
    """Return how many site factors the filter set as two replays do, and the updater's rounds."""
    seen, *shares = (note["filter"][name] for name in ("seen", "foreseen", "replayed"))
    foreseen, replayed = (f"{share / max(seen, 1):.1%}" for share in shares)
    rounds = note["updater"]
    return (
        f"{seen} site factors of the filter seen, {foreseen} as foreseen, {replayed} as replayed "
        f"with the play's ends; updater: {rounds['rounds']} rounds, {rounds['median_pause']:.0f} s "
        f"apart (at most {rounds['longest_pause']:.0f} s), {rounds['updated']} factors changed, "
        f"{rounds['refused']} refused, {rounds['failed']} rounds failed"
    )


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a command line with the options of every play."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", help="a log in the Standard Workload Format")
    parser.add_argument("--from", dest="first_day", type=float, default=0, metavar="DAY")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--most-jobs", type=int, help="the first of the window")
    parser.add_argument(
        "--speeds", type=speeds_of, default=Speeds()[:3], metavar="SLOW,WAITING,IDLE",
        help="of the clock near events, while jobs wait, else; default: 100,1500,3000",
    )  # fmt: skip
    parser.add_argument(
        "--most-crawled", type=float, default=Speeds().most_crawled, metavar="SHARE",
        help="of the time in which the clock may crawl; beyond, the play ends; default: 0.25",
    )  # fmt: skip
    parser.add_argument(
        "--plays", type=int, choices=(1, 2), default=2, help="one shows no noise; default: two"
    )
    parser.add_argument("--longest", type=float, default=30, help="minutes that a play may take")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--forecasts", metavar="METHOD", default=argparse.SUPPRESS, help="record the queue every "
        "half hour, then ask a service when the waiting jobs will start",
    )  # fmt: skip
    return parser


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--conf", type=Path, help="slurm.conf; default: one FIFO partition")
    parser.add_argument("--root", type=Path, default=Path("/"), help="a tree with another Slurm")
    parser.add_argument("--time-min", metavar="METHOD", help="predictions of it are TimeMin")
    parser.add_argument(
        "--site-factor", metavar="METHOD", help="order by its predictions, as the updater's "
        "sjf-aging; needs priority/multifactor without weights",
    )  # fmt: skip
    parser.add_argument(
        "--installed", metavar="METHOD", default=argparse.SUPPRESS, help="order by what a running "
        "service answers filter and updater (response-ratio); needs root, slurmdbd, "
        "priority/multifactor",
    )  # fmt: skip
    parser.add_argument(
        "--cpus-per-node", dest="cpus", type=int, default=1, metavar="N",
        help="of the plain machine, whose nodes jobs take whole; default: 1",
    )  # fmt: skip
    return parser.parse_args()


def speeds_of(text: str) -> Sequence[float]:
    """Return three speeds of text such as ``100,1500,3000``."""
    found = [float(each) for each in text.split(",")]
    if len(found) != 3 or not 1 <= found[0] <= found[1] <= found[2]:
        raise argparse.ArgumentTypeError(f"{text} is not three growing speeds.")
    return found


def play_slurm(options: argparse.Namespace) -> None:
    """Make the plays that are not there yet."""
    workload, jobs = jobs_of(options)
    conf = (
        read_conf(options.conf)
        if options.conf
        else plain_conf(workload.processors_of_machine, options.cpus)
    )
    for change in conf.changes:
        print(f"slurm.conf: {change}")
    check_slurm(options.root)
    if options.root != Path("/"):
        mount_into(options.root)
    installation = None
    if method := vars(options).get("installed"):
        check_installed(options.root)
        installation = Installation.of(window_of(options), method, conf.partition_of)
        add_users(installation.users)
    window = window_of(options)
    if "forecasts" in vars(options):
        runs = window.runs(conf.partition_of, 0)
        add_users({user for job in window.chosen if (user := runs[job].submission.user)})
    play_all(options, len(jobs), lambda file: play_once(file, conf, jobs, options, installation))
    if "forecasts" in vars(options):
        site = settings_in((options.output / "site/config.txt").read_text())
        score_forecasts(
            options.output,
            PlayedLog(window, runs, options.cpus),
            options.forecasts,
            Means("Slurm", lambda _: AskingAsUpdater(site), QueueRecord),
        )


def run(command: str, options: argparse.Namespace, play: Callable[..., None]) -> None:
    """Play twice and print the report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    try:
        play(options)
        print_report(options.output)
    except (ClusterError, NoCompilerError, TooFastError, OSError, ValueError) as error:
        sys.exit(f"{command}: {error}")


if __name__ == "__main__":
    run("slurm-play", parsed(), play_slurm)
