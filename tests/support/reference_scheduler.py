"""A second scheduler, as slow and plain as the first is fast: written from the rules alone.

It knows no heaps, profiles or arrays. How many processors are free at a time is counted anew
from everything that runs or is planned, whenever somebody asks.
"""

from dataclasses import dataclass, field

STEPS = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]
"""Minutes of Tsafrir's corrections, from the first estimate on."""


@dataclass
class Job:
    submit: int
    processors: int
    runtime: int
    request: int
    estimate: int
    priority: float = 0.0
    start: int | None = None
    serial: int = 0
    expected: int = 0
    corrections: int = 0
    planned: int | None = None
    plan_serial: int = 0
    promise: int | None = None
    in_gap: bool = False

    @property
    def end(self):
        return self.start + self.runtime


@dataclass
class Reference:
    jobs: list
    processors: int
    policy: str = "easy"
    order: str = "fcfs"
    events: str = "batch"
    depth: int = 1
    compression: str = "start-order"
    correction: str = "double"
    estimated_order: bool = True
    estimated_backfilling: bool = True
    estimated_running: bool = True
    predict: object = None
    now: int = 0
    queue: list = field(default_factory=list)
    running: list = field(default_factory=list)
    plans: int = 0
    started: int = 0
    ended_early: bool = False
    ended: bool = False

    def run(self):
        upcoming = list(self.jobs)
        while upcoming or self.running or self.queue:
            times = [upcoming[0].submit] if upcoming else []
            times += [min(job.end, job.expected) for job in self.running]
            times += [job.planned for job in self.queue if job.planned is not None]
            self.now = min(times)
            if self.events == "batch":
                self.batch(upcoming)
            else:
                self.sequence(upcoming)
        return [job.start for job in self.jobs]

    def batch(self, upcoming):
        for job in self.ending():
            self.finish(job)
        self.expire()
        arrived = [job for job in upcoming if job.submit == self.now]
        for job in arrived:
            if self.predict:
                job.estimate = self.predict(job, before=self.now + 1)
        self.queue += arrived
        del upcoming[: len(arrived)]
        self.decide()

    def sequence(self, upcoming):
        self.expire()
        plans = any(job.planned is not None for job in self.queue)
        due = any(job.planned == self.now for job in self.queue)
        if plans and (self.ended_early or due):
            self.decide()
        arrived = [job for job in upcoming if job.submit == self.now]
        for job in arrived:
            if self.predict:
                job.estimate = self.predict(job, before=self.now)
        for job in arrived:
            self.queue.append(job)
            self.decide()
        del upcoming[: len(arrived)]
        for job in self.ending():
            self.finish(job)
            self.decide()

    def ending(self):
        return sorted((j for j in self.running if j.end == self.now), key=lambda j: j.serial)

    def finish(self, job):
        self.running.remove(job)
        self.ended = True
        if job.expected > self.now:
            self.ended_early = True

    def expire(self):
        for job in sorted(self.running, key=lambda j: j.serial):
            if job.expected == self.now < job.end:
                job.corrections += 1
                job.expected = job.start + self.next_estimate(job)
                self.ended_early = True

    def next_estimate(self, job):
        first = job.estimate if self.estimated_running else job.request
        elapsed = self.now - job.start
        if elapsed >= job.request:
            return next(job.request * 2**n for n in range(64) if job.request * 2**n > elapsed)
        if self.correction == "request":
            return job.request
        if self.correction == "tsafrir":
            later = [first + 60 * step for step in STEPS if first + 60 * step > elapsed]
        else:
            later = [first * 2**n for n in range(64) if first * 2**n > elapsed]
        return min([job.request, *later[:1]])

    # What is free when.

    def held(self, time):
        """Processors that running and planned jobs hold at a time, by what is expected."""
        running = sum(j.processors for j in self.running if time < j.expected)
        planned = sum(
            j.processors
            for j in self.queue
            if j.planned is not None and j.planned <= time < j.planned + self.length(j)
        )
        return running + planned

    def fits(self, processors, begin, length):
        """Whether so many processors are free from begin on for so long."""
        points = [begin] + [
            time
            for j in self.queue
            if j.planned is not None
            for time in [j.planned]
            if begin < time < begin + length
        ]
        return all(self.held(time) + processors <= self.processors for time in points)

    def earliest(self, job):
        times = {self.now} | {j.expected for j in self.running}
        times |= {j.planned + self.length(j) for j in self.queue if j.planned is not None}
        return next(
            time
            for time in sorted(times)
            if time >= self.now and self.fits(job.processors, time, self.length(job))
        )

    def length(self, job):
        return job.estimate if self.estimated_backfilling else job.request

    # What is started when.

    def start(self, job):
        self.queue.remove(job)
        job.start = self.now
        job.planned = None
        job.serial = self.started
        self.started += 1
        job.expected = self.now + (job.estimate if self.estimated_running else job.request)
        self.running.append(job)

    def key(self, job):
        estimate = job.estimate if self.estimated_order else job.request
        wait = self.now - job.submit
        keys = {
            "fcfs": 0,
            "sjf": estimate,
            "wfp": -((wait / estimate) ** 3) * job.processors,
            "sjf-aging": job.submit + min(4 * estimate, 86400),
            "response-ratio": -(wait + 14400) / min(43200, max(600, estimate)),
            "psp": -job.priority,
            "psp-aging": 0,
        }
        if self.order == "psp-aging":
            steps, priority = wait // 150, job.priority
            for step in range(steps):
                priority = job.priority + priority * (step * 150 / job.request)
            return -priority
        return keys[self.order]

    def decide(self):
        place = {id(job): number for number, job in enumerate(self.jobs)}
        self.queue.sort(key=lambda job: (self.key(job), place[id(job)]))
        getattr(self, self.policy.replace("-", "_"))()
        self.ended = False

    def free(self):
        return self.processors - sum(j.processors for j in self.running if j.expected > self.now)

    def fcfs(self):
        while self.queue and self.queue[0].processors <= self.free():
            self.start(self.queue[0])

    def easy(self, *, shortest_first=False):
        self.fcfs()
        if not self.queue:
            return
        if self.depth > 1:
            self.easy_with_reservations(shortest_first)
            return
        head, *others = self.queue
        if shortest_first:
            others.sort(key=self.length)
        shadow = next(
            time
            for time in sorted({j.expected for j in self.running} | {self.now})
            if time >= self.now and self.processors - self.held(time) >= head.processors
        )
        extra = self.processors - self.held(shadow) - head.processors
        for job in others:
            ends_in_time = self.now + self.length(job) <= shadow
            if job.processors <= self.free() and (ends_in_time or job.processors <= extra):
                self.start(job)
                if not ends_in_time:
                    extra -= job.processors

    def easy_sjbf(self):
        self.easy(shortest_first=True)

    def easy_with_reservations(self, shortest_first):
        """With the length of a job that starts taken as planned, whatever it runs by."""
        waiting = list(self.queue)
        begun = []
        blocked = 0
        while waiting and blocked < self.depth:
            job = waiting.pop(0)
            job.planned = self.earliest(job)
            if job.planned == self.now:
                begun.append(job)
            else:
                blocked += 1
        if shortest_first:
            waiting.sort(key=self.length)
        for job in waiting:
            if self.fits(job.processors, self.now, self.length(job)):
                job.planned = self.now
                begun.append(job)
        for job in self.queue:
            job.planned = None
        for job in begun:
            self.start(job)

    def conservative(self):
        self.compress()
        self.ended_early = False
        for job in self.queue:
            if job.planned is None:
                self.plan(job, None)
        due = [j for j in self.queue if j.planned == self.now]
        for job in sorted(due, key=lambda j: j.plan_serial):
            self.start(job)
            if job.expected != self.now + self.length(job):
                self.ended_early = True

    def compress(self):
        planned = [(j, j.planned) for j in self.queue if j.planned is not None]
        if self.compression == "keep" and (self.ended or self.ended_early):
            for job, was in planned:
                job.planned = None
                self.plan(job, was)
        if self.compression == "keep" or not self.ended_early:
            return
        if self.compression == "start-order":
            planned.sort(key=lambda pair: pair[1])
        for job, _ in planned:
            job.planned = None
        for job, was in planned:
            self.plan(job, was)

    def plan(self, job, was):
        job.planned = self.earliest(job)
        if job.planned != was:
            job.plan_serial = self.plans
            self.plans += 1
        if job.promise is None:
            job.promise = job.planned
            plans = [other.planned for other in self.queue if other.planned is not None]
            job.in_gap = any(planned > job.planned for planned in plans)
