"""Reads how categories of feeds are mapped to labels (cleaned and merged categories), for the flows."""

import datetime

from storage.home.corrections import labels_by_show, read_corrections
from storage.home.workspace import Workspace
from tasks.preprocess.categories import LabelSources, read_mapping
from tasks.preprocess.settings import PreprocessSettings


def read_label_sources(
    home: str, settings: PreprocessSettings, as_of: datetime.datetime | None = None
) -> LabelSources:
    """Reads the configured mapping of categories to labels, and the corrections of categories by users.

    Corrections that were made after ``as_of`` are ignored; None: no correction is ignored.
    """
    corrections = read_corrections(Workspace(home).home, as_of)
    return LabelSources(
        mapping=read_mapping(settings.category_mapping), corrections=labels_by_show(corrections)
    )
