"""A twin of Slurm's schedulers: when and on which nodes slurmctld starts jobs, as machine code.

The rules are those of Slurm 26.05; docs/twins.md lists each with its place in Slurm's source.
"""
