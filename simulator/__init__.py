"""Simulates schedulers with predictions: traces, replay, machines, policies and measures."""
