"""Commands of studies, called as the shell calls them."""

from command_line import refused, walltimed  # noqa: F401 - fixtures
