"""What sites are given to watch the service with: rules for Prometheus, a dashboard for Grafana."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from service.metrics import Metrics

ROOT = Path(__file__).parents[1]
PROMETHEUS = ROOT / "deploy" / "prometheus"
MANUAL = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
GROUPS = yaml.safe_load((PROMETHEUS / "walltimed.rules.yml").read_text("utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule["alert"] for rule in RULES if "alert" in rule]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}

RECORDED_OR_NOT = re.compile(r"(?:[a-z_]+:)?walltimed_\w+(?::\w+)*")

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="needs promtool (Debian's package prometheus)"
)


def exposed() -> dict[str, set[str]]:
    """The labels of every series that the service exposes, by the name of the series."""
    found = {}
    for metric in Metrics().registry._collector_to_names:
        if isinstance(metric, MetricWrapperBase):
            name, labels = metric.describe()[0].name, set(metric._labelnames)
            if metric._type == "histogram":
                found |= {f"{name}_count": labels, f"{name}_sum": labels}
                found[f"{name}_bucket"] = {*labels, "le"}
            else:
                found[f"{name}_total" if metric._type == "counter" else name] = labels
    return found


def series(expression: str) -> set[str]:
    """What an expression reads: series of the service, and what rules have recorded."""
    return set(RECORDED_OR_NOT.findall(expression))


def promtool(*words: str | Path) -> str:
    """What promtool says, of things that it accepts."""
    done = subprocess.run(
        ["promtool", *words], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_promtool_accepts_the_rules():
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "walltimed.rules.yml")


@needs_promtool
def test_promtool_accepts_the_scrape_example_once_there_is_a_token(tmp_path):
    for name in ("prometheus.yml", "walltimed.rules.yml"):
        shutil.copy(PROMETHEUS / name, tmp_path)
    (tmp_path / "walltimed.token").write_text("wt_made_up")
    promtool("check", "config", tmp_path / "prometheus.yml")


@needs_promtool
def test_the_rules_make_of_histories_what_they_should():
    assert "SUCCESS" in promtool("test", "rules", "walltimed.tests.yml")


def test_a_history_makes_every_alert_fire():
    tests = yaml.safe_load((PROMETHEUS / "walltimed.tests.yml").read_text("utf-8"))["tests"]
    fired = {
        case["alertname"]
        for test in tests
        for case in test.get("alert_rule_test", ())
        if case["exp_alerts"]
    }
    assert fired == set(ALERTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_rules_read_only_what_there_is(rule):
    read = series(rule["expr"])
    assert read <= exposed().keys() | RECORDED
    assert read or rule["expr"].startswith("up{")


def test_every_alert_says_how_severe_it_is_and_what_it_means():
    for rule in RULES:
        if "alert" in rule:
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert set(rule["annotations"]) == {"summary", "description"}


def test_the_manual_says_of_every_alert_what_to_do_and_of_no_other():
    assert re.findall(r"^\| `(Walltimed\w+)` \|", MANUAL, re.MULTILINE) == ALERTS


def test_the_manual_explains_what_is_recorded():
    assert set(re.findall(r"^\| `([a-z_]+:\S+)` \|", MANUAL, re.MULTILINE)) == RECORDED
