"""A resource manager's host: its facts, the files that connect it, slurm.conf and pbs.conf."""
