"""Predictors of runtimes: pure, without clock, files, SQL, HTTP or globals."""
