"""Finds parameters of knn on a cluster's own history (Xu et al. 2019, section 2.3)."""
