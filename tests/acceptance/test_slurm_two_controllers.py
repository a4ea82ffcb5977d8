"""High availability of docs/deployment.md: two controllers of a real Slurm, two services.

Five machines on one network: ctl1 and ctl2 with slurmctld, filter and forwarder, svc1 and svc2 with
a service each on one PostgreSQL, and node. Each part dies once.
"""

import signal
import sys
import time
from pathlib import Path

import private_machine
import private_slurm
import pytest
from private_machine import PrivateMachine
from private_slurm import PrivateSlurm
from running_service import eventually

from service.store import open_store

REASON = private_slurm.reason_to_skip() or private_machine.reason_to_skip()
if Path("/") != private_slurm.ROOT:
    REASON = "runs on the Slurm of this machine"

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
HOSTS = ("ctl1", "ctl2", "svc1", "svc2", "node")
ADDRESSES = {name: f"10.78.0.{number}" for number, name in enumerate(HOSTS, start=1)}
SERVICE = "10.78.0.10"
"""The address that moves between the hosts of the service."""

PORT = 26817
NODE = f"n0 NodeHostname=node NodeAddr={ADDRESSES['node']} Port=26818 CPUs=8 RealMemory=4000"
SETTINGS = {
    "SlurmctldHost": f"ctl1({ADDRESSES['ctl1']})\nSlurmctldHost=ctl2({ADDRESSES['ctl2']})",
    "SlurmctldPort": str(PORT),
    "SlurmctldPidFile": "/var/lib/slurmctld.pid",
    "SlurmctldTimeout": "10",
    "NodeName": f"{NODE} State=UNKNOWN",
    "JobSubmitPlugins": "lua",
    "JobCompType": "jobcomp/elasticsearch",
    "JobCompLoc": "http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster=hill",
    "CliFilterPlugins": None,
}
# Tells every host of the network where the address is now, as keepalived does.
ANNOUNCE = f"""
import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
own, address = link.getsockname()[4], socket.inet_aton("{SERVICE}")
link.send(b"\\xff" * 6 + own + bytes.fromhex("0806 0001 0800 06 04 0001") + own + address
          + bytes(6) + address)
"""
RESENT_AFTER = 120  # Slurm sends again every 30 s
FORWARDER = "walltimed-slurm-forwarder"
CONFIG, FILTER = "/etc/slurm/walltimed_config.lua", "/etc/slurm/job_submit.lua"


class RedundantSlurm(PrivateSlurm):
    """A Slurm with one slurm.conf and a controller on each of two machines."""

    def __init__(self, controllers: dict[str, PrivateMachine], node: PrivateMachine) -> None:
        self.controllers = controllers
        super().__init__([], "", nodes=1, settings=SETTINGS, prefix=node.inside())

    def __exit__(self, *exception: object) -> None:
        """End the controllers, which would go on writing below the directory, and all else."""
        for machine in self.controllers.values():
            running = machine.processes.get("slurmctld")
            if running is not None and running.poll() is None:
                machine.end("slurmctld", signal.SIGKILL)
        super().__exit__(*exception)

    def start_controller(self, *options: str) -> None:
        """Start both."""
        for host in self.controllers:
            self.start_on(host, *options)
            eventually(lambda host=host: f"at {host} is UP" in self.pinged(), seconds=60)

    def start_on(self, host: str, *options: str) -> None:
        """Start the controller of a machine."""
        words = ("/usr/sbin/slurmctld", "-D", *options, "-f", self.conf)
        self.controllers[host].start("slurmctld", *words)

    def pinged(self) -> str:
        """What scontrol says of both controllers."""
        return self.run("scontrol", "ping", check=False)


class Site:
    """The machines, connected as the page says."""

    def __init__(self, machines: dict[str, PrivateMachine], database_url: str) -> None:
        self.machines, self.database_url = machines, database_url
        self.controllers = {name: machines[name] for name in ("ctl1", "ctl2")}
        hosts = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
        switch = machines["node"]
        switch.run("ip", "link", "add", "lan", "type", "bridge")
        switch.run("ip", "link", "set", "lan", "up")
        switch.run("ip", "address", "add", f"{ADDRESSES['node']}/24", "dev", "lan")
        for name, machine in machines.items():
            machine.environment["WALLTIMED_DATABASE_URL"] = database_url
            machine.write("/etc/hosts", f"127.0.0.1 localhost\n{hosts}")
            if machine is not switch:
                machine.plug_into(switch, ADDRESSES[name])

    def connect(self, slurm: RedundantSlurm) -> None:
        """Write the tree of `walltimed connect`, and unpack it on both controllers."""
        first, tree = self.machines["svc1"], slurm.directory / "tree"
        tree.mkdir(mode=0o700)
        first.run("walltimed", "db", "upgrade")
        service = f"--cluster hill --slurm-user root --url http://{SERVICE}:8580"
        options = (*service.split(), "--mode", "observe")
        first.run("walltimed", "connect", "slurm", "--root", tree, *options)
        unpack = f"tar -C {tree} -cf - etc | tar -C / --no-overwrite-dir -xf -"
        for machine in self.controllers.values():
            machine.run("mkdir", "-p", "/etc/slurm")
            machine.run("mount", "--bind", slurm.conf.parent, "/etc/slurm")
            machine.run("bash", "-c", unpack)
            machine.start_unit(FORWARDER)

    def serve_at(self, host: str) -> None:
        """Give a host of the service the address that moves."""
        self.machines[host].run("ip", "address", "add", f"{SERVICE}/24", "dev", "eth0")
        self.machines[host].run("/usr/bin/python3", "-c", ANNOUNCE)

    def lose(self, host: str, *programs: str) -> None:
        """Cut a machine off and kill its programs, as if its power had gone."""
        machine = self.machines[host]
        machine.run("ip", "link", "set", "eth0", "down")
        for name in programs:
            machine.end(name, signal.SIGKILL)

    def runs(self) -> set[str]:
        """The jobs whose runs are in the history."""
        store = open_store(self.database_url)
        try:
            found = store.past_runs.exported(None, 0.0, time.time())
            return {run.submission.job_id for run in found}
        finally:
            store.close()


@pytest.fixture
def site(empty_postgres_url):
    """Site and Slurm, connected; the first controller and the first service are at work."""
    with (
        PrivateMachine("ctl1") as ctl1,
        PrivateMachine("ctl2") as ctl2,
        PrivateMachine("svc1") as svc1,
        PrivateMachine("svc2") as svc2,
        PrivateMachine("node") as node,
    ):
        machines = {"ctl1": ctl1, "ctl2": ctl2, "svc1": svc1, "svc2": svc2, "node": node}
        site = Site(machines, empty_postgres_url)
        slurm = RedundantSlurm(site.controllers, node)
        site.connect(slurm)
        for host in ("svc1", "svc2"):
            machines[host].start_service("--host", "0.0.0.0")
        site.serve_at("svc1")
        with slurm:
            yield site, slurm


def predicted(slurm):
    """A new job that the filter asked about; None while no controller or no service answers."""
    words = ("sbatch", "--parsable", "-o", "/dev/null", "-t", "30", "--wrap", "true")
    job = slurm.run(*words, check=False, timeout=120).strip()
    return job if job and "wtp=" in slurm.job(int(job)).get("AdminComment", "") else None


@pytest.fixture
def timed(capsys):
    """Waits for something, prints how long it took, and gives what came."""

    def wait(what, condition, seconds=RESENT_AFTER):
        began = time.monotonic()
        found = eventually(condition, seconds=seconds)
        with capsys.disabled():
            sys.stdout.write(f"\n{time.monotonic() - began:5.1f} s: {what}")
        return found

    return wait


def test_each_part_dies_once_and_predictions_come_back(site, timed):
    site, slurm = site
    first = timed("the first prediction", lambda: predicted(slurm))
    timed("its run is stored", lambda: first in site.runs())

    running = slurm.sbatch("-t", "30", script="sleep 20")
    eventually(lambda: slurm.job(running)["JobState"] == "RUNNING", seconds=60)
    slurm.save_jobs()
    site.lose("ctl1", "slurmctld", FORWARDER)
    second = timed("ctl1 is dead: ctl2 takes over, and predicts", lambda: predicted(slurm), 180)
    timed("both runs are stored", lambda: {str(running), second} <= site.runs())

    site.machines["ctl1"].run("ip", "link", "set", "eth0", "up")
    site.machines["ctl1"].start_unit(FORWARDER)
    slurm.start_on("ctl1")
    timed("ctl1 is back", lambda: "at ctl1 is UP" in slurm.pinged())
    third = timed("it predicts", lambda: predicted(slurm))
    timed("the run is stored", lambda: third in site.runs())

    site.lose("svc1", "service")
    alone = slurm.sbatch("-t", "30")
    site.serve_at("svc2")
    fourth = timed("svc1 is dead: svc2 has the address, and predicts", lambda: predicted(slurm))
    timed("both runs are stored", lambda: {str(alone), fourth} <= site.runs())

    turn_off = f'sed -i \'s/mode = "[a-z-]*"/mode = "off"/\' {CONFIG} && touch {FILTER}'
    site.machines["ctl1"].run("sh", "-c", turn_off)
    timed("turned off on both hosts", lambda: predicted(slurm) is None)
