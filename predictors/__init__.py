"""What we know about runtimes: pure predictors without clock, files, SQL, HTTP or globals."""
