"""Assigns jobs to users, who run the same application repeatedly in sessions.

The models of arrivals, sizes and runtimes say how often each value occurs, but not that similar
jobs follow each other. Here an application is one draw from these models, and a session repeats
this application. So the values keep their distribution, and a predictor can learn.

Reference:
    D. G. Feitelson, "Locality of sampling and diversity in parallel system workloads", ICS 2007.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from simulator.traces.synth import lublin
from simulator.traces.synth.requests import request

AT_WORK = 6
"""Number of sessions of one kind of job that go on at the same time."""

SESSION_JOBS = 12.0
"""Mean number of jobs in a session."""

BREAK_SECONDS = 8 * 3600.0
"""A session without a submission for this many seconds is over."""

FAMILIAR_SHARE = 0.75
"""Share of sessions that run an application that their user has run before."""

REDRAWS = 4
"""Draws of a user for a session at most: few users run two applications in turns."""

ACTIVITY_EXPONENT = 1.0
"""The user of rank n starts sessions in proportion to 1 / n ** this."""

TYPICAL_SPREAD = 0.06
"""Median over applications of the standard deviation of the logarithm of their runtimes."""

SPREAD_OF_SPREADS = 1.2
"""Standard deviation of the logarithm of that: some applications are steady, some are not."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application that a user runs.

    Attributes:
        number: number of the executable.
        processors: usual number of processors.
        runtime: typical runtime in seconds.
        spread: standard deviation of the logarithm of its runtimes.
    """

    number: int
    processors: int
    runtime: float
    spread: float


@dataclass(slots=True)
class Session:
    """A series of jobs in which one user submits one application with one request.

    Attributes:
        user: number of the user.
        application: the application.
        requested_time: the request in seconds.
        left: number of jobs still to come.
        latest: when the latest job was submitted.
    """

    user: int
    application: Application
    requested_time: int
    left: int
    latest: float


@dataclass(slots=True)
class Population:
    """The users of a machine, with their applications.

    Attributes:
        users: number of users.
        machine: number of processors of the machine.
        random: the random generator.
    """

    users: int
    machine: int
    random: Generator
    _known: dict[tuple[int, int], list[Application]] = field(default_factory=dict)
    _at_work: dict[int, list[Session | None]] = field(default_factory=dict)
    _applications: int = 0
    _activity: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        activity = np.cumsum(1.0 / np.arange(1, self.users + 1) ** ACTIVITY_EXPONENT)
        self._activity = (activity / activity[-1]).tolist()

    def next_job(self, kind: lublin.Kind, time: float) -> Session:
        """The session to which the job of ``kind`` that arrives now belongs."""
        places = self._at_work.setdefault(kind.queue, [None] * AT_WORK)
        place = int(self.random.integers(AT_WORK))
        session = places[place]
        if session is None or session.left == 0 or time - session.latest > BREAK_SECONDS:
            session = places[place] = self._start(kind, time)
        session.left -= 1
        session.latest = time
        return session

    def _start(self, kind: lublin.Kind, time: float) -> Session:
        user = self._someone(kind)
        application = self._choose(user, kind)
        return Session(
            user,
            application,
            request(application.runtime, self.random),
            left=int(self.random.geometric(1.0 / SESSION_JOBS)),
            latest=time,
        )

    def _someone(self, kind: lublin.Kind) -> int:
        """Draw a user; one with a session of this kind is drawn again, a few times at most."""
        at_work = {session.user for session in self._at_work[kind.queue] if session}
        for _ in range(REDRAWS):
            user = 1 + int(np.searchsorted(self._activity, self.random.random()))
            if user not in at_work:
                break
        return user

    def _choose(self, user: int, kind: lublin.Kind) -> Application:
        """An application that the user has run before, or a new one."""
        known = self._known.setdefault((user, kind.queue), [])
        if known and self.random.random() < FAMILIAR_SHARE:
            return known[int(self.random.integers(len(known)))]
        self._applications += 1
        processors = lublin.size(kind, self.machine, self.random)
        runtime = lublin.runtime(kind, processors, self.random)
        spread = TYPICAL_SPREAD * self.random.lognormal(0.0, SPREAD_OF_SPREADS)
        known.append(Application(self._applications, processors, runtime, min(spread, 1.0)))
        return known[-1]
