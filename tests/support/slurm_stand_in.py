"""Stand-ins for squeue, sprio and scontrol that print what the real ones printed.

Recorded on a private Slurm 22.05.8 (tests/data/slurm); updates are noted down and can be applied
to the queue, as slurmctld would.
"""

import json
import re
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "slurm"

SOFT = "SchedulerParameters     = time_min_as_soft_limit,bf_interval=2\n"
"""A line of `scontrol show config`."""

SCONTROL = """\
#!/bin/sh
cd "{directory}"
[ -e hang-$1 ] && exec sleep 60
[ "$1" = show ] && exec cat config
for word; do printf '%s\\037' "$word" >> updates; done
echo >> updates
[ -e refuse ] && {{ cat refuse >&2; exit 1; }}
exit 0
"""
PRINTS = '#!/bin/sh\ncd "{directory}"\n[ -e hang-{name} ] && exec sleep 60\nexec cat {name}.out\n'


class SlurmStandIn:
    """A directory of commands.

    Attributes:
        jobs: what squeue shows, to be changed at will; ``write`` makes it so.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs = json.loads((DATA / "squeue_22.05.json").read_text("utf-8"))["jobs"]
        self.config = (DATA / "scontrol_config_22.05.txt").read_text()
        self.factors = (DATA / "sprio_22.05.txt").read_text()
        for name, script in (("scontrol", SCONTROL), ("squeue", PRINTS), ("sprio", PRINTS)):
            (directory / name).write_text(script.format(directory=directory, name=name))
            (directory / name).chmod(0o755)
        self.write()

    def write(self) -> None:
        """Let the commands print the present state."""
        (self.directory / "squeue.out").write_text(json.dumps({"jobs": self.jobs}), "utf-8")
        (self.directory / "sprio.out").write_text(self.factors)
        (self.directory / "config").write_text(self.config)

    def becomes(self, version: str, *, soft: bool = True) -> None:
        """Be another Slurm."""
        self.config = re.sub(r"22\.05\.8", version, self.config)
        if soft:
            self.config = re.sub(r"SchedulerParameters.*\n", SOFT, self.config)
        self.write()

    def keep(self, *names: str) -> None:
        """Leave only jobs of these names in the queue."""
        self.jobs = [job for job in self.jobs if job["name"] in names]
        self.write()

    def job(self, name: str) -> dict:
        """The first job of this name."""
        return next(job for job in self.jobs if job["name"] == name)

    def updates(self) -> list[tuple[str, dict[str, str]]]:
        """What was changed since the last call: jobs and their settings."""
        file = self.directory / "updates"
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        found = []
        for line in lines:
            verb, target, *words = line.rstrip("\x1f").split("\x1f")
            assert verb == "update"
            settings = dict(word.split("=", 1) for word in words)
            found.append((target.removeprefix("JobId="), settings))
        return found

    def apply(self) -> list[tuple[str, dict[str, str]]]:
        """Let the updates come true."""
        updates = self.updates()
        for target, settings in updates:
            job = next(job for job in self.jobs if target in names_of(job))
            if "TimeMin" in settings:
                job["time_minimum"] = int(settings["TimeMin"])
            job["admin_comment"] = settings.get("AdminComment", job["admin_comment"])
            if "SiteFactor" in settings:
                number = job["job_id"]
                kept = re.sub(rf"^{number}\|.*\n", "", self.factors, flags=re.MULTILINE)
                self.factors = f"{kept}{number}|{settings['SiteFactor']}\n"
        self.write()
        return updates

    def does(self, name: str, content: str = "") -> Path:
        """Hang (``hang-show``, ``hang-update``, ``hang-squeue``) or ``refuse``."""
        file = self.directory / name
        file.write_text(content)
        return file


def names_of(job: dict) -> set[str]:
    """What scontrol takes for this job."""
    tasks = job["array_task_string"].partition("%")[0]
    return {
        str(job["job_id"]),
        f"{job['het_job_id']}+{job['het_job_offset']}",
        f"{job['array_job_id']}_[{tasks}]",
    }
