"""The migrations build what the code expects, from nothing and with rows, and can be taken back."""

import json
import threading
from base64 import b32encode
from importlib.metadata import version

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import to_builtins
from msgspec.structs import replace
from runs import a_run, predicted, reported
from sqlalchemy import NullPool, create_engine, inspect

from migrations import NEWEST
from predictors.facts import Facts
from predictors.tuning.adoption import RoundChange
from predictors.tuning.plan import TuningPlan
from service.store import (
    ForeignDatabaseError,
    NewerSchemaError,
    RoundOutcome,
    SchemaOutdatedError,
    StoreUnavailableError,
    open_store,
)
from service.store.schema import alembic_config
from service.store.tables import metadata


@pytest.fixture
def store(empty_store_url, opening):
    return opening(empty_store_url)


@pytest.fixture
def engine(empty_store_url):
    return create_engine(empty_store_url, poolclass=NullPool)


def downgrade(engine) -> None:
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "base")


def is_for(engine):
    """Leaves out indexes that only the other database has; Alembic does not know of those."""

    def include(item, _name, kind, *_) -> bool:
        return kind != "index" or not item._ddl_if or item._ddl_if.dialect == engine.name

    return include


def test_the_migrations_build_the_tables_of_the_code(store, engine):
    store.upgrade()
    with engine.connect() as connection:
        options = {"compare_type": True, "include_object": is_for(engine)}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_constraints_and_indexes_have_the_names_of_the_code(store, engine):
    store.upgrade()
    for table in metadata.sorted_tables:
        built = inspect(engine)
        expected = {i.name for i in table.indexes if is_for(engine)(i, i.name, "index")}
        # PostgreSQL lists the index behind a unique constraint too.
        assert expected <= {index["name"] for index in built.get_indexes(table.name)}
        # SQLite writes a key that counts on by itself into its column, without a name.
        if not (engine.name == "sqlite" and table.dialect_options["sqlite"]["autoincrement"]):
            assert built.get_pk_constraint(table.name)["name"] == table.primary_key.name
        assert {unique["name"] for unique in built.get_unique_constraints(table.name)} == {
            constraint.name
            for constraint in table.constraints
            if constraint.__visit_name__ == "unique_constraint"
        }


def test_a_database_before_its_upgrade_is_not_used(store):
    with pytest.raises((SchemaOutdatedError, StoreUnavailableError), match="walltimed db upgrade"):
        store.check()
    store.upgrade()
    store.check()


def test_a_newer_schema_names_the_release_that_wrote_it_and_is_left_alone(store, engine):
    store.upgrade()
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'from_the_future'")
        connection.exec_driver_sql("INSERT INTO releases VALUES ('from_the_future', '9.8.7', 0)")
    for attempt in (store.check, store.upgrade):
        with pytest.raises(NewerSchemaError, match=r"from_the_future by walltimed 9\.8\.7.*run"):
            attempt()


def test_a_newer_schema_is_told_also_where_its_release_was_not_written_down(store, engine):
    store.upgrade()
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'ffff00000000'")
        connection.exec_driver_sql("DROP TABLE releases")
    with pytest.raises(NewerSchemaError, match="by a newer walltimed"):
        store.check()


def test_the_newest_revision_is_the_one_that_no_other_follows():
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == NEWEST


def test_every_upgrade_writes_down_its_release(store, engine):
    assert store.upgrade()
    assert not store.upgrade()
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT revision, release FROM releases").all()
    assert rows == [(NEWEST, version("walltimed"))]


def test_another_program_s_tables_are_named_and_left_alone(store, engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE completions (recipe TEXT)")
    for attempt in (store.check, store.upgrade):
        with pytest.raises(ForeignDatabaseError, match=r"another program.*completions"):
            attempt()
    assert inspect(engine).get_table_names() == ["completions"]


def test_of_many_tables_of_another_program_five_are_named(tmp_path, opening):
    url = f"sqlite:///{tmp_path / 'other.sqlite3'}"
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for name in "fedcba":
            connection.exec_driver_sql(f"CREATE TABLE {name} (recipe TEXT)")
    store = opening(url)
    with pytest.raises(ForeignDatabaseError, match=r"its tables are a, b, c, d, e\)"):
        store.upgrade()


def test_a_postgresql_database_may_be_shared_with_other_programs(empty_postgres_url, opening):
    with create_engine(empty_postgres_url, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE recipes (recipe TEXT)")
    store = opening(empty_postgres_url)
    assert store.upgrade()
    store.check()


def test_an_upgrade_of_what_is_up_to_date_changes_nothing(store):
    store.upgrade()
    store.write([reported(a_run("1"))])
    store.upgrade()
    assert store.past_runs.count() == 1


def test_the_migrations_can_be_taken_back_with_rows_and_applied_again(store, engine):
    store.upgrade()
    store.write([reported(a_run("1"))], [predicted("p", a_run("2"))])
    store.tokens.issue("x", ["admin"], now=1.0)
    store.close()
    downgrade(engine)
    assert inspect(engine).get_table_names() == ["alembic_version"]
    if engine.name == "postgresql":
        assert inspect(engine).get_sequence_names() == []
    store.upgrade()
    assert store.write([reported(a_run("1"))])[0].accepted == 1


def test_rounds_of_tuning_keep_what_they_found_when_their_requests_go(store, engine):
    store.upgrade()
    store.write([reported(*(a_run(str(n), start=100.0 * n) for n in range(250)))])
    plan = TuningPlan(history=50, training=100, test=100)
    change = RoundChange(subject="price", action="kept", before=1.0, after=3.0)
    outcome = RoundOutcome(knn=None, changes=[change])
    tuning = store.tunings.begin("default", plan, "history", 5.0)
    store.tunings.finish(tuning, outcome, (), 6.0)
    done = store.tunings.find(tuning.tuning_id)
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "2026_11_24_medians")
    with engine.begin() as connection:
        row = connection.exec_driver_sql("SELECT asked_at, started_at, outcome FROM tunings").one()
        assert row[:2] == (5.0, 5.0)
        assert json.loads(row.outcome).keys() == {"changes"}
        connection.exec_driver_sql(
            "INSERT INTO tunings (tuning_id, cluster, state, origin, plan, horizon, asked_at) "
            "VALUES ('waits', 'default', 'waiting', 'request', '{}', 1, 7.0)"
        )
    store.upgrade()
    assert store.tunings.of_cluster("default") == [done]


def test_several_processes_may_upgrade_at_once(empty_store_url, store):
    failures = []

    def upgrade() -> None:
        mine = open_store(empty_store_url)
        try:
            mine.upgrade()
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails the test
            failures.append(error)
        finally:
            mine.close()

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store.check()


FULL = Facts(
    work_dir="~0000beef~",
    script_hash="~ffffffff~",
    submit_line="~00000000~",
    qos="~00000001~",
    nodes=2,
    gpus=0,
    gpu_type="~00000002~",
    array_size=16,
    constraint="~00000003~",
    dependency="~00000004~",
    submit_host="~00000005~",
    interactive=False,
    features={"rule": "~00000006~", "größe": 3.5, "input_bytes": 7.0, "x": -5e10},
)


@pytest.mark.parametrize("facts", [None, FULL, Facts(qos="~0000beef~"), Facts(interactive=True)])
def test_facts_are_those_of_before_when_they_are_packed_again(store, engine, facts):
    store.upgrade()
    run = a_run("1")
    run = replace(run, submission=replace(run.submission, facts=facts))
    store.write([reported(run)], [predicted("p", run)])
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "2026_11_28_extensions")
    with engine.begin() as connection:
        (row,) = connection.exec_driver_sql("SELECT facts FROM completions").scalars()
        assert row is None if facts is None else json.loads(row) == to_builtins(facts)
    store.upgrade()
    (found,) = store.past_runs.exported(None, 0.0, 1e11)
    assert found.submission.facts == facts


def test_of_hashes_of_50_bits_the_first_32_stay(store, engine):
    store.upgrade()
    number = 0x0123ABCD
    run = a_run("1")
    store.write([reported(run)])
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "2026_11_28_extensions")
    text = "~" + b32encode((number << 8).to_bytes(5, "big")).decode().lower() + "zz"
    old = [text, *[None] * 11, {"rule": text, "size": 1.5}]
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE completions SET facts = '{json.dumps(old)}'")
    store.upgrade()
    (found,) = store.past_runs.exported(None, 0.0, 1e11)
    expected = f"~{number:08x}~"
    features = {"rule": expected, "size": 1.5}
    assert found.submission.facts == Facts(work_dir=expected, features=features)
