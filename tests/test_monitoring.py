"""What sites are given to watch the service with: rules for Prometheus, a dashboard for Grafana."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from service import errors
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


def test_the_histories_of_the_tests_have_labels_that_the_service_sends():
    tests = (PROMETHEUS / "walltimed.tests.yml").read_text("utf-8")
    known = exposed()
    for name, labels in re.findall(r"\{series: '(walltimed_\w+)\{(.*?)\}'", tests):
        given = dict(re.findall(r'(\w+)="(.*?)"', labels))
        assert {*given} - {"job", "instance"} <= known[name], name
        if "error" in given:
            assert hasattr(errors, given["error"]), given["error"]


def test_every_alert_says_how_severe_it_is_and_what_it_means():
    for rule in RULES:
        if "alert" in rule:
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert set(rule["annotations"]) == {"summary", "description"}


def test_the_manual_says_of_every_alert_what_to_do_and_of_no_other():
    assert re.findall(r"^\| `(Walltimed\w+)` \|", MANUAL, re.MULTILINE) == ALERTS


DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "walltimed.json").read_text("utf-8"))
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target for panel in PANELS for target in panel["targets"]]
OF_A_SCRAPE = {"job", "instance"}


def titled(panel: dict) -> str:
    return panel["title"]


def without_variables(expression: str) -> str:
    """An expression as Grafana would send it."""
    return re.sub(r"\$\w+", ".+", expression.replace("$__rate_interval", "5m"))


def labels_of(name: str) -> set[str]:
    """The labels of a series; of one that was recorded, by the name of its level."""
    if name in RECORDED:
        level = name.partition(":")[0]
        return {label for label in ("job", "cluster", "method", "route") if label in level}
    return exposed()[name] | OF_A_SCRAPE


def test_panels_of_the_dashboard_have_ids_and_titles_of_their_own():
    for key in ("id", "title"):
        values = [panel[key] for panel in DASHBOARD["panels"]]
        assert all(values)
        assert len(values) == len(set(values))


@pytest.mark.parametrize("panel", PANELS, ids=titled)
def test_every_panel_has_a_unit_and_says_what_it_shows(panel):
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["description"].endswith(".")
    assert panel["targets"]


def test_panels_lie_side_by_side_and_not_on_one_another():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24  # Grafana's columns
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_dashboard_takes_its_data_from_the_source_that_is_chosen():
    assert VARIABLES["datasource"]["type"] == "datasource"
    asking = [*PANELS, *QUERIES, *(v for v in VARIABLES.values() if v["type"] == "query")]
    for each in asking:
        assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("panel", PANELS, ids=titled)
def test_panels_show_only_what_there_is(panel):
    for target in panel["targets"]:
        read = series(target["expr"])
        assert read
        assert read <= exposed().keys() | RECORDED
        assert set(re.findall(r"\$(\w+)", target["expr"])) <= {*VARIABLES, "__rate_interval"}


@pytest.mark.parametrize("panel", PANELS, ids=titled)
def test_panels_select_and_group_by_labels_that_there_are(panel):
    for target in panel["targets"]:
        expression = target["expr"]
        grouped = re.findall(r"by \(([^)]*)\)", expression)
        used = {label.strip() for labels in grouped for label in labels.split(",")}
        used |= set(re.findall(r"(\w+)=~?\"", expression))
        used |= set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        for name in series(expression):
            assert used <= labels_of(name), (name, used)


def test_the_dashboard_shows_every_metric():
    shown = set().union(*(series(target["expr"]) for target in QUERIES))
    assert exposed().keys() <= shown


def test_variables_list_the_labels_of_what_there_is():
    for variable in VARIABLES.values():
        if variable["type"] == "query":
            pattern = r"label_values\((\w+)(?:{.*})?, (\w+)\)"
            metric, label = re.fullmatch(pattern, variable["query"]["query"]).groups()
            assert label == variable["name"]
            assert label in labels_of(metric)


@needs_promtool
def test_promtool_understands_every_query_of_the_dashboard(tmp_path):
    rules = [
        {"record": f"panel:{number}", "expr": without_variables(target["expr"])}
        for number, target in enumerate(QUERIES)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(QUERIES)} rules found" in promtool("check", "rules", file)
