"""Selection of the current guide of a home."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.artifacts import Guide
from storage.home.workspace import Workspace, newest_first, published_at


def current_guide(workspace: Workspace) -> Guide | None:
    """Returns the intact guide with the latest instant, or None.

    The instant of a guide is its ``as_of``, but at most its time of publication; without ``as_of`` it is the
    time of publication.
    """
    return next(newest_first(workspace, Guide, instant=_instant), None)


def _instant(file: Path, content: Mapping[str, Any]) -> datetime.datetime:
    as_of, published = content["details"].get("as_of"), published_at(file, content)
    return min(datetime.datetime.fromisoformat(as_of), published) if as_of else published
