"""Makes the documentation's pictures of the pages: `make screenshots`.

Starts the demo, waits until its queue has been forecast, and takes pictures of three pages.
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from browser import WIDE, browsing, is_installed

PICTURES = (
    ("page-accuracy", "/accuracy", WIDE, "light"),
    ("page-queue", "/queue", WIDE, "light"),
    ("page-job", None, WIDE, "dark"),
)
"""Name of the file, path (None: a job that waits), size and theme."""

READY = "in a browser"

SETTLING_SECONDS = 150.0
"""How long the demo goes on before the pictures, so that there is something in them."""

TALLEST = 1500
"""Pixels; longer pages are cut."""


def main(folder: Path) -> None:
    """Take the pictures, and end the demo."""
    if not is_installed():
        sys.exit("There is no chromium or chromedriver; `make chromium` installs them.")
    walltimed = Path(sys.executable).with_name("walltimed")
    demo = subprocess.Popen(
        [walltimed, "demo"], stdout=subprocess.PIPE, text=True, bufsize=1,
        env={"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "HOME": str(Path.home())},
    )  # fmt: skip
    try:
        photograph(address_of(demo), folder)
    finally:
        demo.send_signal(signal.SIGTERM)
        demo.wait(60)


def address_of(demo: subprocess.Popen[str]) -> str:
    """Where the pages are, once the trace has been played."""
    for line in demo.stdout:
        if READY in line:
            break
    return next(url for line in demo.stdout if (url := re.search(r"http://[^/]+", line))).group()


def photograph(url: str, folder: Path) -> None:
    """Take every picture once the demo has settled."""
    time.sleep(SETTLING_SECONDS)
    with browsing(url) as browser:
        for name, path, size, theme in PICTURES:
            browser.resize(size)
            browser.theme(theme)
            browser.open(path or waiting_job(browser))
            time.sleep(1.0)
            browser.picture(folder / f"{name}.png", tallest=TALLEST)
            sys.stdout.write(f"{folder / name}.png\n")


def waiting_job(browser) -> str:
    """The path of the page of a job that waits."""
    browser.open("/queue?state=waiting")
    return browser.find("tbody a").get_attribute("href").removeprefix(browser.url)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
