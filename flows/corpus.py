"""What ``preprocess`` gets beside guide and vocabulary, the same in a night, a comparison and an ablation."""

import datetime
from collections.abc import Mapping

from storage.corrections import labels_by_show, read_corrections
from storage.workspace import Workspace
from tasks.preprocess.categories import read_mapping
from tasks.preprocess.settings import PreprocessSettings
from tasks.tokenize.settings import TokenizeSettings


def corpus_inputs(
    home: str,
    tokenized: TokenizeSettings,
    preprocessed: PreprocessSettings,
    as_of: datetime.datetime | None = None,
) -> tuple[str, PreprocessSettings, Mapping[str, str], Mapping[str, tuple[str, ...]]]:
    """Salt of the splits, settings, mapping of categories, and what persons corrected until ``as_of``."""
    corrections = labels_by_show(read_corrections(Workspace(home).home, as_of))
    return tokenized.splits.salt, preprocessed, read_mapping(preprocessed.category_mapping), corrections
