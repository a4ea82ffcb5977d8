from runs import ended, submission

from predictors.methods.last_two import LastTwo


def test_the_prediction_is_the_mean_runtime_of_the_users_last_two_jobs():
    predictor = LastTwo()
    predictor.observe(ended(end=1000, runtime=900))
    predictor.observe(ended(end=2000, runtime=100))
    predictor.observe(ended(end=3000, runtime=300))
    predictor.observe(ended(end=3500, runtime=3000, user="bob"))
    prediction = predictor.predict(submission(at=4000))
    assert prediction.predicted_walltime == 200
    assert (prediction.basis.jobs, prediction.basis.reason) == (2, "history")


def test_one_job_is_too_few():
    predictor = LastTwo()
    predictor.observe(ended(end=1000, runtime=100))
    prediction = predictor.predict(submission(at=2000))
    assert prediction.predicted_walltime == 3600
    assert (prediction.basis.jobs, prediction.basis.reason) == (1, "too-few-jobs")


def test_the_mean_is_of_runtimes_and_only_then_capped_by_the_request():
    predictor = LastTwo()
    predictor.observe(ended(end=1000, runtime=500, request=100))
    predictor.observe(ended(end=2000, runtime=100, request=100))
    assert predictor.predict(submission(at=3000, request=400)).predicted_walltime == 300
    assert predictor.predict(submission(at=3000, request=200)).predicted_walltime == 200
