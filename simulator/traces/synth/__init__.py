"""Synthetic traces from published models, for load, demonstration and tests."""

from simulator.traces.synth.generator import SyntheticLog, synthesise

__all__ = ["SyntheticLog", "synthesise"]
