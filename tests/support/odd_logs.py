"""Logs of one run in every format, with any values of its fields."""

import csv
import io
import json

CELLS = {
    "JobIDRaw": "1", "Cluster": "hill", "User": "ada", "Account": "proj", "Partition": "batch",
    "JobName": "cfd", "Submit": "1709287000", "Start": "1709287260", "End": "1709290860",
    "ElapsedRaw": "3600", "TimelimitRaw": "120", "NCPUS": "4", "NNodes": "2", "ReqMem": "4G",
    "State": "COMPLETED",
}  # fmt: skip
PBS = {
    "user": "ada", "group": "g", "jobname": "cfd", "queue": "workq", "ctime": "1709287000",
    "qtime": "1709287000", "etime": "1709287000", "start": "1709287260", "exec_host": "n1/0*4",
    "Resource_List.ncpus": "4", "Resource_List.nodect": "1", "Resource_List.walltime": "02:00:00",
    "Resource_List.mem": "4gb", "end": "1709290860", "Exit_status": "0",
    "resources_used.cput": "03:50:00", "resources_used.walltime": "01:00:00",
}  # fmt: skip
SWF_FIELDS = [*map(str, (1, 0, 10, 3600, 4, -1, -1, 4, 7200, -1, *[1] * 6, -1, -1))]


def in_columns(separator, quote=""):
    def text(changes):
        cells = CELLS | changes
        lines = ([*cells], [*cells.values()])
        return "".join(f"{separator.join(f'{quote}{c}{quote}' for c in line)}\n" for line in lines)

    return text


def pbs_line(changes):
    pairs = " ".join(f"{name}={value}" for name, value in (PBS | changes).items())
    return f"03/01/2024 11:01:00;E;501.srv;{pairs}\n"


def swf_line(changes):
    fields = [changes.get(str(place), field) for place, field in enumerate(SWF_FIELDS)]
    return f"; UnixStartTime: 1709287000\n{' '.join(fields)}\n"


JOB = {
    "job_id": 1, "name": "cfd", "user": "ada", "account": "proj", "partition": "batch",
    "cluster": "hill", "submit_line": "sbatch job.sh", "allocation_nodes": 1,
    "time": {"submission": 1709287000, "start": 1709287260, "end": 1709290860,
             "eligible": 1709287000, "elapsed": 3600, "limit": {"set": True, "infinite": False,
             "number": 120}, "suspended": 0},
    "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 4},
    "tres": {"requested": [{"type": "cpu", "count": 4}], "allocated": []},
}  # fmt: skip
JOB_FIELDS = [*JOB, *(f"time.{name}" for name in JOB["time"]), "state.current", "required.CPUs"]


def json_document(changes):
    """What sacct --json prints of one job; values are texts, and numbers where they are some."""
    job = json.loads(json.dumps(JOB))
    for field, value in changes.items():
        table, _, name = field.rpartition(".")
        whole = int(value) if value.isdecimal() and len(value) < 30 else value
        (job[table] if table else job)[name] = whole
    return json.dumps({"jobs": [job]})


JOBCOMP = {
    "jobid": 1, "username": "ada", "account": "proj", "partition": "batch", "job_name": "cfd",
    "cluster": "hill", "state": "COMPLETED", "elapsed": 3600, "time_limit": 7200, "total_cpus": 4,
    "total_nodes": 1, "qos": "high", "work_dir": "/home/ada", "@submit": "2024-03-01T09:56:40",
    "@start": "2024-03-01T10:01:00", "@end": "2024-03-01T11:01:00",
}  # fmt: skip


def jobcomp_document(changes):
    """A document of jobcomp; values are texts, and numbers where they are some."""
    numbers = {
        field: int(value) if value.isdecimal() and len(value) < 30 else value
        for field, value in changes.items()
    }
    return json.dumps(JOBCOMP | numbers) + "\n"


TABLE = {
    "job_id": "1", "user": "ada", "queue": "batch", "application": "cfd", "status": "completed",
    "submit_time": "1709287000", "start_time": "1709287260", "end_time": "1709290860",
    "runtime": "3600", "requested_walltime": "7200", "requested_processors": "4",
    "requested_memory": "4096", "exit_code": "0", "interactive": "", "cluster": "hill",
    "work_dir": "/home/ada", "qos": "high", "gpus": "2", "array_size": "4",
    "features": '{"size":1}',
}  # fmt: skip


def table(changes):
    """A table with the columns of ``walltimed export``."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(TABLE)
    rows.writerow((TABLE | changes).values())
    return written.getvalue()


WRITERS = {
    "sacct": ("sacct", in_columns("|"), [*CELLS]),
    "unit separator": ("sacct", in_columns("\x1f"), [*CELLS]),
    "three characters": ("sacct", in_columns("^|^"), [*CELLS]),
    "quoted": ("sacct", in_columns(",", '"'), [*CELLS]),
    "padded": ("sacct", in_columns(" | "), [*CELLS]),
    "pbs": ("pbs", pbs_line, [*PBS]),
    "swf": ("swf", swf_line, [str(place) for place in range(18)]),
    "csv": ("csv", table, [*TABLE]),
    "json": ("sacct", json_document, JOB_FIELDS),
    "jobcomp": ("sacct", jobcomp_document, [*JOBCOMP]),
}
VALUES = (
    "", "Unknown", "None", "UNLIMITED", "Partition_Limit", "INVALID", "-1", "0", "4294967294",
    str(2**32), str(2**64 - 2), "1e99", "nan", "ünïcode-名", "\x00", "a|b", "a\nb",
    "1970-01-01T00:00:00", "2106-02-07T06:28:15", "yesterday", "9" * 300, '"', "'",
)  # fmt: skip
