"""Rounds of tuning: parameters of knn, a price and a method that fit a cluster's history."""
