"""Turnarounds on shared nodes, estimated and true: the study of Hanzich et al. 2005."""
