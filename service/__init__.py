"""The prediction service: HTTP, SQL history, live state, command line."""
