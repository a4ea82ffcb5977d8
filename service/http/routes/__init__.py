"""Calls of the API: each module adds its own to a router."""
