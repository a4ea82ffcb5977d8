"""A twin of OpenPBS's scheduler: when and on which nodes pbs_sched starts jobs, as machine code.

The rules are those of OpenPBS 23.06; docs/twins.md lists each with its place in its source.
"""
