"""The walltime of a step of a workflow: asked by rule and input size, or the fallback."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_service import fake_service, http, prediction

SCRIPT = Path(__file__).parents[2] / "integrations" / "workflows" / "walltimed_step.py"


def asked(service, *words, **environment):
    address = {"WALLTIMED_URL": f"http://127.0.0.1:{service.port}", "LOGNAME": "carol"}
    done = subprocess.run(
        [sys.executable, "-S", "-E", SCRIPT, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=address | environment,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_step_is_asked_for_by_its_rule_and_the_size_of_its_input(tmp_path):
    reads, token = tmp_path / "reads.fq", tmp_path / "token"
    reads.write_bytes(b"x" * 1_500)
    token.write_text("wt_1_secret\n")
    with fake_service(prediction(predicted_walltime=601), hangs_up=True) as service:
        code, minutes, complaint = asked(
            service, "align", 120, reads, tmp_path / "missing", WALLTIMED_TOKEN_FILE=str(token)
        )
    assert (code, minutes, complaint) == (0, "11\n", "")
    assert service.requests == [
        {
            "user": "carol",
            "requested_walltime": 7200,
            "underestimation_rate": 0.05,
            "features": {"rule": "align", "input_bytes": 1500},
        }
    ]
    assert "Authorization: Bearer wt_1_secret" in service.headers[0]


@pytest.mark.parametrize(
    "answer",
    [
        http(200, b"{}"),
        prediction(predicted_walltime=7201),
        prediction(basis={"jobs": 0, "reason": "x"}),
    ],
)
def test_without_a_usable_answer_the_fallback_is_the_answer(answer):
    with fake_service(answer, hangs_up=True) as service:
        code, minutes, _ = asked(service, "align", 120)
    assert (code, minutes) == (0, "120\n")


def test_a_service_that_is_away_costs_a_line_on_stderr():
    with fake_service(prediction(), hangs_up=True) as service:
        pass
    code, minutes, complaint = asked(service, "align", 120)
    assert (code, minutes) == (0, "120\n")
    assert complaint.startswith("walltimed: ")


def test_other_engines_get_a_clock_and_a_wckey(tmp_path):
    restart = tmp_path / "restart.nc"
    restart.write_bytes(b"x" * 1_500)
    words = ("case.run", 360, restart)
    with fake_service(prediction(predicted_walltime=3601), hangs_up=True) as service:
        forms = ("--clock", "--minutes", "--wckey")
        answers = [asked(service, form, *words, WALLTIMED_CLUSTER="hill")[1] for form in forms]
    assert answers == ["01:01:00\n", "61\n", "wt:rule=case_run,wt:input_bytes=1500\n"]
    assert [each["cluster"] for each in service.requests] == ["hill"] * 2


@pytest.mark.parametrize("words", [(), ("align",), ("align", "soon"), ("align", "0")])
def test_wrong_words_are_refused_with_the_usage(words):
    with fake_service(prediction(), hangs_up=True) as service:
        code, _, complaint = asked(service, *words)
    assert code == 2
    assert "[--minutes | --clock | --wckey] RULE FALLBACK_MINUTES" in complaint
