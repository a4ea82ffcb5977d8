"""The use cases: predict, complete, rank, report. No HTTP here, and no SQL."""
