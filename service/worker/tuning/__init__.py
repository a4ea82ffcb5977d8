"""When and where rounds of tuning run; what a round does is in predictors/tuning."""
