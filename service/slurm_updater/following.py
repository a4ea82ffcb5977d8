"""Follows the queue until SIGTERM, in a process without a command line's libraries: 14 MB less."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import msgspec
import structlog
from msgspec import Struct

from service.slurm_updater.service_calls import HandOver, NonsenseError, ServiceQueries
from service.slurm_updater.slurm import Slurm, SlurmError
from service.slurm_updater.updater import Updater, UpdaterOptions
from terminal import logs
from terminal.client import Client, RemoteError

log = structlog.get_logger()


class UpdaterSettings(Struct, frozen=True, kw_only=True):
    """The settings of an updater's process.

    Attributes:
        token_file: with one token; None without a token.
        timeout: seconds for each command of Slurm and each answer of the service.
        slurm_bin: directory of Slurm's commands; None if they are on the path.
        hands_over: whether the queue is sent to the service.
    """

    options: UpdaterOptions
    url: str
    token_file: str | None
    timeout: float
    slurm_bin: str | None
    hands_over: bool
    log_level: str
    log_format: str


@contextmanager
def open_updater(settings: UpdaterSettings) -> Iterator[Updater]:
    """Connect to the service and set up logs; yield the updater.

    Raises:
        OSError: the token cannot be read.
        AddressError: the URL is not valid.
    """
    logs.configure(settings)
    file, directory = settings.token_file, settings.slurm_bin
    token = Path(file).read_text("ascii").strip() if file else None
    slurm = Slurm(Path(directory) if directory else None, timeout=settings.timeout)
    with Client(settings.url, token=token, timeout=settings.timeout) as client:
        hand_over = HandOver(client, settings.options.cluster)
        yield Updater(
            slurm,
            ServiceQueries(client),
            settings.options,
            hand_over=hand_over if settings.hands_over else None,
        )


def follow_instead(settings: UpdaterSettings) -> NoReturn:
    """Replace this process by one that follows the queue."""
    sys.stdout.flush()
    module, given = "service.slurm_updater.following", msgspec.json.encode(settings).decode()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, given])  # noqa: S606 - no shell


def follow(
    updater: Updater, options: UpdaterOptions, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Run rounds until SIGTERM or ctrl-C; log a failed round and continue."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    log.info("following the queue", mode=options.mode.value, order=options.order.value)
    warnings: list[str] = []
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            try:
                warnings = logged_round(updater, warnings)
            except (SlurmError, NonsenseError, RemoteError, OSError) as error:
                log.warning("a round failed; jobs stay as they are", reason=str(error))
            sys.stderr.flush()
            sleep(max(1.0, options.interval - (time.monotonic() - began)))


def logged_round(updater: Updater, earlier_warnings: list[str]) -> list[str]:
    """Run one round and log what it did; return its warnings, of which only new ones are logged.

    Nothing else of the round is left: the changes of a long queue take megabytes.
    """
    update = updater.round()
    for warning in update.warnings:
        if warning not in earlier_warnings:
            log.warning(warning)
    for job, reason in update.refused.items():
        log.info("Slurm refused an update", job=job, reason=reason)
    for extension in update.extended.values():
        log.info("a limit was extended", **msgspec.structs.asdict(extension))
    report = log.info if update.planned else log.debug
    seconds = update.update_seconds
    report(
        "looked at the queue",
        jobs=update.jobs,
        asked=update.asked,
        updated=update.updated,
        refused=len(update.refused),
        postponed=update.postponed,
        update_ms=None if seconds is None else round(1000 * seconds, 2),
    )
    return update.warnings


def main() -> None:
    """Follow the queue by the settings that are the only argument."""
    settings = msgspec.json.decode(sys.argv[1], type=UpdaterSettings)
    with open_updater(settings) as updater:
        follow(updater, settings.options)


if __name__ == "__main__":
    main()
