"""The machine of research/rescue_curve.py plays by the rules of the project's simulator."""

from math import inf

import rescue
from played_logs import log_parts
from rescue_curve import Machine
from workloads import synthetic

from simulator.scheduling.semantics import Semantics


def test_without_longer_limits_jobs_start_as_under_conservative_backfilling(tmp_path, monkeypatch):
    rules = Semantics(policy="conservative", compression="replan")
    monkeypatch.setattr(rescue, "TWIN", rules)
    log = synthetic(tmp_path / "a.swf", jobs=600, seed=1)
    site = rescue.site_of(log_parts([log], None, 1)[0])
    waits = Machine(site).played(site.limits, inf).waits
    assert waits.any()
    assert waits.tolist() == rescue.Twin(site).play(None, resubmits=False).waits.tolist()
