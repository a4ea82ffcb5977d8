"""Assigns jobs to users, who run the same application repeatedly in sessions.

The models of arrivals, sizes and runtimes say how often each value occurs, but not that similar
jobs follow each other. Here an application is one draw from these models, and a session repeats
this application. So the values keep their distribution, and a predictor can learn.

Users request few round values, and often the maximum.

References:
    D. G. Feitelson, "Locality of sampling and diversity in parallel system workloads", ICS 2007.
    D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005:
    some twenty values serve nine jobs in ten, the maximum is one of the most popular ones, and
    the share of the request that is used is spread about evenly.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

import lublin
import numpy as np
from numpy.random import Generator

HOUR = 3600

POPULAR = (
    *(minutes * 60 for minutes in (5, 10, 15, 20, 30, 45)),
    *(round(hours * HOUR) for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 48)),
)
"""The twenty values in seconds; the last is the maximum."""

MAXIMUM = POPULAR[-1]

MAXIMUM_SHARE = 0.08
"""Share of requests for the maximum, made without thinking."""

ODD_SHARE = 0.08
"""Share of requests for any number of minutes."""

LEAST_USAGE, MOST_USAGE = 0.05, 1.1
"""Smallest and largest share of a request that a user's job uses; beyond 1 it is killed."""

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
"""Standard deviation of the logarithm of that: few applications are irregular."""


def request(expected: float, random: Generator) -> int:
    """Draw the request in seconds for a job that its user expects to run ``expected`` seconds."""
    habit = random.random()
    if habit < MAXIMUM_SHARE:
        return MAXIMUM
    wanted = expected / random.uniform(LEAST_USAGE, MOST_USAGE)
    if habit > 1.0 - ODD_SHARE:
        return min(60 * (int(wanted) // 60 + 1), MAXIMUM)
    return POPULAR[min(bisect_left(POPULAR, wanted), len(POPULAR) - 1)]


@dataclass(frozen=True, slots=True)
class SyntheticApplication:
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
    application: SyntheticApplication
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
    _known: dict[tuple[int, int], list[SyntheticApplication]] = field(default_factory=dict)
    _at_work: dict[int, list[Session | None]] = field(default_factory=dict)
    _applications: int = 0
    _activity: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        activity = np.cumsum(1.0 / np.arange(1, self.users + 1) ** ACTIVITY_EXPONENT)
        self._activity = (activity / activity[-1]).tolist()

    def next_job(self, kind: lublin.ArrivalKind, time: float) -> Session:
        """Return the session of the next job of ``kind``, which arrives at ``time``."""
        places = self._at_work.setdefault(kind.queue, [None] * AT_WORK)
        place = int(self.random.integers(AT_WORK))
        session = places[place]
        if session is None or session.left == 0 or time - session.latest > BREAK_SECONDS:
            session = places[place] = self._start(kind, time)
        session.left -= 1
        session.latest = time
        return session

    def _start(self, kind: lublin.ArrivalKind, time: float) -> Session:
        user = self._someone(kind)
        application = self._choose(user, kind)
        return Session(
            user,
            application,
            request(application.runtime, self.random),
            left=int(self.random.geometric(1.0 / SESSION_JOBS)),
            latest=time,
        )

    def _someone(self, kind: lublin.ArrivalKind) -> int:
        """Draw a user; one with a session of this kind is drawn again, a few times at most."""
        at_work = {session.user for session in self._at_work[kind.queue] if session}
        for _ in range(REDRAWS):
            user = 1 + int(np.searchsorted(self._activity, self.random.random()))
            if user not in at_work:
                break
        return user

    def _choose(self, user: int, kind: lublin.ArrivalKind) -> SyntheticApplication:
        """Choose an application that the user has run before, or a new one."""
        known = self._known.setdefault((user, kind.queue), [])
        if known and self.random.random() < FAMILIAR_SHARE:
            return known[int(self.random.integers(len(known)))]
        self._applications += 1
        processors = lublin.size(kind, self.machine, self.random)
        runtime = lublin.runtime(kind, processors, self.random)
        spread = TYPICAL_SPREAD * self.random.lognormal(0.0, SPREAD_OF_SPREADS)
        known.append(
            SyntheticApplication(self._applications, processors, runtime, min(spread, 1.0))
        )
        return known[-1]
