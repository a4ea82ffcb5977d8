"""Asked in a child process: what has it compiled?"""

from simulator.engine.policies.backfilling import run


def compiled_versions() -> int:
    """How many signatures of the loop under EASY there is machine code for."""
    return len(run.dispatcher.signatures)
