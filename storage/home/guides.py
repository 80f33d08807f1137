"""Selects the current guide of a home among all published snapshots."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.artifacts import Guide
from storage.home.workspace import Workspace, newest_first, published_at


def current_guide(workspace: Workspace) -> Guide | None:
    """Returns the newest intact guide of a home, or None if there is none.

    Guides are ordered by ``as_of`` (the past date for which a guide was made) or, if it is not set or later,
    by the time of publication.
    """
    return next(newest_first(workspace, Guide, instant=_instant), None)


def _instant(file: Path, content: Mapping[str, Any]) -> datetime.datetime:
    as_of, published = content["details"].get("as_of"), published_at(file, content)
    return min(datetime.datetime.fromisoformat(as_of), published) if as_of else published
