"""Stages of a nightly run as plain functions, without a Prefect run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from storage.artifacts import Checkpoint, Corpus, Guide, TitleEncoderFiles, Vocabulary
from storage.home.workspace import Workspace
from tasks.augment.settings import AugmentSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences.none import NoSentences
from tasks.sentences.settings import SentenceSettings
from tasks.text.tokenizers import Tokenizer
from tasks.text.words import WordsAndNgrams
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.settings import TrainSettings

WITHOUT_SENTENCES = PreprocessSettings(sentences=SentenceSettings(encoder=NoSentences()))


def ingest(home: Path, feeds: Sequence[Path]) -> Guide:
    """Reads feeds into the catalogue of a home and returns the Guide."""
    from prefect.logging import disable_run_logger

    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.task import ingest

    with disable_run_logger():
        return ingest.fn(str(Workspace(home).home), [str(feed) for feed in feeds], IngestSettings())


def tokenize(home: Path, guide: Guide, settings: TokenizeSettings) -> Vocabulary:
    """Tokenizes the titles of a Guide."""
    from prefect.logging import disable_run_logger

    from tasks.tokenize.task import tokenize

    with disable_run_logger():
        return tokenize.fn(str(home), guide, settings)


def preprocess(
    home: Path, guide: Guide, vocabulary: Vocabulary, salt: str, settings: PreprocessSettings | None = None
) -> Corpus:
    """Makes the Corpus of a Vocabulary; None means default settings."""
    from prefect.logging import disable_run_logger

    from tasks.preprocess.task import preprocess

    with disable_run_logger():
        return preprocess.fn(str(home), guide, vocabulary, salt, settings or PreprocessSettings())


def train_and_augment(
    home: Path, vocabulary: Vocabulary, corpus: Corpus, augmenting: AugmentSettings | None = None
) -> TitleEncoderFiles:
    """Trains with default settings and returns the title encoder."""
    from prefect.logging import disable_run_logger

    from tasks.augment.task import augment
    from tasks.train.task import train

    settings = TrainSettings()
    with disable_run_logger():
        checkpoint: Checkpoint = train.fn(str(home), corpus, settings)
        stages = vocabulary, corpus, checkpoint, settings.encoder, augmenting or AugmentSettings()
        return augment.fn(str(home), *stages)


def make_corpus(
    home: Path, feeds: Sequence[Path], tokenizer: Tokenizer | None = None, *, context: bool = True
) -> Path:
    """Makes the Corpus of feeds in a new home and returns its folder.

    Args:
        home: Folder of the home.
        feeds: XMLTV files.
        tokenizer: Words and n-grams by default.
        context: Whether airing context counts as tokens.
    """
    settings = TokenizeSettings(tokenizer=tokenizer or WordsAndNgrams())
    settings = settings if context else replace(settings, context=())
    guide = ingest(home, feeds)
    vocabulary = tokenize(home, guide, settings)
    return Workspace(home).folder(preprocess(home, guide, vocabulary, settings.splits.salt))
