"""Output, options, words and files of all commands, and the client of a running service."""
