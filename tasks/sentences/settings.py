"""Defines the settings of sentence vectors, which the stage preprocess computes."""

from tasks.form import configurable, setting
from tasks.sentences import SentenceStrategy
from tasks.sentences.auto import AutomaticEncoder

_DESCRIPTIONS_HELP = (
    "Maximum number of descriptions to encode per title; sub-titles follow if there are fewer; 0: none"
)


@configurable
class SentenceSettings:
    """Settings of sentence vectors: which texts are encoded, and by which encoder."""

    encoder: SentenceStrategy = setting(AutomaticEncoder(), "Pretrained encoder of texts")
    descriptions: int = setting(3, _DESCRIPTIONS_HELP, ge=0, le=10)
