"""Defines the settings of the flow refresh and the command guide, without importing Prefect or PyTorch."""

from tasks.enrich.settings import EnrichOptions
from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.merge.settings import MergeSettings


@configurable
class RefreshSettings:
    """Settings for reading feeds, filling their missing categories, and merging them into one guide."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    enrich: EnrichOptions = setting(
        EnrichOptions(), "Which missing elements are added, and the names of categories"
    )
    guide: MergeSettings = setting(MergeSettings(), "The merged guide: channels, days and overlaps")
