"""Queues as tests hand them over, on a machine of four processors."""

from asgi_client import NOW

SNAPSHOT = "/v1/clusters/hill/snapshot"
MACHINE = [{"processors": 4, "queues": ["short"]}]


def job(job_id, processors, walltime, *, submitted=-10.0, user="ada", **fields):
    body = {"requested_processors": processors, "requested_walltime": walltime}
    return {
        "job_id": job_id,
        "user": user,
        "queue": "short",
        "application": "solve",
        "submit_time": NOW + submitted,
        **body,
        **fields,
    }


def queue(now=0.0, *, running=(), waiting=(), **fields):
    return {
        "taken_at": NOW + now,
        "pools": MACHINE,
        "running": list(running),
        "waiting": list(waiting),
        **fields,
    }


LONG = job("30", 3, 700, submitted=-200.0, start_time=NOW - 100)
WIDE = job("31", 4, 50, user="bob")
SMALL = job("32", 1, 90)


def put(service, body):
    answer = service.request("PUT", SNAPSHOT, json=body)
    assert answer.status_code == 202, answer.text
    service.wait_until(lambda: service.get(SNAPSHOT).json()["forecast_at"] == body["taken_at"])
    return service.get(SNAPSHOT).json()


def starts(view):
    return {each["job_id"]: each["start_time"] - NOW for each in view["jobs"]}
