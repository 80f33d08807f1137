"""What the commands ``like`` and ``forget`` do, without PyTorch unless a title is unknown."""

import datetime
import difflib
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from storage.artifacts import Tonight
from storage.catalogue.feeds import utc
from storage.catalogue.likes import LIKES, STATED, add_likes, forget_viewer
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.tracking.retention import Retention
from tasks.likes.exports import read_export
from tasks.likes.players import read_player
from tasks.likes.tables import LikesError, read_table
from tasks.text.titles import parse_title
from tasks.tonight.evening import find_champion
from tasks.tonight.settings import PAGES
from tasks.tonight.vectors import forget_unlisted

NEAR = 5  # titles named where one is unknown
WAIT_SECONDS = 6 * 3600.0  # for a run in the home
PLAYERS = ".db", ".sqlite", ".sqlite3"


def like_title(home: str, title: str, viewer: str, value: float, seen: bool, at: datetime.datetime) -> str:
    """Stores what a viewer thinks of a title of the guide; returns the title as people read it.

    Raises:
        LikesError: The guide has no such title; the message names the nearest.
    """
    folder = Workspace(home, create=False).home
    champion, show_key = find_champion(folder), parse_title(title).show_key
    known = pq.read_table(champion.folder / "titles.parquet", columns=["title", "show_key"])
    found = dict(zip(known["show_key"].to_pylist(), known["title"].to_pylist(), strict=True))
    if show_key not in found:
        raise LikesError(_unknown(title, found, show_key, champion.folder))
    row = {"viewer": viewer, "show_key": show_key, "episode": "", "sub_title": "", "source": STATED}
    row |= {"title": found[show_key], "time": utc(at), "value": value, "seen": seen}
    add_likes(folder, pa.Table.from_pylist([row], schema=LIKES))
    return found[show_key]


def import_likes(home: str, file: Path, viewer: str, at: datetime.datetime) -> str:
    """Stores the likes of a file; returns what became of them, as a line."""
    folder = Workspace(home, create=False).home
    if not file.is_file():
        raise LikesError(f"{file} is no file")
    read = read_player if file.suffix.lower() in PLAYERS else read_export
    rows = read(file, viewer, utc(at), home_zone(folder))
    if rows is None:
        rows = read_table(file, viewer, utc(at))
    new = add_likes(folder, rows)
    people, titles = (len(rows[name].unique()) for name in ("viewer", "show_key"))
    about = f"{len(rows):,} rows of {people:,} viewer{'s' * (people != 1)} about {titles:,} titles"
    return f"{file}: {about}, {new:,} of them new"


def forget(home: str, viewer: str) -> int:
    """Deletes everything that is known of a viewer; returns how many likes that were.

    Likes go at once. The lists of all viewers go, too, with their pages in MLflow: they are one file an
    evening, which the flow ``recommend`` makes again. One that runs has read the likes before, so the lists
    are removed when it has ended.

    Raises:
        HomeLocked: Another process still writes to the home after ``WAIT_SECONDS``; the lists are left.
    """
    workspace = Workspace(home, create=False)
    count = forget_viewer(workspace.home, viewer)
    forget_unlisted(workspace.home)
    with workspace.writing("guidespace forget", wait_seconds=WAIT_SECONDS, report_wait=_warn):
        if (lists := workspace.artifact_folder(Tonight, "any").parent).exists():
            shutil.rmtree(lists)
        runs = Retention(workspace.home)
        if not runs.uses_home_database or runs.database.exists():
            runs.remove_files(PAGES)
    return count


def _warn(message: str) -> None:
    print(message, file=sys.stderr)


def _unknown(title: str, found: dict[str, str], show_key: str, folder: Path) -> str:
    near = [found[key] for key in difflib.get_close_matches(show_key, found, n=NEAR, cutoff=0.75)]
    if not near:
        from tasks.search.search import SearchError, TitleSearch  # imports PyTorch

        try:
            near = [one.title for one in TitleSearch.open(folder).similar(title, NEAR)]
        except SearchError:
            near = []
    some = f"; near it are {', '.join(f'“{one}”' for one in near)}" if near else ""
    return f"the guide has no title {title!r}{some}"
