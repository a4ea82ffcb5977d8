"""Workload logs: reads, cleans, shakes, writes and synthesises them."""
