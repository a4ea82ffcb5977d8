"""Runs a benchmark as on a disk that takes longer to make a commit durable.

    .venv/bin/python research/slow_disk.py MILLISECONDS SCRIPT [OPTION ...]

What sharing commits saves depends on how long one takes: from 0.2 ms behind a cache that survives
power loss to 4 ms and more without one. Every fdatasync and fsync of the script and of all that it
starts, the bare driver's, the service's and PostgreSQL's alike, waits so much longer, asleep.

It needs a C compiler, and a system whose loader knows LD_PRELOAD.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static int later(const char *name, int file) {
    int (*sync)(int) = dlsym(RTLD_NEXT, name);
    struct timespec wait = {NANOSECONDS / 1000000000, NANOSECONDS % 1000000000};
    int answer = sync(file);
    nanosleep(&wait, 0);
    return answer;
}

int fdatasync(int file) { return later("fdatasync", file); }
int fsync(int file) { return later("fsync", file); }
"""


def main() -> None:
    """Compile the wait, then run the script with it."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    nanoseconds = round(float(sys.argv[1]) * 1e6)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # PostgreSQL runs as somebody else
        library = Path(directory) / "slow_disk.so"
        compiler = ["cc", "-shared", "-fPIC", "-O1", f"-DNANOSECONDS={nanoseconds}L"]
        command = [*compiler, "-x", "c", "-", "-o", str(library), "-ldl"]
        subprocess.run(command, input=SOURCE, text=True, check=True)
        script = subprocess.run(
            [sys.executable, *sys.argv[2:]],
            env=os.environ | {"LD_PRELOAD": str(library)},
            check=False,
        )
    sys.exit(script.returncode)


if __name__ == "__main__":
    main()
