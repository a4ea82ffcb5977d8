"""Slurm's accounts on this machine, for tests: MariaDB, and the settings of slurmdbd."""

import os
import shutil
import subprocess
from pathlib import Path

from running_service import eventually

MISSING = "needs mariadb-server and slurmdbd (make slurm-accounts)"

PASSWORD = "of-a-test"

SLURM_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={directory}/munge/socket
AccountingStoreFlags=job_comment
"""

SLURMDBD_CONF = """\
AuthType=auth/{auth}
AuthInfo=socket={directory}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
LogFile={directory}/log/slurmdbd.log
PidFile={directory}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""

GRANTS = """\
create user slurm@localhost identified by '{0}';
create user slurm@'127.0.0.1' identified by '{0}';
grant all on slurm_acct_db.* to slurm@localhost;
grant all on slurm_acct_db.* to slurm@'127.0.0.1';
"""


def reason_to_skip(root: Path) -> str | None:
    """Why there can be no accounts here; None if there can."""
    programs = (Path("/usr/sbin/mariadbd"), root / "usr/sbin/slurmdbd")
    return None if all(os.path.lexists(program) for program in programs) else MISSING


def slurmdbd_conf(
    directory: Path, *, user: str, port: int, sql_port: int, auth: str = "munge"
) -> str:
    """The file of this name, with which slurmdbd finds munge and its database."""
    return SLURMDBD_CONF.format(
        directory=directory, user=user, port=port, sql_port=sql_port, password=PASSWORD, auth=auth
    )


class MariaDB:
    """An empty database server in ``directory``, which ends with ``close``."""

    def __init__(self, directory: Path, port: int) -> None:
        self._data = directory / "mariadb"
        self._data.mkdir()
        self._socket = self._data / "socket"
        # It ends with the process that started it, even if that is killed.
        become = ["setpriv", "--pdeathsig", "KILL"]
        if os.geteuid() == 0:
            shutil.chown(self._data, "mysql", "mysql")
            become += ["--reuid", "mysql", "--regid", "mysql", "--clear-groups"]
        options = ["--no-defaults", f"--datadir={self._data}"]
        subprocess.run(
            [*become, "mariadb-install-db", *options, "--auth-root-authentication-method=normal",
             "--skip-test-db"], check=True, capture_output=True,
        )  # fmt: skip
        with (directory / "log" / "mariadb.out").open("wb") as log:
            self._process = subprocess.Popen(
                [*become, "/usr/sbin/mariadbd", *options, f"--socket={self._socket}",
                 f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={self._data / 'pid'}",
                 "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
                 "--skip-log-bin"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        eventually(lambda: self._does("select 1"), seconds=120)
        assert self._does(GRANTS.format(PASSWORD))

    def _does(self, statements: str) -> bool:
        command = ["mariadb", "--no-defaults", "-S", self._socket, "-u", "root", "-e", statements]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait(30)
