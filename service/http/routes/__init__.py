"""The calls over HTTP: each module adds its own to a router. JSON and statuses, nothing else."""
