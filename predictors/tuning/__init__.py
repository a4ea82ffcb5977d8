"""Rounds of tuning: the trees of forest, and parameters of knn that fit a cluster's history."""
