"""Learns the weights of attention from workload logs; nothing that serves imports it."""
