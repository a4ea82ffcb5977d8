"""The queues of clusters as they are now: jobs, forecasts and how they moved, waits forecast."""
