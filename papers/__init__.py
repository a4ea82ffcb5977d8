"""The five papers behind walltimed: tables of runs, and their figures and tables as pivots."""
