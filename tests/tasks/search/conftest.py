"""The toy world as a Model folder, by the stages themselves."""

from pathlib import Path

import pytest

from tasks.search.search import TitleSearch


@pytest.fixture(scope="session")
def folder(learnt) -> Path:
    """A Model folder: the encoder's files, similarity vectors and titles. Read only."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.publish.task import pack

    home, _, _, corpus, _, encoder = learnt
    with disable_run_logger():
        vectors = embed.fn(str(home), corpus, encoder)
        return home / pack.fn(str(home), corpus, encoder, vectors).path


@pytest.fixture(scope="session")
def search(folder: Path) -> TitleSearch:
    return TitleSearch.open(folder)
