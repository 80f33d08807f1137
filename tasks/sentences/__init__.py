"""Pretrained sentence encoders, which compute vectors of titles and descriptions without training.

``strategy.open()`` returns a SentenceEncoder, or None for the strategy ``none``. Opening is cheap: the
encoders of a strategy share a model, which is loaded when the first text is encoded. Opening and encoding
require only NumPy and the package of the encoder.
"""

from tasks.sentences.auto import AutomaticEncoder
from tasks.sentences.e5 import MultilingualE5
from tasks.sentences.encoder import SentenceEncoder, SentenceEncoderMissing
from tasks.sentences.none import NoSentences
from tasks.sentences.static import Model2Vec
from tasks.sentences.transformer import SentenceTransformers
from tasks.sentences.use import UniversalSentenceEncoder

__all__ = [
    "AutomaticEncoder",
    "Model2Vec",
    "MultilingualE5",
    "NoSentences",
    "SentenceEncoder",
    "SentenceEncoderMissing",
    "SentenceStrategy",
    "SentenceTransformers",
    "UniversalSentenceEncoder",
]

SentenceStrategy = (
    NoSentences
    | UniversalSentenceEncoder
    | MultilingualE5
    | AutomaticEncoder
    | SentenceTransformers
    | Model2Vec
)
