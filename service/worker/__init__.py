"""What lives in a worker process: its state, the threads and processes beside it."""
