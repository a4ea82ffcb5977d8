"""One simulation: rules, workload, estimates in; schedule, measures, forecasts out."""
