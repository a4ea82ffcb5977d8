"""Commands for the users of a cluster: they call the service with a token of one's own."""
