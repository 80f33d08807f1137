"""Prefect task that publishes lists of recommended programmes for all viewers of a home."""

import datetime
import time

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

    Viewers in another time zone than the home get programmes between the same clock times in their zone.
    The MLflow run with the id ``run`` receives counts and anonymous sample pages; "" logs nothing.

    Raises:
        TonightError: There are no likes, or no programmes to recommend in that interval.
    """
    workspace, started = Workspace(home), time.perf_counter()
    opinions, seen = read_likes(workspace.home)
    if not len(opinions):
        raise TonightError(f"nobody has liked anything in {workspace.home}; see `guidespace like --help`")
    zones = viewer_zones(workspace.home)
    by_zone: dict[str, list[str]] = {}
    for viewer in opinions["viewer"].unique().to_pylist():
        by_zone.setdefault(zones.get(viewer, ""), []).append(viewer)
    key = f"{begin.astimezone(datetime.UTC):%Y%m%d-%H%M}"
    with workspace.publishing(Tonight, key) as draft:
        lists: list[list[Recommendation]] = []
        pages: list[str] = []
        failures: list[TonightError] = []
        shows = 0
        for zone, viewers in sorted(by_zone.items()):
            zone_begin, zone_end = (
                moment.replace(tzinfo=read_zone(zone)) if zone else moment for moment in (begin, end)
            )
            try:
                opened = open_evening(workspace.home, zone_begin, zone_end, opinions, seen, settings)
            except TonightError as error:  # the guide may contain the evening in other zones
                failures.append(error)
                get_run_logger().warning("no lists in the zone %s: %s", zone or "of the home", error)
                continue
            shows = max(shows, len(opened.evening.shows))
            zone_lists = list(opened.evening.recommend(viewers))
            lists += zone_lists
            nonempty = [recommendations for recommendations in zone_lists if recommendations]
            for recommendations in nonempty[: settings.pages - len(pages)]:  # hashes are in a random order
                pages.append(render_tonight(opened.explain(recommendations), "", zone_begin, zone_end, zone))
        if len(failures) == len(by_zone):
            raise failures[0]
        pq.write_table(to_table(lists), draft.folder / FILE, compression="zstd")
        for number, page in enumerate(pages, 1):
            (draft.folder / f"viewer-{number:02}.html").write_text(page, encoding="utf-8")
        draft.counts |= {"viewers": len(lists), "shows": shows, "programmes": sum(map(len, lists))}
    artifact, seconds = draft.artifact, time.perf_counter() - started
    counts_text = ", ".join(f"{count:,} {name}" for name, count in artifact.counts.items())
    get_run_logger().info("lists of %s in %.1f s", counts_text, seconds)
    if run:
        tracking, counts = Tracking(workspace.home), {**artifact.counts, "seconds": seconds}
        tracking.log_progress(run, 0, {f"tonight/{name}": value for name, value in counts.items()})
        for file in sorted(draft.folder.glob("*.html")):
            tracking.log_file(run, file, PAGES)
    return artifact
