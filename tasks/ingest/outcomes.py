"""What became of each feed: read (and perhaps odd), or failed; and when failed ones fail the whole run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from storage.catalogue.ledger import Counts
from tasks.ingest.feeds import (
    FeedError,
    FeedUnreachable,
    Named,
    is_reference,
    is_url,
    refuse_twins,
    resolve,
    source_of,
)
from tasks.ingest.settings import IngestSettings


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What reading a feed came to.

    Attributes:
        source: The feed.
        counts: Of this reading; of the earlier one where the feed is unchanged.
        reasons: Why programmes were rejected, with their numbers.
        unchanged: Whether these bytes were read before, and nothing was done.
        anomalies: What is odd about it beside the source's reading before, in words.
    """

    source: str
    counts: Counts
    reasons: dict[str, int]
    unchanged: bool
    anomalies: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = f"{self.counts.seen:,} programmes seen, {self.counts.stored:,} stored, {self.counts.duplicates:,} duplicates, {self.counts.rejected:,} rejected"
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.reasons.items()))
        return f"{self.source}: {'unchanged (' if self.unchanged else ''}{counts}{')' if self.unchanged else ''}{f' ({reasons})' if reasons else ''}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A feed of which nothing was stored; the others go on.

    Attributes:
        source: The feed.
        error: Why; its text names the feed.
    """

    source: str
    error: FeedError

    def __str__(self) -> str:
        return f"feed FAILED: {self.error}"


def locate(given: Sequence[str | Named]) -> tuple[list[str | Named], list[Failure]]:
    """Absolute paths and URLs of the feeds given, each once and in order, and what of them cannot be found.

    Raises:
        FeedError: Nothing was given, or two URLs are one source.
    """
    found: dict[str | Named, None] = {}
    failures = []
    for text in given:
        try:
            found.update(dict.fromkeys(resolve([text])))
        except FeedError as error:
            failures.append(Failure(source=_source(text), error=error))
        except OSError as error:
            failures.append(Failure(source=_source(text), error=unreadable(_source(text), error)))
    refuse_twins(found)
    return (list(found), failures) if given else (resolve(given), [])


def _source(given: str | Named) -> str:
    """What the catalogue would know it by."""
    if isinstance(given, Named) or is_url(given):
        return source_of(given)
    return given if is_reference(given) else os.path.abspath(os.path.expanduser(given))


def unreadable(source: str, error: OSError) -> FeedError:
    """The error for a file or folder that the system does not let us read."""
    return FeedError(
        f"{source}: cannot be read ({error.strerror or error}); give this user the right to read it"
    )


def stop_if_needed(failures: Sequence[Failure], settings: IngestSettings, *, is_any_read: bool) -> None:
    """Raises where failed feeds fail the whole reading: all did, or one that ``ingest.required`` names.

    Raises:
        FeedUnreachable: Nothing but the network is to blame.
        FeedError: Something else is.
    """
    required = [failure for failure in failures if settings.is_required(failure.source)]
    decisive = required if required or is_any_read else failures
    if not decisive:
        return
    kind = (
        FeedUnreachable
        if all(isinstance(failure.error, FeedUnreachable) for failure in decisive)
        else FeedError
    )
    why = "; ".join(str(failure.error) for failure in decisive)
    raise kind(
        f"{why}. ingest.required names it"
        if required
        else why
        if len(decisive) == 1
        else f"none of the {len(decisive)} feeds can be read: {why}"
    )
