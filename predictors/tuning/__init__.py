"""Rounds of tuning: parameters, weights, a price and a method that fit a cluster's own history."""
