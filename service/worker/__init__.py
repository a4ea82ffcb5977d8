"""A worker process: its state, and the threads and processes beside it."""
