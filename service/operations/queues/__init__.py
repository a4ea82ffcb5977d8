"""Live queues: taking them in, showing them, and telling what other requests would come to."""
