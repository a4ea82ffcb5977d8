"""What benchmarks compare with is there; their types are checked with those of the package."""

import subprocess
import sys
from pathlib import Path

import httpx

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_ordinary_endpoint_answers_as_the_service_does():
    command = [sys.executable, BENCHMARKS / "ordinary_app.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as endpoint:
        try:
            address = endpoint.stdout.readline().strip()
            asked = {"user": "ann", "requested_walltime": 3600}
            answer = httpx.post(f"{address}/v1/predictions", json=asked, timeout=30)
        finally:
            endpoint.terminate()
    assert answer.status_code == 200
    assert answer.json()["predicted_walltime"] == 3600
