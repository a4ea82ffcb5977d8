"""Xu et al. 2019: tuned knn, and schedules with its predictions."""
