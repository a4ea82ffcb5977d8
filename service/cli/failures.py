"""Run a command line: an expected failure is one sentence, or a JSON object, and an exit code."""

from collections.abc import Mapping
from typing import Any

import typer
from rich.markup import escape

from terminal.console import EXTRAS, CommandError, ExitCode, err, print_json, sentence

EXPECTED: Mapping[str, ExitCode] = {
    "service.store.database.StoreUnavailableError": ExitCode.UNAVAILABLE,
    "service.store.database.StoreFullError": ExitCode.UNAVAILABLE,
    "service.store.database.StoreError": ExitCode.FAILED,
    "service.errors.InvalidFieldError": ExitCode.USAGE,
    "simulator.traces.swf.MalformedLineError": ExitCode.USAGE,
    "terminal.files.DamagedFileError": ExitCode.USAGE,
    "simulator.traces.cleaning.UnknownRuleError": ExitCode.USAGE,
    "simulator.traces.cleaning.NoJobError": ExitCode.USAGE,
    "simulator.replay.method_spec.MethodSpecError": ExitCode.USAGE,
    "simulator.replay.predictions_file.PredictionsFileError": ExitCode.USAGE,
    "simulator.scheduling.semantics.SemanticsError": ExitCode.USAGE,
    "simulator.scheduling.pbs_configuration.PbsConfigurationError": ExitCode.USAGE,
    "simulator.scheduling.slurm_configuration.SlurmConfigurationError": ExitCode.USAGE,
    "simulator.scheduling.workload.WorkloadError": ExitCode.USAGE,
    "simulator.traces.partitions.PartitionsError": ExitCode.USAGE,
    "simulator.scheduling.schedule_file.NoResultError": ExitCode.USAGE,
    "terminal.client.AddressError": ExitCode.USAGE,
    "terminal.client.RemoteError": ExitCode.FAILED,
    "service.adapters.runs.SkippedError": ExitCode.USAGE,
    "predictors.registry.UnknownMethodError": ExitCode.USAGE,
    "builtins.ConnectionError": ExitCode.UNAVAILABLE,
    "builtins.OSError": ExitCode.USAGE,
}
"""The exit code of each exception; the nearest base class counts. The exceptions are named and not
imported, so that no command loads modules that it does not use."""


def exit_code_of(error: BaseException) -> ExitCode | None:
    """Return the exit code of ``error``, or None if the error is a bug."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return ExitCode.FAILED
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((EXPECTED[name] for name in names if name in EXPECTED), None)


def print_failure(error: BaseException) -> int:
    """Print an expected failure as a sentence, and return its exit code; a bug is raised again."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    code = exit_code_of(error)
    if code is None:
        raise error
    print_error(sentence(error))
    return code


def run_for_machines(app: typer.Typer) -> int:
    """Run a command, print an expected failure as JSON, and return the exit code.

    The sentence is printed on standard error, too, where people look.
    """
    try:
        # Gives the exit code of typer.Exit, and None from a command that came to its end.
        return int(app(standalone_mode=False) or ExitCode.OK)
    except (KeyboardInterrupt, typer.Abort):
        return tell("The command was interrupted.", ExitCode.INTERRUPTED)
    except Exception as error:
        message = getattr(error, "format_message", None)  # of a wrong option, from the parser
        code = ExitCode.USAGE if message else exit_code_of(error)
        if code is None:
            raise
        return tell(message() if message else sentence(error), code)


def tell(detail: str, code: ExitCode) -> int:
    """Print the failure for machines and for people, and return the exit code."""
    document: dict[str, Any] = {
        "error": code.name.lower(),
        "detail": detail,
        "exit_code": int(code),
    }
    print_json(document)
    print_error(detail)
    return code


def print_error(detail: str) -> None:
    """Print a failure on standard error."""
    err.print(f"[red]error:[/red] {escape(detail)}", soft_wrap=True)
