"""`walltimed connect pbs`, off and on, on a machine of its own, with a qmgr that notes commands.

`test_openpbs.py` does the first on a real server.
"""

import private_machine
import pytest
from private_machine import PrivateMachine

REASON = private_machine.reason_to_skip()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
HOME = "/var/lib/pbs"
QMGR = f"""#!/bin/sh
given=$(cat)
echo "$given" >> {HOME}/told
case $given in
"list hook walltimed") test -e {HOME}/hook && echo "Hook walltimed" ;;
"list resource "*)
    test -e "{HOME}/${{given#list resource }}" && echo "Resource ${{given#list resource }}" ;;
"export hook walltimed"*) cat {HOME}/script ;;
*"import hook walltimed application/x-python"*)
    cat /usr/share/walltimed/pbs/walltimed_hook.py > {HOME}/script ;;
esac
case $given in *"create hook"*) touch {HOME}/hook ;; esac
echo "$given" | sed -n 's/^create resource \\([^ ]*\\).*/\\1/p' | while read -r name; do
    mkdir "{HOME}/$name"
done
"""


@pytest.fixture
def machine(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    tmp_path.chmod(0o755)
    (tools / "qmgr").write_text(QMGR)
    (tools / "qmgr").chmod(0o755)
    with PrivateMachine(paths=(tools,)) as machine:
        machine.run("mkdir", "-p", f"{HOME}/server_priv")
        machine.write("/etc/pbs.conf", f"PBS_HOME={HOME}\n")
        yield machine


def told(machine):
    """What qmgr was told since the last look."""
    lines = machine.run("cat", f"{HOME}/told").splitlines()
    machine.run("rm", f"{HOME}/told")
    return lines


def group_of_log(machine):
    return machine.run("stat", "--format", "%G", f"{HOME}/server_priv").strip()


def test_the_hook_is_made_renewed_turned_off_and_on(machine):
    said = machine.run("walltimed", "connect", "pbs", "--mode", "soft")
    assert "written: /etc/walltimed/pbs-token (root:walltimed 0640" in said
    assert "create hook walltimed" in told(machine)
    assert group_of_log(machine) == "pbsacct"
    assert '"mode": "soft"' in machine.run("cat", "/etc/walltimed/pbs-hook.json")

    machine.run("walltimed", "connect", "pbs", "--mode", "observe")
    renewed = told(machine)
    assert not [line for line in renewed if line.startswith("create")]
    imported = "import hook walltimed application/x-config default /etc/walltimed/pbs-hook.json"
    assert imported in renewed

    off = "/etc/walltimed/walltimed.off"
    assert "off: the hook walltimed of PBS" in machine.run("walltimed", "connect", "--off")
    assert not [line for line in told(machine) if line.startswith("import")]
    machine.run("test", "-e", off)
    assert f"walltimed connect --on, as {off}" in machine.run("walltimed", "connect", "pbs")
    told(machine)

    machine.write(f"{HOME}/script", "# of an earlier release")
    assert "off: the hook walltimed of PBS" in machine.run("walltimed", "connect", "--off")
    assert [line for line in told(machine) if line.startswith("import")]
    assert "removed: filters do again" in machine.run("walltimed", "connect", "--on")
    assert machine.run("ls", "/etc/walltimed").count("walltimed.off") == 0
