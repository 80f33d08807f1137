"""Stores and deletes likes (ratings of titles by viewers).

Imports PyTorch only if a title is unknown, to suggest similar titles.
"""

import datetime
import difflib
import shutil
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flows.champion import find_champion
from flows.cli.installation import require_night
from flows.defaults import WAIT_SECONDS
from storage.artifacts import Tonight
from storage.catalogue.feeds import to_naive_utc
from storage.catalogue.likes import LIKES, STATED, add_likes, forget_viewer, viewer_zone
from storage.home.workspace import Workspace
from storage.tracking.champion import ChampionRecord
from storage.tracking.connection import MlflowConnection
from storage.tracking.retention import remove_run_files
from tasks.likes.exports import read_export
from tasks.likes.players import read_player
from tasks.likes.tables import LikesError, read_likes_table
from tasks.text.titles import parse_title
from tasks.tonight.settings import PAGES
from tasks.tonight.vectors import forget_unlisted

SUGGESTIONS = 5  # number of titles that the message about an unknown title suggests
PLAYER_SUFFIXES = ".db", ".sqlite", ".sqlite3"  # databases of Kodi and Jellyfin


def like_title(
    home: str,
    title: str,
    viewer: str,
    value: float,
    *,
    seen: bool,
    rated_at: datetime.datetime,
    model: str | None = None,
) -> str:
    """Stores the rating of a title by a viewer, and returns the title as it is spelled in the guide.

    Args:
        home: Folder of the home.
        title: Title of the guide.
        viewer: Name of the viewer.
        value: Rating, from -1 (dislike) to 1 (like).
        seen: Whether the viewer has watched the title.
        rated_at: Instant of the rating.
        model: Model to use instead of the champion (see ``flows.champion.open_models``).

    Raises:
        LikesError: The guide does not contain the title; the message names similar titles.
    """
    folder = Workspace(home, create=False).home
    champion, show_key = find_champion(folder, model), parse_title(title).show_key
    table = pq.read_table(champion.folder / "titles.parquet", columns=["title", "show_key"])
    titles = dict(zip(table["show_key"].to_pylist(), table["title"].to_pylist(), strict=True))
    if show_key not in titles:
        raise LikesError(_unknown_title_message(title, titles, show_key, champion.folder))
    row = {"viewer": viewer, "show_key": show_key, "episode": "", "sub_title": "", "source": STATED}
    row |= {"title": titles[show_key], "time": to_naive_utc(rated_at), "value": value, "seen": seen}
    add_likes(folder, pa.Table.from_pylist([row], schema=LIKES))
    return titles[show_key]


def import_likes(home: str, file: Path, viewer: str, default_time: datetime.datetime) -> str:
    """Imports likes from a file (a table, or an export of a player), and returns a line with the row counts.

    Args:
        home: Folder of the home.
        file: File to import.
        viewer: Viewer of the rows that name no viewer.
        default_time: Time of the rows that state no time.

    Raises:
        LikesError: The file is missing, or its content is neither a table of likes nor a supported export.
    """
    folder = Workspace(home, create=False).home
    if not file.is_file():
        raise LikesError(f"{file} is not a file")
    read_file = read_player if file.suffix.lower() in PLAYER_SUFFIXES else read_export
    arguments = file, viewer, to_naive_utc(default_time), viewer_zone(folder, viewer)
    rows = read_file(*arguments)
    if rows is None:
        rows = read_likes_table(*arguments)
    new_count = add_likes(folder, rows)
    viewer_count, title_count = (len(rows[column].unique()) for column in ("viewer", "show_key"))
    viewers_text = f"{viewer_count:,} viewer{'s' * (viewer_count != 1)}"
    counts_text = f"{len(rows):,} rows of {viewers_text} about {title_count:,} titles"
    return f"{file}: {counts_text}, {new_count:,} of them new"


def forget(home: str, viewer: str) -> int:
    """Deletes all data of a viewer, and returns the number of deleted likes.

    A file of recommendations contains the lists of all viewers for an evening. Therefore, the lists of all
    viewers and their pages in MLflow are deleted, too; the flow ``recommend`` creates them again. A running
    flow may have read the likes already, so the lists are deleted after it has ended.

    Raises:
        NightMissing: The lists are also in MLflow, which is not installed; nothing is deleted.
        HomeLocked: Another process still writes to the home after ``WAIT_SECONDS``; the lists remain.
    """
    workspace = Workspace(home, create=False)
    mlflow = MlflowConnection(workspace.home)
    has_pages = (
        not mlflow.uses_home_database or mlflow.database.exists() or ChampionRecord(workspace.home).read()
    )
    if has_pages:
        require_night("forget")
    count = forget_viewer(workspace.home, viewer)
    forget_unlisted(workspace.home)
    report_wait = partial(print, file=sys.stderr)
    with workspace.writing("guidespace forget", wait_seconds=WAIT_SECONDS, report_wait=report_wait):
        if (lists_folder := workspace.artifact_folder(Tonight, "any").parent).exists():
            shutil.rmtree(lists_folder)
        if has_pages:
            remove_run_files(mlflow, PAGES)
    return count


def _unknown_title_message(title: str, titles: dict[str, str], show_key: str, folder: Path) -> str:
    suggestions = [
        titles[key] for key in difflib.get_close_matches(show_key, titles, n=SUGGESTIONS, cutoff=0.75)
    ]
    if not suggestions:
        from tasks.search.search import SearchError, TitleSearch  # imports PyTorch

        try:
            suggestions = [
                neighbour.title for neighbour in TitleSearch.open(folder).similar(title, SUGGESTIONS)
            ]
        except SearchError:
            suggestions = []
    suggestion = f"; similar titles: {', '.join(f'“{name}”' for name in suggestions)}" if suggestions else ""
    return f"the guide has no title {title!r}{suggestion}"
