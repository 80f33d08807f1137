"""Reads TV guide feeds into the DuckDB catalogue between nightly runs, without training a model."""

from prefect import flow, get_run_logger

from flows.defaults import DEFAULT_HOME, HOURLY_WAIT_SECONDS
from flows.ingest_settings import ingest_settings
from flows.ownership import tag_with_home
from flows.run_context import name_run
from flows.settings import NO_CHANGES, Changes, Feeds
from storage.artifacts import Guide
from storage.home.workspace import Workspace
from tasks.ingest.task import check
from tasks.ingest.task import ingest as read_feeds


@flow(name="ingest", flow_run_name=name_run, on_running=[tag_with_home])
def ingest(feeds: Feeds, changes: Changes = NO_CHANGES, home: str = DEFAULT_HOME) -> Guide:
    """Reads feeds into the catalogue, publishes a snapshot of it, and checks the snapshot for anomalies.

    Args:
        feeds: XMLTV files, globs, folders or URLs, plain or compressed; secret URLs: env:NAME or secret:NAME.
        changes: Changes of the default settings, such as ingest.download_seconds=600.
        home: Folder of the home, which holds the catalogue.
    """
    settings, logger = ingest_settings(changes), get_run_logger()
    with Workspace(home).writing("ingest", wait_seconds=HOURLY_WAIT_SECONDS, report_wait=logger.warning):
        guide = read_feeds(home, feeds, settings)
        check(home, guide)
    return guide
