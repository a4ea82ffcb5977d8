"""How many examples property tests try: a quarter of all, or all with ``pytest --long``.

A quick run tries the same examples each time, so that it says something about the change that it
is run for. A long run seeks new ones.
"""

from typing import Any

from hypothesis import settings

QUICK, LONG = "quick", "long"

settings.register_profile(QUICK, deadline=None, max_examples=40, derandomize=True)
settings.register_profile(LONG, deadline=None, max_examples=100)

FEWEST = 20
"""Examples that a quick test tries at least."""


def examples(count: int, **options: Any) -> settings:
    """Settings of a test that tries ``count`` examples, or a quarter of them in a quick run."""
    is_long = settings.get_current_profile_name() == LONG
    tried = count if is_long else min(count, max(FEWEST, count // 4))
    return settings(max_examples=tried, **options)
