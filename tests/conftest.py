"""The databases that tests run on, how long tests may try, and how they start processes."""

import atexit
import logging
import os
import shutil
import signal
import tempfile
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import pytest
import structlog
from compiling import MOST_SECONDS, Compilations, compile_once
from embedded_postgres import EmbeddedPostgres, PostgresMissingError
from examples import LONG, QUICK
from hypothesis import settings
from sqlalchemy import NullPool, create_engine, make_url
from warm_starts import OwnTemplate, Warm

from service.store import open_store
from service.store.tables import metadata

# What a shell starts in the background ignores ctrl-C, and so would every service of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test reads the settings, or opens the history, of a service of this machine.
os.environ["WALLTIMED_CONFIG"] = ""
os.environ["STATE_DIRECTORY"] = tempfile.mkdtemp(prefix="walltimed-state-")
atexit.register(shutil.rmtree, os.environ["STATE_DIRECTORY"], ignore_errors=True)

WARM = pytest.StashKey[Warm]()
COMPILATIONS = pytest.StashKey[Compilations]()


def pytest_addoption(parser):
    parser.addoption(
        "--long",
        action="store_true",
        help="all examples of property tests, attacks as hard as the audit's, and a new "
        "interpreter for each process",
    )
    parser.addoption(
        "--no-warm-up",
        action="store_true",
        help="compile nothing before the first test, but in a test what it needs",
    )
    parser.addoption(
        "--release", type=Path, metavar="DIR", help="attack another checkout, which has its .venv"
    )


def pytest_configure(config):
    settings.load_profile(LONG if config.getoption("--long") else QUICK)
    if not config.getoption("--long"):
        template = OwnTemplate()
        config.stash[WARM] = warm = Warm(template)
        warm.install()
        config.add_cleanup(template.close)


def pytest_sessionstart(session):
    config = session.config
    left_out = config.getoption("--no-warm-up") or config.getoption("--collect-only")
    if not (left_out or hasattr(config, "workerinput")):
        compile_once()
    config.stash[COMPILATIONS] = Compilations()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that compiles much: ``walltimed warm-up`` has to do that before all tests."""
    try:
        return (yield)
    finally:
        seconds, names = item.config.stash[COMPILATIONS].take()
        is_much = seconds > MOST_SECONDS and not item.config.getoption("--no-warm-up")
        assert not is_much, f"walltimed warm-up does not compile {', '.join(names)}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """The longest files begin first, so that no test process ends alone with one of them."""
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="runs with --long: make test-long"))
    items.sort(key=seconds_of_file, reverse=True)


def seconds_of_file(item) -> float:
    """What a file says that it takes; what takes little says nothing."""
    lengthy = item.get_closest_marker("lengthy")
    return lengthy.args[0] if lengthy else 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    warm = item.config.stash.get(WARM, None)
    is_cold = item.get_closest_marker("cold") is not None
    with warm.off() if warm and is_cold else nullcontext():
        return (yield)


@pytest.fixture(autouse=True)
def own_logging():
    """Whatever is configured of logging ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this test process alone."""
    try:
        server = EmbeddedPostgres()
    except PostgresMissingError as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield server
    server.close()


def _upgraded(url: str) -> str:
    store = open_store(url)
    store.upgrade()
    store.close()
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("template") / "walltimed.sqlite3"
    _upgraded(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def lasting_url(tmp_path_factory, sqlite_template):
    """``lasting_url()``: another SQLite store with its schema, which tests may share."""

    def url() -> str:
        file = tmp_path_factory.mktemp("lasting") / "walltimed.sqlite3"
        return f"sqlite:///{shutil.copy(sqlite_template, file)}"

    return url


@pytest.fixture(scope="session")
def upgraded_postgres_url(postgres) -> str:
    return _upgraded(postgres.create_database())


@pytest.fixture
def sqlite_url(tmp_path, sqlite_template) -> str:
    """A fresh SQLite store with its schema."""
    file = shutil.copy(sqlite_template, tmp_path / "walltimed.sqlite3")
    return f"sqlite:///{file}"


@pytest.fixture
def postgres_url(upgraded_postgres_url) -> str:
    """A PostgreSQL store with its schema and nothing in it."""
    # A new database for every test would be cleaner, and cost each of them a second. Emptying a
    # table that is empty costs as much as any other.
    tables = [table.name for table in metadata.sorted_tables]
    asked = " UNION ALL ".join(f"SELECT '{name}', EXISTS (SELECT FROM {name})" for name in tables)
    engine = create_engine(upgraded_postgres_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL lock_timeout = '20s'")
        if used := [name for name, is_used in connection.exec_driver_sql(asked) if is_used]:
            connection.exec_driver_sql(f"TRUNCATE {', '.join(used)} CASCADE")
    return upgraded_postgres_url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request) -> str:
    """A fresh store with its schema, on either database."""
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture
def empty_postgres_url(postgres):
    """A PostgreSQL database without any schema."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_store_url(request, tmp_path) -> str:
    """A database without any schema, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.sqlite3'}"
    return request.getfixturevalue("empty_postgres_url")


@pytest.fixture
def store(store_url, opening):
    """An open store on either database."""
    return opening(store_url)


@pytest.fixture
def reader(store):
    """A reader of the log of that store."""
    with closing(store.reader()) as reader:
        yield reader


@pytest.fixture
def sqlite_store(sqlite_url, opening):
    return opening(sqlite_url)


@pytest.fixture
def sqlite_file(sqlite_url) -> Path:
    return Path(make_url(sqlite_url).database)


@pytest.fixture
def opening():
    """Open stores, which are closed at the end of the test; the last fixture of a test."""
    with ExitStack() as stack:

        def opened(url, **options):
            return stack.enter_context(closing(open_store(url, **options)))

        yield opened
