"""A cluster with a user whose jobs are cut, and queues with running jobs that will be."""

from asgi_client import NOW, run_of

AT_RISK = "/v1/clusters/hill/at-risk"


def job(job_id, started, *, user="ada", request=3600.0):
    return {
        "job_id": job_id,
        "user": user,
        "queue": "short",
        "application": "solve",
        "submit_time": started - 10,
        "start_time": started,
        "requested_walltime": request,
        "requested_processors": 2,
    }


def run(job_id, user, runtime, request, end):
    fields = {"application": "solve", "requested_processors": 2, "cluster": "hill"}
    return run_of(
        job_id, user=user, runtime=runtime, end_time=end, requested_walltime=request, **fields
    )


def taught(serve, url, **options):
    """A service that knows ada, whose jobs are cut after an hour, and calm users."""
    service = serve(url, **options)
    calm = [
        run(f"c{n}", f"u{n % 20}", 600 if n % 3 else 3400, 3600, NOW - 10_000 * (250 - n))
        for n in range(240)
    ]
    uncut = [run(f"u{n}", "ada", 5000 + n, 36_000, NOW - 90_000 - 9000 * n) for n in range(9)]
    cut = [run(f"a{n}", "ada", 3600, 3600, NOW - 20_000 - 9000 * n) for n in range(12)]
    service.complete(*calm, *uncut, *cut)
    return service


def hand_over(service, *running, waiting=(), **machine):
    machine = {"pools": [{"processors": 64, "queues": ["short"]}]} | machine
    queue = {"running": list(running), "waiting": list(waiting)}
    body = {"taken_at": service.worker.clock(), **queue, **machine}
    answer = service.request("PUT", "/v1/clusters/hill/snapshot", json=body)
    assert answer.status_code == 202, answer.text
    service.wait_until(lambda: service.get(AT_RISK).status_code == 200)
