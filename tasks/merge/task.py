"""Defines the Prefect task of the flow refresh that merges the enriched copies of feeds into one guide."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from prefect import get_run_logger, task

from tasks.enrich.copies import EnrichedCopy
from tasks.ingest.settings import IngestSettings
from tasks.merge.errors import MergeError
from tasks.merge.home import merge_copies
from tasks.merge.settings import MergeSettings


@task(name="merge", task_run_name="merge", persist_result=False)
def merge(
    home: str, copies: Sequence[EnrichedCopy], ingest_settings: IngestSettings, settings: MergeSettings
) -> list[str]:
    """Merges the enriched copies of feeds into the merged guide of a home. Returns the lines of the report.

    If the merge fails, the previous guide remains, and the error is the only line of the report.
    """
    logger = get_run_logger()
    try:
        guide = merge_copies(
            Path(home), copies, ingest_settings, settings, datetime.datetime.now(datetime.UTC)
        )
    except MergeError as error:
        logger.error("%s; the previous guide remains", error)
        return [f"FAILED: {error}; the previous guide remains"]
    lines = list(guide.report.lines(guide.file))
    for line in lines:
        logger.info("%s", line)
    return lines
