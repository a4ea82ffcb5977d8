"""Statements over batches of rows."""

from sqlalchemy import create_engine, event

from service.store.rows import BatchStatement

ADD = BatchStatement(
    {"n": "int8"}, "INSERT INTO numbers (n) {incoming} SELECT n FROM incoming WHERE true"
)


def test_sqlite_prepares_ten_statements_for_batches_of_all_lengths():
    engine = create_engine("sqlite://")
    said = set()

    @event.listens_for(engine, "before_cursor_execute")
    def _(_connection, _cursor, statement, *_rest):
        if statement.startswith("INSERT"):
            said.add(statement.count("?"))

    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE numbers (n INTEGER)")
        for length in (0, 1, 2, 3, 511, 1023, 1300):
            rows = [(n,) for n in range(length)]
            assert ADD.execute(connection, rows) == length
            stored = connection.exec_driver_sql("SELECT n FROM numbers ORDER BY rowid").all()
            assert list(map(tuple, stored)) == rows
            connection.exec_driver_sql("DELETE FROM numbers")
    assert said == {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
    engine.dispose()
