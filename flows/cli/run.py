"""Defines the commands that read feeds, train and promote: ``nightly``, ``ingest``, ``backfill`` and others.

As in the other modules of commands, imports are inside the functions, so that a command loads only what it
needs and ``--help`` is fast.
"""

import datetime
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from flows.cli.exits import DONE, INCOMPLETE
from flows.cli.options import NO_VALUES, AsJson, Feeds, Home, Preset, Set, read_date_or_instant
from flows.cli.render import show
from flows.defaults import DEFAULT_HOME
from tasks.ingest.sources.feeds import count_feeds

if TYPE_CHECKING:
    from storage.artifacts import Progress
    from tasks.ingest.results import Failure, FeedResult
    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.sources.dates import DatedFeed
    from tasks.subtitles.task import PatternCounts

AS_OF_HELP = "use the guide as of the end of a day (YYYY-MM-DD) or as of an instant; --feed is then optional"
DATE_FORMATS = ["%Y-%m-%d"]

AsOf = Annotated[
    datetime.datetime | None, Option(parser=read_date_or_instant, metavar="DATE", help=AS_OF_HELP)
]
Promote = Annotated[bool, Option("--promote", help="make the new model the champion without the gate")]
FirstDate = Annotated[
    datetime.datetime, Option("--from", formats=DATE_FORMATS, metavar="YYYY-MM-DD", help="first date")
]
LastDate = Annotated[
    datetime.datetime, Option("--to", formats=DATE_FORMATS, metavar="YYYY-MM-DD", help="last date")
]
UseStoredModel = Annotated[
    bool, Option("--kept", help="do not train; label with the stored classifier of the home")
]


def nightly(
    home: Home = DEFAULT_HOME,
    feeds: Feeds = NO_VALUES,
    preset: Preset = "laptop",
    changes: Set = NO_VALUES,
    as_of: AsOf = None,
    promote: Promote = False,
) -> int:
    """Read a guide, train embeddings, score and publish them."""
    changes = [*changes, "publish.promote=always"] if promote else changes
    print(f"GuideSpace: nightly run of {count_feeds(feeds)} into {home}, preset {preset}", flush=True)
    from flows.server import start_prefect
    from flows.settings import choose_settings
    from tasks.ingest.check import check_feeds

    settings = choose_settings(preset, changes, feeds)
    if feeds or not as_of:
        check_feeds(feeds, settings.ingest)
    wait_for_server = start_prefect(home)
    from flows.cli.progress import run_and_report
    from storage.home.zones import home_zone, in_zone

    parameters = {"settings": settings, "as_of": as_of and in_zone(as_of, home_zone(home))}
    return run_and_report("nightly", feeds, home, parameters, wait_for_server)


def ingest(feeds: Feeds, home: Home = DEFAULT_HOME, changes: Set = NO_VALUES) -> int:
    """Read guides into the catalogue, without training. Publishes a snapshot of the catalogue."""
    print(f"GuideSpace: reading {count_feeds(feeds)} into {home}", flush=True)
    from flows.ingest_settings import ingest_settings
    from tasks.ingest.check import check_feeds

    settings = ingest_settings(changes)
    check_feeds(feeds, settings)
    return read_feeds(feeds, home, settings)


def backfill(
    feeds: Feeds, first: FirstDate, last: LastDate, home: Home = DEFAULT_HOME, changes: Set = NO_VALUES
) -> int:
    """Read dated guides, each as the guide of its date. The date is in the name of the file."""
    print(f"GuideSpace: reading dated guides of {first:%F} to {last:%F} into {home}", flush=True)
    from flows.ingest_settings import ingest_settings
    from storage.home.zones import home_zone
    from tasks.ingest.sources.dates import dated_guides

    settings = ingest_settings(changes)
    zone = home_zone(home)
    guides = dated_guides(feeds, first.date(), last.date(), zone, settings.private_addresses)
    return read_feeds(guides, home, settings)


def read_feeds(feeds: "Sequence[str | DatedFeed]", home: str, settings: "IngestSettings") -> int:
    """Reads feeds without Prefect, which starts slowly. Prints a line per feed, and returns the exit code."""
    from storage.home.readings import read_readings
    from storage.home.workspace import Workspace
    from tasks.ingest.publish import read_and_publish

    workspace = Workspace(home)
    with workspace.writing(f"ingest of {count_feeds(feeds)}"):
        guide = read_and_publish(workspace, feeds, settings, None, _print_event)
    counts = ", ".join(f"{count:,} {name}" for name, count in guide.counts.items())
    print(f"The guide: {workspace.folder(guide)} ({counts})")
    return INCOMPLETE if any(feed.failed for feed in read_readings(workspace.home)) else DONE


def _print_event(event: "Progress | FeedResult | Failure") -> None:
    from tasks.ingest.ingest import STEPS_PER_LOCATION
    from tasks.ingest.results import Failure, FeedResult

    if isinstance(event, FeedResult):
        print(event, flush=True)
        for anomaly in event.anomalies:
            print(f"warning: {event.source}: {anomaly}", file=sys.stderr, flush=True)
    elif isinstance(event, Failure):
        print(event, file=sys.stderr, flush=True)
    elif event.step % STEPS_PER_LOCATION:  # not at the end of a location
        print(event.note, flush=True)


def patterns(
    home: Home = DEFAULT_HOME, changes: Set = NO_VALUES, kept: UseStoredModel = False, as_json: AsJson = False
) -> int:
    """Classify sub-titles: dates, guests, teams, numbers."""
    from flows.cli.progress import run_flow
    from flows.server import start_prefect
    from storage.home.workspace import Workspace
    from tasks.overrides import override
    from tasks.subtitles.settings import LabellingSettings

    folder = str(Workspace(home, create=False).home)
    settings = override(LabellingSettings(), changes).patterns
    parameters = {"home": folder, "settings": settings, "kept": kept}
    counts = run_flow("patterns", home, parameters, start_prefect(home))
    show(asdict(counts), as_json, _pattern_lines(counts))
    return DONE


def _pattern_lines(counts: "PatternCounts") -> Iterator[str]:
    labelled_count = sum(counts.counts.values())
    yield f"{labelled_count:,} of {counts.sub_titles:,} sub-titles have a pattern ({counts.seconds:.1f} s):"
    for name, count in counts.counts.items():
        examples = "; ".join(counts.examples.get(name, ()))
        rule_count = counts.by_rule.get(name, 0)
        yield f"{name:<15} {count:7,}, {rule_count:7,} of them by rules   {examples}".rstrip()
    yield "The patterns are in the catalogue's table sub_title_patterns and view episodes."


def rollback(home: Home = DEFAULT_HOME) -> None:
    """Restore the previous champion. The replaced model is not promoted automatically again."""
    from storage.home.workspace import Workspace
    from storage.tracking import Registry

    registry = Registry(Workspace(home, create=False).home)
    previous_version, restored_version = registry.rollback(at=datetime.datetime.now(datetime.UTC))
    print(
        f"{registry.name}: version {restored_version} is the champion again, "
        f"instead of version {previous_version}"
    )
