"""Settings of the flow refresh and of the command guide, which need no import of Prefect or PyTorch."""

from tasks.enrich.settings import EnrichOptions
from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.merge.settings import MergeSettings


@configurable
class RefreshSettings:
    """Settings of reading, filling and merging feeds."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    enrich: EnrichOptions = setting(EnrichOptions(), "What is filled, and by which names")
    guide: MergeSettings = setting(MergeSettings(), "The merged guide: channels, days and overlaps")
