"""Fixture that merges toy feeds."""

from pathlib import Path

import pytest

from tests.tasks.merge.guides import Merger


@pytest.fixture
def merged(tmp_path: Path) -> Merger:
    return Merger(tmp_path)
