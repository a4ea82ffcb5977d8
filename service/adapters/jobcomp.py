"""The document that Slurm's jobcomp/elasticsearch plugin sends for each run (22.05 to 26.05)."""

from datetime import UTC
from typing import Any

import msgspec
from msgspec import Struct, field

from service.adapters.runs import Reason, SkippedError, decoded, ended_run
from service.adapters.slurm_fields import (
    prediction_id_of,
    queue_of,
    status_of,
    trackable_resources,
)
from service.adapters.values import count, moment, number, text
from service.store import ReportedCompletion


class Document(Struct, gc=False):
    """The fields that are read; all others, the job script first, are never decoded."""

    jobid: Any = None
    username: Any = None
    groupname: Any = None
    account: Any = None
    partition: Any = None
    job_name: Any = None
    cluster: Any = None
    state: Any = None
    elapsed: Any = None
    time_limit: Any = None
    total_cpus: Any = None
    total_nodes: Any = None
    tres_req: Any = None
    admin_comment: Any = None
    submit: Any = field(name="@submit", default=None)
    start: Any = field(name="@start", default=None)
    end: Any = field(name="@end", default=None)


_DECODER = msgspec.json.Decoder(Document)


def completion_of(body: bytes, *, cluster: str | None = None) -> ReportedCompletion:
    """The run that a document reports; ``cluster`` overrides the document's own.

    Times in it are UTC without saying so. ``time_limit`` is in seconds, the one in force at the
    end, and absent when there was none.

    Raises:
        SkippedError: the document tells of no run that ended.
    """
    document = decoded(body, _DECODER)
    status = status_of(document.state)
    if not count(document.total_nodes):
        raise SkippedError(Reason.NEVER_RAN)
    processors, memory = trackable_resources(document.tres_req)
    return ended_run(
        job_id=text(document.jobid),
        submit=moment(document.submit, UTC),
        start=moment(document.start, UTC),
        end=moment(document.end, UTC),
        elapsed=number(document.elapsed),
        requested=number(document.time_limit),
        status=status,
        cluster=cluster or text(document.cluster),
        user=text(document.username),
        group=text(document.groupname),
        project=text(document.account),
        queue=queue_of(document.partition),
        application=text(document.job_name),
        processors=processors or count(document.total_cpus),
        memory=memory,
        prediction_id=prediction_id_of(document.admin_comment),
    )
