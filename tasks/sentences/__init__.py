"""Frozen vectors of titles and descriptions by pretrained sentence encoders: the family of them.

``strategy.open()`` gives a SentenceEncoder, or None for ``none``; it is cheap, and opened encoders of one
strategy share one model. Opening and encoding need no more than NumPy and the encoder's own package.
"""

from tasks.sentences.encoder import SentenceEncoder, SentenceEncoderMissing
from tasks.sentences.none import NoSentences
from tasks.sentences.static import Model2Vec
from tasks.sentences.transformer import SentenceTransformers
from tasks.sentences.use import UniversalSentenceEncoder

__all__ = [
    "Model2Vec",
    "NoSentences",
    "SentenceEncoder",
    "SentenceEncoderMissing",
    "SentenceStrategy",
    "SentenceTransformers",
    "UniversalSentenceEncoder",
]

SentenceStrategy = NoSentences | UniversalSentenceEncoder | SentenceTransformers | Model2Vec
