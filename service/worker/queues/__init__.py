"""Keeps the live queues current: takes them, forecasts them, scores them, shares them."""
