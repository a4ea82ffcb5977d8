"""``walltimed verify``: checks a finished schedule independently of the engine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.scheduling.schedule_file import WrittenSchedule
    from simulator.scheduling.verify import CheckResult


def verify(
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="Written by simulate --output; - is stdin.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Check a schedule that `walltimed simulate --output` wrote, without the engine that made it.

    The checks depend on the rules in the file's header: capacity, starts after submission,
    reservations, planned starts, marks. With a violation the exit code is 1.

    For example:

        walltimed simulate log.swf --policy conservative --output plan.swf.gz
        walltimed verify plan.swf.gz
    """
    from simulator.scheduling.verify import CHECKS
    from simulator.scheduling.verify import verify as check

    findings = check(result_in(result))
    checked = {finding.name for finding in findings}
    if as_json:
        print_json({"checks": [asdict(finding) for finding in findings]})
    else:
        show(findings)
        for name in (name for name in CHECKS if name not in checked):
            out.print(f"[dim]{escape(name)}: does not apply to these rules or estimates[/dim]")
    if any(finding.violated for finding in findings):
        raise typer.Exit(ExitCode.FAILED)


def result_in(file: str) -> "WrittenSchedule":
    """Return the simulated schedule in a file.

    Raises:
        CommandError: it holds none; the message names the file.
    """
    from simulator.scheduling.schedule_file import NoResultError, WrittenSchedule
    from simulator.traces.swf import MalformedLineError, read_swf

    try:
        return WrittenSchedule.of(read_swf(file))
    except (MalformedLineError, NoResultError) as error:
        raise CommandError(
            f"{file} is no schedule of `walltimed simulate --output`: {error}", ExitCode.USAGE
        ) from error


def show(findings: "Sequence[CheckResult]") -> None:
    """Print a line for each check, and its first violations."""
    for finding in findings:
        verdict = f"[red]{finding.violated:,} times not[/red]" if finding.violated else "so"
        out.print(f"{escape(finding.name)}: {verdict}", soft_wrap=True)
        for violation in finding.violations:
            out.print(escape(f"    {violation}"), soft_wrap=True)
