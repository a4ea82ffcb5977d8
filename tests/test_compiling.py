"""What is compiled before all tests, and what a test may compile."""

from compiling import Compilations, sources
from numba import njit
from numba.core import event as numba_event


def twice(number):
    return 2 * number


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


def test_what_compiled_modules_import_is_part_of_them_and_nothing_else():
    names = {path.name for path in sources()}
    assert {"pbs_loop.py", "slurm_loop.py", "kernel.py", "jobs.py"} <= names
    assert "registry.py" not in names
