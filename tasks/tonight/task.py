"""Task that computes the lists of all viewers of a home: guide, model and likes to Tonight."""

import datetime
import time

import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Tonight
from storage.catalogue.likes import read_likes
from storage.formats.tonight import FILE
from storage.home.workspace import Workspace
from storage.tracking import Tracking
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

    Logs the pages, without names or hashes of viewers, and the counts to MLflow.

    Raises:
        TonightError: There are no likes, or the guide has no programme in that interval.
    """
    workspace, started = Workspace(home), time.perf_counter()
    opinions, seen = read_likes(workspace.home)
    if not len(opinions):
        raise TonightError(f"nobody has liked anything in {workspace.home}; see `guidespace like --help`")
    evening = open_evening(workspace.home, begin, end, opinions, seen, settings)
    key = f"{begin.astimezone(datetime.UTC):%Y%m%d-%H%M}"
    with workspace.publishing(Tonight, key) as draft:
        lists = list(evening.recommend(evening.viewers))
        pq.write_table(to_table(lists), draft.folder / FILE, compression="zstd")
        pages = [recommendations for recommendations in lists if recommendations][
            : settings.pages
        ]  # hashes are in a random order
        for number, recommendations in enumerate(pages, 1):
            page = render_tonight(evening.add_counterfactuals(recommendations), "", begin, end)
            (draft.folder / f"viewer-{number:02}.html").write_text(page, encoding="utf-8")
        draft.counts |= {
            "viewers": len(lists),
            "shows": len(evening.shows),
            "programmes": sum(map(len, lists)),
        }
    artifact, seconds = draft.artifact, time.perf_counter() - started
    counts_text = ", ".join(f"{count:,} {name}" for name, count in artifact.counts.items())
    get_run_logger().info("lists of %s in %.1f s", counts_text, seconds)
    if run:
        tracking, counts = Tracking(workspace.home), {**artifact.counts, "seconds": seconds}
        tracking.log_progress(run, 0, {f"tonight/{name}": value for name, value in counts.items()})
        for file in sorted(draft.folder.glob("*.html")):
            tracking.log_file(run, file, PAGES)
    return artifact
