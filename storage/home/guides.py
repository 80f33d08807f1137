"""Selects the current guide of a home among all published snapshots."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.artifacts import Guide
from storage.home.files import mark_used
from storage.home.workspace import Workspace, newest_first, published_at


def current_guide(workspace: Workspace) -> Guide | None:
    """Returns the newest intact guide of a home, or None if there is none.

    Guides are ordered by the instant for which they were made (``as_of``, such as a past date), or by the
    time of publication if ``as_of`` is later or not set.
    """
    if guide := next(newest_first(workspace, Guide, time_of=_guide_time), None):
        mark_used(workspace.folder(guide))
    return guide


def _guide_time(file: Path, content: Mapping[str, Any]) -> datetime.datetime:
    """Returns the time of a guide, from the path and content of its ``artifact.json``."""
    as_of, published = content["details"].get("as_of"), published_at(file, content)
    return min(datetime.datetime.fromisoformat(as_of), published) if as_of else published
