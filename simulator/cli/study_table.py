"""The studies as commands: their help texts, arguments and options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

DIRECTORY = Annotated[
    Path,
    typer.Argument(
        metavar="DIRECTORY", help="Directory of the logs, with the archive's file names."
    ),
]
TRACES = Annotated[
    list[Path], typer.Argument(metavar="TRACE...", help="SWF files, also gzip or xz.")
]


def option(kind: Any, *names: str, default: Any = None, **described: Any) -> tuple[Any, Any]:
    """Return an option of a study: its annotation and its default."""
    return Annotated[kind, typer.Option(*names, **described)], default


def _plan_option(kind: type, explanation: str) -> tuple[Any, None]:
    """Return a field of the plan of tuning, which has its default where it is left out."""
    return option(kind | None, help=explanation)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A study as a command.

    Attributes:
        name: name of the study in ``simulator.studies.STUDIES``.
        explanation: text of ``--help``; its first line is the summary.
        takes: annotation of the argument, or None.
        options: of this study alone: annotation and default by parameter.
        has_exhibits: it makes figures and tables of its paper alone.
    """

    name: str
    explanation: str
    takes: Any
    options: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    has_exhibits: bool = False


EXPERIMENTS = (
    Experiment(
        "calibration",
        """Compare the coverage and the underestimates that are asked for with those that come.

        Every job is asked about at its submission, when only what had ended is known: 50, 80, 90
        and 95% intervals, and predictions that may be too short for 5, 10 and 20% of the jobs.
        The table has the share over the whole log and how far off each tenth of it was. The
        goals: intervals within 2 points over the log and within 5 in every tenth, underestimates
        within 1 point.

        For example:

            walltimed experiment calibration sdsc.swf.gz --method attention
        """,
        TRACES,
        {
            "method": option(
                str,
                default="least-cost",
                help="A method that gives intervals; auto:every=2000 holds rounds as a service.",
            )
        },
    ),
    Experiment(
        "hanzich",
        """Score the turnaround estimates of Hanzich et al. 2005 against simulated shared nodes.

        About every 15 s one of 30 NAS-like jobs arrives at 16 nodes. Up to four jobs and local
        users share each node fairly. At each arrival every combination of the paper's estimators
        estimates the end of every job. The tables are those of the paper's Fig. 3 and Table 1.

        For example:

            walltimed experiment hanzich
            walltimed experiment hanzich --seeds 30 --scale 2
        """,
        None,
        {
            "seeds": option(int, default=100, min=2, help="Workloads in each setting."),
            "scale": option(
                float, default=1.0, min=0.01, max=100, help="Factor on the benchmarks' runtimes."
            ),
        },
        has_exhibits=True,
    ),
    Experiment(
        "klusacek",
        """Compare estimates under conservative backfilling, and show how early nodes are known.

        Klusáček & Soysal 2020, Figs. 2 to 7, 9 and 11 to 14, on CTC-SP2, SDSC-SP2,
        CERIT-SC, and on FH1 and FH2 where they lie beside them.

        For example:

            walltimed experiment klusacek traces --figure all --output klusacek
        """,
        DIRECTORY,
        {
            "node_jobs": option(
                int | None, min=1, help="Jobs on named nodes, where whole logs take hours."
            ),
        },
        has_exhibits=True,
    ),
    Experiment(
        "learned",
        """Show what rounds learn on a log, and the cost of auto beside that of its methods.

        Sites with prices of an underestimate of 0, 1, 3 and 10 mean runtimes get the same jobs. A
        cost is the error, and the price where the prediction is too short. Every job counts. The
        goal: auto costs at most 1% more than the best single method.

        For example:

            walltimed experiment learned *.swf.gz --limit 20000
        """,
        TRACES,
        {"every": option(int, default=2_000, min=100, help="Ended runs between two rounds.")},
    ),
    Experiment(
        "rocchetti",
        """Rank users by the accuracy of their requests: six scenarios on CEA-Curie.

        Rocchetti et al. 2017, Tables 2, 3, 5 and 6 and Figs. 1, 3 and 4, on CEA-Curie, and on Gaia
        where it lies beside it.

        For example:

            walltimed experiment rocchetti traces --table 5
        """,
        DIRECTORY,
        has_exhibits=True,
    ),
    Experiment(
        "tang",
        """Adjust requests under WFP and FCFS, for all jobs or for waiting jobs only.

        Tang et al. 2013, Figs. 14 to 17, on ANL-Intrepid and ALCF-Theta; by number also Tables 1
        and 2 and Figs. 1, 2, 4 to 11 and 13.

        For example:

            walltimed experiment tang traces --figure all --output tang
        """,
        DIRECTORY,
        {
            "lower_bound": option(
                float,
                "--lower-bound",
                "--threshold",
                default=0.5,
                min=0,
                max=1,
                help="Least A; 0 is none.",
            ),
            "min_jobs": option(int, default=10, min=1, help="Fewest similar jobs."),
            "in_one_piece": option(
                bool, "--in-one-piece/--months-anew", default=False, help="How the log is played."
            ),
            "log": option(
                Path | None, help="Your log, for Tables 1 and 2 and Figs. 1, 2, 4 to 11, 13."
            ),
        },
        has_exhibits=True,
    ),
    Experiment(
        "wait-prediction",
        """Forecast every job's wait when it arrives, by requests, predictions and exact runtimes.

        The policies are EASY and conservative backfilling. The scheduler plans once by requests
        and once by the estimates of the forecasts (Klusáček & Soysal, Fig. 9).

        For example:

            walltimed experiment wait-prediction SDSC-SP2-1998-4.2-cln.swf.gz
            walltimed experiment wait-prediction *.swf.gz --limit 20000 --method knn
        """,
        TRACES,
        {
            "method": option(list[str], "--method", "-m", default=(), help="Method, such as knn."),
            "policy": option(
                list[str], "--policy", "-p", default=(), help="easy or conservative; default: both."
            ),
            "samples": option(
                int, default=0, min=0, help="Futures for the intervals of one job in ten."
            ),
        },
    ),
    Experiment(
        "xu",
        """Compare knn tuned as in Xu et al. 2019 with untuned knn, requests and last-two.

        After every t2 jobs that have ended, parameters are searched on the last t1 jobs, and used
        whether they are better or not. The tables are Tables 3 and 4 and Figures 2 and 3 of the
        paper in numbers; by number also Table 2 and Figure 1.

        For example:

            walltimed experiment xu SDSC-SP2-1998-4.2-cln.swf.gz
            walltimed experiment xu --year 2004 --test 1000 HPC2N-2002-2.2-cln.swf.gz
            walltimed experiment xu --search genetic sdsc-ds.swf.gz --table 3
        """,
        TRACES,
        {
            "year": option(int | None, help="Only jobs submitted in this year."),
            "history": _plan_option(int, "h, jobs that only serve as neighbours (3000)."),
            "training": _plan_option(int, "t1, jobs that parameters are tried on (1500)."),
            "test": _plan_option(int, "t2, jobs between rounds (1000)."),
            "penalty": _plan_option(float, "Price of underestimating (1)."),
            "fitness": _plan_option(str, "product or sum of error and underestimates."),
            "search": _plan_option(str, "genetic (default) or exhaustive."),
            "generations": _plan_option(int, "Of the genetic search, at most (100)."),
            "population": _plan_option(int, "Of the genetic search (50)."),
            "distance": _plan_option(str, "euclidean (default) or manhattan."),
        },
        has_exhibits=True,
    ),
    Experiment(
        "xu-schedules",
        """Compare EASY and EASY-SJBF with requested and with predicted times.

        Xu et al. 2019, Tables 5 and 6, on SDSC-DS and HPC2N.

        For example:

            walltimed experiment xu-schedules traces --table all --output xu
        """,
        DIRECTORY,
        has_exhibits=True,
    ),
)
