"""The result of each feed, read or failed; and when failed feeds fail the whole run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.catalogue.ledger import Counts
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError, FeedUnreachable


@dataclass(frozen=True, kw_only=True)
class FeedResult:
    """The counts of a reading (of the earlier one if unchanged), reasons of rejects, anomalies as text.

    ``passed_over``: members that are no guides, with the first feed of a zip.
    """

    source: str
    counts: Counts
    reasons: Mapping[str, int]
    unchanged: bool
    anomalies: tuple[str, ...] = ()
    passed_over: Sequence[str] = ()

    def __str__(self) -> str:
        counts = (
            f"{self.counts.seen:,} programmes seen, {self.counts.stored:,} stored, "
            f"{self.counts.duplicates:,} duplicates, {self.counts.rejected:,} rejected"
        )
        if self.counts.invalid_bytes:
            counts += f", {self.counts.invalid_bytes:,} invalid bytes"
        if self.unchanged:
            counts = f"unchanged ({counts})"
        reasons = f" ({reasons_text(self.reasons)})" if self.reasons else ""
        others = f"; passed over, no guides: {', '.join(self.passed_over)}" if self.passed_over else ""
        return f"{self.source}: {counts}{reasons}{others}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A feed of which nothing was stored; the text of ``error`` names it. The others go on."""

    source: str
    error: FeedError

    def __str__(self) -> str:
        return f"feed FAILED: {self.error}"


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Reasons with their numbers: "bad_start 3, no_title 1"."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))


def stop_if_needed(failures: Sequence[Failure], settings: IngestSettings, *, is_any_read: bool) -> None:
    """Raises where failed feeds fail the whole reading: all failed, or one that ``ingest.required`` names.

    Raises:
        FeedUnreachable: Only the network is to blame.
        FeedError: Something else is.
    """
    required = [failure for failure in failures if settings.is_required(failure.source)]
    decisive = required if required or is_any_read else failures
    if not decisive:
        return
    is_network = all(isinstance(failure.error, FeedUnreachable) for failure in decisive)
    why = "; ".join(str(failure.error) for failure in decisive)
    if required:
        why = f"{why}. ingest.required names it"
    elif len(decisive) > 1:
        why = f"none of the {len(decisive)} feeds can be read: {why}"
    raise (FeedUnreachable if is_network else FeedError)(why)
