"""Defines where a home stores the guide that is merged from all feeds for players (guide.xml.gz)."""

from pathlib import Path

MERGED_FOLDER = "merged"  # folder in the home
GUIDE_FILE = "guide.xml.gz"  # the merged guide
GENRES_FILE = "genres.xml"  # Kodi's table of genres for this guide


def merged_file(home: Path) -> Path:
    """Returns the path of the merged guide, which the flow ``refresh`` writes and the HTTP server offers."""
    return home / MERGED_FOLDER / GUIDE_FILE
