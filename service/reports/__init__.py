"""Reports on past runs: how requests compared with runtimes, and what waiting it cost."""
