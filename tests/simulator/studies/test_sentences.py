"""Sentences of studies follow from the tables above them, whatever was played."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import printed_tables
import pytest
from workloads import stretched_logs

from simulator.studies import STUDIES, xu_schedules
from simulator.studies.klusacek.klusacek_sentences import sentences as of_klusacek
from simulator.studies.klusacek.klusacek_study import PAPER_LOGS
from simulator.studies.study import play_all
from simulator.studies.tang.tang_sentences import sentences as of_tang
from simulator.studies.xu.published import PublishedComparison, parts

RESULTS = Path(__file__).parents[3] / "results"


def from_table(name, text):
    """What a table alone, as it is printed, has its study say."""
    if name == "klusacek":
        return of_klusacek(printed_tables.klusacek(text), PAPER_LOGS)
    if name == "tang":
        run = SimpleNamespace(anew="each log in one piece" not in text)
        return of_tang(run, printed_tables.tang(text))
    return xu_schedules.sentences(printed_tables.xu_schedules(text))


FOLLOWING = ("klusacek", "tang", "xu-schedules")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """What studies say of small generated logs: their tables and their notes, by name."""
    directory = tmp_path_factory.mktemp("logs")
    names = {log for paper in (*FOLLOWING, "rocchetti") for log in STUDIES[paper].logs}
    stretched_logs(
        directory, names, jobs=400, times=20, first_seed=5,
        # A month before 2005, or 2004.
        begins=lambda name: 1101945600 if name.startswith("HPC2N") else 1070323200,
    )  # fmt: skip
    found = {}
    with ThreadPoolExecutor(1) as executor:
        for paper in (*FOLLOWING, "rocchetti"):
            study = STUDIES[paper]
            played = list(play_all(study, study.runs([directory], 150), executor))
            found[paper] = (study.tables(played), study.notes(played))
    return found


@pytest.mark.parametrize("name", FOLLOWING)
def test_no_sentence_contradicts_the_table_above_it(name, reports):
    tables, notes = reports[name]
    assert notes.endswith(from_table(name, tables))
    assert re.search(r"\d+ of \d+", notes)


@pytest.mark.parametrize("name", FOLLOWING)
def test_sentences_of_another_log_are_others(name, reports):
    kept = RESULTS / f"{name}.txt"
    assert reports[name][1] not in kept.read_text("utf-8")


@pytest.mark.parametrize(
    "kept", ["klusacek", "tang", "tang-without-threshold", "tang-in-one-piece", "xu-schedules"]
)
def test_kept_sentences_follow_from_the_kept_table(kept):
    text = (RESULTS / f"{kept}.txt").read_text("utf-8")
    name = kept if kept in FOLLOWING else "tang"
    assert text.endswith(from_table(name, text))


FINDING = re.compile(r"^requests: (.+?) +(\d+) of (\d+) +(\S+) +(\S+) to (\S+) +\S+$", re.MULTILINE)


def sections(text):
    """The table of findings of each log and policy."""
    return re.findall(r"^(\w+, [\w ]+): findings of the paper over (.+?)(?=^\w+, |\Z)", text,
                      re.MULTILINE | re.DOTALL)  # fmt: skip


def stretches_follow(text, notes):
    """Hold every verdict against the line of the table that it speaks of."""
    said = " ".join(notes.split())
    tables = sections(text)
    assert tables
    for heading, table in tables:
        [about] = re.findall(rf"{heading}, by requests: (.+?)\. Makespans", said)
        for finding, held, count, ratio, lower, upper in FINDING.findall(table):
            [verdict] = re.findall(rf"{finding} (\w+) \({held} of {count}, ratio {ratio}\)", about)
            if verdict != "open":
                above = verdict == ("reproduced" if "grows" in finding else "contrary")
                assert float(lower) >= 1 if above else float(upper) <= 1
            else:
                assert int(count) < 5 or "nan" in lower or float(lower) <= 1 <= float(upper)


def test_verdicts_over_stretches_are_those_of_the_table(reports):
    stretches_follow(*reports["rocchetti"])


def test_kept_verdicts_over_stretches_are_those_of_the_kept_table():
    text = (RESULTS / "rocchetti.txt").read_text("utf-8")
    stretches_follow(text.partition("Gaia: missing")[0], text)


def test_what_is_said_of_tuned_knn_follows_from_its_numbers():
    rising = PublishedComparison(
        jobs=9, rounds=1,
        errors={"knn, tuned (genetic)": (50.0, 0.25), "knn, untuned": (60.0, 0.3)},
        within={"knn, tuned (genetic)": 0.5}, windows=[0.5], best_window=0.75, cumulative={},
        running={"knn, tuned (genetic)": [20.0] * 10 + [10.0] * 10 + [30.0] * 79 + [50.0]},
    )  # fmt: skip
    falling = replace(rising, running={"knn, tuned (genetic)": [80.0] * 10 + [60.0] * 89 + [50.0]})
    [part] = parts([Path("own.swf")], None, year=2004)
    said = " ".join(STUDIES["xu"].notes([(part, rising), (part, falling)]).split())
    assert "own.swf, 2004: tuned knn errs by 50 s at 25.0%" in said
    assert "Its error rises from the first tenth to the whole log (20 and 50 s)" in said
    assert "does not rise from the first tenth to the whole log (80 and 50 s)" in said
    assert "is least after 20% of the jobs" in said
