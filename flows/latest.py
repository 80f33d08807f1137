"""The pointer to what the last finished run made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.json_file import write_json
from storage.workspace import HomeError, Workspace

LATEST = "latest.json"
PATHS = ("map", "scores", "model", "corpus")


def write_latest(home: Path, content: Mapping[str, Any]) -> None:
    """Replaces the pointer; paths are kept relative, so that a home can move."""
    write_json(home / LATEST, {**content, **{name: os.path.relpath(content[name], home) for name in PATHS}})


def read_latest(home: str | Path, needed: str) -> dict[str, Any]:
    """The pointer, paths made absolute.

    Args:
        home: Of a finished run.
        needed: Which of the paths will be read.

    Raises:
        HomeError: No run has finished in this home, or what is needed was removed since.
    """
    place = Workspace(home, create=False).home
    if not (place / LATEST).exists():
        raise HomeError(f"no run has finished in {place} yet; run `guidespace nightly --feed …` first")
    content = json.loads((place / LATEST).read_text())
    if not (place / content[needed]).exists():
        raise HomeError(f"{place} no longer holds the {needed} of its last run; run `guidespace nightly --feed …` again")
    return {**content, **{name: str(place / content[name]) for name in PATHS}}


def read_figures(home: Path) -> dict[str, float]:
    """Headline figures of the last finished run; empty where there is none, or where it was an older version's."""
    try:
        return dict(json.loads((home / LATEST).read_text()).get("figures", {}))
    except FileNotFoundError:
        return {}


def read_scores(home: str | Path) -> dict[str, Any]:
    """The scores document of the last run, and whether its model is the champion."""
    latest = read_latest(home, "scores")
    return {**json.loads(Path(latest["scores"]).read_text()), "champion": latest["champion"]}
