"""Tang et al. 2013."""
