import gzip
import subprocess
import sys
from importlib.resources import files

import lublin
import numpy as np
import pytest
import synth
from numpy.random import PCG64, Generator
from synth import SyntheticLog, synthesise
from synth_users import MAXIMUM, MOST_USAGE, POPULAR, request
from workloads import synthetic

from predictors.measures import measure
from predictors.registry import create
from simulator.replay.trace_replay import InProcess, replay
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf
from terminal.files import read_bytes

SHIPPED = files("simulator") / "data" / "synthetic.swf.gz"


@pytest.fixture(scope="module")
def trace():
    return synthesise(SyntheticLog(jobs=6000, seed=11, processors=256))


def rng(seed=5):
    return Generator(PCG64(seed))


def test_the_shipped_trace_is_made_again_byte_for_byte_by_its_own_header(tmp_path):
    shipped = read_bytes(str(SHIPPED))
    synthetic(tmp_path / "again.swf.gz", jobs=4000, seed=1)
    # Unpacked: how zlib packs is its own affair, and differs between its versions.
    assert gzip.decompress((tmp_path / "again.swf.gz").read_bytes()) == shipped
    command = "python benchmarks/synth.py --jobs 4000 --seed 1 --processors 128 --users 60"
    assert f"; Note: made by: {command}\n".encode() in shipped


def test_the_shipped_trace_is_small_and_whole():
    assert len(SHIPPED.read_bytes()) < 100_000
    trace = read_swf(str(SHIPPED))
    assert len(trace) == 4000
    assert trace.unix_start == 1704067200


def test_equal_seeds_make_equal_traces_and_others_do_not():
    one, same, other = (synthesise(SyntheticLog(jobs=300, seed=seed)) for seed in (3, 3, 4))
    assert one.submit.tolist() == same.submit.tolist()
    assert one.run.tolist() == same.run.tolist()
    assert one.run.tolist() != other.run.tolist()


def test_a_longer_trace_begins_with_the_same_arrivals():
    short, long = (synthesise(SyntheticLog(jobs=jobs, seed=3)) for jobs in (100, 200))
    assert long.run[:100].tolist() == short.run.tolist()


def test_jobs_are_numbered_ascending_in_time_and_fit_the_machine(trace):
    assert trace.job.tolist() == list(range(1, 6001))
    assert (np.diff(trace.submit) >= 0).all()
    assert trace.processors.min() >= 1
    assert trace.processors.max() <= 256
    assert trace.max_processors == 256
    assert (trace.run >= 1).all()
    assert (trace.wait == -1).all()


def test_no_job_outruns_its_request_and_those_killed_at_it_have_failed(trace):
    assert (trace.run <= trace.requested_time).all()
    killed = trace.run == trace.requested_time
    assert 0.02 < killed.mean() < 0.15
    assert (trace.status[killed & (trace.run > 60)] == 0).mean() > 0.9


def test_requests_are_modal_as_in_real_logs(trace):
    values, counts = np.unique(trace.requested_time, return_counts=True)
    shares = np.sort(counts)[::-1] / len(trace)
    assert shares[:20].sum() > 0.88
    assert set(values[np.argsort(-counts)[:12]].tolist()) <= set(POPULAR)
    assert values.max() == MAXIMUM
    assert counts[-1] / len(trace) > 0.05


def test_requests_are_hardly_below_what_is_expected_up_to_the_maximum():
    random = rng()
    for expected in (1.0, 299.0, 3600.0, 86399.0):
        requests = [request(expected, random) for _ in range(500)]
        assert min(requests) >= expected / MOST_USAGE
        assert np.mean(np.array(requests) < expected) < 0.1
        assert max(requests) == MAXIMUM
    assert request(10.0 * MAXIMUM, random) == MAXIMUM


@pytest.mark.parametrize("kind", [lublin.BATCH, lublin.INTERACTIVE], ids=lambda kind: kind.name)
def test_arrivals_have_the_published_gaps_and_daily_cycle(kind):
    times = lublin.arrivals(kind, 40_000, rng())
    gaps = np.diff(times)
    assert (gaps >= 0).all()
    # In the busy hours that time passes fastest in which gaps have the published logarithm.
    shape, scale = kind.gap
    passed = np.log(np.diff(_even_time(kind, times)))
    assert passed.mean() == pytest.approx(shape * scale, rel=0.02)
    assert passed.var() == pytest.approx(shape * scale**2, rel=0.15)
    slots = np.bincount((times % 86400 // 1800).astype(int), minlength=48)
    assert np.corrcoef(slots, lublin.daily_weights(kind))[0, 1] > 0.98


def _even_time(kind, times):
    edges = np.linspace(0, 86400, 49)
    even = np.concatenate([[0], np.cumsum(lublin.daily_weights(kind)) * 1800])
    return times // 86400 * 86400 + np.interp(times % 86400, edges, even)


def test_the_afternoon_is_busy_and_the_early_morning_is_not():
    weights = lublin.daily_weights(lublin.BATCH)
    assert weights.mean() == pytest.approx(1)
    assert 11 <= np.argmax(weights) / 2 <= 16
    assert 4 <= np.argmin(weights) / 2 <= 6
    assert weights.max() > 4 * weights.min()


def test_sizes_have_the_published_shares():
    random = rng()
    sizes = np.array([lublin.size(lublin.BATCH, 128, random) for _ in range(20_000)])
    serial = (sizes == 1).mean()
    powers = np.isin(sizes, [2, 4, 8, 16, 32, 64, 128]).mean()
    assert serial == pytest.approx(lublin.BATCH.serial, abs=0.02)
    assert powers == pytest.approx(lublin.BATCH.power_of_two, abs=0.03)
    # Of parallel jobs 87.5% come from the lower uniform distribution of logarithms, which ends
    # at 5; a quarter of the upper one, which ends at 7, is rounded to 5.
    assert (sizes[sizes > 1] <= 32).mean() == pytest.approx(0.875 + 0.125 / 4, abs=0.02)


@pytest.mark.parametrize("machine", [1, 2, 3, 7, 100])
def test_small_and_odd_machines_get_jobs_that_fit(machine):
    random = rng()
    for kind in (lublin.BATCH, lublin.INTERACTIVE):
        sizes = [lublin.size(kind, machine, random) for _ in range(200)]
        assert 1 <= min(sizes) <= max(sizes) <= machine


def test_runtimes_have_the_published_mean_logarithm_and_larger_jobs_run_longer():
    random = rng()
    small, large = (
        np.log([lublin.runtime(lublin.BATCH, processors, random) for _ in range(8000)])
        for processors in (1, 128)
    )
    share = 0.6986 - 0.003
    expected = share * 6.57 * 0.823 + (1 - share) * 639.1 * 0.0156
    assert small.mean() == pytest.approx(expected, rel=0.02)
    assert large.mean() > small.mean() + 0.5
    assert large.max() <= lublin.LONGEST_LOG_RUNTIME


def test_interactive_jobs_are_most_and_short():
    trace = synthesise(SyntheticLog(jobs=2000, seed=2, interactive=True))
    assert set(trace.queue.tolist()) == {0, 1}
    assert 0.7 < (trace.queue == 0).mean() < 0.9
    assert np.median(trace.run[trace.queue == 0]) < np.median(trace.run[trace.queue == 1])


def test_consecutive_jobs_of_a_user_are_as_alike_as_in_real_logs(trace):
    """Ten logs have 0.65 to 0.93, 0.02 to 0.38, 0.1 to 1.1, and 0.15 to 0.63."""
    runs, alike, ratios = {}, 0, []
    for user, size, asked, run in zip(
        trace.user, trace.processors, trace.requested_time, trace.run, strict=True
    ):
        if (before := runs.get(user)) and before[:2] == (size, asked):
            alike += 1
            ratios.append(abs(np.log(run / before[2])))
        runs[user] = size, asked, run
    assert 0.65 < alike / len(trace) < 0.93
    assert 0.02 < np.median(ratios) < 0.38
    assert 0.1 < np.quantile(ratios, 0.75) < 1.1
    assert 0.15 < np.mean(trace.run < 0.1 * trace.requested_time) < 0.63


def test_repeated_applications_give_a_predictor_something_to_learn(trace):
    runs = list(completions(trace))
    methods = ("requested", "max-usage", "last-two")
    played = replay(runs, InProcess({name: create(name) for name in methods}))
    errors = {
        name: measure(answers.predicted, played.requested, played.actual).mean_absolute_error
        for name, answers in played.answers.items()
    }
    assert errors["max-usage"] < 0.6 * errors["requested"]
    assert errors["last-two"] < 0.4 * errors["requested"]


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"processors": 0}, {"users": 0}, {"seed": -1}])
def test_impossible_workloads_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SyntheticLog(**{"jobs": 1, "seed": 1, **wrong})


def test_a_load_moves_arrivals_by_one_factor_and_says_so_in_the_header():
    usual, busy = (synthesise(SyntheticLog(jobs=400, seed=3, load=load)) for load in (None, 0.8))
    work = float((busy.run * busy.processors).sum())
    assert work / (128 * busy.submit[-1]) == pytest.approx(0.8, rel=1e-4)
    assert busy.run.tolist() == usual.run.tolist()
    factor = busy.submit[-1] / usual.submit[-1]
    assert np.abs(busy.submit - usual.submit * factor).max() <= 2
    assert (
        "; Note: made by: python benchmarks/synth.py --jobs 400 --seed 3 --processors 128 "
        "--users 60 --load 0.8" in busy.comments
    )


def run(*words):
    command = [sys.executable, synth.__file__, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False)


def test_the_command_writes_the_trace_that_its_header_names(tmp_path):
    file = tmp_path / "made.swf.xz"
    done = run("--jobs", 50, "--seed", 9, "-o", file)
    assert done.returncode == 0
    assert b"50 jobs" in done.stderr
    assert (
        read_swf(file)
        .header["Note"]
        .startswith(
            "made by: python benchmarks/synth.py --jobs 50 --seed 9 --processors 128 --users 60"
        )
    )
    assert run("--jobs", 50, "--seed", 9).stdout == read_bytes(file)
    refused = run("-o", tmp_path / "no" / "where.swf")
    assert refused.returncode == 2
    assert b"--output" in refused.stderr
