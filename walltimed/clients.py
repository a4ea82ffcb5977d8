"""Clients of a running service, synchronous and asynchronous."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, overload
from urllib.parse import quote, urlencode

import msgspec

from predictors.jobs import Completion, Prediction, Submission
from terminal.client import LARGEST_BATCH, Closes, completion_fields
from terminal.client import Client as Connection
from terminal.data_table import DataTable
from walltimed.tabular import Tabular, check_counts

LOCAL = "http://127.0.0.1:8580"
"""Address of a service on this machine with the usual settings."""

CONNECTIONS = 8
"""Connections of an asynchronous client by default."""

Answer = TypeVar("Answer")

TYPES = {
    **dict.fromkeys(("requested_processors", "nodes", "gpus", "array_size"), int),
    **dict.fromkeys(("requested_memory", "predicted_walltime", "likely", "mean_walltime"), float),
    **dict.fromkeys(("lower", "upper", "coverage"), float),
}
"""Columns of numbers that may all be unknown."""


@dataclass(frozen=True, slots=True)
class Predictions(Tabular, Sequence[Prediction]):
    """Predictions in the order of the submissions: a row for each."""

    submissions: Sequence[Submission]
    predictions: Sequence[Prediction]

    def __len__(self) -> int:
        return len(self.predictions)

    @overload
    def __getitem__(self, place: int) -> Prediction: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Prediction]: ...
    def __getitem__(self, place: int | slice) -> Prediction | Sequence[Prediction]:
        """Return the prediction at a place."""
        return self.predictions[place]

    def tables(self) -> Iterator[DataTable]:
        """Yield the submissions with their predictions."""
        pairs = zip(self.submissions, self.predictions, strict=True)
        yield DataTable.of_records(
            [{**_fields(job), **_numbers(answer)} for job, answer in pairs], TYPES
        )


def _fields(job: Submission) -> dict[str, Any]:
    """Return the fields of a submission with its further facts beside them."""
    fields = msgspec.structs.asdict(job)
    facts = fields.pop("facts")
    return fields if facts is None else {**fields, **msgspec.structs.asdict(facts)}


def _numbers(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as fields of the HTTP contract."""
    interval = prediction.interval
    return {
        "method": prediction.method,
        "predicted_walltime": prediction.predicted_walltime,
        "likely": prediction.median,
        "mean_walltime": prediction.mean,
        "lower": None if interval is None else interval.lower,
        "upper": None if interval is None else interval.upper,
        "coverage": None if interval is None else interval.coverage,
        "basis_jobs": prediction.basis.jobs,
        "basis_reason": prediction.basis.reason,
    }


@dataclass(frozen=True, slots=True)
class Jobs(Tabular):
    """Jobs of a queue with their forecasts: a row for each.

    Attributes:
        document: the answer of the service (docs/api.md).
    """

    document: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.document["jobs"])

    def __getitem__(self, place: int) -> Mapping[str, Any]:
        """Return the job at a place."""
        job: Mapping[str, Any] = self.document["jobs"][place]
        return job

    def tables(self) -> Iterator[DataTable]:
        """Yield the jobs."""
        yield DataTable.of_records(self.document["jobs"])


class Stored(msgspec.Struct, frozen=True):
    """Numbers of runs that were stored now, and that were known before."""

    accepted: int
    duplicates: int


class Client(Closes):
    """A client of a running service; not for several threads at once.

    Args:
        url: such as http://127.0.0.1:8580 or unix:/run/walltimed.sock.
        token: where the service asks for one.
        timeout: seconds until a silent service counts as unreachable.
    """

    def __init__(
        self, url: str = LOCAL, token: str | None = None, *, timeout: float = 60.0
    ) -> None:
        self._connection = Connection(url, token=token, timeout=timeout)

    @overload
    def predict(self, jobs: Submission, *, method: str | None = None) -> Prediction: ...
    @overload
    def predict(self, jobs: Iterable[Submission], *, method: str | None = None) -> Predictions: ...
    def predict(
        self, jobs: Submission | Iterable[Submission], *, method: str | None = None
    ) -> Prediction | Predictions:
        """Predict one job, or several.

        Args:
            method: None: the service's default.

        Raises:
            RemoteError: the service refused the call; the message is the service's.
            ServiceUnreachableError: the service did not answer.
        """
        if isinstance(jobs, Submission):
            return self._connection.predict(jobs, method)
        asked = [*jobs]
        answers: list[Prediction] = []
        for first in range(0, len(asked), LARGEST_BATCH):
            part = asked[first : first + LARGEST_BATCH]
            answers += self._connection.predict_batch(part, method)
        return Predictions(asked, answers)

    def complete(self, runs: Completion | Iterable[Completion]) -> Stored:
        """Report runs that have ended. They are stored durably when the call returns.

        A run that is reported twice counts once.
        """
        told = [runs] if isinstance(runs, Completion) else [*runs]
        accepted = duplicates = 0
        for first in range(0, len(told), LARGEST_BATCH):
            part = [completion_fields(run) for run in told[first : first + LARGEST_BATCH]]
            answer = self._connection.call("POST", "/v1/completions", {"completions": part})
            stored = self._connection.read(answer, Stored)
            accepted, duplicates = accepted + stored.accepted, duplicates + stored.duplicates
        return Stored(accepted, duplicates)

    def forecast(self, queue: Mapping[str, Any]) -> Jobs:
        """Play a queue forward.

        Args:
            queue: ``machine``, ``running`` and ``waiting`` jobs, ``policy`` and others, as ``POST
                /v1/forecasts`` takes them.
        """
        return self._jobs("POST", "/v1/forecasts", queue)

    def queue(self, cluster: str = "default", **selected: Any) -> Jobs:
        """Return the jobs of the last snapshot of a cluster, with their forecasts.

        Args:
            cluster: its name.
            selected: ``user``, ``queue``, ``state``, ``limit`` and ``offset``.
        """
        path = f"/v1/clusters/{quote(cluster, safe='')}/snapshot"
        asked = f"?{urlencode(selected)}" if selected else ""
        return self._jobs("GET", path + asked)

    def _jobs(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Jobs:
        answer = self._connection.call(verb, path, body)
        return Jobs(self._connection.read(answer, dict[str, Any]))

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()


class AsyncClient:
    """Like ``Client``, for asynchronous programs: calls run at once on kept connections.

    Args:
        url: such as http://127.0.0.1:8580 or unix:/run/walltimed.sock.
        token: where the service asks for one.
        timeout: seconds until a silent service counts as unreachable.
        connections: number of calls that are under way at once; others wait.
    """

    def __init__(
        self,
        url: str = LOCAL,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        connections: int = CONNECTIONS,
    ) -> None:
        check_counts(connections=connections)
        self._connected = partial(Client, url, token, timeout=timeout)
        self._idle = [self._connected() for _ in range(connections)]
        self._threads = ThreadPoolExecutor(connections, "walltimed")
        self._turns = asyncio.Semaphore(connections)

    @overload
    async def predict(self, jobs: Submission, *, method: str | None = None) -> Prediction: ...
    @overload
    async def predict(
        self, jobs: Iterable[Submission], *, method: str | None = None
    ) -> Predictions: ...
    async def predict(
        self, jobs: Submission | Iterable[Submission], *, method: str | None = None
    ) -> Prediction | Predictions:
        """Predict one job, or several; see ``Client.predict``."""
        return await self._run(lambda client: client.predict(jobs, method=method))

    async def complete(self, runs: Completion | Iterable[Completion]) -> Stored:
        """Report runs that have ended; see ``Client.complete``."""
        return await self._run(lambda client: client.complete(runs))

    async def forecast(self, queue: Mapping[str, Any]) -> Jobs:
        """Play a queue forward; see ``Client.forecast``."""
        return await self._run(lambda client: client.forecast(queue))

    async def queue(self, cluster: str = "default", **selected: Any) -> Jobs:
        """Return the jobs of the last snapshot of a cluster; see ``Client.queue``."""
        return await self._run(lambda client: client.queue(cluster, **selected))

    async def _run(self, call: Callable[[Client], Answer]) -> Answer:
        """Make a call in a thread, on a connection that nothing else uses meanwhile."""
        async with self._turns:
            client = self._idle.pop()
            future = self._threads.submit(call, client)
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:  # the thread goes on with its connection
                future.add_done_callback(partial(_closed, client))
                client = self._connected()
                raise
            finally:
                self._idle.append(client)

    async def close(self) -> None:
        """Close the connections; the client makes no further call."""
        await asyncio.to_thread(self._threads.shutdown)
        for client in self._idle:
            client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _closed(client: Client, _future: Future[Any]) -> None:
    client.close()
