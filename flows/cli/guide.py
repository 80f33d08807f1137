"""Defines the command ``guide``, which merges all feeds of a home into one guide for TV players."""

import datetime
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from flows.cli.exits import DONE, INCOMPLETE
from flows.cli.guides import ForPlayers, Precision
from flows.cli.options import NO_VALUES, Home, Model, Set
from flows.defaults import DEFAULT_HOME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.sources.feeds import NamedFeed

OUT_HELP = (
    "file to write, compressed if its name ends in .gz, .bz2 or .xz; - for standard output "
    "[default: the file that `guidespace serve` serves]"
)
PLAYLIST_HELP = "M3U playlist; only its channels are written, with the ids of the playlist"
FEEDS_HELP = "feeds in order of preference, as in nightly [default: the feeds that the home has read]"

Out = Annotated[str, Argument(metavar="OUT", help=OUT_HELP)]
Feeds = Annotated[list[str], Option("--feed", metavar="FEED ...", help=FEEDS_HELP)]
Playlist = Annotated[str, Option("--playlist", metavar="FILE.m3u", help=PLAYLIST_HELP)]


def guide(
    out: Out = "",
    feeds: Feeds = NO_VALUES,
    playlist: Playlist = "",
    players: ForPlayers = NO_VALUES,
    precision: Precision = NO_VALUES,
    home: Home = DEFAULT_HOME,
    model: Model = None,
    changes: Set = NO_VALUES,
) -> int:
    """Merge all feeds of the home into one guide. Missing categories are filled."""
    from flows.champion import find_champion
    from flows.refresh_settings import RefreshSettings
    from storage.home.guides import current_guide
    from storage.home.workspace import HomeError, Workspace
    from tasks.enrich.copies import CopyWriter
    from tasks.enrich.settings import make_players, set_precision
    from tasks.merge.home import merge_copies
    from tasks.overrides import override

    settings = override(RefreshSettings(), ["ingest.private_addresses=true", *changes])
    merge_settings = replace(settings.guide, playlist=playlist) if playlist else settings.guide
    options = replace(settings.enrich, players=make_players(players)) if players else settings.enrich
    options = set_precision(options, precision)
    folder, workspace = find_champion(home, model).folder, Workspace(home, create=False)
    references = list(feeds) or list_home_feeds(workspace.home, settings.ingest)
    if not references:
        raise HomeError(f"{workspace.home} has read no feed; name a feed with --feed")
    newest_guide = current_guide(workspace)
    copies = CopyWriter(workspace.home, settings.ingest, options, folder).update(
        open_secrets(references, workspace.home), home_guide=newest_guide and workspace.folder(newest_guide)
    )
    for copy in copies:
        if copy.error:
            print(copy.error, file=sys.stderr)
    now = datetime.datetime.now(datetime.UTC)
    merged_guide = merge_copies(
        workspace.home, copies, settings.ingest, merge_settings, now, out=out, options=options
    )
    stream, name = (sys.stderr, "standard output") if out == "-" else (sys.stdout, merged_guide.file)
    for line in merged_guide.report.lines(name):
        print(line, file=stream)
    return INCOMPLETE if any(copy.error for copy in copies) else DONE


def open_secrets(references: list[str], home: Path) -> "Sequence[str | NamedFeed]":
    """Replaces references to Prefect's Secret blocks by their values, if Prefect is installed."""
    from storage.installed import is_installed
    from tasks.ingest.sources.feeds import SECRET_PREFIX

    if not any(feed.startswith(SECRET_PREFIX) for feed in references) or not is_installed("prefect"):
        return references
    from flows.server import start_prefect

    wait_for_server = start_prefect(home, writes=False)
    from tasks.ingest.task import open_secret_block

    if wait_for_server:
        wait_for_server()
    return [open_secret_block(feed) for feed in references]


def list_home_feeds(home: Path, ingest_settings: "IngestSettings") -> list[str]:
    """Returns the locations of the feeds that a home has read, in the order in which they were first read.

    Omits feeds that match ``ingest.leave_out``, and dated guides that ``backfill`` has read.
    """
    from storage.catalogue.feeds import read_status
    from storage.source_patterns import matches_any

    status: Any = read_status(home)
    sources = (feed["source"] for feed in status["feeds"])
    selected_sources = (
        source
        for source in sources
        if "{date}" not in source and not matches_any(source, ingest_settings.leave_out)
    )
    return list(dict.fromkeys(source.partition("!")[0] for source in selected_sources))
