"""The toy world as a Model folder, by the stages themselves."""

from pathlib import Path

import pytest

from tasks.search.search import TitleSearch


@pytest.fixture(scope="session")
def folder(toy_model: Path) -> Path:
    """A Model folder: the encoder's files, similarity vectors and titles. Read only."""
    return toy_model


@pytest.fixture(scope="session")
def search(folder: Path) -> TitleSearch:
    return TitleSearch.open(folder)
