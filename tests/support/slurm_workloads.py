"""Rules and jobs of clusters on which the twin of Slurm is tried."""

from hypothesis import strategies as st

from simulator.scheduling.slurm_rules import SlurmRules

NODES = 37

JOBS = st.lists(
    st.tuples(
        st.integers(0, 4000),
        st.integers(1, NODES),
        st.integers(1, 2400),
        st.integers(1, 40).map(lambda minutes: 60 * minutes),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=40,
).map(sorted)
"""Jobs are (submission, nodes, run time, limit, user)."""


def rules(**given):
    """Return rules under which cycles begin at 30, 60, 90, … while jobs wait."""
    return SlurmRules(**{"epilog": 0, "cycle_time": 0.0, **given})
