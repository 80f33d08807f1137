"""What real guides do to categories, times and whole programmes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sample.records import Record, write_time

GENERIC = {
    "en": ("Series", "Entertainment", "TV Show", "All Shows"),
    "de": ("Serie", "Unterhaltung", "Magazin"),
    "fr": ("Série", "Magazine", "Divers"),
}
SEPARATORS = ("/", ", ", "; ", " | ")
ANCHOR = '<a href="https://guide.example/genre/{word}">{name}</a>'
JSON = '[{{"id": {number}, "name": "{name}", "slug": "{word}", "parent": null, "images": [{{"url": "https://guide.example/i/{number}.png", "width": 640, "height": 360}}]}}]'
MIXED_OFFSETS = (0, 60, -300)
UNSORTED = {"northgate.example", "elbkanal-zwei.example", "grand-rideau.example"}


def dirty_categories(record: Record, rng: random.Random) -> None:
    """Generic names first, lists in one field, case doubles, URLs, digits, HTML and JSON; or nothing at all."""
    clean, draw = list(record.categories), rng.random()
    if not clean:
        return
    if len(clean) > 1 and draw < 0.1:
        record.categories = [rng.choice(SEPARATORS).join(clean)]
    elif draw < 0.13:
        record.categories = [*clean, rng.choice((clean[0].upper(), clean[0].lower()))]
    elif draw < 0.15:
        record.categories = []
    elif draw < 0.27:
        record.categories = [rng.choice(GENERIC[record.language]), *clean]
    odd, word = rng.random(), clean[0].lower().replace(" ", "-")
    if odd < 0.004:
        record.categories.append(str(rng.randint(1, 9)))
    elif odd < 0.007:
        record.categories.append(f"https://guide.example/genre/{word}")
    elif odd < 0.01:
        record.categories.append(ANCHOR.format(word=word, name=clean[0]))
    elif odd < 0.011:
        record.categories.append(JSON.format(number=rng.randint(100, 999), name=clean[0], word=word))


def bend_times(record: Record, rng: random.Random) -> None:
    """Another offset for the same instant, no offset, and stops that are missing, early, equal or a year late."""
    airing, draw = record.airing, rng.random()
    if draw < 0.01:
        offset = rng.choice([offset for offset in MIXED_OFFSETS if offset != airing.channel.offset_minutes])
        record.start, record.stop = write_time(airing.start, offset), write_time(airing.stop, offset)
    elif draw < 0.013 and airing.channel.offset_minutes == 0:
        record.start, record.stop = write_time(airing.start, None), write_time(airing.stop, None)
    elif draw > 0.98:
        record.stop = None
    elif draw > 0.975:
        record.stop = write_time(airing.start - timedelta(minutes=rng.randrange(5, 90, 5)), airing.channel.offset_minutes)
    elif draw > 0.972:
        record.stop = record.start
    elif draw > 0.971:
        record.stop = "null"
    elif draw > 0.9705:
        record.stop = write_time(airing.stop + timedelta(days=365), airing.channel.offset_minutes)


def repeat_and_shuffle(records: Sequence[Record], rng: random.Random) -> list[Record]:
    """Exact duplicates after their originals, and a few channels in no order."""
    out: list[Record] = []
    for record in records:
        out.append(record)
        if rng.random() < 0.01:
            out.append(record)
    places = [index for index, record in enumerate(out) if record.channel in UNSORTED]
    shuffled = places.copy()
    rng.shuffle(shuffled)
    moved = {place: out[other] for place, other in zip(places, shuffled, strict=True)}
    return [moved.get(index, record) for index, record in enumerate(out)]


def broken_records(records: Sequence[Record]) -> list[Record]:
    """Four programmes that no reader can place: no channel, an impossible start, no title, a blank title; one for each."""
    first, second, third, fourth = (records[len(records) * share // 5] for share in (1, 2, 3, 4))
    return [
        replace(first, channel=None),
        replace(second, start="20261345996100 +0000"),
        replace(third, titles=[]),
        replace(fourth, titles=[(fourth.language, " \u200b ")]),
    ]


def longest_title(record: Record) -> Record:
    """One title as long as a description: over 400 characters."""
    language, title = record.titles[0]
    return replace(record, titles=[(language, " ".join([title] * (1 + 420 // (len(title) + 1))))])
