from runs import ended, submission

from predictors.memory.user_runs import LATEST_RUNS, SLACK
from predictors.methods.max_usage import MaxUsage


def test_the_request_is_scaled_by_the_largest_usage_of_the_last_five_jobs():
    predictor = MaxUsage()
    # usages   0.9  0.1  0.25  0.5  0.2  0.3   of an hour each; the first is the sixth to last
    for hour, runtime in enumerate((3240, 360, 900, 1800, 720, 1080), start=1):
        predictor.observe(ended(end=hour * 3600, runtime=runtime))
    prediction = predictor.predict(submission(at=7 * 3600, request=7200))
    assert prediction.predicted_walltime == 7200 * 0.5
    assert (prediction.basis.jobs, prediction.basis.reason) == (5, "history")


def test_recent_means_ended_last_whatever_the_order_of_the_log():
    predictor = MaxUsage(window=1)
    predictor.observe(ended(end=200, runtime=360))
    predictor.observe(ended(end=100, runtime=3600))
    assert predictor.predict(submission(at=300)).predicted_walltime == 360


def test_among_jobs_that_ended_together_the_one_observed_last_is_the_most_recent():
    predictor = MaxUsage(window=1)
    predictor.observe(ended(end=100, runtime=3600))
    predictor.observe(ended(end=100, runtime=360))
    assert predictor.predict(submission(at=100)).predicted_walltime == 360


def test_margin_and_factor_move_the_prediction_and_the_request_caps_it():
    cautious = MaxUsage(factor=1.5, margin_seconds=60)
    cautious.observe(ended(end=100, runtime=1800))
    assert cautious.predict(submission(at=200, request=1000)).predicted_walltime == 1000 * 0.75 + 60
    assert cautious.predict(submission(at=200, request=100)).predicted_walltime == 100


def test_a_job_that_overran_its_request_counts_as_using_all_of_it():
    predictor = MaxUsage()
    predictor.observe(ended(end=100, runtime=9000))
    assert predictor.predict(submission(at=200, request=50)).predicted_walltime == 50


def test_memory_is_bounded():
    predictor = MaxUsage(window=5)
    for end in range(2 * LATEST_RUNS + 100):
        predictor.observe(ended(end=end, runtime=1))
    ends, values = predictor._usages._users["ada"]
    assert len(ends) == len(values) == predictor.memory.latest_jobs == LATEST_RUNS
    assert predictor.memory.jobs_per_user == 5 + SLACK
