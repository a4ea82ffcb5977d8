"""The use cases: predict, complete, rank, report. No ASGI here, and no SQL."""
