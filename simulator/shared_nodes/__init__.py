"""Non-dedicated clusters: nodes shared by parallel jobs and by the work of local users."""
