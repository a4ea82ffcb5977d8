"""Commands of studies on traces; the command ``walltimed`` hands them over when they run."""
