"""Settings from the environment (``WALLTIMED_…``) or a TOML file, and their default places."""

import json
import os
from errno import ENOENT
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from predictors.base import (
    DEFAULT_METHOD,
    RUNNING_WARNING_PROBABILITY,
    WARNING_PROBABILITY,
)
from terminal import munge

SYSTEM_SETTINGS = Path("/etc/walltimed/walltimed.toml")
SYSTEM_DIRECTORY = Path("/var/lib/walltimed")
HISTORY = "walltimed.sqlite3"

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


UNIX_SOCKET = "unix"
"""Entry of ``proxy_addresses`` for the service's Unix socket."""

OTHER_HEADERS = frozenset({"authorization", "cookie", "host", "origin", "sec-fetch-site"})
"""Headers with a meaning of their own."""


class NotYoursError(PermissionError):
    """Raised when a user may not use the files of this machine's service."""


def data_directory() -> Path:
    """Return the directory of the history.

    It is systemd's state directory if set, the system's directory for root and the service's own
    user, else the user's data directory (XDG Base Directory Specification).
    """
    if given := os.environ.get("STATE_DIRECTORY"):
        return Path(given.split(":", maxsplit=1)[0])
    if os.geteuid() == 0 or owns(SYSTEM_DIRECTORY):
        return SYSTEM_DIRECTORY
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "walltimed"


def history_url() -> str:
    """Return the URL of the history in the default directory."""
    return f"sqlite:///{data_directory() / HISTORY}"


def check_own_history() -> None:
    """Refuse a second history beside that of the machine's service.

    Raises:
        NotYoursError: this machine has a service, which runs as another user.
    """
    if data_directory() != SYSTEM_DIRECTORY and SYSTEM_DIRECTORY.is_dir():
        raise NotYoursError(
            f"The service of this machine keeps its history in {SYSTEM_DIRECTORY}, which is not "
            "yours: run this by `sudo -u walltimed`, or name a history of your own by "
            "--database-url."
        )


def settings_file() -> Path | None:
    """Return the system's settings file; None if there is none.

    Raises:
        NotYoursError: the file exists and this user may not read it.
    """
    try:
        if not SYSTEM_SETTINGS.is_file():
            return None
    except PermissionError:
        pass
    else:
        if os.access(SYSTEM_SETTINGS, os.R_OK):
            return SYSTEM_SETTINGS
    raise NotYoursError(
        f"{SYSTEM_SETTINGS} has the settings of this machine's service, and you may not read it: "
        "run this by `sudo -u walltimed`, or name a file of your own by --config."
    )


def owns(directory: Path) -> bool:
    """Return whether a directory exists and belongs to this user."""
    try:
        return directory.stat().st_uid == os.geteuid()
    except OSError:
        return False


class Settings(BaseSettings):
    """All settings of a site.

    The environment wins over the file named by WALLTIMED_CONFIG, which is
    /etc/walltimed/walltimed.toml if that exists.
    """

    model_config = SettingsConfigDict(env_prefix="WALLTIMED_", extra="forbid", frozen=True)

    config: Path | None = Field(
        None,
        description="TOML file with any of these settings; else /etc/walltimed/walltimed.toml, if "
        "there is one. An empty name: none.",
    )
    database_url: SecretStr = Field(
        default_factory=lambda: SecretStr(history_url()),
        description="History store: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE. For "
        "root and the service's user the default is as shown, for others walltimed.sqlite3 in "
        "~/.local/share/walltimed.",
    )
    sqlite_synchronous: Literal["full", "normal"] = Field(
        "full",
        description="full: an acknowledged completion survives power loss; normal: it survives "
        "only a crash of the process (for private replays).",
    )
    host: str = Field("127.0.0.1", description="Address to listen on; loopback by default.")
    port: int = Field(8580, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    unix_socket: Path | None = Field(
        None, description="Listen on this Unix socket instead of host and port."
    )
    workers: int = Field(1, ge=1, le=64, description="Worker processes that serve requests.")
    max_connections: int = Field(
        4096,
        ge=1,
        le=1_000_000,
        description="Most connections of one worker process, or fewer if the limit of open files "
        "is lower; further connections are answered 503.",
    )
    host_names: list[str] = Field(
        default_factory=list,
        description="Names besides those of loopback under which callers may address the service "
        "while it asks for no tokens.",
    )
    allow_unauthenticated: bool = Field(
        default=False, description="Listen beyond loopback even if no token has been issued."
    )
    munge_socket: Path | None = Field(
        munge.DEFAULT_SOCKET,
        description="Socket of the munged that decodes MUNGE credentials, by which users of login "
        "nodes say who they are. Where it does not exist, and with an empty name, credentials are "
        "refused.",
    )
    method: str = Field(
        DEFAULT_METHOD, description="Method that answers when a request names none."
    )
    coverage: float = Field(
        0.9,
        ge=0.5,
        le=0.99,
        description="Share of jobs whose runtime an interval holds, if a request names none.",
    )
    warning_probability: float = Field(
        WARNING_PROBABILITY,
        ge=0.05,
        le=1,
        description="Probability of ending at the limit from which on users are warned; 1: never.",
    )
    running_warning_probability: float = Field(
        RUNNING_WARNING_PROBABILITY,
        ge=0.05,
        le=1,
        description="Likewise of running jobs.",
    )
    predictors: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Parameters by method, for example {'percentile': {'percentile': 90}}.",
    )
    shadow_max_per_second: float = Field(
        100.0,
        ge=0.0,
        le=1e6,
        description="Submissions in a second, on average, that every other method predicts as "
        "well, so that it has a live score; a burst may have twice as many. 0: none.",
    )
    shadow_methods: list[str] = Field(
        [],
        description="The other methods that predict as well, for example ['least-cost']; []: all.",
    )
    record_predictions: bool = Field(
        default=True, description="Store predictions, so that they can be scored when jobs end."
    )
    default_group: str = Field(
        "g5", pattern=r"^g([1-9]|10)$", description="Accuracy group of users without history."
    )
    max_body_bytes: int = Field(
        8 << 20, ge=1024, description="Largest body of one request in bytes."
    )
    max_batch: int = Field(
        10_000, ge=1, description="Most submissions, completions or jobs in one request."
    )
    max_clusters: int = Field(
        64,
        ge=1,
        description="Most clusters that a history may have; a completion of a further one is "
        "refused.",
    )
    prediction_retention_days: float = Field(
        90.0,
        gt=0,
        description="Days after which recorded predictions of jobs that never ended are dropped.",
    )
    score_retention_days: float = Field(
        400.0,
        gt=0,
        description="Days after which the daily scores that the pages show are dropped.",
    )
    web_pages: bool = Field(default=True, description="Serve web pages at /; false: the API only.")
    web_session_hours: float = Field(
        12.0, gt=0, le=720, description="Hours after which a browser has to log in again."
    )
    proxy_user_header: str = Field(
        "",
        pattern=r"^([A-Za-z][A-Za-z0-9-]{0,63})?$",
        description="Header in which a proxy names the user whom it has logged in, such as "
        "X-Remote-User: pages then show the user's own jobs. Empty: off.",
    )
    proxy_addresses: list[str] = Field(
        [],
        description="Addresses or networks of that proxy, or unix for unix_socket; the headers "
        "count from nowhere else.",
    )
    proxy_groups_header: str = Field(
        "",
        pattern=r"^([A-Za-z][A-Za-z0-9-]{0,63})?$",
        description="Header in which that proxy names the user's groups, separated by commas.",
    )
    proxy_read_groups: list[str] = Field(
        [], description="Groups of that header whose members see all jobs on pages."
    )
    pseudonym_key_file: Path | None = Field(
        None,
        description="File with a secret key: names of users, groups, projects and jobs are stored "
        "as keyed hashes only.",
    )
    tuning: Literal["automatic", "off"] = Field(
        "automatic",
        description="When the service runs rounds of tuning, in a process of lowest priority: "
        "automatic: whenever enough jobs have ended; off: never, for `walltimed tune` elsewhere.",
    )

    @field_validator("proxy_user_header", "proxy_groups_header")
    @classmethod
    def _name_no_other_header(cls, header: str) -> str:
        if header.lower() in OTHER_HEADERS:
            raise ValueError(f"{header} has a meaning of its own")
        return header

    @field_validator("proxy_addresses")
    @classmethod
    def _take_addresses(cls, addresses: list[str]) -> list[str]:
        for each in addresses:
            if each != UNIX_SOCKET:
                ip_network(each)  # its error says what is wrong
        return addresses

    @model_validator(mode="after")
    def _trust_a_named_proxy(self) -> Self:
        if self.proxy_user_header and not self.proxy_addresses:
            raise ValueError("proxy_user_header needs proxy_addresses: whom the header counts from")
        if self.proxy_read_groups and not (self.proxy_groups_header and self.proxy_user_header):
            raise ValueError(
                "proxy_read_groups needs proxy_groups_header and proxy_user_header, too"
            )
        return self

    @field_validator("tuning", mode="before")
    @classmethod
    def _name_what_requests_became(cls, tuning: Any) -> Any:
        if tuning == "on-request":
            raise ValueError('"on-request" is no more: write "off", and run `walltimed tune`')
        return tuning

    tuning_plan: dict[str, Any] = Field(
        default_factory=dict,
        description="Plan of a round of tuning: history, training, test, penalty, "
        "generations, population, seed, subjects, errors; for example {'penalty': 2}.",
    )
    underestimation_rate: float | None = Field(
        None,
        ge=0.01,
        le=0.5,
        description="Share of jobs for which predictions may be too short, where a request names "
        "none; unset: the estimate of least cost.",
    )
    forecast_jobs: int = Field(
        5_000, ge=1, description="Most running and waiting jobs of one forecast."
    )
    forecast_seconds: float = Field(
        5.0, gt=0, le=600, description="Seconds after which a forecast is given up."
    )
    forecast_samples: int = Field(
        19,
        ge=0,
        le=200,
        description="Number of futures with runtimes drawn from past errors, whose ranges are a "
        "forecast's intervals; 0 turns intervals off.",
    )
    snapshot_max_jobs: int = Field(
        100_000, ge=1, description="Most running and waiting jobs of one snapshot."
    )
    snapshot_max_age_seconds: float = Field(
        300.0,
        gt=0,
        description="Seconds after which a snapshot is shown as old.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest severity of written log records."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto",
        description="json: one object per line; console: for people; auto: for people on a "
        "terminal, else JSON.",
    )

    def least_warning(self, elapsed: float | None) -> float:
        """Return the probability that a warning takes, by the seconds that a job has run."""
        return self.running_warning_probability if elapsed else self.warning_probability

    @property
    def is_default_history(self) -> bool:
        """Return whether no setting names the history."""
        return "database_url" not in self.model_fields_set

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the service."""
        return self.unix_socket is not None or self.host in LOOPBACK

    @property
    def guarded_host(self) -> str | None:
        """The host to listen on, if calls need a token there; else None."""
        return None if self.is_loopback or self.allow_unauthenticated else self.host

    def environment(self) -> dict[str, str]:
        """Return the settings as environment variables, for processes that are started anew.

        These read no settings file: it may be in the midst of a change, or broken.
        """
        prefix = self.model_config["env_prefix"]
        found = {
            f"{prefix}{name}".upper(): text
            for name, value in self
            if (text := _text(value)) is not None
        }
        return found | {f"{prefix}CONFIG": ""}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by priority: arguments, the environment, the TOML file."""
        del dotenv_settings, file_secret_settings
        named = init_settings().get("config") or env_settings().get("config")
        if named is None:
            named = settings_file()
        if not named:
            return init_settings, env_settings
        if not Path(named).is_file():
            raise FileNotFoundError(ENOENT, "No such settings file", str(named))
        file = TomlConfigSettingsSource(settings_cls, Path(named))
        return (
            init_settings,
            env_settings,
            file,
            InitSettingsSource(settings_cls, {"config": named}),
        )

    @field_validator("config", "unix_socket", "munge_socket", "pseudonym_key_file", mode="before")
    @classmethod
    def no_file(cls, value: object) -> object:
        """Return None for an empty name: no such file or socket, no settings file of the system."""
        return None if value == "" else value


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value) if isinstance(value, str | Path) else json.dumps(value)
