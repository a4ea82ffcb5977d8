"""JSON in, JSON out: bodies, answers, fields and their decoding; nothing of ASGI."""
