"""Workload logs: reading, cleaning, shaking, writing, making them up."""
