"""Defines the settings for importing feeds."""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from storage.source_patterns import matches_any
from tasks.form import configurable, setting
from tasks.ingest.sources.headers import ENTRY_PATTERN, check_headers
from tasks.ingest.xmltv.times import is_zone

_SIZE_HELP = "Maximum size of a feed in uncompressed bytes; a larger feed fails."
_TIME_HELP = "Maximum time of a download in seconds, including retries and pauses."
_RATE_HELP = (
    "Minimum rate of an http download in bytes per second, measured over a minute; a slower download is "
    "retried."
)
_LEFT_OUT_HELP = (
    "Patterns (* and ?) for names of feeds. Matching feeds are stored in the catalogue, but the guide does "
    "not contain them."
)
_SHARE_HELP = "Maximum share of rejected programmes; a feed with a larger share fails and is not stored."
_REQUIRED_HELP = (
    "Patterns for names of required feeds. The run fails if a required feed cannot be read, is empty, "
    "shrinks to less than half or ends before today."
)
_ZONES_HELP = (
    "Time zones of feeds, as PATTERN=ZONE: */fr/*=Europe/Paris. The first pattern that matches the name of a "
    "feed decides. The zone applies to times without an offset (default: UTC), and to the hours of titles "
    "(default: zone of the home)."
)
_PRIORITY_HELP = (
    "Patterns for names of feeds, in order of precedence, for channels that are in several feeds. Feeds "
    "without a pattern follow in the order in which they were first read."
)
_PRIVATE_HELP = (
    "Allow feeds from private addresses: this machine and the local network. "
    "Anyone who can start runs can then read data that only this machine can reach."
)
_USER_AGENT_HELP = (
    "User-Agent of requests for feeds; empty means GuideSpace/VERSION. "
    "Some hosts reject unknown agents (403)."
)
_HEADERS_HELP = (
    "Additional headers of requests for feeds, as [PATTERN=]NAME: VALUE; without PATTERN, the header is sent "
    "for all feeds. VALUE must be env:VARIABLE, optionally after a word (*/uk.xml.gz=Authorization: Bearer "
    "env:UK_TOKEN), except for User-Agent, Accept and Accept-Language."
)


@configurable
class IngestSettings:
    """Settings for importing feeds, and for the snapshot of the catalogue that a run uses."""

    size_cap_bytes: int = setting(2**32, _SIZE_HELP, ge=1)
    download_seconds: float = setting(3600.0, _TIME_HELP, gt=0.0)
    download_bytes_per_second: int = setting(1000, _RATE_HELP, ge=0)
    private_addresses: bool = setting(False, _PRIVATE_HELP)
    user_agent: str = setting("", _USER_AGENT_HELP, json_schema_extra={"pattern": "^[ -~]*$"})
    headers: tuple[Annotated[str, Field(json_schema_extra={"pattern": ENTRY_PATTERN})], ...] = setting(
        (), _HEADERS_HELP
    )
    batch_rows: int = setting(
        20_000, "Number of programmes that are written to the catalogue at once.", ge=1, le=1_000_000
    )
    leave_out: tuple[str, ...] = setting((), _LEFT_OUT_HELP)
    max_reject_share: float = setting(0.2, _SHARE_HELP, ge=0.0, le=1.0)
    required: tuple[str, ...] = setting((), _REQUIRED_HELP)
    zones: tuple[str, ...] = setting((), _ZONES_HELP)
    priority: tuple[str, ...] = setting((), _PRIORITY_HELP)

    def __post_init__(self) -> None:
        for entry in self.zones:
            pattern, _, zone = entry.rpartition("=")
            if not pattern or not is_zone(zone):
                raise ValueError(
                    f"ingest.zones: {entry!r} is not PATTERN=ZONE with a zone such as Europe/Paris, CET "
                    "or +0100"
                )
        if not re.fullmatch("[ -~]*", self.user_agent):
            raise ValueError(
                f"ingest.user_agent: {self.user_agent!r} has characters that are invalid in a header"
            )
        check_headers(self.headers)

    def is_required(self, source: str) -> bool:
        """Returns whether the run fails if the feed with the name ``source`` cannot be read."""
        return matches_any(source, self.required)

    def zone(self, source: str) -> str:
        """Returns the time zone of the times without an offset in the feed ``source``; empty means UTC."""
        zones = (entry.rpartition("=") for entry in self.zones)
        return next((zone for pattern, _, zone in zones if fnmatchcase(source, pattern)), "")
