"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.artifacts import Checkpoint, Corpus, Guide, Lexicon, Vocabulary
from tests import worlds


@pytest.fixture(scope="session")
def guidespace_data() -> Path:
    """Folder of real guides; a test that asks for it is skipped where there is none."""
    folder = os.environ.get("GUIDESPACE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("GUIDESPACE_DATA names no folder of real guides")
    return Path(folder)


@pytest.fixture
def without_run() -> Iterator[Callable[..., Any]]:
    """Calls a task's function without a Prefect run: ``without_run(tokenize, home, guide, settings)``."""
    import prefect.main  # noqa: F401  (sets logging up, which would turn the run's logger on again)
    from prefect.logging import disable_run_logger

    with disable_run_logger():
        yield lambda task, *arguments, **named: task.fn(*arguments, **named)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Guide, Vocabulary, Corpus]:
    """The toy world of worlds.py in a home: (home, guide, vocabulary, corpus). Read only."""
    home = tmp_path_factory.mktemp("toy") / "home"
    return home, *worlds.publish_corpus(home, worlds.programmes())


@pytest.fixture(scope="session")
def toy_corpus(toy: tuple[Path, Guide, Vocabulary, Corpus]) -> Path:
    """Folder of the toy world's Corpus. Read only."""
    home, _, _, corpus = toy
    return home / corpus.path


@pytest.fixture(scope="session")
def learnt(toy: tuple[Path, Guide, Vocabulary, Corpus]) -> tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, Lexicon]:
    """The toy world, learnt: (home, guide, vocabulary, corpus, checkpoint, lexicon). Read only."""
    from prefect.logging import disable_run_logger

    home, guide, vocabulary, corpus = toy
    with disable_run_logger():
        checkpoint, lexicon = worlds.learn(home, vocabulary, corpus)
    return home, guide, vocabulary, corpus, checkpoint, lexicon
