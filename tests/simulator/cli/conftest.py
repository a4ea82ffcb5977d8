"""Commands of studies, called as the shell calls them."""

from command_line import played_by_threads, refused, walltimed  # noqa: F401 - fixtures
