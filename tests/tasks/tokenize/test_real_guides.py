"""Properties of all titles of real guides; Greek and Italian titles have the most marks."""

import gzip
from pathlib import Path

import pytest
from lxml import etree

from tasks.text.titles import clean_text, is_placeholder, parse_title
from tasks.text.words import split_words


def titles_of(file: Path) -> list[str]:
    with gzip.open(file) as opened:
        found = {title.text for _, title in etree.iterparse(opened, tag="title", recover=True) if title.text}
    return sorted(found)


@pytest.mark.parametrize(
    ("name", "marked"), [("epgshare01_GR1_2025-03", 0.2), ("epgshare01_IT1_2025-03", 0.02)]
)
def test_titles_of_real_guides_have_the_required_properties(guidespace_data: Path, name: str, marked: float):
    titles = titles_of(guidespace_data / "guides" / f"{name}.xml.gz")
    parsed = [parse_title(raw) for raw in titles]
    for raw, title in zip(titles, parsed, strict=True):
        again = parse_title(title.display)
        assert (again.display, again.show_key) == (title.display, title.show_key), raw
        assert clean_text(clean_text(raw)) == clean_text(raw)
        if any(character.isalnum() for character in raw):
            assert title.show_key and split_words(title.display), raw
        else:
            assert is_placeholder(title.show_key)
    keys = {title.show_key for title in parsed}
    assert len(keys) < 0.98 * len(titles)
    assert sum(bool(title.marks) for title in parsed) > marked * len(titles)


def test_italian_episodes_are_one_show(guidespace_data: Path):
    titles = titles_of(guidespace_data / "guides" / "epgshare01_IT1_2025-03.xml.gz")
    george = [raw for raw in titles if raw.startswith("Curioso come George - Stag.")]
    assert len(george) > 5
    assert {parse_title(raw).show_key for raw in george} == {"curioso come george"}
