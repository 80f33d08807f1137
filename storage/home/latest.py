"""Reads and writes ``latest.json``, the paths and results of the last finished nightly run."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from storage.home.workspace import HomeError, Workspace
from storage.json_file import read_json_if_exists, write_json

LATEST_FILE = "latest.json"
PATH_KEYS = ("map", "scores", "model", "corpus")  # keys whose values are paths


def write_latest(home: Path, content: Mapping[str, Any]) -> None:
    """Writes latest.json atomically, with paths relative to the home, so that the home can be moved."""
    relative_paths = {key: os.path.relpath(content[key], home) for key in PATH_KEYS}
    write_json(home / LATEST_FILE, {**content, **relative_paths})


def read_latest(home: str | Path, key: str) -> dict[str, Any]:
    """Reads latest.json: the results of the last finished run, and its paths as absolute paths.

    Args:
        home: The home folder.
        key: Key of a path that must exist because the caller will read it, such as "model".

    Raises:
        HomeError: No run has finished in this home, or the path ``key`` has been removed.
    """
    folder = Workspace(home, create=False).home
    if (latest := _read_with_absolute_paths(folder)) is None:
        raise HomeError(f"no run has finished in {folder} yet; run `guidespace nightly --feed …` first")
    if not Path(latest[key]).exists():
        problem = f"the {key} of the last run has been removed from {folder}"
        raise HomeError(f"{problem}; run `guidespace nightly --feed …` again")
    return latest


def _read_with_absolute_paths(home: Path) -> dict[str, Any] | None:
    """Reads latest.json and makes its paths absolute; returns None if no run has finished."""
    if (latest := read_json_if_exists(home / LATEST_FILE)) is None:
        return None
    return {**latest, **{name: str(home / latest[name]) for name in PATH_KEYS}}


def folders_of_last_run(home: Path) -> set[Path]:
    """Returns the folders of the last run's map, scores, model and corpus; empty if no run has finished."""
    if (latest := _read_with_absolute_paths(home)) is None:
        return set()
    files = [Path(latest[name]).resolve() for name in PATH_KEYS]
    return {file if file.is_dir() else file.parent for file in files}


def last_instant(home: Path) -> str:
    """Returns the instant (ISO, UTC) of the guide in the last run, or '' if no run has finished.

    Older versions did not store the instant. For a run of an older version, returns "9", which sorts after
    all instants.
    """
    latest = _read_with_absolute_paths(home)
    return "" if latest is None else latest.get("as_of", "9")


def read_scores(home: str | Path) -> dict[str, Any]:
    """Returns the scores of the last run, and under the key "champion" whether its model is the champion."""
    latest = read_latest(home, "scores")
    text = Path(latest["scores"]).read_text(encoding="utf-8")
    text = text.replace('"precision_at_10"', '"precision_at_k"')  # name in earlier versions
    return {**json.loads(text), "champion": latest["champion"]}


def read_category_report(home: str | Path) -> dict[str, Any]:
    """Returns the "labels" of the last run and the categories that were "dropped", with the reasons.

    Both are lists of dictionaries with the number of titles of a category. Labels are sorted by this number,
    the largest first.
    """
    corpus = Path(read_latest(home, "corpus")["corpus"])
    column = pq.read_table(corpus / "titles.parquet", columns=["labels"])["labels"]
    titles = Counter(sorted(label for labels in column.to_pylist() for label in labels))
    return {
        "labels": [{"category": name, "titles": count} for name, count in titles.most_common()],
        "dropped": pq.read_table(corpus / "dropped_categories.parquet").to_pylist(),
    }
