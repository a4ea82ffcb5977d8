"""Read fields that Slurm's documents and sacct's rows share."""

import re
from collections.abc import Iterator
from typing import Any

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError, UnknownStateError
from service.adapters.values import count, kibibytes, text
from terminal.words import slurm_walltime

KIBIBYTES_PER_MEBIBYTE = 1024


STATES = {
    "COMPLETED": Status.COMPLETED,
    "FAILED": Status.FAILED,
    "CANCELLED": Status.CANCELLED,
    "DEADLINE": Status.CANCELLED,
    "TIMEOUT": Status.TIMEOUT,
    "NODE_FAIL": Status.NODE_FAIL,
    "BOOT_FAIL": Status.NODE_FAIL,
    "LAUNCH_FAILED": Status.NODE_FAIL,
    "OUT_OF_MEMORY": Status.OUT_OF_MEMORY,
    "PREEMPTED": Status.PREEMPTED,
    "REQUEUED": Status.PREEMPTED,
    "REQUEUE": Status.PREEMPTED,
    "REQUEUE_HOLD": Status.PREEMPTED,
    "REQUEUE_FED": Status.PREEMPTED,
    "RESV_DEL_HOLD": Status.PREEMPTED,
    "SPECIAL_EXIT": Status.PREEMPTED,
    # A job put back in the queue is pending when its run is reported: the run was real.
    "PENDING": Status.PREEMPTED,
}
UNFINISHED = frozenset(
    {"RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "CONFIGURING", "RESIZING", "STAGE_OUT"}
    | {"SIGNALING", "POWER_UP_NODE", "REVOKED"}
)

_PREDICTION = re.compile(r"(?:^|[;,\s])wtp=([A-Za-z0-9_-]{1,64})(?=$|[;,\s])")

_IN_BRACKETS = re.compile(r"\([^()]*\)")

_LIMITLESS = frozenset({"UNLIMITED", "INFINITE", "0", "-1"})

_SWITCH = re.compile(
    r"-[HWQvsOkIXZlu]"
    r"|--(?:hold|wait|quiet|verbose|oversubscribe|share|overcommit|unbuffered|parsable|requeue)"
    r"|--(?:no-requeue|no-kill|contiguous|test-only|spread-job|use-min-nodes|reboot|ignore-pbs)"
    r"|--(?:exclusive|pty|label|no-allocate|disable-status|multi-prog|no-shell|bell|no-bell)"
    r"|--(?:stepmgr|nice|get-user-env|propagate)"
)
"""Options that take no value, or only one behind ``=``."""


def status_of(state: Any) -> Status:
    """Return the status of a state: a word, ``CANCELLED by 2002``, or a list of words.

    Raises:
        SkippedError: the run has not ended.
        UnknownStateError: no word of the state is known.
    """
    words = state if isinstance(state, list) else [state]
    texts = [word.split() for word in words if isinstance(word, str)]
    states = [text[0].rstrip("+").upper() for text in texts if text]
    if any(word in UNFINISHED for word in states):
        raise SkippedError(Reason.NOT_ENDED)
    known = [STATES[word] for word in states if word in STATES]
    if states and not known:
        raise UnknownStateError(" ".join(states))
    return known[0] if known else Status.UNKNOWN


def queue_of(partition: Any) -> str | None:
    """Return the first partition: up to 24.11 a document lists all requested ones."""
    name = text(partition)
    return text(name.split(",")[0]) if name else None


def prediction_id_of(admin_comment: Any) -> str | None:
    """Return the prediction id that ``job_submit.lua`` stored in the job as ``wtp=<id>``."""
    found = _PREDICTION.search(admin_comment) if isinstance(admin_comment, str) else None
    return found[1] if found else None


def trackable_resources(tres: Any) -> tuple[int | None, float | None]:
    """Return the processors and KiB of memory of ``cpu=8,mem=16000M,node=4,billing=8``."""
    if not isinstance(tres, str):
        return None, None
    pairs = dict(pair.partition("=")[::2] for pair in tres.split(","))
    return count(pairs.get("cpu")), kibibytes(pairs.get("mem"), unit="m")


def gpus_in_gres(gres: Any) -> int:
    """Return the number of GPUs in generic resources, as jobs ask for them or nodes have them.

    >>> gpus_in_gres("gres:gpu:4"), gpus_in_gres("gpu:a100:2(IDX:0,3),gpu:v100:0(IDX:),shard:8")
    (4, 2)
    """
    kinds = (each for each in _IN_BRACKETS.sub("", text(gres) or "").split(",") if "gpu" in each)
    numbers = (each.replace("=", ":").rpartition(":")[2] for each in kinds)
    return sum(0 if each == "0" else count(each) or 1 for each in numbers)


def gpus_of(tres: Any) -> tuple[int, int] | None:
    """Return the nodes of ``node=2,gres/gpu=8,gres/gpu:a100=8``, and the GPUs on each of them.

    The type of GPUs does not count. None where the nodes are not told; where GPUs do not divide
    evenly, the most that a node has.
    """
    if not isinstance(tres, str):
        return None
    pairs = {name: count(value) for name, _, value in (p.partition("=") for p in tres.split(","))}
    nodes = pairs.get("node")
    typed = (number or 0 for name, number in pairs.items() if name.startswith("gres/gpu:"))
    gpus = pairs.get("gres/gpu") or sum(typed)
    return (nodes, -(-gpus // nodes)) if nodes else None


def requested_memory(reqmem: Any, *, processors: int | None, nodes: int | None) -> float | None:
    """Return KiB for the job from ``4000M``, or ``4000Mc``, ``4000Mn`` as up to Slurm 20.11."""
    size = text(reqmem)
    if not size or size[-1] not in "cn":
        return kibibytes(size, unit="m")
    each = kibibytes(size[:-1], unit="m")
    times = processors if size[-1] == "c" else nodes
    return each * times if each and times else None


def requested_limit(*, submit_line: Any, final: float | None) -> float | None:
    """Return the requested seconds: from the command line if possible, else the final limit.

    The limit a job ends with may have been extended, or lowered by the backfill scheduler.
    """
    request = request_of(submit_line)
    if request is None:
        return final
    if request.upper() in _LIMITLESS:
        return None
    return slurm_walltime(request) or final


def request_of(submit_line: Any) -> str | None:
    """Return the limit on the command line of the submission, as typed.

    The line has lost its quotes, so it is read only as far as it is certain: up to the first
    word that is neither an option nor the value of one. A limit given as ``#SBATCH`` or in the
    environment is not there at all.
    """
    if not isinstance(submit_line, str):
        return None
    for option, value in _options(submit_line.split()[1:]):
        if option in ("-t", "--time"):
            return value
    return None


def is_session(submit_line: Any) -> bool:
    """Return whether a command line asks for an interactive session.

    >>> is_session("salloc -t 60"), is_session("srun --pty bash"), is_session("sbatch job.sh")
    (True, True, False)
    """
    words = submit_line.split() if isinstance(submit_line, str) else []
    name = words[0].rpartition("/")[2] if words else ""
    return name == "salloc" or (name == "srun" and ("--pty", "") in _options(words[1:]))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--", "--wrap"):
            return
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            yield name, value if equals or _SWITCH.fullmatch(name) else next(rest, "")
        elif len(word) > 2:
            yield word[:2], word[2:]
        else:
            yield word, "" if _SWITCH.fullmatch(word) else next(rest, "")
