"""Rocchetti et al. 2017: priorities by the accuracy of requests."""
