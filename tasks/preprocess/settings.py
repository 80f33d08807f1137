"""Defines the settings for labels and sentence vectors of titles."""

from tasks.form import configurable, setting
from tasks.pool_settings import PoolSettings
from tasks.sentences.settings import SentenceSettings

_LARGEST_SHARE_HELP = (
    "Maximum share of a feed's titles with one category; more frequent categories are ignored"
)
_MAPPING_HELP = (
    "CSV file with the columns raw,canonical that renames categories, or drops them (empty canonical)"
)
_TRAINING_TITLES_HELP = "Minimum number of labelled training titles; with fewer, the run fails"


@configurable
class PreprocessSettings(PoolSettings):
    """Settings for labels (cleaned categories) and sentence vectors of titles, and for worker processes."""

    minimum_titles: int = setting(
        20, "Minimum number of training titles with a label; rarer categories do not become labels", ge=2
    )
    largest_share: float = setting(0.4, _LARGEST_SHARE_HELP, gt=0, le=1)
    category_mapping: str = setting("", f"{_MAPPING_HELP}; empty: the bundled table")
    minimum_training_titles: int = setting(100, _TRAINING_TITLES_HELP, ge=2)
    sentences: SentenceSettings = setting(SentenceSettings(), "Encoder of titles and descriptions")
