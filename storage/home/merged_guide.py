"""Paths of the merged guide of a home, which the flow refresh writes and the server reads."""

from pathlib import Path

FOLDER = "merged"  # folder in the home
GUIDE = "guide.xml.gz"
GENRES = "genres.xml"  # Kodi's table of genres for this guide


def merged_file(home: Path) -> Path:
    """Returns the path of the merged guide."""
    return home / FOLDER / GUIDE
