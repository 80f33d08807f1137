"""The pointer to what the last finished run made, and what is read through it."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from storage.home.workspace import HomeError, Workspace
from storage.json_file import write_json

LATEST = "latest.json"
PATHS = ("map", "scores", "model", "corpus")


def write_latest(home: Path, content: Mapping[str, Any]) -> None:
    """Replaces the pointer; paths are kept relative, so that a home can move."""
    write_json(home / LATEST, {**content, **{name: os.path.relpath(content[name], home) for name in PATHS}})


def read_latest(home: str | Path, needed: str) -> dict[str, Any]:
    """The pointer, paths made absolute; ``needed`` is the path that will be read.

    Raises:
        HomeError: No run has finished in this home, or what is needed was removed since.
    """
    folder = Workspace(home, create=False).home
    if not (folder / LATEST).exists():
        raise HomeError(f"no run has finished in {folder} yet; run `guidespace nightly --feed …` first")
    content = _read(folder)
    if not Path(content[needed]).exists():
        gone = f"{folder} no longer holds the {needed} of its last run"
        raise HomeError(f"{gone}; run `guidespace nightly --feed …` again")
    return content


def _read(home: Path) -> dict[str, Any]:
    content = json.loads((home / LATEST).read_text(encoding="utf-8"))
    return {**content, **{name: str(home / content[name]) for name in PATHS}}


def folders_of_last_run(home: Path) -> set[Path]:
    """Folders of artifacts that the pointer names; none where no run has finished."""
    if not (home / LATEST).exists():
        return set()
    content = _read(home)
    files = [Path(content[name]).resolve() for name in PATHS]
    return {file if file.is_dir() else file.parent for file in files}


def last_instant(home: Path) -> str:
    """Instant of the night that the pointer names, ISO in UTC; empty where there is none, and after any other
    where an older version wrote the pointer.
    """
    return _read(home).get("as_of", "9") if (home / LATEST).exists() else ""


def read_scores(home: str | Path) -> dict[str, Any]:
    """The scores document of the last run, and whether its model is the champion."""
    latest = read_latest(home, "scores")
    return {
        **json.loads(_renamed(Path(latest["scores"]).read_text(encoding="utf-8"))),
        "champion": latest["champion"],
    }


def _renamed(text: str) -> str:
    """JSON with the metric names of today: earlier versions wrote precision_at_10."""
    return text.replace('"precision_at_10"', '"precision_at_k"')


def read_categories(home: str | Path) -> dict[str, Any]:
    """Labels, and dropped categories with reasons, each with its number of titles; most titles first.

    Raises:
        HomeError: The last run was made by a version that kept no report.
    """
    corpus = Path(read_latest(home, "corpus")["corpus"])
    column = pq.read_table(corpus / "titles.parquet", columns=["labels"])["labels"]
    titles = Counter(sorted(label for labels in column.to_pylist() for label in labels))
    try:
        dropped = pq.read_table(corpus / "dropped_categories.parquet").to_pylist()
    except FileNotFoundError as error:
        older = f"the last run in {home} was made by an older version, which kept no report of categories"
        raise HomeError(f"{older}; run `guidespace nightly --feed …` again") from error
    return {
        "labels": [{"category": name, "titles": count} for name, count in titles.most_common()],
        "dropped": dropped,
    }
