"""The matrix: every reader with every odd value of every field gives the right value or a reason.

A kind of fields has one rule, which holds in every format; where a format cannot write a value, or
writes it otherwise, it is among the exceptions.
"""

from datetime import UTC

import pytest
from odd_logs import VALUES, WRITERS

from predictors.facts import FACTS, NO_FACTS
from service.adapters.history_files import READERS, seen_format
from service.adapters.runs import Doubt, Reason

START, DAWN = 1709287260, "1970-01-01T00:00:00"
LATE = {"2106-02-07T06:28:15": 4294967295, str(2**32): 2**32}
NOTHING = ("", "Unknown", "None")
NO_TIME = (*NOTHING, "-1", "0", "4294967294", str(2**64 - 2), "nan", DAWN)
UNSET = (*NOTHING, "nan", "4294967294", str(2**64 - 2))
NEGATIVE, NO_LIMITS = ("-1", "0"), ("UNLIMITED", "Partition_Limit", "INVALID")
UNKNOWN_STATE = "which this version does not know"


def among(values, result, otherwise):
    """A rule with one result for some values, and another one for the others."""
    return lambda value: result if value in values else _called(otherwise, value)


def _called(result, value):
    return result(value) if callable(result) else result


def always(result):
    return lambda _: result


def name(fact, *, longest=255):
    def right(value):
        return {fact: value.replace("\x00", "?").replace("\n", "?")[:longest]}

    return among(NOTHING, {fact: "default" if fact == "cluster" else None}, right)


def refused(says):
    """A damaged line; ``{}`` stands for the value."""
    return lambda value: says.replace("{}", repr(value[:40]))


def time(field, unknown, late, none=NO_TIME):
    return among(none, unknown, among(LATE, late, refused(f"{field} is {{}}")))


def times(submit, start, end, **others):
    return (
        time(submit, Reason.UNKNOWN_SUBMIT, {"submit": START, "doubts": Doubt.SUBMITTED_LATER},
             **others),
        time(start, Reason.UNKNOWN_START, Reason.ENDS_BEFORE_START, **others),
        time(end, Reason.UNKNOWN_END, {"doubts": Doubt.FUTURE_END}, **others),
    )  # fmt: skip


ELAPSED = among(("0", str(2**32)), {"doubts": Doubt.ELAPSED}, {})
NAMES = {
    "JobIDRaw": among(NOTHING, Reason.NO_JOB_ID, name("job_id")),
    "Cluster": name("cluster"), "User": name("user"), "Account": name("project"),
    "Partition": name("queue"), "JobName": name("application"),
}  # fmt: skip
SACCT = NAMES | dict(zip(("Submit", "Start", "End"), times("submit", "start", "end"), strict=True))
SACCT |= {
    "ElapsedRaw": ELAPSED,
    "TimelimitRaw": always(Reason.NO_LIMIT),
    "NCPUS": always({"processors": None, "memory": 4 * 2**20}),
    "NNodes": always({}),
    "ReqMem": among([str(2**32)], {"memory": 2**40}, {"memory": None}),
    "State": among([""], {"status": "unknown"}, UNKNOWN_STATE),
}
QUOTES = ('"', "'")
BROKEN = {
    fact: among(QUOTES, {fact: None}, name(fact))
    for fact in ("user", "group", "application", "queue")
}
PBS_TIMES = times("ctime", "start", "end", none=(*NO_TIME, *QUOTES))
PBS = {
    "user": BROKEN["user"], "group": BROKEN["group"], "jobname": BROKEN["application"],
    "queue": BROKEN["queue"],
    "ctime": among((*NO_TIME, *QUOTES), {}, PBS_TIMES[0]),  # the time that it was queued
    "qtime": among((*NO_TIME, *LATE, *QUOTES), {}, refused("qtime is {}")),
    "etime": lambda value: {"eligible": LATE.get(value)},
    "start": PBS_TIMES[1], "exec_host": always({}), "Resource_List.ncpus": always({}),
    "Resource_List.nodect": always({"fact nodes": None}),
    "Resource_List.walltime": always(Reason.NO_LIMIT),
    "Resource_List.mem": among(
        [str(2**32)], {}, among(["4294967294"], {"memory": 2**20 - 2 / 4096}, {"memory": None})
    ),
    "end": PBS_TIMES[2],
    "Exit_status": among(
        ["0"],
        {},
        among(
            ("-1", "4294967294", str(2**32), str(2**64 - 2), "9" * 300),
            {"status": "failed"},
            {"status": "unknown"},
        ),
    ),
    "resources_used.cput": always({}),
    "resources_used.walltime": among(["0"], {"doubts": Doubt.ELAPSED}, {}),
}  # fmt: skip

TOO_MUCH = ("4294967294", str(2**32))


def number(place, field, **right):
    """A number of SWF: ``right`` has the results of -1, of 0 and of numbers of 32 bits."""
    results = {
        "": "17 fields instead of 18", "a\nb": "instead of 18", "nan": "not finite",
        "1e99": "is beyond", "9" * 300: "is beyond", str(2**64 - 2): "is beyond",
        "-1": right.get("unknown", {}), "0": right.get("zero", {}),
    }  # fmt: skip
    large = right.get("large", {})
    results |= {value: _called(large, value) for value in TOO_MUCH}
    return lambda value: results.get(value, f"field {place + 1} ({field})")


def numbered(fact):
    return {
        "unknown": {fact: None}, "zero": {fact: "0"}, "large": lambda value: {fact: value},
    }  # fmt: skip


ORIGIN = 1709287000
MOVED = {"submit": ORIGIN - 1, "start": ORIGIN + 9, "end": ORIGIN + 3609}
SWF = [
    number(0, "job", unknown={"job_id": "-1"}, zero={"job_id": "0"},
           large=lambda value: {"job_id": value}),
    number(1, "submit", unknown=MOVED, large=lambda value: {
        "submit": ORIGIN + int(value), "start": ORIGIN + int(value) + 10,
        "end": ORIGIN + int(value) + 3610, "doubts": Doubt.FUTURE}),
    number(2, "wait", unknown={"start": ORIGIN, "end": ORIGIN + 3600},
           zero={"start": ORIGIN, "end": ORIGIN + 3600}, large="endless"),
    number(3, "run", unknown="never-ran", zero={"end": ORIGIN + 10, "runtime": 0},
           large="endless"),
    number(4, "allocated processors", large="beyond"),
    number(5, "cpu time"),
    number(6, "used memory"),
    number(7, "requested processors", large="beyond"),
    number(8, "requested time", unknown="no-request", zero="no-request",
           large="unlimited-request"),
    number(9, "requested memory", large=lambda value: {"memory": int(value)}),
    number(10, "status", unknown={"status": "unknown"}, zero={"status": "failed"},
           large={"status": "unknown"}),
    number(11, "user", **numbered("user")),
    number(12, "group", **numbered("group")),
    number(13, "executable", **numbered("application")),
    number(14, "queue", **numbered("queue")),
    number(15, "partition"),
    number(16, "preceding job"),
    number(17, "think time"),
]  # fmt: skip

CSV_TIMES = times("submit_time", "start_time", "end_time", none=[v for v in NO_TIME if v != "-1"])
CSV = {
    "job_id": NAMES["JobIDRaw"], "user": name("user"), "queue": name("queue"),
    "application": name("application"), "cluster": name("cluster"),
    "status": among((*NOTHING, "nan"), {}, UNKNOWN_STATE),
    "submit_time": CSV_TIMES[0], "start_time": CSV_TIMES[1], "end_time": CSV_TIMES[2],
    "runtime": among(
        ("0", str(2**32)),
        {"doubts": Doubt.ELAPSED},
        among((*UNSET, *NO_LIMITS, "-1"), {}, refused("runtime is {}")),
    ),
    "requested_walltime": among(
        (*UNSET, *NO_LIMITS, *NEGATIVE, str(2**32)),
        Reason.NO_LIMIT,
        refused("requested_walltime is {}"),
    ),
    "requested_processors": among(
        (*UNSET, *NEGATIVE), {"processors": None}, refused("requested_processors is {}")
    ),
    "requested_memory": among(
        (*UNSET, *NEGATIVE),
        {"memory": None},
        among([str(2**32)], {"memory": 2**32}, refused("requested_memory is {}")),
    ),
    "work_dir": name("fact work_dir", longest=4096), "qos": name("fact qos"),
    "gpus": among((*UNSET, *NEGATIVE), {"fact gpus": None}, refused("gpus is {}")),
    "array_size": among(
        (*UNSET, *NEGATIVE), {"fact array_size": None}, refused("array_size is {}")
    ),
    "features": among((*NOTHING, "nan"), {"fact features": {}}, refused("features is {}")),
    "exit_code": among((*UNSET, *NEGATIVE, str(2**32)), {}, refused("exit_code is {}")),
    "interactive": among((*NOTHING, "nan", "0"), {}, refused("interactive is {}")),
}  # fmt: skip

JSON_TIMES = times("submission", "start", "end")
JSON = {
    "job_id": NAMES["JobIDRaw"], "name": name("application"), "user": name("user"),
    "account": name("project"), "partition": name("queue"), "cluster": name("cluster"),
    "submit_line": among(
        (*NOTHING, "0"),
        {"fact submit_line": None},
        lambda value: {"fact submit_line": value.replace("\x00", "?").replace("\n", "?")},
    ),
    "allocation_nodes": always({}), "required": always({}),
    "tres": always({}), "time": always(Reason.MALFORMED), "state": always({"status": "unknown"}),
    "time.submission": JSON_TIMES[0], "time.start": JSON_TIMES[1], "time.end": JSON_TIMES[2],
    "time.eligible": lambda value: {"eligible": LATE.get(value)},
    "time.elapsed": ELAPSED, "time.limit": always(Reason.NO_LIMIT), "time.suspended": always({}),
    "state.current": among(
        ("", "0", "4294967294", str(2**32), str(2**64 - 2)), {"status": "unknown"}, UNKNOWN_STATE
    ),
    "required.CPUs": always({}),
}  # fmt: skip
JOBCOMP_TIMES = times("@submit", "@start", "@end")
JOBCOMP = {
    "jobid": NAMES["JobIDRaw"], "username": name("user"), "account": name("project"),
    "partition": name("queue"), "job_name": name("application"), "cluster": name("cluster"),
    "state": JSON["state.current"], "elapsed": ELAPSED, "time_limit": always(Reason.NO_LIMIT),
    "total_cpus": always({"processors": None}), "total_nodes": always(Reason.NEVER_RAN),
    "qos": name("fact qos"), "work_dir": name("fact work_dir", longest=4096),
    "@submit": JOBCOMP_TIMES[0], "@start": JOBCOMP_TIMES[1], "@end": JOBCOMP_TIMES[2],
}  # fmt: skip
RULES = {"pbs": PBS, "swf": SWF, "csv": CSV, "json": JSON, "jobcomp": JOBCOMP}

LAST_OF_PBS = ("Exit_status", "resources_used.cput", "resources_used.walltime")


def exception(writer, field, value):
    """What a format makes of a value that it cannot write; None where it can."""
    if "|" in value and writer in {"sacct", "padded"}:
        return Reason.AMBIGUOUS
    if value == '"' and writer == "quoted" and field != "State":
        return "columns instead of 15"
    if "\n" in value and writer == "pbs" and field not in LAST_OF_PBS:
        return Reason.MALFORMED if field not in {"ctime", "qtime", "start", "end"} else "is 'a'"
    return None


def right(writer, field, value):
    found = exception(writer, field, value)
    if found is not None:
        return found
    rules = RULES.get(writer, SACCT)
    return rules[int(field) if writer == "swf" else field](value)


def facts(report):
    run, job = report.completion, report.completion.submission
    return {
        "job_id": job.job_id, "cluster": job.cluster, "user": job.user, "group": job.group,
        "project": job.project, "queue": job.queue, "application": job.application,
        "submit": job.submit_time, "start": run.start_time, "end": run.end_time,
        "runtime": run.runtime, "request": job.requested_walltime,
        "processors": job.requested_processors, "memory": job.requested_memory,
        "status": str(run.status), "eligible": report.eligible_time,
        "interactive": run.interactive,
        **{f"fact {fact}": getattr(job.facts or NO_FACTS, fact) for fact in FACTS},
    }  # fmt: skip


def found_in(file, writer, values):
    """The runs of a log as facts, its doubts, and the reasons why other lines are no run."""
    format_, written, _ = WRITERS[writer]
    file.write_bytes(written(values).encode())
    history = READERS[format_](str(file), None, UTC)
    runs = [facts(report) for report in history.reports]
    left_out = [reason for reason, number in history.left_out.items() if number]
    return runs, [*history.doubts], [*(each.reason for each in history.rejected), *left_out]


@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_has_the_right_value_of_every_odd_one_or_its_reason(tmp_path, writer):
    (plain,), doubts, reasons = found_in(tmp_path / "log", writer, {})
    assert (doubts, reasons, plain["runtime"], plain["processors"]) == ([], [], 3600, 4)
    wrong = []
    for field in WRITERS[writer][2]:
        for value in VALUES:
            expected = right(writer, field, value)
            found = found_in(tmp_path / "log", writer, {field: value})
            if not is_right(found, expected, plain):
                wrong.append((field, value[:40], expected, found))
    assert not wrong


def is_right(found, expected, plain):
    runs, doubts, reasons = found
    if isinstance(expected, dict):
        changes = dict(expected)
        doubt = changes.pop("doubts", None)
        return (runs, doubts) == ([plain | changes], [doubt] if doubt else [])
    return not runs and any(str(expected) in reason for reason in reasons)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_format_of_every_log_is_seen(writer):
    format_, written, _ = WRITERS[writer]
    assert seen_format(written({}).encode()) == format_
