"""Defines the results of importing feeds, and decides whether failed feeds fail the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.catalogue.ledger import Counts
from storage.home.readings import FeedStatus
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError, FeedUnreachable


@dataclass(frozen=True, kw_only=True)
class FeedResult:
    """Result of importing one feed successfully.

    Attributes:
        source: Name of the feed.
        counts: Counts of programmes; if the feed is unchanged, the counts of its last import.
        reasons: Number of rejected elements by reason.
        unchanged: Whether the feed was skipped, because its content has not changed since the last import.
        anomalies: Warnings about the content.
        skipped: Members of a zip that are not guides; only the first feed of a zip lists them.
    """

    source: str
    counts: Counts
    reasons: Mapping[str, int]
    unchanged: bool
    anomalies: tuple[str, ...] = ()
    skipped: Sequence[str] = ()

    def __str__(self) -> str:
        counts = (
            f"{self.counts.seen:,} programmes seen, {self.counts.stored:,} stored, "
            f"{self.counts.duplicates:,} duplicates, {self.counts.rejected:,} rejected"
        )
        if self.counts.invalid_bytes:
            counts += f", {self.counts.invalid_bytes:,} invalid bytes"
        if self.unchanged:
            counts = f"unchanged ({counts})"
        reasons = f" ({format_reasons(self.reasons)})" if self.reasons else ""
        note = f"; skipped, not guides: {', '.join(self.skipped)}" if self.skipped else ""
        return f"{self.source}: {counts}{reasons}{note}"

    def status(self) -> FeedStatus:
        """Returns the result as a row of the file that ``write_readings`` writes."""
        count = self.counts.seen - self.counts.rejected
        return FeedStatus(source=self.source, programmes=count, anomalies=self.anomalies)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Feed that could not be imported. Nothing of it was stored. The message of ``error`` names the feed."""

    source: str
    error: FeedError

    def __str__(self) -> str:
        return f"feed FAILED: {self.error}"

    def status(self) -> FeedStatus:
        """Returns the failure as a row of the file that ``write_readings`` writes."""
        return FeedStatus(source=self.source, failed=str(self.error))


def format_reasons(reasons: Mapping[str, int]) -> str:
    """Formats the number of rejected elements by reason: "bad_start 3, no_title 1"."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))


def raise_if_fatal(failures: Sequence[Failure], settings: IngestSettings, *, is_any_read: bool) -> None:
    """Raises an error if a failure is fatal for the run.

    Failures of required feeds are fatal. If no required feed failed and no feed was read, all failures are
    fatal.

    Args:
        failures: Feeds that could not be imported.
        settings: Settings that list the required feeds.
        is_any_read: Whether at least one feed was read.

    Raises:
        FeedUnreachable: All fatal failures are network failures.
        FeedError: A fatal failure has another cause.
    """
    required_failures = [failure for failure in failures if settings.is_required(failure.source)]
    fatal_failures = required_failures if required_failures or is_any_read else failures
    if not fatal_failures:
        return
    is_network = all(isinstance(failure.error, FeedUnreachable) for failure in fatal_failures)
    reason = "; ".join(str(failure.error) for failure in fatal_failures)
    if required_failures:
        reason = f"{reason}; the feed is listed in ingest.required"
    elif len(fatal_failures) > 1:
        reason = f"none of the {len(fatal_failures)} feeds can be read: {reason}"
    raise (FeedUnreachable if is_network else FeedError)(reason)
