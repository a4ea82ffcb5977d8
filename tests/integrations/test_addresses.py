"""What is connected looks for the service where it listens, unless it is told otherwise."""

import re
from pathlib import Path

import pytest

from service.settings import Settings

INTEGRATIONS = Path(__file__).parents[2] / "integrations"
ADDRESS = re.compile(r"(?:\bport\"? ?[=:] ?|//127\.0\.0\.1:)(\d+)")


@pytest.mark.parametrize(
    "file",
    [
        "ondemand/walltimed.rb",
        "pbs/torque_submitfilter.py",
        "pbs/walltimed_hook.json",
        "pbs/walltimed_hook.py",
        "pbs/walltimed_pbs.py",
        "slurm/walltimed.lua",
        "slurm/walltimed_forwarder.py",
    ],
)
def test_every_part_asks_the_port_on_which_the_service_listens(file):
    ports = ADDRESS.findall((INTEGRATIONS / file).read_text("utf-8"))
    own = {"8581"} if "forwarder" in file else set()  # where Slurm asks the forwarder
    assert set(ports) - own == {str(Settings().port)}
