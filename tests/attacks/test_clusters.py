"""Invented clusters: a mistyped name, or thousands of them on purpose."""

from pathlib import Path

from running_service import Service, completion

INVENTED = 3000
"""Names; they were 11 GiB, and again after every restart."""

MOST_KIBIBYTES = 100 * 1024
"""What all of them may cost."""

ADMITTED = 63
"""Names beside the default cluster that there is room for."""


def kibibytes_of(process_id: int) -> int:
    """The resident memory of a process."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def post_invented(service: Service) -> None:
    """Post completions of clusters that there are not."""
    for number in range(INVENTED):
        run = completion("1") | {"cluster": f"invented-{number}"}
        status = service.client.post("/v1/completions", json=run, timeout=300).status_code
        assert status == (200 if number < ADMITTED else 422)


def test_thousands_of_names_cost_little_memory_also_after_a_restart(fresh_url, is_long, tell):
    with Service(fresh_url) as service:
        service.complete(completion("1")).raise_for_status()
        before = kibibytes_of(service.process.pid)
        post_invented(service)
        meanwhile = kibibytes_of(service.process.pid) - before
        assert service.metric("walltimed_refused_clusters_total") == INVENTED - ADMITTED
        assert service.complete(completion("2")).is_success, "one's own cluster is served"
    tell(f"{meanwhile / 1024:.0f} MiB more")
    assert meanwhile < MOST_KIBIBYTES
    if is_long:
        with Service(fresh_url) as service:
            after = kibibytes_of(service.process.pid) - before
        tell(f"{after / 1024:.0f} MiB more after a restart")
        assert after < MOST_KIBIBYTES
