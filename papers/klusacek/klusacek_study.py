"""Klusáček & Soysal 2020: better estimates under conservative backfilling and on named nodes.

Figures 3, 6, 11 and 13 are of FH1 and FH2, as the text says of Figure 6; 4, 7, 12 and 14 are of CTC
and SDSC, as it says of Figure 7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.klusacek.klusacek_simulations import (
    CTC,
    LOGS,
    MORE_LOGS,
    SDSC,
    STAND_IN,
    Measured,
    conservative_runs,
    measured,
    more_logs,
    name_of,
    node_runs,
)
from papers.pivot import ExhibitPlan, Pivot
from papers.study import Inputs, LogPart, Study, StudyError, Takes, option
from predictors.measures import error_per_group
from predictors.methods.max_usage import MaxUsage
from simulator.replay.trace_replay import InProcess, Replay, replay
from simulator.reports.exhibit import Value
from simulator.reports.method_summary import user_numbers
from simulator.reports.pictures import DURATIONS
from simulator.reports.schedule_report import CLASSES
from simulator.traces.trace import Reals

NAMES = {"exact": "exact", "requested": "requests", "max-usage": "predictor"}

TENTHS = 10

Logs = Callable[[Inputs], Sequence[Path]]


def archive(inputs: Inputs) -> list[Path]:
    """Return CTC and SDSC."""
    return [inputs.logs / CTC, inputs.logs / SDSC]


def karlsruhe(inputs: Inputs) -> list[Path]:
    """Return FH1 and FH2, as far as they are there.

    Raises:
        StudyError: neither is.
    """
    found = list(more_logs(inputs.logs).values())
    if not found:
        raise StudyError(f"This figure is of {' and '.join(MORE_LOGS)}, which are not there.")
    return found


def stand_in(inputs: Inputs) -> list[Path]:
    """Return FH1 and FH2, as far as they are there, and CERIT-SC."""
    return [*more_logs(inputs.logs).values(), inputs.logs / STAND_IN]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalltimeShare:
    """Share of the jobs of a log that are no longer than a walltime, by kind of walltime."""

    log: str
    walltimes: str
    at_most: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UserError:
    """Mean absolute error of a tenth of a log's users.

    Attributes:
        log: its short name.
        users: of the log.
        closer: share of the users whose predictions err less than their requests.
        estimates: requests, or the predictor's.
        tenth: of the users, by the error of their requests.
        hours: None for a tenth without a user, as in a log that has fewer than ten.
    """

    log: str
    users: int
    closer: float
    estimates: str
    tenth: int
    hours: Value


class Replayed(NamedTuple):
    """Results of a log that was played to the predictor."""

    walltimes: Sequence[WalltimeShare]
    errors: Sequence[UserError]


def replayed(part: LogPart) -> Replayed:
    """Play a log to the predictor."""
    played = replay(part.runs(), InProcess({"max-usage": MaxUsage()}))
    log = name_of(Path(part.trace))
    return Replayed(_walltimes(log, played), _user_errors(log, played))


def _walltimes(log: str, played: Replay) -> list[WalltimeShare]:
    columns = {
        "actual": played.actual,
        "requests": played.requested,
        "predictor": played.answers["max-usage"].predicted,
    }
    return [
        WalltimeShare(
            log=log,
            walltimes=name,
            at_most=duration,
            share=float(np.mean(values <= seconds)),
        )
        for name, values in columns.items()
        for seconds, duration in DURATIONS.items()
        if seconds > 1
    ]


def _user_errors(log: str, played: Replay) -> list[UserError]:
    users, count = user_numbers(played)
    predicted = played.answers["max-usage"].predicted
    requests = error_per_group(played.requested, played.actual, users, count) / 3600
    predictor = error_per_group(predicted, played.actual, users, count) / 3600
    order = np.argsort(-requests, kind="stable")
    return [
        UserError(
            log=log,
            users=count,
            closer=float(np.mean(predictor < requests)),
            estimates=estimates,
            tenth=tenth,
            hours=_mean(part),
        )
        for estimates, errors in (("requests", requests), ("predictor", predictor))
        for tenth, part in enumerate(np.array_split(errors[order], TENTHS), 1)
    ]


def _mean(errors: Reals) -> Value:
    """Return the mean; None of an empty group."""
    return float(errors.mean()) if len(errors) else None


def walltimes(inputs: Inputs) -> list[WalltimeShare]:
    """Return the distributions of walltimes."""
    logs = [*archive(inputs), *more_logs(inputs.logs).values()]
    return [each for found in _replays(inputs, logs) for each in found.walltimes]


def errors_of_users(inputs: Inputs) -> list[UserError]:
    """Return the errors of the users of CTC and SDSC."""
    return [each for found in _replays(inputs, archive(inputs)) for each in found.errors]


def errors_of_more_users(inputs: Inputs) -> list[UserError]:
    """Return the errors of the users of FH1, FH2 and the stand-in."""
    return [each for found in _replays(inputs, stand_in(inputs)) for each in found.errors]


def _replays(inputs: Inputs, paths: Sequence[Path]) -> list[Replayed]:
    return inputs.play(replayed, [LogPart(str(path), inputs.limit) for path in paths])


def conservative(inputs: Inputs) -> list[Measured]:
    """Return the measures of all logs under conservative backfilling."""
    return _conservative(inputs, [*archive(inputs), *stand_in(inputs)])


def conservative_archive(inputs: Inputs) -> list[Measured]:
    """Return the measures of CTC and SDSC under conservative backfilling."""
    return _conservative(inputs, archive(inputs))


def conservative_more(inputs: Inputs) -> list[Measured]:
    """Return the measures of FH1, FH2 and the stand-in under conservative backfilling."""
    return _conservative(inputs, stand_in(inputs))


def _conservative(inputs: Inputs, paths: Sequence[Path]) -> list[Measured]:
    played = inputs.play(measured, conservative_runs(paths, inputs.limit))
    return [each for found in played for each in found]


def nodes_archive(inputs: Inputs) -> list[Measured]:
    """Return the measures of CTC and SDSC on named nodes."""
    return _on_nodes(inputs, archive(inputs))


def nodes_more(inputs: Inputs) -> list[Measured]:
    """Return the measures of FH1 and FH2 on named nodes."""
    return _on_nodes(inputs, karlsruhe(inputs))


def _on_nodes(inputs: Inputs, paths: Sequence[Path]) -> list[Measured]:
    limits = (inputs.limit, inputs.options.get("node_jobs"))
    least = min((jobs for jobs in limits if jobs is not None), default=None)
    return [each for found in inputs.play(measured, node_runs(paths, least)) for each in found]


def _missing(inputs: Inputs) -> str:
    missing = [name for name in MORE_LOGS if name not in more_logs(inputs.logs)]
    text = f"Not in the directory: {' and '.join(missing)}. " if missing else ""
    return f"{text}CERIT-SC, where shown, is no log of the paper.\n"


def _classes(**known: Any) -> Pivot:
    """Return a pivot of the jobs by classes of a quantity, a panel for each log."""
    usual = {
        "panel": "{log}",
        "columns": lambda each: NAMES[each.estimates],
        "rows": "{place}",
        "value": "value",
        "along": "at most",
        "unit": "share of jobs",
        "shares": True,
    }
    return Pivot(**{**usual, **known})


BOUNDS = (*CLASSES.values(), "more")


def distribution(
    number: int,
    what: str,
    table: Callable[[Inputs], list[Measured]],
    *,
    quantity: str,
    estimates: Sequence[str] = tuple(NAMES),
) -> ExhibitPlan:
    """Return Figure 6, 7 or 9: a distribution under conservative backfilling."""
    where = {"quantity": quantity, "place": BOUNDS, "estimates": tuple(estimates)}
    pivot = _classes(table=table, where=where)
    return ExhibitPlan(f"Fig. {number}: {what}", [pivot], _missing)


def on_nodes(
    number: int, what: str, table: Callable[[Inputs], list[Measured]], quantity: str
) -> ExhibitPlan:
    """Return one of Figures 11 to 14: a distribution for every pinning and all estimates."""
    pivot = _classes(
        table=table,
        where={"quantity": quantity, "place": BOUNDS},
        panel="{log}, {jobs}",
        columns=_pinned,
    )
    return ExhibitPlan(
        f"Fig. {number}: {what}",
        [pivot],
        lambda inputs: "With exact estimates pinning changes nothing.\n" + _missing(inputs),
    )


def _pinned(each: Measured) -> str:
    """Return the estimates and the pinning; exact estimates need none."""
    if each.estimates == "exact":
        return "exact"
    hours = f"{each.pinning // 3600} h" if each.pinning else "none"
    return f"{NAMES[each.estimates]}, {hours}"


def users(number: int, table: Callable[[Inputs], list[UserError]]) -> ExhibitPlan:
    """Return Figure 3 or 4: average absolute errors of users."""
    pivot = Pivot(
        table=table,
        panel="{log}: closer for {closer:.0%} of {users:,} users",
        rows="{tenth}",
        columns="{estimates}",
        value="hours",
        along="tenths of users, by the error of their requests",
        unit="mean absolute error, h",
    )
    return ExhibitPlan(f"Fig. {number}: average absolute errors of users", [pivot])


FIGURE_2 = Pivot(
    table=walltimes,
    panel="{log}",
    rows="{at_most}",
    columns="{walltimes}",
    value="share",
    along="walltime",
    unit="share of jobs that are no longer",
    kind="lines",
    shares=True,
    digits=1,
)

FIGURE_5 = Pivot(
    table=conservative,
    where={"quantity": ("planned at arrival into a gap", "started past a waiting job")},
    panel="{quantity}",
    rows="{log}",
    columns=lambda each: NAMES[each.estimates],
    value="value",
    unit="share of jobs",
    shares=True,
)

WAIT_ERROR = "error of the predicted wait"

STUDY = Study(
    name="klusacek",
    explanation="""Compare estimates under conservative backfilling and on named nodes.

    Klusáček & Soysal 2020, Figs. 2 to 7, 9 and 11 to 14, on CTC-SP2, SDSC-SP2, CERIT-SC, and on
    FH1 and FH2 where they lie beside them.

    For example:

        python -m papers klusacek traces --figure 2 --figure 7 --output klusacek
    """,
    takes=Takes.DIRECTORY,
    logs=LOGS,
    exhibits={
        "figure 2": ExhibitPlan(
            "Fig. 2: actual, requested and predicted walltimes", [FIGURE_2], _missing
        ),
        "figure 3": users(3, errors_of_more_users),
        "figure 4": users(4, errors_of_users),
        "figure 5": ExhibitPlan(
            "Fig. 5: backfilled jobs",
            [FIGURE_5],
            lambda inputs: "The paper's text has no numbers: exact and predictor slightly above "
            f"requests.\n{_missing(inputs)}",
        ),
        "figure 6": distribution(6, "waits", conservative_more, quantity="wait"),
        "figure 7": distribution(7, "waits", conservative_archive, quantity="wait"),
        "figure 9": distribution(
            9, "errors of predicted waits", conservative,
            quantity=WAIT_ERROR, estimates=("requested", "max-usage"),
        ),
        "figure 11": on_nodes(11, "T_node", nodes_more, "T_node"),
        "figure 12": on_nodes(12, "T_node", nodes_archive, "T_node"),
        "figure 13": on_nodes(13, "waits on nodes", nodes_more, "wait"),
        "figure 14": on_nodes(14, "waits on nodes", nodes_archive, "wait"),
    },
    options={
        "node_jobs": option(
            int | None, min=1, help="Jobs on named nodes, where whole logs take hours."
        ),
    },
)  # fmt: skip
