"""Live queues: take them in, show them, and forecast posted queues and jobs not submitted yet."""
