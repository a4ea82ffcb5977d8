"""The documentation names everything that there is, and its examples are true."""

import ast
import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import typer
from asgi_client import InProcess

from predictors.base import DEFAULT_METHOD
from service.cli import app as command_line
from service.cli.config import settings_in_force
from service.errors import RequestError, ServiceError, UnavailableError
from service.metrics import Metrics
from service.settings import Settings
from simulator.engine.policies import POLICIES
from terminal.console import ExitCode

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
SIMULATOR = (ROOT / "docs" / "simulator.md").read_text()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def commands() -> list[str]:
    """Every command with its group, such as ``token issue``."""
    found = []
    for command in typer.main.get_command(command_line).commands.values():
        inner = getattr(command, "commands", {})
        found += [f"{command.name} {name}" for name in inner] or [command.name]
    return found


def rows(text: str) -> set[str]:
    """What stands in code type in the first cell of the tables' rows."""
    return set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))


@pytest.mark.parametrize("command", commands())
def test_every_command_has_a_row(command):
    assert any(re.match(rf"walltimed {command}\b", row) for row in rows(COMMANDS)), (
        f"docs/commands.md has no row for `walltimed {command}`"
    )


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as end:
        command_line([*command.split(), "--help"])
    assert end.value.code == 0
    assert f"walltimed {command}" in capsys.readouterr().out.split("For example:")[1]


def test_every_exit_code_is_documented():
    assert {str(code.value) for code in ExitCode} <= set(
        re.findall(r"^\| (\d+) \|", COMMANDS, re.MULTILINE)
    )


@pytest.mark.parametrize("setting", [*settings_in_force(Settings())], ids=lambda each: each.name)
def test_every_setting_is_documented_with_its_default(setting):
    default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
    row = f"| `{setting.name}` | {default} | {setting.description} |"
    assert row in SETTINGS, f"docs/settings.md needs the row: {row}"


def test_every_metric_says_what_it_means():
    for metric in Metrics().registry.collect():
        assert re.fullmatch(r"[A-Z01].*\.", metric.documentation), metric.name


def kinds_of(error):
    """The classes of errors below a class."""
    return [kind for below in error.__subclasses__() for kind in (below, *kinds_of(below))]


ERRORS = sorted({*kinds_of(ServiceError)} - {RequestError, UnavailableError}, key=str)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_documented_with_its_status(error):
    row = f"| {error.status.value} | `{error.__name__}` |"
    assert row in API, f"docs/api.md needs a row that begins: {row}"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_documented(policy):
    assert f"\n**{policy}**" in SIMULATOR, f"docs/simulator.md needs a paragraph: **{policy}**: …"


@pytest.fixture
def service(sqlite_url):
    """A service as it is shipped, on an empty store."""
    with InProcess(sqlite_url, method=DEFAULT_METHOD) as service:
        yield service


def test_every_call_is_documented(service):
    documented = set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`]+)`", API))
    served = {
        f"{verb.upper()} {path}"
        for path, verbs in service.get("/openapi.json").json()["paths"].items()
        for verb in verbs
    }
    assert served | {"GET /openapi.json"} == documented


EXAMPLE = re.compile(r"^```console\n\$ curl -s (.*)\n((?:(?!```).*\n)+)```$", re.MULTILINE)


def test_the_examples_are_true(service):
    text = API
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("$ curl -s ") > 0
    for command, documented in examples:
        service.wait_until(lambda: service.worker.follower.lag() == 0)
        wanted = json.loads(documented)
        assert masked(shortened(call(service, command), wanted)) == masked(wanted), command


def call(service: InProcess, command: str) -> object:
    """What the service answers to the arguments of curl."""
    words = shlex.split(command.replace("$'", "'"))
    method = "POST"
    if words[0] == "-X":
        method, words = words[1], words[2:]
    path = words[0].removeprefix("localhost:8580")
    if len(words) == 1 and method == "DELETE":
        return service.request(method, path).json()
    if len(words) == 1:
        return service.get(path).json()
    if "--json" in words:
        return service.send(path, words[-1], method=method).json()
    kind = words[words.index("-H") + 1].removeprefix("Content-Type: ")
    return service.send(path, words[-1].replace("\\n", "\n"), kind).json()


def shortened(answer: object, example: object) -> object:
    """Without methods and groups that the example leaves out."""
    for items, name in (("methods", "name"), ("groups", "group")):
        if isinstance(answer, dict) and isinstance(example, dict) and items in example:
            named = {each[name] for each in example[items]}
            answer = answer | {items: [each for each in answer[items] if each[name] in named]}
    return answer


def masked(answer: object) -> str:
    """Without what differs from run to run."""
    text = re.sub(r'"(prediction_id|history)": "[^"]*"', r'"\1": "…"', json.dumps(answer))
    text = re.sub(r'"now": (?!1700010000)[\d.]+', '"now": …', text)
    text = re.sub(r'"recorded_at": [0-9.]+', '"recorded_at": 0', text)
    # Processors differ in the last digits of what the network weighs.
    return re.sub(r"\d+\.\d{4,}", lambda long: f"{float(long[0]):.3f}", text)


PACKAGES = ("predictors", "terminal", "simulator", "service", "walltimed", "migrations")
NAMED = re.compile(r"[\w./-]*\w\.py\b")
INSTALLED = "/usr/share/walltimed/"
FILES = {path.name for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts}


def missing_files(text: str) -> list[str]:
    """Python files that a text names and that do not exist."""
    names = {name.replace(INSTALLED, "integrations/") for name in NAMED.findall(text)}
    return sorted(n for n in names if not ((ROOT / n).exists() if "/" in n else n in FILES))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_file_that_a_page_names_exists(page):
    if page.name != "CHANGELOG.md":  # it tells of files that have gone
        assert missing_files(page.read_text("utf-8")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_python_file_that_a_docstring_names_exists(package):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for module in (ROOT / package).rglob("*.py"):
        nodes = ast.walk(ast.parse(module.read_text("utf-8")))
        texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
        assert missing_files("\n".join(texts)) == [], module


@pytest.mark.parametrize("package", ["predictors", "terminal", "simulator", "service", "walltimed"])
def test_no_two_modules_of_a_package_share_a_name(package):
    files = (ROOT / package).rglob("*.py")
    # The module of a command is called like the command.
    names = Counter(file.name for file in files if file.parent.name != "cli")
    shared = {name for name, times in names.items() if times > 1}
    assert shared <= {"__init__.py"}


def test_the_rooms_of_the_house_are_told_as_they_describe_themselves():
    concepts = (ROOT / "docs" / "concepts.md").read_text("utf-8")
    rooms = dict(re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", concepts, re.MULTILINE))
    packages = [
        path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")
    ]
    described = {
        str(room.relative_to(ROOT)): ast.get_docstring(
            ast.parse((room / "__init__.py").read_text("utf-8"))
        )
        .split("\n")[0]
        .rstrip(".")
        for room in packages
    }
    assert rooms == described
