"""What benchmarks compare with is there; their types are checked with those of the package."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import ratios

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


TABLE = """\
$ .venv/bin/python benchmarks/store.py
SQLite
                               bare driver         store     ratio
single events, 64 posters          3,732/s      34,485/s     {one:.2f}x
batches of 1,000                 132,843/s     123,329/s     0.92x
import                               8.94 s of 1,000,000

PostgreSQL
                               bare driver         store     ratio
batches of 1,000                  82,357/s      43,635/s     0.51x

$ .venv/bin/python benchmarks/store.py --rows 1000
                               bare driver         store     ratio
batches of 1,000                  82,357/s      43,635/s     7.77x
"""


SEVERAL = """\
us per call    predict              observe
                 1e+03    p99  ratio   1e+03    p99  ratio
auto             25.46  197.9  1.99x   41.33  518.9  2.50x  reached <= 60 us, missed <= 1.5x
auto, forest     43.32  406.8  4.10x  132.70  960.3  2.24x  missed <= 160 us, missed <= 1.5x
"""


def test_ratios_are_those_of_the_first_run_by_table_and_row():
    assert ratios.ratios_of(TABLE.format(one=9.24)) == {
        "SQLite: single events, 64 posters": 9.24,
        "SQLite: batches of 1,000": 0.92,
        "PostgreSQL: batches of 1,000": 0.51,
    }
    assert ratios.ratios_of("nothing\nhere 1.0\n") == {}
    assert ratios.ratios_of(SEVERAL) == {
        "auto, 1": 1.99, "auto, 2": 2.5, "auto, forest, 1": 4.1, "auto, forest, 2": 2.24
    }  # fmt: skip
    assert ratios.ratios_of("p99 without 1.1 ms\nratio 0.69 (median of 5); 5 rounds") == {
        "ratio": 0.69
    }


def test_a_run_is_a_line_of_json_and_the_page_draws_it_beside_what_commits_kept(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr(ratios, "ROOT", tmp_path)
    results = tmp_path / "results"
    results.mkdir()

    def git(*words):
        names = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *names, *words], check=True)

    git("init", "--quiet")
    for one in (2.0, 4.0):
        (results / "store.txt").write_text(TABLE.format(one=one))
        git("add", ".")
        git("commit", "--quiet", "--message", "kept")
    script = tmp_path / "store.py"
    script.write_text(f"print({TABLE.format(one=8.0)!r}); raise SystemExit(3)")
    failed = ratios.run(str(script), ["--rows", "7"])
    printed, complained = capfd.readouterr()
    record = json.loads(printed)
    assert "single events" in complained
    assert (record["benchmark"], record["arguments"]) == ("store", ["--rows", "7"])
    assert record["exit_code"] == 3
    assert record["ratios"]["SQLite: single events, 64 posters"] == 8.0
    ratios.keep(failed, tmp_path)
    assert not (results / "runs.jsonl").exists()
    assert "not kept" in capfd.readouterr().err
    ratios.keep({**failed, "exit_code": 0}, tmp_path)
    assert (tmp_path / "build" / "ratios.html").read_text() == ratios.page(tmp_path)
    points = [each for each in ratios.kept_points(tmp_path) if "single" in each.name]
    assert {each.ratio for each in points} == {2.0, 4.0, 8.0}
    page = ratios.page(tmp_path)
    assert page.count("<svg") == 3
    assert record["commit"][:7] in page
