"""Writes a guide of any number of titles, spliced from the titles of real guides.

A title consists of the first words of one real title and the last words of another, and has the categories,
channel and duration of the first. One title in ten begins with an invented word, so that the vocabulary grows
with the titles. A title airs twice on average. A channel is filled for two weeks without gaps, then another
channel with the same name and a number follows, so that channels have as many titles as in the real guides.
No programme has a description.
"""

import gzip
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

FIRST, MINUTES = datetime(2025, 3, 1), 14 * 1440
NAMED, MORE_AIRINGS = 0.1, 0.5  # share of titles with an invented word; probability of each further airing
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
FORM = "%Y%m%d%H%M%S +0000"


class _Source(NamedTuple):
    """A title of a real guide with one of its broadcasts."""

    words: list[str]
    categories: list[str]
    channel: str
    minutes: int


def write_large_guide(path: Path, titles: int, feeds: Sequence[Path], seed: int = 0) -> int:
    """Writes a gzipped XMLTV file with ``titles`` distinct titles; returns its number of programmes."""
    rng = np.random.default_rng(seed)
    sources = list({" ".join(one.words).casefold(): one for feed in feeds for one in _read(feed)}.values())
    names, heads, used_names = [], np.zeros(titles, dtype=np.int32), set()
    while len(names) < titles:
        pairs = rng.integers(len(sources), size=(titles, 2)).tolist()
        for (head, tail), named in zip(pairs, (rng.random(titles) < NAMED).tolist(), strict=True):
            first, last = sources[head].words, sources[tail].words
            words = [*first[: (len(first) + 1) // 2], *last[len(last) // 2 :]]
            if named:
                words.insert(0, "".join(SYLLABLES[part] for part in rng.integers(len(SYLLABLES), size=4)))
            name = " ".join(words)
            if name.casefold() not in used_names and len(names) < titles:
                used_names.add(name.casefold())
                heads[len(names)] = head
                names.append(name)
    airings = np.repeat(np.arange(titles), rng.geometric(MORE_AIRINGS, titles))
    clocks: dict[str, int] = {}  # filled minutes by channel name, including numbered channels
    begins: dict[str, int] = {}  # offset of the first programme of a channel in the two weeks
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<tv>\n')
        for title in rng.permutation(airings).tolist():
            source = sources[heads[title]]
            number, filled = divmod(clocks.get(source.channel, 0), MINUTES)
            channel = f"{source.channel} {number + 1}" if number else source.channel
            if not filled:
                begins[source.channel] = int(rng.integers(MINUTES))
                identity = f"<channel id={quoteattr(channel)}>"
                file.write(f"{identity}<display-name>{escape(channel)}</display-name></channel>\n")
            minutes = min(source.minutes, MINUTES - filled)
            clocks[source.channel] = clocks.get(source.channel, 0) + minutes
            begin = (begins[source.channel] + filled) % MINUTES
            when = (FIRST + timedelta(minutes=at) for at in (begin, begin + minutes))
            start, stop = (f"{at:{FORM}}" for at in when)
            file.write(f'<programme start="{start}" stop="{stop}" channel={quoteattr(channel)}>')
            file.write(f"<title>{escape(names[title])}</title>")
            file.writelines(f"<category>{escape(one)}</category>" for one in source.categories)
            file.write("</programme>\n")
        file.write("</tv>\n")
    return len(airings)


def _read(feed: Path) -> Iterator[_Source]:
    with gzip.open(feed) as file:
        names: dict[str, str] = {}
        for _, element in ElementTree.iterparse(file):
            if element.tag == "channel":
                identity = element.get("id", "")
                names[identity] = element.findtext("display-name") or identity
            if element.tag == "programme":
                words = (element.findtext("title") or "").split()
                if words:
                    minutes = _minutes(element.get("start", ""), element.get("stop", ""))
                    categories = [category.text for category in element.iterfind("category") if category.text]
                    channel = names.get(element.get("channel", ""), element.get("channel", ""))
                    yield _Source(words, categories, channel, minutes)
                element.clear()


def _minutes(start: str, stop: str) -> int:
    """Returns the duration of a programme in minutes, limited to 5 to 300; 30 if a time is invalid."""
    try:
        begin, end = (datetime.strptime(text[:12], FORM[:10]) for text in (start, stop))
    except ValueError:
        return 30
    return int(np.clip((end - begin).total_seconds() // 60, 5, 300))
