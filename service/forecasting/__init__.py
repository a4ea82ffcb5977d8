"""Forecasts of a queue: what is taken and answered, and the process that plays it forward."""
