"""The sample guide's descriptions: most titles have one of their own, and some airings have a damaged one."""

import re
from collections import Counter

import pytest

from sample.lists import LANGUAGES, read_titles


@pytest.fixture(scope="module")
def descriptions(programmes):
    return Counter(text for text in (programme.findtext("desc") for programme in programmes) if text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_titles_have_descriptions_of_their_own(language):
    told = [listing.descriptions for listing in read_titles(language)]
    assert 0.74 < sum(map(bool, told)) / len(told) < 0.88
    assert max(map(len, told)) <= 3
    texts = [text for own in told for text in own]
    assert len(set(texts)) == len(texts)
    assert all(25 <= len(text) <= 160 for text in texts)
    openings = Counter(" ".join(text.split()[:2]) for text in texts)
    assert openings.most_common(1)[0][1] < 0.02 * len(texts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_descriptions_seldom_name_a_category(language):
    listings = read_titles(language)
    naming = [
        text
        for listing in listings
        for text in listing.descriptions
        if any(re.search(rf"\b{name}\b", text, re.IGNORECASE) for name in listing.categories)
    ]
    assert len(naming) < 0.02 * len(listings), naming


def test_a_description_of_no_title_is_refused(monkeypatch):
    monkeypatch.setattr("sample.lists.read_descriptions", lambda language: {"Nobody's Show": ("About it.",)})
    with pytest.raises(ValueError, match=r"descriptions_en.tsv: .*Nobody's Show.* not in titles_en.tsv"):
        read_titles("en")


@pytest.mark.parametrize("pattern", ["^<p>", "<br/>$", r" \.\.\.$", r" \[S\]$", r" \[AD,S\]$"])
def test_descriptions_are_dirty(descriptions, pattern):
    found = sum(airings for text, airings in descriptions.items() if re.search(pattern, text))
    assert 0 < found < 0.1 * descriptions.total()


def test_a_third_of_the_programmes_are_not_described(programmes, descriptions):
    assert 0.6 < descriptions.total() / len(programmes) < 0.8
