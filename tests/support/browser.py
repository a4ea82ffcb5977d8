"""A real Chromium, without a window, that collects what went wrong in its pages."""

import base64
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

WIDE, NARROW = (1280, 900), (420, 900)

AXE = Path(__file__).parent / "axe" / "axe.min.js"

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)

LISTENING = """
    window.violations = [];
    addEventListener("securitypolicyviolation", (each) =>
        violations.push(each.violatedDirective + " " + each.blockedURI));
"""


def is_installed() -> bool:
    """Whether there is a browser and its driver."""
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    """One browser; what a page complains of is kept until it is asked for."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, path: str = "/") -> None:
        self.driver.get(self.url + path)

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.url)

    @property
    def text(self) -> str:
        """What a person can read on the page; nothing while another page takes its place."""
        try:
            return self.driver.find_element(By.TAG_NAME, "body").text
        except (NoSuchElementException, StaleElementReferenceException):
            return ""

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text: str, *arguments: object) -> object:
        return self.driver.execute_script(text, *arguments)

    def resize(self, size: tuple[int, int]) -> None:
        """The page's own width and height, whatever the window's least width is."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def theme(self, name: str) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": name}]},
        )

    def complaints(self) -> list[str]:
        """What the console said at level warning or worse, and violations of the policy."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        with suppress(Exception):
            said += self.script("return window.violations") or []
        return said

    def accessibility(self) -> list[str]:
        """What axe finds wrong with the page, each with its first element."""
        self.driver.execute_script(AXE.read_text("utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})"
            ".then((result) => done(result.violations));"
        )
        return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html']}" for each in found]

    def is_too_wide(self) -> bool:
        """Whether the page has to be scrolled sideways."""
        return self.script(
            "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )

    def picture(self, file: Path, *, tallest: int = 10_000) -> None:
        """Save what the whole page looks like, but no more than so many pixels of it."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {**size, "height": min(size["height"], tallest), "x": 0, "y": 0, "scale": 1}
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browsing(url: str, *, language: str = "en-GB", zone: str = "Europe/Berlin"):
    """A browser at a service."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "WARNING"})
    with TemporaryDirectory(prefix="walltimed-browser-") as profile:
        for option in (*OPTIONS, f"--lang={language}", f"--user-data-dir={profile}"):
            options.add_argument(option)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            driver.set_page_load_timeout(60)
            driver.set_script_timeout(60)
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": LISTENING})
            driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
            driver.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": language})
            yield Browser(driver, url)
        finally:
            driver.quit()
