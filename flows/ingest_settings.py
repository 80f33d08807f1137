"""Settings of flows and commands that only read feeds, and need no import of PyTorch (half a gigabyte)."""

from collections.abc import Sequence

from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.overrides import override


@configurable
class ReadingSettings:
    """The settings of the stage ingest under the same prefix as in the settings of all stages."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")


def ingest_settings(changes: Sequence[str]) -> IngestSettings:
    """Returns the settings of the stage ingest with ``changes`` such as ``ingest.workers=4``."""
    return override(ReadingSettings(), changes).ingest
