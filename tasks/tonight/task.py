"""Publishes lists of recommended programmes for all viewers of a home, as a Prefect task."""

import datetime
import time
from collections.abc import Iterable, Mapping

import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Tonight
from storage.catalogue.likes import read_likes, viewer_zones
from storage.formats.tonight import FILE
from storage.home.workspace import Workspace
from storage.home.zones import read_zone
from storage.tracking import Tracking
from tasks.tonight.choose import Recommendation
from tasks.tonight.evening import TonightError, open_evening
from tasks.tonight.page import render_tonight
from tasks.tonight.settings import PAGES, TonightSettings
from tasks.tonight.table import to_table


@task(name="recommend", task_run_name="recommend", persist_result=False)
def recommend(
    home: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    settings: TonightSettings,
    run: str = "",
) -> Tonight:
    """Publishes a list for every viewer with likes, and sample pages of ``settings.pages`` viewers.

    For a viewer in another time zone than the home, the interval has the clock times of ``begin`` and ``end``
    in the viewer's time zone. Numbers and anonymous sample pages are logged to the MLflow run with the id
    ``run``, unless it is "".

    Raises:
        TonightError: There are no likes, or no programmes to recommend in the interval.
    """
    workspace, started = Workspace(home), time.perf_counter()
    opinions, seen = read_likes(workspace.home)
    if not len(opinions):
        raise TonightError(f"{workspace.home} has no likes of any viewer; see `guidespace like --help`")
    viewers_by_zone = _group_viewers(opinions["viewer"].unique().to_pylist(), viewer_zones(workspace.home))
    key = f"{begin.astimezone(datetime.UTC):%Y%m%d-%H%M}"
    with workspace.publishing(Tonight, key) as draft:
        lists: list[list[Recommendation]] = []
        pages: list[str] = []
        failures: list[TonightError] = []
        show_count = 0
        for zone, viewers in sorted(viewers_by_zone.items()):
            zone_begin, zone_end = (
                moment.replace(tzinfo=read_zone(zone)) if zone else moment for moment in (begin, end)
            )
            try:
                opened = open_evening(workspace.home, zone_begin, zone_end, opinions, seen, settings)
            except TonightError as error:  # the guide may contain the evening in another time zone
                failures.append(error)
                message = "no lists for the viewers in the time zone %s: %s"
                get_run_logger().warning(message, zone or "of the home", error)
                continue
            show_count = max(show_count, len(opened.evening.shows))
            zone_lists = list(opened.evening.recommend(viewers))
            lists += zone_lists
            # the first viewers are a random sample, because hashes are in a random order
            nonempty_lists = [recommendations for recommendations in zone_lists if recommendations]
            for recommendations in nonempty_lists[: settings.pages - len(pages)]:
                pages.append(render_tonight(opened.explain(recommendations), "", zone_begin, zone_end, zone))
        if len(failures) == len(viewers_by_zone):
            raise failures[0]
        pq.write_table(to_table(lists), draft.folder / FILE, compression="zstd")
        for number, page in enumerate(pages, 1):
            (draft.folder / f"viewer-{number:02}.html").write_text(page, encoding="utf-8")
        draft.counts |= {"viewers": len(lists), "shows": show_count, "programmes": sum(map(len, lists))}
    artifact, seconds = draft.artifact, time.perf_counter() - started
    counts_text = ", ".join(f"{count:,} {name}" for name, count in artifact.counts.items())
    get_run_logger().info("recommended programmes in %.1f s: %s", seconds, counts_text)
    if run:
        tracking, counts = Tracking(workspace.home), {**artifact.counts, "seconds": seconds}
        tracking.log_progress(run, 0, {f"tonight/{name}": value for name, value in counts.items()})
        for file in sorted(draft.folder.glob("*.html")):
            tracking.log_file(run, file, PAGES)
    return artifact


def _group_viewers(viewers: Iterable[str], zones: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the viewers by name of their time zone, or by "" if no zone is stored for them."""
    viewers_by_zone: dict[str, list[str]] = {}
    for viewer in viewers:
        viewers_by_zone.setdefault(zones.get(viewer, ""), []).append(viewer)
    return viewers_by_zone
