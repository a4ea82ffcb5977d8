"""Workload logs: reads, cleans, shakes and writes them."""
