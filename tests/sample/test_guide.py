"""The lists give the committed sample guide, byte for byte; its content is therefore fixed."""

import gzip

import pytest

from sample.lists import read_titles
from sample.make_guide import GUIDE, SEED, guide_xml


def test_the_lists_give_the_committed_guide():
    assert guide_xml(SEED) == gzip.decompress(GUIDE.read_bytes()), (
        "sample/guide.xml.gz is not what the lists give: run python -m sample.make_guide"
    )


def test_the_file_is_small_and_contains_no_time():
    data = GUIDE.read_bytes()
    assert len(data) < 400 * 1024
    assert data[4:8] == bytes(4)


def test_a_description_without_a_title_is_refused(monkeypatch):
    monkeypatch.setattr("sample.lists.read_descriptions", lambda language: {"Nobody's Show": ("About it.",)})
    with pytest.raises(ValueError, match=r"descriptions_en.tsv: .*Nobody's Show.* not in titles_en.tsv"):
        read_titles("en")
