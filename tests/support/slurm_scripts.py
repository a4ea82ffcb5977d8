"""Runs the Lua scripts of integrations/slurm in a directory like a site's."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS.parent / "integrations" / "slurm"
PLAYER = TESTS / "integrations" / "slurmctld.lua"
UNSET, UNLIMITED = 4294967294, 4294967295
JOB = {
    "user_name": "carol",
    "default_account": "zeolite",
    "name": "relax",
    "time_limit": 60,
    "time_min": UNSET,
    "num_tasks": 4,
    "cpus_per_task": 65534,
    "min_cpus": 4,
    "min_nodes": UNSET,
    "min_mem_per_cpu": 2000,
}

VARIANTS = {
    "double quotes": 'return { mode = "soft" }',
    "single quotes": "return { mode = 'soft' }",
    "a key in brackets": 'return { ["mode"] = "soft" }',
    "a long string": "return { mode = [[soft]] }",
    "twice": 'return { mode = "observe", mode = "soft" }',
    "from the environment": 'return { mode = os.getenv("RUNG") or "soft" }',
    "a variable": 'local rung = "soft" return { mode = rung }',
    "below a comment": '--[[ mode = "observe" ]] return { mode = "soft" }',
    "of two tables": 'local test = { mode = "observe" } return { mode = "soft" }',
    "behind a path": 'return { token_file = "/etc/a--b", mode = "soft" }',
}
"""Settings of a site in mode soft, as Lua lets them be written."""


def has_luasocket(lua: str) -> bool:
    probe = [lua, "-e", 'require("socket")']
    if not shutil.which(lua):
        return False
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0


LUAS = [lua for lua in ("lua5.1", "lua5.3", "lua5.4", "lua") if has_luasocket(lua)]


@dataclass
class Submitted:
    """What a hook did to one job."""

    changes: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    result: int | None = None
    seconds: float = 0.0


def lua_value(value) -> str:
    """A Lua literal; text byte by byte, so that nothing in it can end it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"[{lua_value(k)}]={lua_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(lua_value, value)) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\{byte:03d}" for byte in value.encode()) + '"'
    return str(value)


class Site:
    """A directory like /etc/slurm with the scripts in it."""

    def __init__(self, directory: Path, lua: str, slurm_conf: str = "ClusterName=Hill\n") -> None:
        self.directory, self.lua = directory, lua
        self.off = directory / "walltimed.off"
        for script in SCRIPTS.glob("*.lua"):
            text = script.read_text("utf-8").replace("/etc/walltimed/walltimed.off", str(self.off))
            (directory / script.name).write_text(text, "utf-8")
        (directory / "slurm.conf").write_text(slurm_conf)

    def configure(self, name: str = "walltimed_config.lua", **config) -> None:
        (self.directory / name).write_text(f"return {lua_value(config)}")

    def submit(self, *jobs, script: str = "job_submit.lua", environment=None) -> list[Submitted]:
        """What the script did to these jobs, submitted one after the other to one process."""
        wanted = self.directory / "jobs.lua"
        wanted.write_text(f"return {lua_value(jobs)}", encoding="utf-8")
        command = [self.lua, PLAYER, self.directory / script, wanted]
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=60,
            env=os.environ | (environment or {}),
        )
        return self._parsed(done.stdout.decode("utf-8", "replace"))

    def _parsed(self, output: str) -> list[Submitted]:
        done, now = [], Submitted()
        for line in output.splitlines():
            kind, *words = line.split("\t")
            if kind == "set":
                now.changes[words[0]] = words[1]
            elif kind == "log_error":
                now.errors.append(words[0])
            elif kind != "done":
                now.told.append(words[0])
            else:
                now.result, now.seconds = int(words[0]), float(words[1])
                done.append(now)
                now = Submitted()
        return done
