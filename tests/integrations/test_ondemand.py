"""What Open OnDemand makes of the templates, with a Ruby like its own."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from asgi_client import NOW
from fake_service import GARBAGE, FakeService, http

FOLDER = Path(__file__).parents[2] / "integrations" / "ondemand"

pytestmark = pytest.mark.skipif(not shutil.which("ruby"), reason="no ruby to fill templates in")

NOBODY = "http://127.0.0.1:9"

RENDER = "require 'erb'; print ERB.new(File.read(ARGV[0]), trim_mode: '-').result"


def rendered(template: str, url: str, *, token: Path = Path("/nonexistent")) -> str:
    """The text that Open OnDemand gets."""
    done = subprocess.run(
        ["ruby", "-w", "-e", RENDER, str(FOLDER / template)],
        env={
            "PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8", "WALLTIMED_URL": url,
            "WALLTIMED_LIB": str(FOLDER / "walltimed.rb"), "WALLTIMED_TOKEN_FILE": str(token),
        },
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def answering():
    """Starts services that say one thing to everybody."""
    fakes = []

    def start(answer: bytes | None) -> FakeService:
        fake = FakeService(answer)
        context = fake.serving()
        fakes.append(context)
        context.__enter__()
        return fake

    yield start
    for context in fakes:
        context.__exit__(None, None, None)


def said(answer: object) -> bytes:
    return http(200, json.dumps(answer).encode())


def test_the_form_suggests_whole_hours_that_would_do(answering):
    fake = answering(said({"suggested_walltime": 7201.0}))
    form = yaml.safe_load(rendered("form.yml.erb", fake.url))
    hours = form["attributes"]["bc_num_hours"]
    assert hours["value"] == 3
    assert hours["help"].startswith("3 h would have held")
    assert "bc_num_hours" in form["form"]


@pytest.mark.parametrize("answer", [None, *GARBAGE.values(), said({"suggested_walltime": None})])
def test_without_an_answer_the_form_keeps_its_own_value(answering, answer):
    form = yaml.safe_load(rendered("form.yml.erb", answering(answer).url))
    assert form["attributes"]["bc_num_hours"]["value"] == 8


@pytest.mark.parametrize("template", ["form.yml.erb", "_walltimed_jobs.html.erb"])
def test_without_a_service_the_templates_are_filled_in_all_the_same(template):
    rendered(template, NOBODY)


def test_the_widget_says_when_waiting_jobs_start(answering):
    jobs = [
        {"job_id": "7", "application": "relax", "state": "waiting", "start_time": NOW,
         "end_time": NOW + 3600},
        {"job_id": "8", "state": "running", "start_time": NOW, "end_time": NOW},
        {"job_id": "9", "application": None, "state": "waiting", "start_time": None,
         "end_time": None},
    ]  # fmt: skip
    text = rendered("_walltimed_jobs.html.erb", answering(said({"jobs": jobs})).url)
    assert "Your jobs start at" in text
    assert "<td>7 relax</td><td>Tue 22:13</td><td>Tue 23:13</td>" in text
    assert "<td>9</td><td>\N{EN DASH}</td><td>\N{EN DASH}</td>" in text
    assert "<td>8" not in text


def test_the_widget_says_so_if_nothing_waits_and_nothing_if_it_cannot_know(answering):
    empty = rendered("_walltimed_jobs.html.erb", answering(said({"jobs": []})).url)
    assert "None of your jobs waits." in empty
    assert rendered("_walltimed_jobs.html.erb", NOBODY).strip() == ""


def test_a_job_s_name_is_no_html(answering):
    job = {"job_id": "<b>1", "application": "<script>", "state": "waiting"}
    text = rendered("_walltimed_jobs.html.erb", answering(said({"jobs": [job]})).url)
    assert "<script>" not in text
    assert "&lt;b&gt;1 &lt;script&gt;" in text


def test_the_user_s_own_token_is_sent(answering, tmp_path):
    token = tmp_path / "token"
    token.write_text("wt_ada_secret\n")
    fake = answering(said({"jobs": []}))
    rendered("_walltimed_jobs.html.erb", fake.url, token=token)
    assert any("wt_ada_secret" in line for line in fake.headers)
