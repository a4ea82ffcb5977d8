"""``walltimed serve``: runs the service."""

import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from service.cli.options import DatabaseUrl, check_parameters, load_settings, ready
from simulator.cli.options import METHODS
from terminal.console import check_file
from terminal.options import ConfigFile, one_of

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that bound the threads of numpy's linear algebra. A process starts one for each
processor otherwise, and four processes on a host with many pass a limit on tasks."""

STARTING_THRESHOLD = 1_000_000
"""Objects between garbage collections until the service is ready: a start makes many that stay, and
looking for others among them takes a sixth of it."""


def serve(
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="Port; 0 takes a free one.")
    ] = None,
    unix_socket: Annotated[
        Path | None, typer.Option(help="Listen on this Unix socket instead.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Worker processes.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="Method for requests that name none.", autocompletion=one_of(METHODS)),
    ] = None,
    allow_unauthenticated: Annotated[
        bool | None,
        typer.Option("--allow-unauthenticated", help="Listen beyond loopback without tokens."),
    ] = None,
    upgrade: Annotated[
        bool | None,
        typer.Option(
            "--upgrade/--no-upgrade",
            help="Bring the schema up to date first; by default on SQLite only.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
) -> None:
    """Serve predictions until SIGTERM or ctrl-C, then write queued data and end.

    Every option is also a setting; `walltimed config` lists them all.

    For example:

        walltimed serve
        walltimed serve --workers 4 -d postgresql+psycopg://db/walltimed
        walltimed serve --unix-socket /run/walltimed/walltimed.sock
    """
    gc.set_threshold(STARTING_THRESHOLD)
    for name in BLAS_THREADS:  # before anything imports numpy; child processes inherit them
        os.environ.setdefault(name, "1")
    settings = load_settings(
        host=host,
        port=port,
        unix_socket=unix_socket,
        workers=workers,
        method=method,
        allow_unauthenticated=allow_unauthenticated,
        database_url=database_url,
        config=file,
    )
    check_parameters(settings)
    check_file(settings.unix_socket)
    with ready(settings, upgrade=upgrade, silent=True) as store:
        store.past_runs.count()  # a damaged file is told here, in a sentence

    from service.http.server import leave, run

    # The server ends in order, and then sends itself again the signal that made it end.
    with suppress(KeyboardInterrupt):
        run(settings)
    leave()
