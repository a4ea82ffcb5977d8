"""Tables that polars and DuckDB read by Arrow's PyCapsule interface, without a copy of ours."""

import pytest

import walltimed


@pytest.fixture(scope="module")
def played(log):
    return walltimed.replay(log, ["requested", "last-two"], limit=100)


@pytest.fixture(scope="module")
def results(log, played):
    """One of each kind of result."""
    return {
        "log": log,
        "replay": played,
        "summary": played.summary(),
        "simulation": walltimed.simulate(log, limit=50),
        "backtest": walltimed.backtest(log, "last-two", shake=0, limit=50),
    }


def test_polars_reads_every_result_as_pandas_does(results):
    polars = pytest.importorskip("polars")
    for name, result in results.items():
        frame = polars.DataFrame(result)
        expected = result.to_pandas()
        assert frame.columns == list(expected.columns), name
        assert frame.to_dicts() == polars.DataFrame(result.to_arrow()).to_dicts(), name
        for column in frame.select(polars.selectors.numeric()).columns:
            assert frame[column].null_count() == expected[column].isna().sum(), (name, column)
            assert frame[column].sum() == pytest.approx(expected[column].sum()), (name, column)


def test_duckdb_asks_results_by_the_names_of_their_variables(results):
    duckdb = pytest.importorskip("duckdb")
    for name, result in results.items():
        rows = duckdb.sql("SELECT * FROM result")
        assert rows.columns == list(result.to_pandas().columns), name
        assert len(rows.fetchall()) == len(result.to_pandas()), name
    played = results["replay"]
    frame = played.to_pandas()
    errors = (frame.predicted_walltime - frame.runtime).abs().groupby(frame.method).mean()
    asked = duckdb.sql(
        "SELECT method, avg(abs(predicted_walltime - runtime)) FROM played GROUP BY 1 ORDER BY 1"
    )
    assert dict(asked.fetchall()) == pytest.approx(errors.to_dict())
    assert len(played) == 200
