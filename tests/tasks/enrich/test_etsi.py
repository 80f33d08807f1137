"""Every name of etsi.csv is one that Tvheadend recognises (src/epg.c), under the name of its group."""

import csv
from pathlib import Path

import pytest

from tasks.enrich.vocabulary import ETSI_TABLE, read_table

GENRES = Path(__file__).with_name("tvheadend_genres.csv")  # _epg_genre_names of Tvheadend's src/epg.c
with GENRES.open(encoding="utf-8", newline="") as opened:
    PAIRS = {(row["group"], row["name"]) for row in csv.DictReader(opened, delimiter=";")}


def test_tvheadend_recognises_every_name() -> None:
    assert set(read_table(ETSI_TABLE).values()) <= PAIRS | {("", "")}


def test_every_name_of_tvheadend_maps_to_itself() -> None:
    """A guide that has the names already is recognised as such."""
    table = read_table(ETSI_TABLE)
    assert {pair: table[(pair[1] or pair[0]).casefold()] for pair in PAIRS} == {pair: pair for pair in PAIRS}


@pytest.mark.parametrize("category", ["family", "education", "animation", "anime"])
def test_categories_that_adults_watch_are_no_childrens_programmes(category: str) -> None:
    names = read_table(ETSI_TABLE).get(category, ("", ""))
    assert names[0] != "Children's / Youth programs"
