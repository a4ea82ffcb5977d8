"""The paper's own numbers, from its tables."""

from collections.abc import Mapping, Sequence

PAPER_WAITS: Mapping[str, Sequence[float]] = {
    "Curie": (4569, 3785, 2617, 4609, 3706, 2336),
    "Gaia": (4358, 3716, 2641, 5153, 3354, 2421),
}
"""Minutes, scenarios 1 to 6 (Table 5)."""

PAPER_MAKESPANS: Mapping[str, Sequence[float]] = {
    "Curie": (16.19, 15.33, 17.19, 16.17, 17.04, 17.71),
    "Gaia": (27.82, 27.62, 27.79, 27.85, 28.03, 29.08),
}
"""Days (Table 6)."""

PAPER_GROUPS: Mapping[str, Sequence[float]] = {
    "Curie": (0.14, 0.07, 0.09, 0.10, 0.18, 0.16, 0.11, 0.07, 0.04, 0.04),
    "Gaia": (0.27, 0.08, 0.10, 0.05, 0.15, 0.15, 0.15, 0.00, 0.00, 0.05),
}
"""Shares of users in g1 to g10 (Table 3)."""

CORES: Mapping[str, float] = {
    "2 to 16": 16,
    "17 to 64": 64,
    "65 to 256": 256,
    "257 to 1024": 1024,
    "1025 or more": float("inf"),
}
"""Classes of Table 2, with their upper ends."""

PAPER_CORES: Mapping[str, Sequence[float]] = {
    "Curie": (0.60, 0.07, 0.18, 0.14, 0.01),
    "Gaia": (0.87, 0.11, 0.02, 0.00, 0.00),
}
"""Shares of jobs by the cores they request (Table 2)."""
