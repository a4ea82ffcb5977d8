"""Tables of observed runs, and the calibration of levels; nothing here imports a method."""
