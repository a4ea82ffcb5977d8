"""Backtest of a site's own log: a verdict on predictions, and one page of reasons."""
