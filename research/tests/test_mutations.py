"""The mutation run puts in mistakes that a test can notice, and none that changes nothing."""

import ast

import pytest
from areas import AREAS, files, nearest
from equivalents import reason
from mutations import Mutant, chosen
from run import ROOT

PYTHON = '''"""A module."""

LIMIT: int = 3


def first(values: list[int] | None, *, gc: bool = LIMIT) -> int:
    """The first value that is large."""
    for value in values or []:
        if value >= LIMIT and value != 7:
            return value
    print("none")
    return -1
'''
LUA = """-- a + b
local function first(values)
  if values and #values > 0 then return values[1] + 1 end
  log_error("none, or 1 and not 2", #values)
  both(first(values),
    first(values))
end
"""


@pytest.fixture
def drawn(tmp_path):
    (tmp_path / "module.py").write_text(PYTHON)
    (tmp_path / "module.lua").write_text(LUA)
    return lambda name, seed: chosen(tmp_path, [name], 20, seed)


def test_every_line_that_does_something_is_changed_once(drawn):
    mutants = drawn("module.py", 1)
    assert sorted(mutant.line for mutant in mutants) == [3, 8, 9, 11, 12]
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(PYTHON))
        assert mutant.before != mutant.after


def test_the_last_of_one_entry_is_not_drawn_in_the_place_of_the_first(tmp_path):
    (tmp_path / "single.py").write_text(
        'def now(state):\n    return state.clock[0], state.clock["now"][0], state.jobs[0]\n'
    )
    texts = {
        mutant.after for seed in range(40) for mutant in chosen(tmp_path, ["single.py"], 1, seed)
    }
    assert any("jobs[ -1]" in text for text in texts)
    assert any("clock[ 1]" in text for text in texts)
    assert not any("clock[ -1]" in text or '"now"][ -1]' in text for text in texts)


def test_whether_an_argument_has_to_be_named_is_no_mistake(tmp_path):
    (tmp_path / "named.py").write_text("def of(one, *, other=7):\n    return one * other\n")
    texts = {m.after for seed in range(20) for m in chosen(tmp_path, ["named.py"], 2, seed)}
    assert "return one / other" in texts
    assert any("other= 8" in text for text in texts)
    assert not any("/," in text for text in texts)


def test_a_seed_draws_the_same_mutants_and_another_one_others(drawn):
    assert drawn("module.py", 1) == drawn("module.py", 1)
    assert any(drawn("module.py", 1) != drawn("module.py", seed) for seed in range(2, 6))


def test_lua_is_changed_outside_its_comments(drawn):
    mutants = drawn("module.lua", 1)
    assert sorted(mutant.line for mutant in mutants) == [3, 4]
    assert all(mutant.source.startswith("-- a + b\n") for mutant in mutants)
    (deleted,) = [mutant.after for mutant in mutants if mutant.line == 4]
    assert deleted == "-- nothing", "its text stays, and half a statement too"


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_areas_have_files_and_tests(area):
    paths = files(ROOT, area)
    assert paths
    assert any(nearest(ROOT, area, path) for path in paths)
    assert all((ROOT / place).exists() for place in area.tests)


def _mutant(before, after, path="service/store/log.py"):
    return Mutant(path, 1, before, after, "")


@pytest.mark.parametrize(
    "mutant",
    [
        _mutant("AT_ONCE = 2000", "AT_ONCE = 2001"),
        _mutant("self._place = (first, -1)", "self._place = (first, - 2)"),
        _mutant("return of(after=last or 0, most=9)", "return of(after=last or -1, most=9)"),
        _mutant("os.fsync(descriptor)", "pass"),
        _mutant("@lru_cache(maxsize=1024)", "@lru_cache(maxsize= 1025)"),
    ],
    ids=lambda mutant: mutant.before,
)
def test_a_rule_covers_a_mistake_that_changes_no_answer(mutant):
    assert reason(mutant)


@pytest.mark.parametrize(
    "mutant",
    [
        _mutant("LIMIT_AT_ALL = 2000", "LIMIT_AT_ALL = 2001"),
        _mutant("AT_ONCE = 2000 + extra", "AT_ONCE = 2000 - extra"),
        _mutant("return of(after=last or 0, most=9)", "return of(after=last or 0, most=10)"),
        _mutant("os.fsync(descriptor)", "os.fsync(None)"),
        _mutant("break", "continue", "simulator/engine/loop.py"),
    ],
    ids=lambda mutant: mutant.before,
)
def test_no_rule_covers_another_mistake_in_such_a_line(mutant):
    assert reason(mutant) is None
