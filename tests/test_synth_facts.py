"""The synthetic site whose runtimes follow facts resembles real logs in what they show."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from synth import SyntheticLog, synthesise
from synth_facts import runs_with_facts

from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

TRACES = Path(__file__).parents[2] / "shared" / "traces"
LOGS = (
    "ALCF-Theta-2023.swf.gz",
    "ANL-Intrepid-2009-1.swf.gz",
    "CTC-SP2-1996-3.1-cln.swf.gz",
    "HPC2N-2002-2.2-cln.swf.gz",
    "LANL-CM5-1994-4.1-cln.swf.gz",
    "SDSC-SP2-1998-4.2-cln.swf.gz",
    "UniLu-Gaia-2014-1.swf.gz",
)
JOBS = 6_000
MARGIN = 0.8
"""The busiest tenth of the users has 38% of the jobs; in these logs 44 to 83%."""

pytestmark = [
    pytest.mark.traces,
    pytest.mark.lengthy(30),
    pytest.mark.skipif(
        not all((TRACES / name).exists() for name in LOGS),
        reason="needs the logs of ../shared/traces",
    ),
]


def likeness(runs):
    """What logs show of users, requests and runtimes."""
    requests = np.array([run.submission.requested_walltime for run in runs])
    seconds = np.array([max(1.0, run.runtime) for run in runs])
    of_users = {}
    for place, run in enumerate(runs):
        of_users.setdefault(run.submission.user, []).append(place)
    following = np.array([pair for places in of_users.values() for pair in pairwise(places)])
    before, after = following.T
    usual = Counter(requests.tolist()).most_common(10)
    busiest = sorted(map(len, of_users.values()), reverse=True)[: max(1, len(of_users) // 10)]
    return {
        "median usage": np.median(seconds / requests),
        "mean usage": np.minimum(1.0, seconds / requests).mean(),
        "share of runs at their limit": np.mean(seconds >= requests),
        "deviation of the logarithm of runtimes": np.log(seconds).std(),
        "median ratio of consecutive runs of a user, logarithm": np.median(
            np.abs(np.log(seconds[after] / seconds[before]))
        ),
        "share of a user's requests like the last": np.mean(requests[after] == requests[before]),
        "share of the ten most usual requests": sum(count for _, count in usual) / len(runs),
        "share of the busiest tenth of users": sum(busiest) / len(runs),
    }


@pytest.fixture(scope="module")
def real():
    found = []
    for name in LOGS:
        trace, _ = clean(read_swf(TRACES / name), REPLAY_RULES)
        found.append(likeness(list(completions(trace.select(slice(JOBS))))))
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_the_site_lies_within_the_range_of_real_logs(real, seed):
    runs = runs_with_facts(synthesise(SyntheticLog(jobs=JOBS, seed=seed, load=0.8)), seed=seed)
    for name, value in likeness(runs).items():
        values = [each[name] for each in real]
        assert MARGIN * min(values) <= value <= max(values) / MARGIN, (name, value, sorted(values))


def test_runtimes_follow_the_facts_and_not_facts_that_are_noise():
    trace = synthesise(SyntheticLog(jobs=2_000, seed=1, load=0.8))
    for are_noise, least, most in ((False, 0.0, 0.2), (True, 0.5, 9.0)):
        groups = {}
        for run in runs_with_facts(trace, seed=1, are_noise=are_noise):
            job = run.submission
            known = (job.application, job.facts.script_hash, job.facts.array_size)
            size = job.facts.features["input_size"]
            if run.runtime > 10 and run.runtime < job.requested_walltime and size > 0:
                groups.setdefault(known, []).append(np.log(run.runtime) - 0.8 * np.log(size))
        spreads = [np.std(each) for each in groups.values() if len(each) > 5]
        assert least <= np.median(spreads) <= most
