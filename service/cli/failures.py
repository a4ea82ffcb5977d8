"""Which exceptions are expected failures, and the exit code that each one means."""

from collections.abc import Mapping

from service.cli.console import CommandError, ExitCode
from service.cli.extras import EXTRAS, missing

EXPECTED: Mapping[str, ExitCode] = {
    "service.store.store_errors.StoreUnavailableError": ExitCode.UNAVAILABLE,
    "service.store.store_errors.StoreFullError": ExitCode.UNAVAILABLE,
    "service.store.store_errors.StoreError": ExitCode.FAILED,
    "service.store.store_errors.TuningLostError": ExitCode.FAILED,
    "service.errors.InvalidFieldError": ExitCode.USAGE,
    "simulator.traces.swf.MalformedLineError": ExitCode.USAGE,
    "simulator.traces.files.DamagedFileError": ExitCode.USAGE,
    "simulator.traces.cleaning.UnknownRuleError": ExitCode.USAGE,
    "simulator.traces.cleaning.NoJobError": ExitCode.USAGE,
    "simulator.replay.method_spec.MethodSpecError": ExitCode.USAGE,
    "simulator.replay.predictions_file.PredictionsFileError": ExitCode.USAGE,
    "simulator.scheduling.semantics.SemanticsError": ExitCode.USAGE,
    "simulator.scheduling.workload.WorkloadError": ExitCode.USAGE,
    "simulator.traces.partitions.PartitionsError": ExitCode.USAGE,
    "simulator.scheduling.schedule_file.NoResultError": ExitCode.USAGE,
    "simulator.replay.remote.AddressError": ExitCode.USAGE,
    "simulator.replay.remote.RemoteError": ExitCode.FAILED,
    "service.adapters.runs.SkippedError": ExitCode.USAGE,
    "predictors.tuning.search.SearchUnavailableError": ExitCode.FAILED,
    "simulator.learning.training.LearningUnavailableError": ExitCode.FAILED,
    "predictors.registry.UnknownMethodError": ExitCode.USAGE,
    "builtins.ConnectionError": ExitCode.UNAVAILABLE,
    "builtins.OSError": ExitCode.USAGE,
}
"""The exit code of each exception; the nearest base class counts. The exceptions are named and not
imported, so that no command loads modules that it does not use."""


def exit_code_of(error: Exception) -> ExitCode | None:
    """The exit code that ``error`` means, or None if the error is a bug."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return ExitCode.FAILED
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((EXPECTED[name] for name in names if name in EXPECTED), None)


def sentence(error: Exception) -> str:
    """The error in one line; for a file that cannot be opened, the system's message."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return missing(error.name)
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror}."
    return " ".join(str(error).split())
