"""The order of the queue (``sort_job_queue2``): tier, priority, submission, job number."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.slurm_state import SlurmState


@kernel
def join(state: SlurmState, number: int) -> int:
    """Put a job into the queue, and return its place."""
    clock = state.clock[0]
    place: int = clock.waiting
    while place > 0 and has_precedence(state, number, state.queue[place - 1]):
        state.queue[place] = state.queue[place - 1]
        place -= 1
    state.queue[place] = number
    clock.waiting += 1
    if place + 1 < clock.waiting:
        clock.replan = 1
    clock.changed = 1
    clock.main_open = 1
    return place


@inlined
def has_precedence(state: SlurmState, number: int, other: int) -> bool:
    """Whether a job stands before another."""
    job, beside = state.jobs[number], state.jobs[other]
    tier: int = state.partitions[job.partition].tier
    other_tier: int = state.partitions[beside.partition].tier
    score: int = job.score
    other_score: int = beside.score
    if tier != other_tier:
        return tier > other_tier
    return score > other_score if score != other_score else number < other
