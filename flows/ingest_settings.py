"""Settings of flows and commands that only read feeds: they do not import PyTorch (half a gigabyte)."""

from collections.abc import Sequence

from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.overrides import override


@configurable
class ReadingSettings:
    """Settings of the stage ingest, under the name that they have among the settings of all stages."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")


def ingest_settings(changes: Sequence[str]) -> IngestSettings:
    """Returns the settings of the stage ingest with ``changes`` such as ``ingest.workers=4``."""
    return override(ReadingSettings(), changes).ingest
