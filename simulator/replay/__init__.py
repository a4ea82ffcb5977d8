"""Plays a log to predictors, here or behind a running service, and keeps their answers."""
