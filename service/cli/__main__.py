"""``python -m service.cli``: the command where no script is installed, as for child processes."""

from service.cli import main

main()
