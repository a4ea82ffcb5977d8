"""Asked in a child process: what has it compiled?"""

from simulator.engine.loop import run


def compiled_versions() -> int:
    """How many signatures of the engine's loop there is machine code for."""
    return len(run.dispatcher.signatures)
