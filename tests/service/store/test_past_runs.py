"""Runs of a period as reports and exports read them."""

from runs import a_run, reported


def at_end(job: str, end: float, **known):
    """A run of a minute that ended at ``end``."""
    return a_run(job, start=end - 60.0, runtime=60.0, **known)


def exported(store, cluster, since, until):
    return [run.submission.job_id for run in store.past_runs.exported(cluster, since, until)]


def test_a_period_has_its_first_moment_and_not_its_last(store):
    runs = [at_end(str(end), float(end)) for end in (999, 1000, 1999, 2000)]
    store.write([reported(*runs, at_end("elsewhere", 1500.0, cluster="south"))])
    assert len(store.past_runs.latest("default", 1000.0, 2000.0, 10)) == 2
    assert exported(store, "default", 1000.0, 2000.0) == ["1000", "1999"]
    assert exported(store, None, 1000.0, 2000.0) == ["1000", "elsewhere", "1999"]


def test_of_many_runs_those_that_ended_last_are_read(store):
    store.write([reported(*(at_end(str(n), 1000.0 + n, user=f"u{n}") for n in range(5)))])
    newest = store.past_runs.latest("default", 0.0, 1e9, 2)
    assert [run.submission.user for run in newest] == ["u4", "u3"]


def test_an_export_is_in_the_order_of_submission_and_then_of_the_log(store):
    late = a_run("late", start=500.0, submit_time=90.0)
    twins = [a_run(job, start=900.0, submit_time=10.0) for job in ("b", "a")]
    store.write([reported(late, *twins)])
    assert exported(store, "default", 0.0, 1e9) == ["b", "a", "late"]
