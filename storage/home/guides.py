"""Which of a home's guides is the current one."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.artifacts import Guide
from storage.home.workspace import Workspace, newest_first, published_at


def current_guide(workspace: Workspace) -> Guide | None:
    """The guide that represents the latest instant, whenever it was written; None where no guide is intact.

    A guide with ``as_of`` represents that instant, or its publication if that was earlier. Any other guide
    represents the time at which ingest last published it.
    """
    return next(newest_first(workspace, Guide, instant=_instant), None)


def _instant(file: Path, about: Mapping[str, Any]) -> datetime.datetime:
    as_of, published = about["details"].get("as_of"), published_at(file, about)
    return min(datetime.datetime.fromisoformat(as_of), published) if as_of else published
