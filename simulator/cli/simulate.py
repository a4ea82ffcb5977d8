"""``walltimed simulate``: simulates schedulers with better estimates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, starmap
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from predictors.base import DEFAULT_METHOD
from simulator.cli.logs import Installation, LogFile, with_size
from simulator.cli.options import (
    ADJUSTMENTS,
    COMPRESSIONS,
    CORRECTIONS,
    ESTIMATES,
    EVENTS,
    METHODS,
    ORDERS,
    OVERRUNS,
    PINNED,
    POLICIES,
    TWINS,
    CoresPerNode,
    Distributed,
    MachineSize,
    MalformedLines,
    PbsConfig,
    Processes,
    ReportDirectory,
    ServiceToken,
    ServiceUrl,
    SlurmConfig,
    TraceFile,
    Wide,
)
from simulator.cli.players import opened
from simulator.cli.results import conclude, numbers_of, print_tables
from terminal.console import (
    STANDARD_OUTPUT,
    CommandError,
    ExitCode,
    check_alone,
    check_directory,
    check_file,
    err,
    need,
)
from terminal.files import name_of
from terminal.options import (
    AsJson,
    Columns,
    Format,
    Limit,
    OnError,
    Quiet,
    Ratio,
    TimeZone,
    choice,
    one_of,
)
from terminal.progress import progress_bar

if TYPE_CHECKING:
    from simulator.reports.comparison import Combination, Outcome, Shaking
    from simulator.scheduling.estimates import Estimates
    from simulator.scheduling.pbs_rules import PbsRules
    from simulator.scheduling.semantics import Semantics
    from simulator.scheduling.slurm_rules import SlurmRules
    from simulator.scheduling.workload import Workload
    from simulator.traces.completions import RecordedLog
    from simulator.traces.trace import Reject, Trace

SERVICE = "service"

REPETITIONS = 20
"""Repetitions of ``--shake`` by default."""

MOST_MINUTES = 366 * 24 * 60
"""The longest request, which bounds ``--pinning`` and ``--shake``."""


def simulate(
    context: typer.Context,
    trace: TraceFile,
    *,
    format_: Format = None,
    columns: Columns = None,
    time_zone: TimeZone = "UTC",
    policy: Annotated[list[str] | None, choice("Policy", (*POLICIES, *TWINS))] = None,
    estimates: Annotated[
        list[str] | None,
        typer.Option(
            "--estimates",
            help="exact, requested, service, file:PREDICTIONS, or a method.",
            autocompletion=one_of(ESTIMATES),
        ),
    ] = None,
    order: Annotated[str | None, choice("Queue order (default fcfs)", ORDERS)] = None,
    ratio: Ratio = None,
    events: Annotated[str, choice("Events of one second, sequential as pyss", EVENTS)] = "batch",
    depth: Annotated[int, typer.Option(help="Jobs with a reservation under EASY.")] = 1,
    compression: Annotated[
        str, choice("Conservative plans are compressed by", COMPRESSIONS)
    ] = "start-order",
    pinning: Annotated[
        float,
        typer.Option(
            min=0,
            max=MOST_MINUTES,
            help="fcfs-pinned: minutes before the start in which nodes stay.",
        ),
    ] = 60.0,
    pinned: Annotated[
        str, choice("Pinned jobs keep their nodes only, or their start too", PINNED)
    ] = "nodes",
    correction: Annotated[str, choice("Correction of outlived estimates", CORRECTIONS)] = "double",
    adjust: Annotated[
        str, choice("Where estimates act", ADJUSTMENTS, "--adjust", "--profile")
    ] = "regular",
    slurm_config: SlurmConfig = None,
    pbs_config: PbsConfig = None,
    requests: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Predictions that replace the log's requests."),
    ] = None,
    overrun: Annotated[str, choice("Jobs that overran their request", OVERRUNS)] = "kill",
    processors: MachineSize = None,
    cores_per_node: CoresPerNode = None,
    limit: Limit = None,
    on_error: MalformedLines = OnError.REFUSE,
    shake: Annotated[
        int | None,
        typer.Option(
            min=1, max=60 * MOST_MINUTES, help="Seconds by which submissions move at most."
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option(min=1, help="Repetitions of --shake; default: 20.")
    ] = None,
    processes: Processes = None,
    distributed: Distributed = None,
    url: ServiceUrl = None,
    token: ServiceToken = None,
    method: Annotated[
        str, typer.Option(help="Method of --estimates service.", autocompletion=one_of(METHODS))
    ] = DEFAULT_METHOD,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the schedule as SWF, or a row for each job of each simulation: .csv, "
            ".parquet or .arrow.",
        ),
    ] = None,
    report: ReportDirectory = None,
    wide: Wide = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a scheduler on a log, for every policy with every source of estimates.

    Both options may be given several times, policies also as one list with commas. With
    --estimates service the simulation plays to the live API: submissions ask for predictions
    when the simulated scheduler receives them, completions are posted when the simulated
    schedule ends them. With --estimates file:FILE they come from a file that walltimed replay
    --output wrote, file:FILE#METHOD where it has several methods; with --requests FILE such
    predictions stand in the log instead of the requests, before --overrun is applied.

    For example:

        walltimed simulate SDSC-SP2-1998-4.2-cln.swf.gz --policy easy,conservative
        walltimed simulate log.swf --estimates requested --estimates exact
        walltimed simulate log.swf --policy easy --shake 60 --repeat 50
        walltimed simulate sacct.txt --policy slurm --processors 4096
        walltimed simulate log.swf --output easy.swf.gz
    """
    need("matplotlib", for_=report)
    from simulator.reports.comparison import Combination, Shaking

    check_output(output, as_json=as_json)
    check_directory(report)
    refuse_idle(shake=shake, repeat=repeat, estimates=estimates or (), url=url)
    refuse_beside_service(estimates or (), processes=processes, distributed=distributed)
    site = site_of_twin(slurm_config, pbs_config, policy or [], cores_per_node)
    rules = {
        "order": order,
        "ratio": ratio,
        "events": events,
        "depth": depth,
        "compression": compression,
        "pinning": round(60 * pinning),
        "pinned": pinned,
        "correction": correction,
        **site.rules,
    }
    all_rules = semantics_of(policy or ["easy"], adjust, rules)
    simulations = Simulations(
        combinations=list(starmap(Combination, product(all_rules, estimates or ["requested"]))),
        url=url,
        token=token,
        method=method,
        processes=processes,
        distributed=distributed,
        keeps=output is not None and is_table(output),
    )
    if output and not is_table(output) and (len(simulations.combinations) > 1 or shake):
        raise CommandError(
            "--output of SWF takes one policy and one source of estimates; a table, such as .csv, "
            "takes all.",
            ExitCode.USAGE,
        )
    installation: Installation = context.obj
    recorded = installation.recorded_log(
        LogFile(
            path=trace,
            format=format_,
            columns=columns or (),
            time_zone=time_zone,
            on_error=on_error,
            quiet=quiet,
        )
    )
    log, workload = jobs_of(
        recorded,
        name_of(trace),
        limit=limit,
        processors=processors or site.processors,
        cores_per_node=cores_per_node,
        requests=requests,
        overrun=overrun,
    )
    tell_unpredicted(requests, estimates or (), workload)
    shaking = Shaking(shake, repeat or REPETITIONS) if shake else None
    outcomes = simulations.play(log, workload, shaking, quiet=quiet)
    result = SimulationResult(
        name=name_of(trace),
        recorded=replace(recorded, trace=workload.trace),
        workload=workload,
        outcomes=outcomes,
        rejected=log.rejects,
    )
    if output:
        result.write_schedule(output)
    conclude(result, report=report, wide=wide, as_json=as_json, is_piped=output == STANDARD_OUTPUT)


def is_table(output: str) -> bool:
    """Return whether a file is a table; standard output gets SWF."""
    from terminal.data_table import form_of

    return output != STANDARD_OUTPUT and form_of(output) is not None


def check_output(output: str | None, *, as_json: bool) -> None:
    """Refuse a file that cannot be written; None is no file.

    Raises:
        CommandError: the message says what is in the way.
    """
    from terminal.data_table import check_table

    if output and is_table(output):
        check_table(output, "the schedules", as_json=as_json)
    check_alone(output, "the schedule", as_json=as_json)
    check_file(output)


def jobs_of(
    recorded: "RecordedLog",
    name: str,
    *,
    limit: int | None,
    processors: int | None,
    cores_per_node: int | None,
    requests: str | None,
    overrun: str,
) -> "tuple[Trace, Workload]":
    """Return the log and its jobs as the scheduler receives them.

    Raises:
        NoJobError: there is no job to simulate.
    """
    from simulator.scheduling.estimates import predictions_of
    from simulator.scheduling.workload import first_jobs, prepare, with_requests
    from simulator.traces.cleaning import NoJobError

    recorded = recorded if processors else with_size(recorded)
    log = first_jobs(recorded.trace, limit, processors=processors)
    if requests:
        log = with_requests(log, predictions_of(requests))
    workload = prepare(log, processors=processors, cores_per_node=cores_per_node, overrun=overrun)
    if not len(workload):
        raise NoJobError(name, "simulated", {**recorded.left_out, **workload.counts})
    return log, workload


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """The result of simulations.

    Attributes:
        recorded: the jobs of the workload, with the names that their numbers stand for.
        rejected: the malformed lines of the log.
    """

    name: str
    recorded: "RecordedLog"
    workload: "Workload"
    outcomes: "Sequence[Outcome]"
    rejected: "Sequence[Reject]"

    @property
    def facts(self) -> dict[str, str]:
        """The semantics cards, merged by rule, and the treatment of the input."""
        cards: dict[str, dict[str, None]] = {}
        for each in self.outcomes:
            for name, text in each.schedule.card().items():
                cards.setdefault(name, {})[text] = None
        facts = {name: "; or ".join(texts) for name, texts in cards.items()}
        facts["Jobs"] = f"{len(self.workload):,}; {self.workload.treated()}"
        if self.rejected:
            facts["Malformed lines"] = numbers_of(self.rejected)
        return facts

    def show(self, *, wide: bool) -> None:
        """Print the facts and the tables; ``wide`` has all columns, in seconds."""
        from simulator.reports.comparison import tables
        from simulator.reports.page import lines_of

        print_tables(f"{lines_of(self.facts)}\n{tables(self.outcomes, wide=wide)}", wide=wide)

    def as_data(self) -> dict[str, Any]:
        """Return the outcomes as a JSON object."""
        counts = self.workload.counts
        return {
            "jobs": len(self.workload),
            "processors": self.workload.processors_of_machine,
            "left_out": {rule: jobs for rule, jobs in counts.items() if "(" not in rule},
            "changed": {
                rule.partition(" ")[0]: jobs for rule, jobs in counts.items() if "(" in rule
            },
            "rejected": self.rejected,
            "simulations": [each.as_record() for each in self.outcomes],
        }

    def write_schedule(self, file: str) -> None:
        """Write a table of all schedules, or the schedule of the only outcome as SWF."""
        from simulator.scheduling.schedule_file import schedule_tables, write_result
        from terminal.data_table import write_table

        schedules = [each.schedule for each in self.outcomes]
        if is_table(file):
            write_table(schedule_tables(self.recorded, schedules), file)
        else:
            write_result(schedules[0], file)

    def write(self, directory: Path) -> None:
        """Write the page with its pictures and data."""
        from simulator.reports.schedule_report import write_report  # loads matplotlib

        write_report(directory, f"Simulation of {self.name}", self.facts, self.outcomes)


def tell_unpredicted(requests: str | None, estimates: Sequence[str], workload: "Workload") -> None:
    """Say how many jobs each file of predictions does not know: it may be of another log."""
    from simulator.scheduling.estimates import FILE, predictions_of

    files = [each.removeprefix(FILE) for each in estimates if each.startswith(FILE)]
    for file in [requests, *files] if requests else files:
        known = predictions_of(file)
        unknown = sum(job not in known for job in workload.trace.job.tolist())
        if unknown:
            err.print(
                f"{file} has no prediction of {unknown:,} of {len(workload):,} jobs; their "
                "requests are taken.",
                soft_wrap=True,
                markup=False,
            )


def refuse_idle(
    *, shake: int | None, repeat: int | None, estimates: Sequence[str], url: str | None
) -> None:
    """Refuse options that do nothing without another one.

    Raises:
        CommandError: the message names the other one.
    """
    if repeat and not shake:
        raise CommandError("--repeat repeats what --shake moves: name it too.", ExitCode.USAGE)
    if url and SERVICE not in estimates:
        raise CommandError("--url is asked by --estimates service only.", ExitCode.USAGE)


def refuse_beside_service(
    estimates: Sequence[str], *, processes: int | None, distributed: str | None
) -> None:
    """Refuse several processes where a service is asked, which only this process can be.

    Raises:
        CommandError: the message names the option to leave out.
    """
    option = "--distributed" if distributed else "--processes" if processes not in {None, 1} else ""
    if option and SERVICE in estimates:
        raise CommandError(
            f"--estimates service plays in this process: no {option}.", ExitCode.USAGE
        )


class SiteOfTwin(NamedTuple):
    """A site's configuration of a twin: its rules by their name in ``Semantics``, and its CPUs."""

    rules: "Mapping[str, SlurmRules | PbsRules]"
    processors: int | None


def site_of_twin(
    slurm_config: Path | None,
    pbs_config: Path | None,
    policies: Sequence[str],
    cores_per_node: int | None,
) -> SiteOfTwin:
    """Return the configuration of a site, if a directory with it is named.

    Raises:
        CommandError: there is another policy, or another machine, than that of the configuration.
    """
    if not (slurm_config or pbs_config):
        return SiteOfTwin({}, None)
    from simulator.scheduling.pbs_configuration import read_pbs_configuration
    from simulator.scheduling.slurm_configuration import read_configuration

    given: dict[str, tuple[Path | None, Callable[[Path], SlurmRules | PbsRules]]] = {
        "slurm": (slurm_config, read_configuration),
        "pbs": (pbs_config, read_pbs_configuration),
    }
    rules: dict[str, SlurmRules | PbsRules] = {}
    for twin, (directory, read) in given.items():
        if directory is None:
            continue
        option = f"--{twin}-config"
        if {name for text in policies for name in text.split(",")} != {twin}:
            raise CommandError(f"{option} is for --policy {twin} alone.", ExitCode.USAGE)
        if cores_per_node is not None:
            raise CommandError(f"{option} knows the nodes: no --cores-per-node.", ExitCode.USAGE)
        rules[twin] = read(directory)
    clusters = [each.cluster for each in rules.values() if each.cluster]
    return SiteOfTwin(rules, clusters[0].cpus if clusters else None)


def semantics_of(
    policies: Sequence[str], adjust: str, rules: dict[str, Any]
) -> "Sequence[Semantics]":
    """Return the rules of each policy; rules that were not given have their defaults.

    Raises:
        CommandError: there are numbers of an order that is not played.
    """
    from simulator.scheduling.ratio_rules import RESPONSE_RATIO, RatioRules
    from simulator.scheduling.semantics import Semantics

    given = {name: rule for name, rule in rules.items() if rule is not None}
    if "ratio" in given:
        given["ratio"] = RatioRules.of(given["ratio"])
    names = dict.fromkeys(name for text in policies for name in text.split(","))
    found = [Semantics.adjusted(adjust, policy=name, **given) for name in names]
    if "ratio" in given and any(each.order != RESPONSE_RATIO for each in found):
        raise CommandError("--ratio needs --order response-ratio.", ExitCode.USAGE)
    return found


@dataclass(frozen=True, kw_only=True)
class Simulations:
    """The simulations of a command.

    Attributes:
        combinations: every policy with every source of estimates.
        url, token, method: of the service of ``--estimates service``.
        processes, distributed: as ``in_parallel`` takes them.
        keeps: whether schedules hold the answers of methods, for a table.
    """

    combinations: "Sequence[Combination]"
    url: str | None
    token: str | None
    method: str
    processes: int | None
    distributed: str | None
    keeps: bool

    def play(
        self, log: "Trace", workload: "Workload", shaking: "Shaking | None", *, quiet: bool
    ) -> "Sequence[Outcome]":
        """Simulate them all, with a progress bar."""
        from simulator.reports.comparison import Comparison, simulated
        from simulator.scheduling.parallel import in_parallel

        with self.sources(quiet=quiet) as source, progress_bar("jobs", quiet=quiet) as progress:
            bar = progress.add_task("")
            comparison = Comparison(log, workload, shaking, source, keeps=self.keeps)
            tasks = comparison.tasks(self.combinations)
            progress.update(bar, total=len(tasks) * len(workload), description=tasks[0].label)
            processes = self.processes_for(len(tasks) * len(workload))
            if processes == 1 and not self.distributed:
                comparison = replace(comparison, progress=partial(progress.advance, bar))
            results = in_parallel(
                partial(simulated, comparison),
                tasks,
                processes=processes,
                distributed=self.distributed,
            )
            found = []
            for task, result in zip(tasks, results, strict=True):
                found.append(result)
                done = len(found) * len(workload)
                progress.update(bar, completed=done, description=escape(task.label))
        return comparison.outcomes(found)

    def processes_for(self, jobs: int) -> int:
        """Return the number of processes; a service learns from one simulation after the other."""
        from simulator.scheduling.parallel import number_of_processes

        return 1 if self.asks_service else number_of_processes(self.processes, jobs)

    @property
    def asks_service(self) -> bool:
        """Whether a source of estimates is the service."""
        return any(name == SERVICE for _, name in self.combinations)

    @contextmanager
    def sources(self, *, quiet: bool) -> "Iterator[Callable[[str], Estimates]]":
        """Functions that make sources of estimates by name, each without any history."""
        from simulator.replay.method_spec import MethodSpec
        from simulator.scheduling.estimates import Estimates

        if not self.asks_service:
            yield Estimates.named
            return
        spec = MethodSpec.parse(self.method)
        with opened(
            [spec], url=self.url, token=self.token, in_process=False, quiet=quiet
        ) as player:
            yield (
                lambda name: (
                    Estimates(name, player, cluster=f"simulation-{token_hex(6)}")
                    if name == SERVICE
                    else Estimates.named(name)
                )
            )
