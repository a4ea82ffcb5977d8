"""Runs the studies of the papers: ``python -m papers PAPER``."""

from papers.command_line import main

if __name__ == "__main__":
    main()
