"""What pages quote, count and tell people to type is what the code says, measured and takes."""

import re
import shlex
from pathlib import Path
from statistics import median

import pytest
import typer

from predictors.accuracy_groups import aged_priority
from service.cli import app as command_line
from simulator.scheduling.pbs_formula import compiled_formula

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
SOURCES = ("service/**/*.py", "predictors/**/*.py", "integrations/**/*.py", "integrations/**/*.lua")


def named(page: Path) -> str:
    """How a test names a page."""
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[Path]:
    """The files that a page links to."""
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8"))
    return [(page.parent / target).resolve() for target in targets]


def test_the_index_leads_to_every_page_once():
    listed = [page for page in links(DOCS / "index.md") if page.is_relative_to(DOCS)]
    assert len(listed) == len(set(listed))
    assert set(DOCS.glob("*.md")) - {DOCS / "index.md"} <= set(listed)


def test_every_page_can_be_reached_from_the_index():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [target for target in links(page) if target.suffix == ".md"]
    assert set(DOCS.rglob("*.md")) <= reached


def test_the_first_page_has_700_words():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


def test_the_first_figure_is_that_of_the_default_method_on_unseen_logs():
    kept = (ROOT / "results" / "auto.txt").read_text("utf-8")
    table = kept[kept.index("longer than predicted") :].split("\n\n", 1)[0]
    rows = [line.split() for line in table.splitlines()[2:]]
    assert len(rows) == 5
    for *_, requested, predicted, ratio, _ in rows:
        of_requests = int(predicted.replace(",", "")) / int(requested.replace(",", ""))
        assert float(ratio) == pytest.approx(of_requests, abs=0.006)
    ratio = median(float(row[4]) for row in rows)
    rate = median(float(row[5].rstrip("%")) for row in rows)
    assert (round(10 * ratio), round(100 / rate)) == (3, 7)
    page = (ROOT / "README.md").read_text("utf-8")
    assert "five public logs that it had never seen" in page
    assert "three tenths of what requests missed them by" in page
    assert "one job in seven ran longer" in page


def test_the_kept_verdicts_are_those_that_backtest_printed():
    page = (ROOT / "results" / "backtest" / "README.md").read_text("utf-8")
    cell = r"\| (\S+ \w+) \((.+?)%\) "
    row = re.compile(
        r"^\| \S.+? \| \w+ \| (.+?) \| (.+?) " + cell + cell + r"\|.*\[text\]\((.+?\.txt)\) \|$",
        re.MULTILINE,
    )
    rows = row.findall(page.replace("\N{MINUS SIGN}", "-"))
    assert len(rows) == len([*(ROOT / "results" / "backtest").glob("*.txt")])
    for verdict, today, by_request, request_change, predicted, change, file in rows:
        printed = (
            (ROOT / "results" / "backtest" / file).read_text("utf-8").replace("\N{MINUS SIGN}", "-")
        )
        assert "--limit 10000 " in printed.splitlines()[0], "the table is of the first 10,000 jobs"
        assert printed.splitlines()[1].lower().startswith(verdict)
        assert re.search(rf"^requested +{today} ", printed, re.MULTILINE), file
        for method, wait, by in (
            ("by-request", by_request, request_change),
            (r"auto \*", predicted, change),
        ):
            span = re.escape(by.replace(" to ", ".."))
            assert re.search(rf"^{method} +{wait} +{span}% ", printed, re.MULTILINE), file
    turned_on = [row for row in rows if row[0] == "turn it on"]
    assert not turned_on
    assert "Of seven public logs it does for none" in (ROOT / "README.md").read_text("utf-8")


def test_the_page_about_twins_shows_what_independent_weeks_found():
    page = (DOCS / "twins.md").read_text("utf-8").replace("\N{MINUS SIGN}", "-")
    kept = (ROOT / "results" / "order-weeks.txt").read_text("utf-8")
    row = r"^ratio {} +submission +(\S+%) \(.*?\) +(\S+%) \(.*?\) .* (\S+) +(\S+)$"
    tables = re.findall(r"^All logs, \d+ parts$.*?\n\n\n", kept, re.MULTILINE | re.DOTALL)[:5]
    assert len(tables) == 5
    for table in tables:
        wait, slowdown, longest, worst = re.search(row.format("mean"), table, re.MULTILINE).groups()
        by_request, slowdown_by_request, *_ = re.search(
            row.format("requests"), table, re.MULTILINE
        ).groups()
        cells = by_request, wait, slowdown_by_request, slowdown, f"{longest}, {worst}"
        assert f"| {' | '.join(cells)} |" in page


def sources() -> str:
    """All source text on one line, with strings that stand behind each other put together."""
    texts = [file.read_text("utf-8") for glob in SOURCES for file in ROOT.glob(glob)]
    return re.sub(r"\"\s*\n\s*f?\"", "", "\n".join(texts))


def test_troubleshooting_quotes_what_the_code_says():
    page = (DOCS / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"`\"([A-Z a-z][^`\"]*[ :…][^`\"]*)\"`", page)
    assert len(quoted) > 10
    said = sources()
    for message in quoted:
        parts = map(re.escape, message.split("…"))
        assert re.search(".{0,60}?".join(parts), said), message


def commands() -> dict[str, set[str]]:
    """The options of every command, by its name, such as ``token issue``."""
    found = {}
    for command in typer.main.get_command(command_line).commands.values():
        inner = getattr(command, "commands", {})
        for name, each in inner.items():
            found[f"{command.name} {name}"] = each
        if not inner:
            found[command.name] = command
    return {
        name: {opt for param in each.params for opt in (*param.opts, *param.secondary_opts)}
        | {"--help"}
        for name, each in found.items()
    }


COMMANDS = commands()
TYPED = re.compile(r"(?:^|[\s$(])walltimed ([a-z][^|;&#`\n]*)")


def typed(text: str) -> list[str]:
    """What pages tell people to type behind ``walltimed``, from code of both kinds."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(
        r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    whole = "\n".join([*blocks, *spans]).replace("\\\n", " ")
    return TYPED.findall(whole)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_options_that_pages_name_exist(page):
    for line in typed(page.read_text("utf-8")):
        words = re.sub(r"[…)\"'=,]", " ", line).split()
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in COMMANDS), None)
        if name is None:
            continue  # a sentence, or the name of a group
        options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
        assert options <= COMMANDS[name], f"walltimed {line}"


def test_commands_that_issue_tokens_name_them():
    for page in [*PAGES, *(ROOT / "service/web/templates").glob("*.html")]:
        for line in re.findall(r"walltimed token issue ([^`|#\n<…]*)", page.read_text("utf-8")):
            words = shlex.split(line.split("--", 1)[0].replace("$(", " ").replace(")", " "))
            assert words or not line.strip(), f"{page}: {line}"


def test_the_formula_for_priorities_by_accuracy_ages_at_least_as_fast_as_the_paper_s():
    page = (ROOT / "docs" / "pbs.md").read_text("utf-8")
    (text,) = re.findall(r'job_sort_formula = "(\(walltimed_priority.+)"\'', page)
    assert compiled_formula(text)

    def priority(group: int, wait: float, walltime: float) -> float:
        names = {"walltimed_priority": group, "eligible_time": wait, "walltime": walltime}
        found: float = eval(text, {"__builtins__": {"max": max}}, names)
        return found

    for group in (1, 30, 49):
        assert priority(group, 0, 3600) == group
        for wait in range(150, 3600, 150):
            assert priority(group, wait, 3600) >= aged_priority(group, wait, 3600)
            assert priority(group, wait, 3600) > priority(group, wait - 150, 3600)
    assert priority(0, 0, 3600) == 30, "a job that the hook did not see"
    assert priority(1, 7200, 3600) > priority(49, 1800, 3600), "a request that was outwaited"
