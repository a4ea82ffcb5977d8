"""Synthetic traces from published models: made for load, demonstration and tests."""

from simulator.traces.synth.generator import Workload, synthesise

__all__ = ["Workload", "synthesise"]
