"""Bodies and answers of the API, their fields, and the decoding of JSON; no ASGI."""
