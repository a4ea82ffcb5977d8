"""What predictions do to a schedule, by method, policy and profile."""
