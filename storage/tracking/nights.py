"""Reads the results of a home's nightly runs from MLflow, for the page that compares them (nights.html)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from storage.home.identity import read_home_id
from storage.home.zones import home_zone
from storage.tracking.connection import MlflowConnection
from storage.tracking.tags import AS_OF_TAG, CHAMPION_TAG, GATE_TAG, HOME_TAG, MODEL_VERSION_TAG, VersionTag

if TYPE_CHECKING:
    from mlflow.entities import Run

SECONDS_METRIC = "night/seconds"  # metric with the duration of a run


@dataclass(frozen=True, kw_only=True)
class Night:
    """Results of one nightly run."""

    at: datetime  # instant of the guide in the home's time zone; for runs of older versions, start of the run
    name: str  # name of the MLflow run
    run: str  # id of the MLflow run
    finished: bool  # whether the run succeeded
    model: str  # digest of the model
    version: str  # version of the registered model
    champion: bool  # whether this version was served after the run
    reason: str  # why the version was made champion (the served model) or not
    metrics: Mapping[str, float]  # includes night/seconds, the duration of the run so far


def read_nights(connection: MlflowConnection, limit: int = 30) -> list[Night]:
    """Returns the last ``limit`` nightly runs of a home that have registered a model, oldest guide first."""
    query = f"tags.`{MODEL_VERSION_TAG}` != ''"
    if not connection.uses_home_database:
        query += f" AND tags.`{HOME_TAG}` = '{read_home_id(connection.home)}'"
    newest_first = [f"tags.`{AS_OF_TAG}` DESC", "attributes.start_time DESC"]
    runs = connection.client.search_runs(
        [connection.experiment_id], query, max_results=limit, order_by=newest_first
    )
    zone = home_zone(connection.home)
    return [_to_night(run, zone) for run in reversed(runs)]


def _to_night(run: Run, zone: tzinfo) -> Night:
    """Converts an MLflow run to a Night whose time is in the time zone ``zone``."""
    info, tags = run.info, run.data.tags
    seconds = (info.end_time or time.time() * 1000) / 1000 - info.start_time / 1000
    started_at = datetime.fromtimestamp(info.start_time / 1000, UTC)
    return Night(
        at=(datetime.fromisoformat(tags[AS_OF_TAG]) if AS_OF_TAG in tags else started_at).astimezone(zone),
        name=info.run_name or "",
        run=info.run_id,
        finished=info.status == "FINISHED",
        model=tags.get(VersionTag.DIGEST, ""),
        version=tags[MODEL_VERSION_TAG],
        champion=tags.get(CHAMPION_TAG) == "True",
        reason=tags.get(GATE_TAG, ""),
        metrics={**run.data.metrics, SECONDS_METRIC: seconds},
    )
