"""Defines the settings of flows and commands that only read feeds. Does not import PyTorch (0.5 GB)."""

from collections.abc import Sequence

from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.overrides import override


@configurable
class ReadingSettings:
    """Settings of the stage ingest, named ``ingest.…`` as in the settings of a nightly run."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")


def ingest_settings(changes: Sequence[str]) -> IngestSettings:
    """Applies changes such as ``ingest.batch_rows=1000`` to the default settings of the stage ingest."""
    return override(ReadingSettings(), changes).ingest
