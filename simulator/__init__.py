"""What a scheduler would do with predictions: traces, replay, machines, policies, measures."""
