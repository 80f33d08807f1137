"""Manual corrections in the catalogue and in corrections.json."""

import datetime
from pathlib import Path

import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.corrections import publish_corrections, remove_correction, store_correction
from storage.home.corrections import CORRECTIONS, Correction, labels_by_show, read_corrections

DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2025, 3, 1, 12, tzinfo=datetime.UTC)


def correction(show_key: str, *categories: str, day: int = 0) -> Correction:
    return Correction(
        show_key=show_key, title=show_key.title(), categories=categories, corrected_at=NOON + day * DAY
    )


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with Catalogue.open(tmp_path) as catalogue:
        for one in (correction("odd", "crime"), correction("even", "news", day=1)):
            store_correction(catalogue, one)
    return tmp_path


def test_the_last_correction_of_a_show_applies_in_this_home_only(stored: Path, tmp_path_factory) -> None:
    assert [*read_corrections(stored)] == ["odd", "even"]
    again = correction("odd", "music", "dance", day=2)
    with Catalogue.open(stored) as catalogue:
        store_correction(catalogue, again)
    found = read_corrections(stored)
    assert [*found] == ["even", "odd"] and found["odd"] == again
    assert labels_by_show(found) == {"even": ("news",), "odd": ("music", "dance")}
    assert str(again) == "“Odd”: music, dance, corrected by a person on 2025-03-03"
    assert read_corrections(tmp_path_factory.mktemp("other")) == {}


def test_a_correction_is_removed_once(stored: Path) -> None:
    with Catalogue.open(stored) as catalogue:
        assert remove_correction(catalogue, "odd") == correction("odd", "crime")
        assert remove_correction(catalogue, "odd") is None
    assert [*read_corrections(stored)] == ["even"]


def test_corrections_at_an_instant(stored: Path) -> None:
    assert [*read_corrections(stored, NOON)] == ["odd"]
    assert [*read_corrections(stored, NOON + DAY)] == ["odd", "even"]
    assert read_corrections(stored, NOON - DAY) == {}


def test_a_lost_file_is_written_again_from_the_catalogue(stored: Path) -> None:
    before = read_corrections(stored)
    (stored / CORRECTIONS).unlink()
    with Catalogue.open(stored) as catalogue:
        publish_corrections(catalogue)
    assert read_corrections(stored) == before
