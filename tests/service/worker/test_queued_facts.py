"""Jobs of a queue have the facts that were sent when they were submitted, and nobody else's."""

from msgspec.structs import replace
from runs import a_run, predicted, reported, submission

from predictors.facts import Facts, hashed, unkeyed
from service.live_queue.snapshot import JobState, LiveJob, Pool, QueueSnapshot, SchedulerRules
from service.worker.queued_facts import SOUGHT_SECONDS, with_facts

NOW = 1e6
FACTS = {name: hashed(Facts(script_hash=name), unkeyed) for name in ("one", "two", "three")}


def waiting(job_id, *, at=NOW - 5, user="ada", **known):
    job = submission(at, user=user, job_id=job_id, application="solve")
    return LiveJob(submission=job, state=JobState.WAITING, **known)


def queue(*jobs, taken_at=NOW):
    return QueueSnapshot(
        cluster="default",
        taken_at=taken_at,
        rules=SchedulerRules(),
        pools=(Pool(processors=8),),
        jobs=jobs,
    )


def recorded(name, job, facts, **different):
    run = a_run("none", start=job.submission.submit_time + 60)
    known = {"user": job.submission.user, "application": "solve", "facts": facts}
    return predicted(name, run, **known | different)


def facts_in(snapshot):
    return {job.job_id: job.submission.facts for job in snapshot.jobs}


def test_the_prediction_that_a_job_names_or_that_fits_its_submission_counts(store):
    first, second, third = (waiting(str(n), at=NOW - 5 * n) for n in (1, 2, 3))
    store.write(
        [],
        [
            recorded("p1", first, FACTS["one"], submit_time=NOW - 5000),
            recorded("p2", second, FACTS["two"]),
            recorded("p3", third, FACTS["three"], job_id="3", submit_time=NOW - 80),
        ],
    )
    snapshot = queue(replace(first, prediction_id="p1"), second, third)
    found = with_facts(snapshot, None, store.queues.facts_at_submission)
    assert facts_in(found) == {"1": FACTS["one"], "2": FACTS["two"], "3": FACTS["three"]}


def test_the_tasks_of_an_array_share_its_prediction_named_or_not(store):
    tasks = [waiting(f"7_{n}", array="7") for n in range(3)]
    store.write([], [recorded("p1", tasks[0], FACTS["one"])])
    for named in (None, "p1"):
        snapshot = queue(*(replace(task, prediction_id=named) for task in tasks))
        found = with_facts(snapshot, None, store.queues.facts_at_submission)
        assert set(map(str, facts_in(found).values())) == {str(FACTS["one"])}


def test_the_prediction_of_another_user_or_of_another_time_gives_no_facts(store):
    job = waiting("1")
    store.write(
        [],
        [
            recorded("p1", job, FACTS["one"], user="bob"),
            recorded("p2", job, FACTS["two"], job_id="1", submit_time=NOW - 3 * 86400),
            recorded("p3", job, FACTS["three"], submit_time=NOW - 60),
        ],
    )
    for snapshot in (queue(job), queue(replace(job, prediction_id="p1"))):
        assert with_facts(snapshot, None, store.queues.facts_at_submission) is snapshot


def test_two_jobs_of_one_submission_time_have_a_prediction_each(store):
    jobs = [waiting("1"), waiting("2")]
    store.write([], [recorded(f"p{n}", jobs[0], FACTS[n]) for n in ("one", "two")])
    found = with_facts(queue(*jobs), None, store.queues.facts_at_submission)
    found = {each.script_hash for each in facts_in(found).values()}
    assert found == {FACTS[name].script_hash for name in ("one", "two")}


def test_looking_for_facts_closes_no_prediction(store):
    job = waiting("1")
    store.write([], [recorded("p1", job, FACTS["one"])])
    with_facts(queue(job), None, store.queues.facts_at_submission)
    run = a_run("1", start=NOW, submit_time=NOW - 5, application="solve")
    store.write([reported(run)])
    (stored,) = store.past_runs.exported(None, 0.0, 1e9)
    assert stored.submission.facts == FACTS["one"]


def test_each_job_is_looked_for_until_its_prediction_cannot_be_late():
    asked = []

    def find(jobs):
        asked.append([job.completion.submission.job_id for job in jobs])
        return [FACTS["one"] if job.prediction_id else None for job in jobs]

    jobs = waiting("1", prediction_id="p"), waiting("2"), waiting("3", at=NOW - 9000)
    first = with_facts(queue(*jobs), None, find)
    second = with_facts(queue(*jobs), first, find)
    later = with_facts(queue(*jobs, taken_at=NOW + SOUGHT_SECONDS), second, find)
    assert asked == [["1", "2", "3"], ["2"]]
    assert facts_in(later) == {"1": FACTS["one"], "2": None, "3": None}


def test_a_job_id_that_comes_back_has_not_the_facts_of_the_job_before():
    before = queue(
        replace(waiting("1"), submission=replace(waiting("1").submission, facts=FACTS["one"]))
    )
    for job in (waiting("1", user="bob"), waiting("1", at=NOW - 2)):
        found = with_facts(queue(job), before, lambda jobs: [None for _ in jobs])
        assert facts_in(found) == {"1": None}
