"""Read the queue as ``squeue --json`` shows it (21.08 to 26.05).

``read_queue`` gives the jobs that the updater may change, ``read_live_queue`` all jobs that run or
wait, held ones too, as the service takes them.
"""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Collection, Iterator, Mapping, Sequence
from sys import intern
from typing import IO, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from predictors.jobs import LONGEST, MOST_MEMORY, MOST_PROCESSORS, Submission
from service.adapters.slurm_fields import (
    KIBIBYTES_PER_MEBIBYTE,
    gpus_in_gres,
    prediction_id_of,
    queue_of,
)
from service.adapters.values import count, number, text
from service.live_queue.taken_processors import (
    ProcessorRequest,
    QueueNodes,
    nodes_by_queue,
    nodes_of,
    with_taken,
)
from terminal.client import fields_of
from terminal.words import MINUTE

LONGEST_TARGET = 100_000
"""Characters; Linux takes no argument of more than 128 KiB."""

NO_LIMIT = 365 * 24 * 3600.0
"""Stands for a limit that a job does not have, in seconds."""

MOST_TASKS = 1000
"""Waiting tasks of one array that are shown; the others would make the queue endless."""

RUNNING = frozenset({"RUNNING", "CONFIGURING", "SUSPENDED"})

NOT_ITS_TURN = (
    "JobHeld",
    "Dependency",
    "BeginTime",
    "Partition",
    "BadConstraints",
    "Invalid",
    "ReqNodeNotAvail",
    "JobArrayTaskLimit",
    "Assoc",
    "QOS",
    "Max",
)
"""Beginnings of the reasons of jobs that wait for something else than their turn.

The last four are limits: of an array, unless it is known how many of its tasks run at once, and
of users, accounts and QOS. Slurm starts others first.
"""

ARRAY_LIMIT = "JobArrayTaskLimit"

_THROTTLE = re.compile(r"%(\d{1,9})$")

LARGEST_CORE = 1024
"""Threads; Slurm's unset numbers of 16 bits are more."""

PIECE = 1 << 18
"""Bytes of the output of squeue that are read at once."""

NO_QUEUE = "squeue --json printed no list of jobs"

_LIST = re.compile(r'"jobs"\s*:\s*\[')

_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


class UnreadableQueueError(Exception):
    """Raised when the output of squeue is not a list of jobs as JSON."""


class SqueueJob(Struct, gc=False):
    """The fields of a job in ``squeue --json`` that are read; the others are never decoded."""

    job_id: Any = None
    array_job_id: Any = None
    array_task_id: Any = None
    array_task_string: Any = None
    array_max_tasks: Any = None
    het_job_id: Any = None
    het_job_offset: Any = None
    job_state: Any = None
    state_reason: Any = None
    priority: Any = None
    time_limit: Any = None
    time_minimum: Any = None
    submit_time: Any = None
    start_time: Any = None
    user_name: Any = None
    account: Any = None
    partition: Any = None
    name: Any = None
    comment: Any = None
    admin_comment: Any = None
    cpus: Any = None
    node_count: Any = None
    tasks: Any = None
    cpus_per_task: Any = None
    minimum_cpus_per_node: Any = None
    threads_per_core: Any = None
    tasks_per_core: Any = None
    shared: Any = None
    cpus_per_tres: Any = None
    tres_per_job: Any = None
    tres_per_node: Any = None
    tres_per_task: Any = None
    gres_detail: Any = None
    memory_per_cpu: Any = None
    memory_per_node: Any = None


class QueuedJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job that waits or runs.

    Attributes:
        target: what scontrol calls it: the waiting tasks of an array are one job.
        submission: in the domain's words; the request is the limit that it has now.
        time_min: minutes, 0 if there is none.
        started: Unix seconds; None if it waits.
        admin_comment: exactly as it is; None if it cannot be written back unchanged.
        priority: Slurm's; the highest is served first.
    """

    target: str
    submission: Submission
    time_min: int
    started: float | None
    comment: str
    admin_comment: str | None
    priority: float = 0.0

    @property
    def job_id(self) -> str:
        """Return Slurm's number of the job."""
        return self.submission.job_id or ""

    @property
    def limit(self) -> int:
        """Return the time limit in minutes."""
        return int(self.submission.requested_walltime // MINUTE)


def jobs_in(shown: IO[bytes]) -> Iterator[SqueueJob]:
    """Decode the jobs that ``squeue --json`` prints; a job that cannot be read is left out.

    They are decoded one by one: 20,000 jobs are 60 MB.

    Raises:
        UnreadableQueueError: it is not what ``squeue --json`` prints.
    """
    for job in _listed_objects(shown):
        try:
            yield msgspec.convert(job, SqueueJob)
        except (msgspec.ValidationError, UnicodeEncodeError):  # the second of half a surrogate pair
            continue


def _listed_objects(shown: IO[bytes]) -> Iterator[Any]:
    """Yield the elements of the list ``jobs``."""
    shown.seek(0)
    decode = json.JSONDecoder().raw_decode
    unread, is_whole = TextInPieces(shown), False
    place = unread.behind(_LIST)
    while True:
        place = unread.skip(place, " \t\r\n,")
        if unread.text.startswith("]", place):
            return
        try:
            element, place = decode(unread.text, place)
        except (ValueError, RecursionError) as broken:
            place, is_whole = unread.more(place)
            if is_whole:
                raise UnreadableQueueError(NO_QUEUE) from broken
            continue
        yield element


class TextInPieces:
    """The text of a file, of which only the part that is not read yet is in memory.

    Attributes:
        text: from somewhere before the place that is read, to the end of the last piece.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self.text = ""

    def more(self, place: int) -> tuple[int, bool]:
        """Drop what is before a place, and read on; return the place, and whether all was read."""
        piece = self._file.read(PIECE)
        self.text = self.text[place:] + self._decode(piece, not piece)
        return 0, not piece

    def skip(self, place: int, characters: str) -> int:
        """Return the first place from ``place`` on with another character."""
        while True:
            while place < len(self.text) and self.text[place] in characters:
                place += 1
            if place < len(self.text):
                return place
            place, is_whole = self.more(place)
            if is_whole:
                return place

    def behind(self, pattern: re.Pattern[str]) -> int:
        """Return the place behind the first match.

        Raises:
            UnreadableQueueError: there is none.
        """
        while (found := pattern.search(self.text)) is None:
            _, is_whole = self.more(0)
            if is_whole:
                raise UnreadableQueueError(NO_QUEUE)
        return found.end()


def read_queue(
    shown: IO[bytes], cluster: str, queue_nodes: Sequence[QueueNodes] = ()
) -> Iterator[QueuedJob]:
    """Yield the jobs that wait or run, with the processors that they take on such nodes.

    Left out are held jobs, jobs without a limit, and unreadable ones.

    Raises:
        UnreadableQueueError: it is not what ``squeue --json`` prints.
    """
    nodes = nodes_by_queue(queue_nodes)
    for record in jobs_in(shown):
        job = _job(record, cluster, nodes)
        if job is not None:
            yield job


def _job(
    record: SqueueJob, cluster: str, nodes: Mapping[str | None, QueueNodes]
) -> QueuedJob | None:
    states = states_of(record)
    waits, runs = states == {"PENDING"}, states == {"RUNNING"}
    is_held = waits and number(record.priority) == 0
    submission, target = submission_of(record, cluster, nodes), _target(record)
    started = number(record.start_time) if runs else None
    if submission is None or target is None or is_held or not (waits or started):
        return None
    job_id = submission.job_id
    return QueuedJob(
        target=job_id if job_id == target else target,  # in memory once
        submission=submission,
        time_min=int(number(record.time_minimum) or 0),
        started=started,
        comment=record.comment if isinstance(record.comment, str) else "",
        admin_comment=_faithful(record.admin_comment),
        priority=number(record.priority) or 0.0,
    )


def submission_of(
    record: SqueueJob,
    cluster: str,
    nodes: Mapping[str | None, QueueNodes],
    *,
    otherwise: float = 0.0,
) -> Submission | None:
    """Return the submission of a job; None if it has no limit, or cannot be read.

    Args:
        nodes: of partitions, of which a waiting job will take parts; squeue shows what it asks for.
        otherwise: the limit of a job that has none, in seconds; 0 is none either.
    """
    job_id, submitted = text(record.job_id), number(record.submit_time)
    limit = (number(record.time_limit) or 0.0) * MINUTE or otherwise
    if job_id is None or not limit or not submitted:
        return None
    asked, queue = count(record.cpus), queue_of(record.partition)
    submission = Submission(
        requested_walltime=limit,
        submit_time=submitted,
        cluster=cluster,
        job_id=job_id,
        user=_shared(text(record.user_name)),
        project=_shared(text(record.account)),
        queue=_shared(queue),
        application=_shared(text(record.name)),
        requested_processors=asked,
        requested_memory=_memory(record, asked or 1),
    )
    if asked is None or "PENDING" not in states_of(record):
        return submission
    return with_taken(submission, request_of(record, asked), nodes_of(nodes, queue))


def request_of(record: SqueueJob, asked: int) -> ProcessorRequest:
    """Return what a waiting job asks for, GPUs with processors of their own included."""
    node_count, for_gpus = count(record.node_count) or 1, gpus_in_gres(record.cpus_per_tres)
    of_nodes = node_count * (count(record.minimum_cpus_per_node) or 1)
    least = (asked, of_nodes, gpus_of(record) * for_gpus)
    threads = count(record.threads_per_core)
    if tasks_of_core := count(record.tasks_per_core):
        threads = min(threads or LARGEST_CORE, tasks_of_core * (count(record.cpus_per_task) or 1))
    return ProcessorRequest(
        processors=max(least),
        nodes=node_count,
        threads_per_core=threads if threads and threads < LARGEST_CORE else None,
        exclusive="none" in _words(record.shared),
    )


def gpus_of(record: SqueueJob) -> int:
    """Return the GPUs that a running job has, or a waiting one asks for."""
    given = sum(map(gpus_in_gres, _words(record.gres_detail)))
    nodes, tasks = count(record.node_count) or 1, count(record.tasks) or 1
    return (
        given
        or gpus_in_gres(record.tres_per_job)
        or nodes * gpus_in_gres(record.tres_per_node)
        or tasks * gpus_in_gres(record.tres_per_task)
    )


def _words(value: Any) -> list[Any]:
    """Return the words of a field: one up to 22.05, a list from 23.02 on."""
    return value if isinstance(value, list) else [value]


def _shared(name: str | None) -> str | None:
    """Return the name; equal ones are one object, of which a long queue needs only one."""
    return None if name is None else intern(name)


def _memory(record: SqueueJob, processors: int) -> float | None:
    """Return KiB per processor."""
    if per_processor := number(record.memory_per_cpu):
        return per_processor * KIBIBYTES_PER_MEBIBYTE
    per_node = number(record.memory_per_node) or 0.0
    nodes = count(record.node_count) or 1
    return per_node * nodes * KIBIBYTES_PER_MEBIBYTE / processors or None


def _target(record: SqueueJob) -> str | None:
    """Return the name by which scontrol takes this job and no other; None if there is none.

    The number of an array is also that of its running tasks, and the number of a het job that of
    all its components.
    """
    array = number(record.array_job_id)
    if task := _array_task(record):
        return task
    if array and record.array_task_string:
        tasks = tasks_of(record.array_task_string)
        return f"{array:.0f}_[{tasks}]" if tasks else None
    if het := number(record.het_job_id):
        return f"{het:.0f}+{number(record.het_job_offset) or 0:.0f}"
    job_id = number(record.job_id)
    return f"{job_id:.0f}" if job_id else None


def tasks_of(task_list: Any) -> str | None:
    """Return the tasks of ``1,3,7-99:2%5`` for scontrol: without steps and throttle.

    None if the list was cut short, or would be too long.
    """
    parts = []
    for part in str(task_list).partition("%")[0].split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            return None
        if match[3] is None:
            parts.append(part)
            continue
        tasks = range(int(match[1]), int(match[2]) + 1, max(1, int(match[3])))
        if len(tasks) > LONGEST_TARGET:
            return None
        parts += map(str, tasks)
    target = ",".join(parts)
    return target if len(target) <= LONGEST_TARGET else None


def _faithful(comment: Any) -> str | None:
    """Return a comment that can be written back unchanged, else None (not UTF-8)."""
    if comment is None:
        return ""
    is_faithful = isinstance(comment, str) and comment.isprintable() and "\ufffd" not in comment
    return comment if is_faithful else None


def read_live_queue(
    shown: IO[bytes],
    cluster: str,
    queue_nodes: Sequence[QueueNodes] = (),
    down: Collection[str] = frozenset(),
) -> dict[str, list[msgspec.Raw]]:
    """Return running and waiting jobs of a snapshot as JSON, waiting ones by priority.

    Jobs of the partitions ``down`` are held: else another pool would run them.

    Raises:
        UnreadableQueueError: it is not what ``squeue --json`` prints.
    """
    running: list[msgspec.Raw] = []
    waiting: list[tuple[float, float, msgspec.Raw]] = []
    nodes = nodes_by_queue(queue_nodes)
    for record in jobs_in(shown):
        submission = submission_of(record, cluster, nodes, otherwise=NO_LIMIT)
        if submission is None:
            continue
        states = states_of(record)
        if states & RUNNING and (started := number(record.start_time)):
            running.append(_raw({**fields(record, submission), "start_time": started}))
        elif "PENDING" in states:
            priority = number(record.priority) or 0.0
            is_held = priority == 0 or submission.queue in down
            waiting += [
                (-priority, submission.submit_time, _raw(each))
                for each in _waiting(record, submission, is_held=is_held)
            ]
    waiting.sort(key=lambda each: each[:2])
    return {"running": running, "waiting": [job for _, _, job in waiting]}


def _raw(job: dict[str, Any]) -> msgspec.Raw:
    """Return the JSON of a job, which takes less memory than its fields."""
    return msgspec.Raw(msgspec.json.encode(job))


def states_of(record: SqueueJob) -> frozenset[str]:
    """Return the states of a job: one up to 22.05, several from 23.02 on."""
    return frozenset(state for state in _words(record.job_state) if isinstance(state, str))


def fields(record: SqueueJob, submission: Submission) -> dict[str, Any]:
    """Return the fields of a job without the cluster, with the id that ``squeue`` prints."""
    job_fields = fields_of(replace(within_bounds(submission), job_id=name_of(record)))
    job_fields.pop("cluster")
    if array := number(record.array_job_id):
        job_fields["array"] = f"{array:.0f}"
    if gpus := gpus_of(record):
        job_fields["gpus"] = min(gpus, MOST_PROCESSORS)
    if prediction_id := prediction_id_of(record.admin_comment):
        job_fields["prediction_id"] = prediction_id
    return job_fields


def within_bounds(submission: Submission) -> Submission:
    """Return the submission with request and memory cut to the bounds of the API.

    Otherwise one job beyond them would make the service refuse the whole queue.
    """
    memory = submission.requested_memory
    return replace(
        submission,
        requested_walltime=min(submission.requested_walltime, LONGEST),
        requested_memory=None if memory is None else min(memory, MOST_MEMORY),
    )


def name_of(record: SqueueJob) -> str:
    """Return the id that squeue prints: ``17_4`` for task 4 of array 17, else the number."""
    return _array_task(record) or text(record.job_id) or ""


def _array_task(record: SqueueJob) -> str | None:
    """Return array and task of a task of an array, such as ``17_4``."""
    array, task = number(record.array_job_id), number(record.array_task_id)
    return f"{array:.0f}_{task:.0f}" if array and task is not None else None


def _waiting(
    record: SqueueJob, submission: Submission, *, is_held: bool
) -> Iterator[dict[str, Any]]:
    """Yield a waiting job, or each waiting task of an array."""
    reason, throttle = text(record.state_reason), _throttle(record)
    waits_for_others = reason == ARRAY_LIMIT and throttle is not None
    job = fields(record, submission)
    job["held"] = is_held or (not waits_for_others and (reason or "").startswith(NOT_ITS_TURN))
    if reason:
        job["reason"] = reason
    if planned := number(record.start_time):
        job["scheduler_start"] = planned
    if throttle:
        job["array_limit"] = throttle
    tasks = _waiting_tasks(record)
    if not tasks:
        yield job
        return
    array = number(record.array_job_id) or 0
    for place, task in enumerate(tasks[:MOST_TASKS]):
        beyond = {"reason": ARRAY_LIMIT} if throttle and place >= throttle else {}
        yield {**job, **beyond, "job_id": f"{array:.0f}_{task}"}


def _throttle(record: SqueueJob) -> int | None:
    """Return the most tasks of an array that run at once; None without such a limit."""
    written = _THROTTLE.search(str(record.array_task_string))
    return count(written[1]) if written else count(record.array_max_tasks)


def _waiting_tasks(record: SqueueJob) -> list[int]:
    """Return the waiting tasks of an array."""
    task_list = tasks_of(record.array_task_string) if record.array_task_string else None
    found: list[int] = []
    for part in task_list.split(",") if task_list else ():
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), int(first) + MOST_TASKS) + 1)
    return found
