"""FCFS on named nodes once more, written from the rules alone, as slow and plain as they are."""

from dataclasses import dataclass, field

from reference_scheduler import Reference


@dataclass
class PinnedReference(Reference):
    pinning: int = 0
    pinned: str = "nodes"
    nodes: dict = field(default_factory=dict)  # of each job, by its identity, as all of these
    pins: dict = field(default_factory=dict)  # their planned starts then
    since: dict = field(default_factory=dict)
    ready: list = field(default_factory=list)  # when the plan of each node ends
    last: int = 0

    def run(self):
        self.ready = [0] * self.processors
        return super().run()

    def fcfs_pinned(self):
        if self.ended_early:
            self.plan_again()
        self.ended_early = False
        for job in self.queue:
            if job.planned is None:
                self.place(job)
        for job in [job for job in self.queue if job.planned <= self.now]:
            self.start(job)
            if job.expected != self.now + self.length(job):
                self.ended_early = True

    def plan_again(self):
        self.ready = [self.now] * self.processors
        self.last = self.now
        for job in self.running:
            for node in self.nodes[id(job)]:
                self.ready[node] = max(self.now, job.expected)
        planned = [job for job in self.queue if job.planned is not None]
        for job in planned:
            if self.pinning > 0:
                self.pin(job)
        for job in planned:
            if id(job) not in self.pins:
                self.place(job)

    def pin(self, job):
        if id(job) not in self.pins and job.planned <= self.now + self.pinning:
            self.pins[id(job)] = job.planned
        if id(job) not in self.pins:
            return
        nodes = self.nodes[id(job)]
        first = self.pins[id(job)]
        turn = first if self.pinned == "start" else min(first, self.last)
        begin = max([turn, *(self.ready[node] for node in nodes)])
        if begin > self.now + self.pinning:
            del self.pins[id(job)]
            return
        self.last = max(self.last, min(begin, first))
        self.use(job, nodes, begin)

    def place(self, job):
        first = sorted((max(ready, self.now), node) for node, ready in enumerate(self.ready))
        chosen = first[: job.processors]
        nodes = {node for _, node in chosen}
        if nodes != self.nodes.get(id(job)):
            self.nodes[id(job)] = nodes
            self.since[id(job)] = self.now
        self.last = max(self.last, self.now, chosen[-1][0])
        self.use(job, nodes, self.last)
        if job.promise is None:
            job.promise = job.planned

    def use(self, job, nodes, begin):
        job.planned = begin
        for node in nodes:
            self.ready[node] = begin + self.length(job)
