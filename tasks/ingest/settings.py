"""Settings of the ingest stage."""

import re
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from tasks.form import configurable, setting
from tasks.ingest.sources.headers import ENTRY, check_headers
from tasks.ingest.xmltv.times import is_zone

_LARGEST = "Largest feed, in bytes once uncompressed; a larger one is refused."
_LONGEST = "Longest time of a download, attempts and pauses included."
_SLOWEST = "Least rate of an http download, over a minute; else it is retried."
_LEFT_OUT = "Sources (patterns with * and ?) kept in the catalogue but left out of the guide."
_SHARE = "A feed of whose programmes a larger share cannot be read fails as a whole and changes nothing."
_REQUIRED = (
    "Sources (patterns) that must be read: where one fails, is empty, "
    "shrinks to less than half or ends before today, the run fails."
)
_ZONES = (
    "PATTERN=ZONE, such as */fr/*=Europe/Paris, by source; the first that matches is the zone of times that "
    "name none (else UTC) and of the hours of titles (else the home's)."
)
_PRIORITY = (
    "Sources (patterns) in the order in which they are heard where several know a channel at the same "
    "time; then the one read first."
)
_PRIVATE = (
    "Whether a feed may come from a private address: this machine, the local network. "
    "Whoever may start runs could otherwise read what only this machine reaches."
)
_AGENT = (
    "User-Agent of requests for feeds; empty is GuideSpace/VERSION. Some hosts answer 403 to unknown ones."
)
_HEADERS = (
    "More headers of requests for feeds, [PATTERN=]NAME: VALUE, with a pattern for those sources only. A "
    "value other than that of User-Agent, Accept and Accept-Language is env:NAME, also behind a word: "
    "*/uk.xml.gz=Authorization: Bearer env:UK_TOKEN."
)
_ADDRESS = (
    "Address of the Dask scheduler or Ray cluster; empty starts one here. "
    "Its workers must see the home and the feeds."
)


@configurable
class IngestSettings:
    """How feeds are read and which of them the snapshot holds."""

    size_cap_bytes: int = setting(2**32, _LARGEST, ge=1)
    download_seconds: float = setting(3600.0, _LONGEST, gt=0.0)
    download_bytes_per_second: int = setting(1000, _SLOWEST, ge=0)
    private_addresses: bool = setting(False, _PRIVATE)
    user_agent: str = setting("", _AGENT, json_schema_extra={"pattern": "^[ -~]*$"})
    headers: tuple[Annotated[str, Field(json_schema_extra={"pattern": ENTRY})], ...] = setting((), _HEADERS)
    batch_rows: int = setting(20_000, "Programmes handed to the catalogue at a time.", ge=1, le=1_000_000)
    leave_out: tuple[str, ...] = setting((), _LEFT_OUT)
    max_reject_share: float = setting(0.2, _SHARE, ge=0.0, le=1.0)
    required: tuple[str, ...] = setting((), _REQUIRED)
    zones: tuple[str, ...] = setting((), _ZONES)
    priority: tuple[str, ...] = setting((), _PRIORITY)
    workers: int = setting(1, "Processes that parse feeds side by side; one process writes.", ge=1, le=256)
    pool: Literal["processes", "dask", "ray"] = setting(
        "processes", "Where they run (dask and ray: extras of those names)."
    )
    pool_address: str = setting("", _ADDRESS)

    def __post_init__(self) -> None:
        for entry in self.zones:
            pattern, _, zone = entry.rpartition("=")
            if not pattern or not is_zone(zone):
                expected = "PATTERN=ZONE with a zone such as Europe/Paris, CET or +0100"
                raise ValueError(f"ingest.zones: {entry!r} is not {expected}")
        if not re.fullmatch("[ -~]*", self.user_agent):
            raise ValueError(f"ingest.user_agent: {self.user_agent!r} has characters that no header may have")
        check_headers(self.headers)

    @property
    def is_helped(self) -> bool:
        """Whether the writing process parses too, as one of the workers: on this machine it does."""
        return self.pool == "processes"

    def is_required(self, source: str) -> bool:
        """Whether the run fails without that source."""
        return any(fnmatchcase(source, pattern) for pattern in self.required)

    def zone(self, source: str) -> str:
        """The zone of times without one in a feed of that source; empty is UTC."""
        zones = (entry.rpartition("=") for entry in self.zones)
        return next((zone for pattern, _, zone in zones if fnmatchcase(source, pattern)), "")
