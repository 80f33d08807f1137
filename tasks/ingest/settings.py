"""Settings of the ingest stage."""

import re
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from tasks.form import configurable, setting
from tasks.ingest.sources.headers import ENTRY, check_headers
from tasks.ingest.xmltv.times import is_zone

_LARGEST = "Maximum size of a feed in uncompressed bytes; a larger one fails."
_LONGEST = "Maximum time of a download, retries and pauses included."
_SLOWEST = "Minimum rate of an http download over a minute; a slower one is retried."
_LEFT_OUT = "Sources (patterns with * and ?) that stay in the catalogue but are not in the guide."
_SHARE = "Maximum share of rejected programmes; a feed with more fails and stores nothing."
_REQUIRED = (
    "Sources (patterns) that must be read: the run fails if one fails, is empty, "
    "shrinks to less than half or ends before today."
)
_ZONES = (
    "PATTERN=ZONE, such as */fr/*=Europe/Paris, by source; the first match is the zone of times without one "
    "(default: UTC) and of the hours of titles (default: that of the home)."
)
_PRIORITY = (
    "Sources (patterns) in order of precedence, for channels that several sources have at the same time; "
    "then the source read first."
)
_PRIVATE = (
    "Allow feeds from private addresses: this machine and the local network. "
    "Anyone who can start runs can then read what only this machine can reach."
)
_AGENT = (
    "User-Agent of requests for feeds; empty means GuideSpace/VERSION. Some hosts reject unknown ones (403)."
)
_HEADERS = (
    "Additional headers of requests for feeds, [PATTERN=]NAME: VALUE; a pattern selects sources. Except for "
    "User-Agent, Accept and Accept-Language, the value is env:NAME, optionally after a word: "
    "*/uk.xml.gz=Authorization: Bearer env:UK_TOKEN."
)
_ADDRESS = (
    "Address of the Dask scheduler or Ray cluster; empty starts one on this machine. "
    "Its workers need access to the home and the feeds."
)


@configurable
class IngestSettings:
    """Settings for reading feeds and for the snapshot."""

    size_cap_bytes: int = setting(2**32, _LARGEST, ge=1)
    download_seconds: float = setting(3600.0, _LONGEST, gt=0.0)
    download_bytes_per_second: int = setting(1000, _SLOWEST, ge=0)
    private_addresses: bool = setting(False, _PRIVATE)
    user_agent: str = setting("", _AGENT, json_schema_extra={"pattern": "^[ -~]*$"})
    headers: tuple[Annotated[str, Field(json_schema_extra={"pattern": ENTRY})], ...] = setting((), _HEADERS)
    batch_rows: int = setting(
        20_000, "Programmes per batch that is written to the catalogue.", ge=1, le=1_000_000
    )
    leave_out: tuple[str, ...] = setting((), _LEFT_OUT)
    max_reject_share: float = setting(0.2, _SHARE, ge=0.0, le=1.0)
    required: tuple[str, ...] = setting((), _REQUIRED)
    zones: tuple[str, ...] = setting((), _ZONES)
    priority: tuple[str, ...] = setting((), _PRIORITY)
    workers: int = setting(1, "Processes that parse feeds in parallel; one process writes.", ge=1, le=256)
    pool: Literal["processes", "dask", "ray"] = setting(
        "processes", "Where the workers run (dask and ray are extras)."
    )
    pool_address: str = setting("", _ADDRESS)

    def __post_init__(self) -> None:
        for entry in self.zones:
            pattern, _, zone = entry.rpartition("=")
            if not pattern or not is_zone(zone):
                expected = "PATTERN=ZONE with a zone such as Europe/Paris, CET or +0100"
                raise ValueError(f"ingest.zones: {entry!r} is not {expected}")
        if not re.fullmatch("[ -~]*", self.user_agent):
            raise ValueError(
                f"ingest.user_agent: {self.user_agent!r} has characters that are invalid in a header"
            )
        check_headers(self.headers)

    @property
    def parses_in_writer(self) -> bool:
        """Whether the writing process is one of the workers: only on one machine."""
        return self.pool == "processes"

    def is_required(self, source: str) -> bool:
        """Returns whether the run fails without that source."""
        return any(fnmatchcase(source, pattern) for pattern in self.required)

    def zone(self, source: str) -> str:
        """Returns the zone of times without one in a feed of that source; empty means UTC."""
        zones = (entry.rpartition("=") for entry in self.zones)
        return next((zone for pattern, _, zone in zones if fnmatchcase(source, pattern)), "")
