"""Tang et al. 2013: adjusted requests."""
