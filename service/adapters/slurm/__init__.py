"""Slurm's records: jobcomp documents, and what sacct prints."""
