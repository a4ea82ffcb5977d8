"""What is compiled before all tests, and what a test may compile."""

from compiling import Compilations, sources
from numba import njit
from numba.core import event as numba_event


def twice(number):
    return 2 * number


_OF_TWICE = {"dispatcher": njit(twice)}


def test_the_seconds_and_names_of_what_is_compiled_are_counted_once():
    compilations = Compilations()
    try:
        assert njit(twice)(2) == 4
    finally:
        numba_event.unregister("numba:compile", compilations)
    seconds, names = compilations.take()
    assert seconds > 0
    assert names == [f"{__name__}.twice"]
    assert compilations.take() == (0.0, [])


def test_a_compilation_that_outlasts_its_test_counts_once_it_has_ended():
    compilations = Compilations()
    try:
        begun = numba_event.Event("numba:compile", numba_event.EventStatus.START, _OF_TWICE)
        compilations.on_start(begun)
        assert compilations.take() == (0.0, [f"{__name__}.twice"])
        compilations.on_end(begun)
        assert 0 <= compilations.take()[0] < 1
        assert njit(twice)(2) == 4
    finally:
        numba_event.unregister("numba:compile", compilations)
    assert compilations.take()[0] < 60


def test_what_compiled_modules_import_is_part_of_them_and_nothing_else():
    names = {path.name for path in sources()}
    assert {"pbs_loop.py", "slurm_loop.py", "kernel.py", "jobs.py"} <= names
    assert "registry.py" not in names
