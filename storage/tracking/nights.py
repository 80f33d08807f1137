"""The nights of a home as MLflow has them: for the page that shows them side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from storage.home.identity import read_home_id
from storage.home.zones import home_zone
from storage.tracking.registry import HOME
from storage.tracking.runs import Tracking

VERSION, CHAMPION, GATE = "guidespace.model_version", "guidespace.champion", "guidespace.gate"
MODEL = "guidespace.model"
AS_OF = "guidespace.as_of"  # of every run: the instant whose knowledge it used, ISO in UTC; sorts as text
SECONDS = "night/seconds"


@dataclass(frozen=True, kw_only=True)
class Night:
    """One night."""

    at: datetime  # the instant whose knowledge it used, in the home's zone; of an older version, its begin
    name: str  # of the run
    run: str  # its id
    finished: bool  # whether its run has ended well
    model: str  # digest of its model
    version: str  # of the registered model
    champion: bool  # that version served after it
    reason: str  # the gate's
    metrics: Mapping[str, float]  # and night/seconds, how long it took (or takes by now)


def read_nights(tracking: Tracking, limit: int = 30) -> list[Night]:
    """The last nights of the home that have reported, oldest first, in the order of what they knew."""
    reported = f"tags.`{VERSION}` != ''"
    mine = "" if tracking.is_own else f" AND tags.`{HOME}` = '{read_home_id(tracking.home)}'"
    newest_first = [f"tags.`{AS_OF}` DESC", "attributes.start_time DESC"]
    found = tracking.client.search_runs(
        [tracking.experiment_id], reported + mine, max_results=limit, order_by=newest_first
    )
    zone = home_zone(tracking.home)
    return [_night(run.info, run.data.tags, run.data.metrics, zone) for run in reversed(found)]


def _night(info, tags: Mapping[str, str], metrics: Mapping[str, float], zone: tzinfo) -> Night:
    seconds = (info.end_time or time.time() * 1000) / 1000 - info.start_time / 1000
    began = datetime.fromtimestamp(info.start_time / 1000, UTC)
    return Night(
        at=(datetime.fromisoformat(tags[AS_OF]) if AS_OF in tags else began).astimezone(zone),
        name=info.run_name,
        run=info.run_id,
        finished=info.status == "FINISHED",
        model=tags.get(MODEL, ""),
        version=tags[VERSION],
        champion=tags.get(CHAMPION) == "True",
        reason=tags.get(GATE, ""),
        metrics={**metrics, SECONDS: seconds},
    )
