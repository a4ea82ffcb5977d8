"""Stand-ins for squeue, sprio and scontrol that print what the real ones printed.

Recorded on a private Slurm 22.05.8 (tests/data/slurm). Updates are noted down, and done to the
queue as slurmctld does them: the TimeMin of a job that does not wait stays, and nobody is told.
"""

import json
import re
import sys
import time
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "slurm"

SOFT = "SchedulerParameters     = time_min_as_soft_limit,bf_interval=2\n"
"""A line of `scontrol show config`."""

SCONTROL = """\
#!/bin/sh
cd "{directory}"
[ -e hang-$1 ] && exec sleep 60
[ "$1" = show ] && exec cat config
exec "{python}" -SE "{this}" "$@"
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
        commands = dict.fromkeys(("squeue", "sprio", "sdiag"), PRINTS) | {"scontrol": SCONTROL}
        for name, script in commands.items():
            written = script.format(
                directory=directory, name=name, python=sys.executable, this=Path(__file__)
            )
            (directory / name).write_text(written)
            (directory / name).chmod(0o755)
        self.counts("")
        self.write()

    def counts(self, lines: str) -> None:
        """Let sdiag print these lines about requests to slurmctld."""
        heading = "Remote Procedure Call statistics by message type\n"
        (self.directory / "sdiag.out").write_text(heading + lines)

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

    def change(self, name: str, **fields: object) -> None:
        """Change the first job of this name."""
        self.job(name).update(fields)
        self.write()

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
        """What was changed since the last call, and from now on the state after it."""
        self.jobs = json.loads((self.directory / "squeue.out").read_text("utf-8"))["jobs"]
        self.factors = (self.directory / "sprio.out").read_text()
        return self.updates()

    def does(self, name: str, content: str = "") -> Path:
        """Hang (``hang-show``, ``hang-update``, ``hang-squeue``) or ``refuse``.

        ``start``: the job of this number starts just before it is updated.
        """
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


def scontrol(verb: str, target: str = "", *settings: str) -> str | None:
    """Do an update in the files of this directory, as slurmctld does; what it refuses."""
    if verb != "update":
        return f"invalid keyword: {verb}"
    with Path("updates").open("a", encoding="utf-8") as noted:
        noted.write("".join(f"{word}\037" for word in (verb, target, *settings)) + "\n")
    if Path("refuse").exists():
        return Path("refuse").read_text().rstrip()
    queue = json.loads(Path("squeue.out").read_text("utf-8"))
    name = target.removeprefix("JobId=")
    job = next((job for job in queue["jobs"] if name in names_of(job)), None)
    if job is None:
        return "Invalid job id specified"
    if Path("start").exists() and Path("start").read_text() == name:
        job |= {"job_state": "RUNNING", "start_time": job["submit_time"]}
    wanted = dict(setting.split("=", 1) for setting in settings)
    if job["job_state"] == "PENDING" and "TimeMin" in wanted:
        if int(wanted["TimeMin"]) > job["time_limit"]:
            return "Requested time limit is invalid (missing or exceeds some limit)"
        job["time_minimum"] = int(wanted["TimeMin"])
    job["time_limit"] = int(wanted.get("TimeLimit", job["time_limit"]))
    job["admin_comment"] = wanted.get("AdminComment", job["admin_comment"])
    Path("squeue.out").write_text(json.dumps(queue), "utf-8")
    if "SiteFactor" in wanted:
        number, factors = job["job_id"], Path("sprio.out").read_text()
        kept = re.sub(rf"^{number}\|.*\n", "", factors, flags=re.MULTILINE)
        Path("sprio.out").write_text(f"{kept}{number}|{wanted['SiteFactor']}\n")
    return None


def read_commands() -> None:
    """Do what the lines of the standard input say, and complain on standard error."""
    for line in sys.stdin:
        if line.startswith("update") and Path("hang-update").exists():
            time.sleep(60)
        if complaint := scontrol(*line.split()):
            sys.stderr.write(f"{complaint}\n")
            sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(scontrol(*sys.argv[1:]) if sys.argv[1:] else read_commands())
