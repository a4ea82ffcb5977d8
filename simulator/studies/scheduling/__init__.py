"""Effect of predictions on a schedule, by method, policy and profile."""
