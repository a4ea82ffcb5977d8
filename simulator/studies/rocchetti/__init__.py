"""Rocchetti et al. 2017."""
