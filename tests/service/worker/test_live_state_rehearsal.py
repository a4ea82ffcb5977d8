"""What a start asks of the methods, so that no caller waits for machine code."""

import subprocess
import sys

import pytest

ASK = """
from gc import get_objects
from itertools import product
from msgspec.structs import replace
from numba.core.dispatcher import Dispatcher
from predictors.base import Question
from predictors.jobs import Completion, Submission
from predictors.registry import UNCERTAIN, create
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LiveState

def loaded():
    kinds = (each for each in get_objects() if isinstance(each, Dispatcher))
    return {(each.py_func.__qualname__, kind) for each in kinds for kind in each.signatures}

LiveState(Settings(config=None), Metrics()).warm_up_methods()
before = loaded()
assert len(before) > 9
job = Submission(requested_walltime=3600.0, submit_time=0.0, user="ann")
for name in sorted(UNCERTAIN):
    method = create(name)
    for end in range(1, 400):
        method.observe(Completion(submission=job, start_time=0.0, end_time=end, runtime=end))
    asked = product((150.0, 500.0), (0.1, None), (60.0, None), (True, False))
    for time, rate, elapsed, explain in asked:
        now = replace(job, submit_time=time)
        question = Question(underestimation_rate=rate, elapsed=elapsed, explain=explain)
        assert method.ask(now, question).interval is not None
        method.predict(now)
print(*sorted(loaded() - before), sep="\\n")
"""


@pytest.mark.acceptance
def test_after_a_start_no_question_waits_for_machine_code():
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
