"""The ASGI side of the service: server, gate, routes, and errors as answers."""
