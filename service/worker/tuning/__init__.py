"""Start and storage of tuning rounds; the rounds themselves are in predictors/tuning."""
