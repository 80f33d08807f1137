"""The sample guide is what its lists say, and as dirty as it claims to be."""

import re
import unicodedata
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from lxml import etree

from sample.lists import LANGUAGES, read_channels, read_placeholders, read_titles
from sample.make_guide import GUIDE, SEED, guide_xml
from sample.schedule import plan_week

BROKEN = 4


@pytest.fixture(scope="module")
def titles(programmes):
    return Counter(text for text in (programme.findtext("title") for programme in programmes) if text)


@pytest.fixture(scope="module")
def categories(programmes):
    return Counter(category.text for programme in programmes for category in programme.findall("category"))


@pytest.fixture(scope="module")
def week():
    return plan_week(SEED)


def instant(text):
    moment = datetime.strptime(text, "%Y%m%d%H%M%S %z" if " " in text else "%Y%m%d%H%M%S")
    return moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta())


def test_the_lists_give_the_committed_guide(xml):
    assert guide_xml(SEED) == xml, (
        "sample/guide.xml.gz is not what the lists give: run python -m sample.make_guide"
    )


def test_the_file_is_small_and_carries_no_time():
    data = GUIDE.read_bytes()
    assert len(data) < 400 * 1024
    assert data[4:8] == bytes(4)


def test_it_is_xmltv_with_a_doctype(xml):
    assert xml.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tv SYSTEM "xmltv.dtd">')
    root = etree.fromstring(xml)
    assert root.tag == "tv"
    assert {child.tag for child in root} == {"channel", "programme"}


def test_counts(xml, programmes):
    channels = etree.fromstring(xml).findall("channel")
    languages = Counter(channel.find("display-name").get("lang") for channel in channels)
    assert (
        languages == {"en": 17, "de": 12, "fr": 12} and len({channel.get("id") for channel in channels}) == 41
    )
    assert len(programmes) == 10_031


def test_every_listed_title_is_on(week):
    listed = {(language, listing.title) for language in LANGUAGES for listing in read_titles(language)}
    assert {(airing.listing.language, airing.listing.title) for airing in week} >= listed
    assert len({title.casefold() for _, title in listed}) >= 1_500


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_title_is_listed_twice(language):
    seen = Counter(listing.title.casefold() for listing in read_titles(language))
    assert [title for title, times in seen.items() if times > 1] == []


def test_categories_with_twenty_titles():
    titles_of = defaultdict(set)
    for language in LANGUAGES:
        own = defaultdict(set)
        for listing in read_titles(language):
            for category in listing.categories:
                own[category].add(listing.title)
                titles_of[category.casefold()].add(listing.title)
        assert sum(len(members) >= 20 for members in own.values()) >= 12, language
    assert 25 <= sum(len(members) >= 20 for members in titles_of.values()) <= 45


def test_one_week(programmes):
    starts = [
        instant(programme.get("start")) for programme in programmes if programme.get("start")[4:6] != "13"
    ]
    assert len(starts) == len(programmes) - 1
    assert (min(starts), max(starts)) == (datetime(2026, 1, 12), datetime(2026, 1, 18, 23, 55))


def test_every_channel_is_on_without_a_gap(week):
    by_channel = defaultdict(list)
    for airing in week:
        by_channel[airing.channel.id].append(airing)
    assert len(by_channel) == 42
    for airings in by_channel.values():
        assert (airings[0].start, airings[-1].stop) == (datetime(2026, 1, 12), datetime(2026, 1, 19))
        assert all(before.stop == after.start for before, after in pairwise(airings))
        assert all(airing.start < airing.stop for airing in airings)


def test_a_strip_is_on_at_the_same_hour_all_week(week):
    noons = {datetime(2026, 1, 12 + day, 12) for day in range(5)}
    midday = [
        airing.listing.title
        for airing in week
        if airing.channel.id == "harbour-one.example" and airing.start in noons
    ]
    assert len(midday) == 5 and Counter(midday).most_common(1)[0][1] >= 4


def test_premieres_are_on_in_the_last_quarter_only(week):
    first = {
        airing.listing.title.casefold(): airing.start
        for airing in sorted(week, key=lambda airing: airing.start, reverse=True)
    }
    saturday, three_quarters = datetime(2026, 1, 17), datetime(2026, 1, 17, 8)
    late = [start for start in first.values() if start >= saturday]
    assert 0.05 <= sum(start >= three_quarters for start in late) / len(first) <= 0.08
    assert sum(start < three_quarters for start in late) / len(first) <= 0.005


def test_four_programmes_cannot_be_placed(programmes):
    without_channel, without_date, without_title, blank = programmes[-BROKEN:]
    assert without_channel.get("channel") is None
    assert without_date.get("start")[4:6] == "13"
    assert without_title.find("title") is None
    assert blank.findtext("title").strip(" \u200b") == ""
    assert all(
        programme.get("channel") and programme.findtext("title").strip(" \u200b")
        for programme in programmes[:-BROKEN]
    )


@pytest.mark.parametrize(
    "pattern",
    [
        r" S\d+ Ep\. \d+$",
        r" S\d\dE\d\d$",
        r" \(\d+/\d+\)$",
        r" \(\d{1,2}\)$",
        r" #\d+$",
        r" \(T\d+/\d+\)$",
        r" Stag\. \d+ Ep\. \d+$",
        r" Folge \d+$",
        r" - Staffel \d+ Folge \d+$",
        r" - Saison \d+ Épisode \d+$",
        r" \(Wdh\.\)$",
        r"^New: ",
        r"^Neu: ",
        r" ᴺᵉʷ$",
        r" \(E\)$",
        r" \[R\]$",
        r" \[K8\]$",
        r" \((19|20)\d\d\)$",
        r"Ã[\u0080-\u00bf]",
        r"[\u200b\u200e\ufeff]",
        r"[\uff10-\uff19]",
        r"[🎬★⚽📺🔥]$",
        r"^[^a-z]*[A-Z]{4}[^a-z]*$",
        r"\\n",
        r"\n$",
        r"<img ",
        r"&amp;",
        r"\w\.\.\.$",
        r"^.{401,}$",
        r"^24$",
        r"^20/20$",
        r"^1408( \(2007\))?$",
    ],
)
def test_titles_are_dirty(titles, pattern):
    found = sum(airings for title, airings in titles.items() if re.search(pattern, title))
    assert 0 < found < 0.1 * titles.total()


def test_some_accents_are_decomposed(titles):
    assert any(title != unicodedata.normalize("NFC", title) for title in titles)


@pytest.mark.parametrize(
    "pattern",
    [
        "^Series$",
        "^Entertainment$",
        "^Unterhaltung$",
        "^Série$",
        r"^\w+/\w+",
        r"^\w+, ",
        "^https://",
        r"^\d$",
        "^<a href=",
        r'^\[\{"id": ',
    ],
)
def test_categories_are_dirty(categories, pattern):
    found = sum(times for category, times in categories.items() if re.search(pattern, category))
    assert 0 < found < 0.1 * categories.total()


def test_placeholders_are_five_in_a_hundred(programmes):
    names = {listing.title for language in LANGUAGES for listing in read_placeholders(language)}
    assert (
        0.03 < sum(programme.findtext("title") in names for programme in programmes) / len(programmes) < 0.08
    )


def test_languages_lie(programmes):
    language_of = {channel.id: channel.language for channel in read_channels()}
    says = Counter(
        (language_of.get(programme.get("channel")), title.get("lang"))
        for programme in programmes
        for title in programme.findall("title")
    )
    assert {("de", "at"), ("de", "en"), ("fr", "xx"), ("en", "de"), ("en", None)} <= says.keys()
    assert any(len(programme.findall("title")) == 2 for programme in programmes)


def test_times_are_mixed(programmes):
    offsets = defaultdict(set)
    for programme in programmes[:-BROKEN]:
        offsets[programme.get("channel")].add(programme.get("start")[15:])
    assert set().union(*offsets.values()) == {"+0000", "+0100", "-0500", ""}
    assert sum(len(found) > 1 for found in offsets.values()) > 20


def test_stops_are_missing_early_equal_and_a_year_late(programmes):
    seen = Counter()
    for programme in programmes[:-BROKEN]:
        stop = programme.get("stop")
        if stop is None or stop == "null":
            seen[stop] += 1
            continue
        length = instant(stop) - instant(programme.get("start"))
        seen[
            "early"
            if length < timedelta()
            else "equal"
            if not length
            else "year"
            if length > timedelta(days=300)
            else "fine"
        ] += 1
    assert {None, "null", "early", "equal", "year", "fine"} == seen.keys()
    assert seen["fine"] > 0.95 * len(programmes)


def test_duplicates_order_and_an_unlisted_channel(xml, programmes):
    lines = Counter(line for line in xml.splitlines() if line.startswith(b"<programme "))
    assert 50 < sum(times - 1 for times in lines.values()) < 0.02 * len(programmes)
    starts = defaultdict(list)
    for programme in programmes[:-BROKEN]:
        starts[programme.get("channel")].append(instant(programme.get("start")))
    assert sum(times != sorted(times) for times in starts.values()) == 3
    listed = {channel.get("id") for channel in etree.fromstring(xml).findall("channel")}
    assert starts.keys() - listed == {"harbour-plus.example"}


def test_episode_numbers_in_both_systems(programmes):
    systems = Counter(
        number.get("system") for programme in programmes for number in programme.findall("episode-num")
    )
    assert systems == {"xmltv_ns": 2373, "onscreen": 1718}
    assert any(programme.findtext("sub-title") for programme in programmes)
    assert any(programme.findtext("date") for programme in programmes)
