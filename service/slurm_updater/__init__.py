"""Keeps pending jobs right through scontrol, for sites that forbid calls inside slurmctld."""
