"""The Python scripts of integrations/, loaded as modules or run as processes."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

INTEGRATIONS = Path(__file__).parents[2] / "integrations"
FOLLOWER, FORWARDER = (
    INTEGRATIONS / name for name in ("pbs/walltimed_pbs.py", "slurm/walltimed_forwarder.py")
)


def loaded(script: Path) -> ModuleType:
    """Return a script as a module of its own; it finds modules beside it."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(script.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(script.parent))
        for beside in script.parent.glob("*.py"):
            sys.modules.pop(beside.stem, None)
    return module


def first_line_until_sigterm(script: Path, *arguments: object) -> str:
    """Run a script until its first line on standard error; it ends well at SIGTERM."""
    command = [sys.executable, script, *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    return line


class Looks:
    """Stops a follower after some looks; ``meanwhile`` is called with the number of each."""

    def __init__(self, looks: int, meanwhile=lambda _look: None) -> None:
        self.looks, self.meanwhile, self.waits = looks, meanwhile, []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.meanwhile(len(self.waits))
        return len(self.waits) == self.looks
