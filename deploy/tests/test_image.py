"""The image of the Dockerfile, built and run by podman or docker, where one of them works.

Where no registry can be reached, ``deploy/tests/base.sh`` makes the base image. Options that
building needs on a machine (a certificate, a configuration of pip) are read from
WALLTIMED_BUILD_OPTIONS; WALLTIMED_IMAGE names an image that was built before.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import time
import tomllib
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from predictors.compiled import COMPILING

ROOT = Path(__file__).parents[2]
BASE = "docker.io/library/python:3.11-slim"
MEGABYTE = 1_000_000
HARDENED = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges")
STARTING_SECONDS = 600
RUN = {
    "job_id": "17",
    "user": "ada",
    "requested_walltime": 3600,
    "start_time": 1700000060,
    "end_time": 1700000960,
}

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not os.environ.get("WALLTIMED_TEST_CONTAINER"),
        reason="builds for minutes from an index of packages: set WALLTIMED_TEST_CONTAINER",
    ),
]


class Engine:
    """podman or docker."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.is_podman = program == "podman"

    def __call__(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        quiet = ("--log-level=fatal",) if self.is_podman else ()
        done = subprocess.run(
            [self.program, *quiet, *map(str, words)], capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def has(self, image: str) -> bool:
        return self("image", "inspect", image, check=False).returncode == 0

    def build(self, tag: str) -> None:
        options = ("--format=docker", "--pull=never") if self.is_podman else ()
        given = shlex.split(os.environ.get("WALLTIMED_BUILD_OPTIONS", ""))
        base = f"BASE={BASE}"
        self(
            "build", "--network=host", "--build-arg", base, *options, *given, "--tag", tag, ROOT
        )  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    for program in ("podman", "docker"):
        if shutil.which(program):
            found = Engine(program)
            if found("info", check=False).returncode == 0:
                return found
    pytest.skip("needs podman, or docker with a running daemon")


@pytest.fixture(scope="module")
def image(engine):
    if given := os.environ.get("WALLTIMED_IMAGE"):
        return given
    if not engine.has(BASE):
        pytest.skip(f"needs the image {BASE}; deploy/tests/base.sh makes one")
    engine.build("walltimed-test")
    return "walltimed-test"


@pytest.fixture
def volume(engine):
    name = f"walltimed-test-{uuid4().hex[:8]}"
    engine("volume", "create", name)
    yield name
    engine("volume", "rm", "--force", name)


class Container:
    """A service in a container of its own, with its history in a volume."""

    def __init__(self, engine, image, volume, *options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.engine, self.began = engine, time.monotonic()
        self.id = engine(
            "run", "--detach", "--network=host", *HARDENED, *options,
            "--env", f"WALLTIMED_PORT={self.port}", "--env", "WALLTIMED_HOST=127.0.0.1",
            "--volume", f"{volume}:/var/lib/walltimed", image,
        ).stdout.strip()  # fmt: skip

    def __enter__(self):
        while not self.is_ready():
            assert time.monotonic() < self.began + STARTING_SECONDS, self.log()
            assert self.state()["Running"], self.log()
            time.sleep(0.2)
        self.seconds = time.monotonic() - self.began
        return self

    def __exit__(self, *_):
        self.engine("rm", "--force", "--volumes", self.id)

    def is_ready(self) -> bool:
        try:
            return self.get("/health/ready").is_success
        except httpx.TransportError:
            return False

    def get(self, path):
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=30)

    def post(self, path, body):
        return httpx.post(f"http://127.0.0.1:{self.port}{path}", json=body, timeout=30).json()

    def state(self):
        return json.loads(self.engine("inspect", self.id).stdout)[0]["State"]

    def log(self) -> str:
        done = self.engine("logs", self.id)
        return done.stdout + done.stderr


def test_the_image_is_small(engine, image):
    size = int(engine("image", "inspect", image, "--format", "{{.Size}}").stdout)
    print(f"\nimage: {size / MEGABYTE:.0f} MB")
    assert size < 500 * MEGABYTE


def test_the_image_says_what_it_is_and_whose(engine, image):
    (found,) = json.loads(engine("image", "inspect", image).stdout)
    config = found["Config"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert config["User"] == "10001:10001"
    assert config["Labels"]["org.opencontainers.image.version"] == version
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert set(config["Volumes"]) == {"/var/lib/walltimed", "/var/cache/walltimed"}
    printed = engine("run", "--rm", image, "--version").stdout
    assert printed.strip() == version


def test_beyond_loopback_it_leaves_with_a_sentence_while_there_is_no_token(engine, image):
    done = engine("run", "--rm", "--network=host", *HARDENED, image, check=False)
    assert done.returncode == 2
    assert "needs a token: issue one with `walltimed token issue`" in done.stderr


def test_a_hardened_container_serves_compiles_nothing_and_keeps_its_history(engine, image, volume):
    with Container(engine, image, volume) as first:
        assert first.post("/v1/completions", RUN) == {"accepted": 1, "duplicates": 0}
        asked = {"user": "ada", "requested_walltime": 7200}
        assert first.post("/v1/predictions", asked)["basis"]["jobs"] == 1
        (checked,) = json.loads(engine("image", "inspect", image).stdout)
        check = checked.get("Healthcheck") or checked["Config"]["Healthcheck"]
        assert engine("exec", first.id, *check["Test"][1:]).returncode == 0
        own = engine("exec", first.id, "id").stdout
        assert own.startswith("uid=10001(walltimed) gid=10001(walltimed)")
        look = "import pathlib; print(*pathlib.Path('/var/cache/walltimed').rglob('*.nbc'))"
        assert not engine("exec", first.id, "python", "-c", look).stdout.strip()
        assert COMPILING not in first.log()
        engine("stop", "--time", "30", first.id)
        assert first.state()["ExitCode"] == 0
    with Container(engine, image, volume) as again:
        assert again.post("/v1/completions", RUN) == {"accepted": 0, "duplicates": 1}
        assert COMPILING not in again.log()
    print(f"\nready: {first.seconds:.1f} s at first, {again.seconds:.1f} s when made anew")
