"""Commands of studies, called as the shell calls them."""

from command_line import walltimed  # noqa: F401 - a fixture
