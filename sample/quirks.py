"""Adds errors of real guides to the programmes of the sample guide: to titles, categories, languages, times
and descriptions.

A small share of the airings has each error; channels in `CHANNEL_MARKS` have an error on many airings. The
functions change records in place.
"""

import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from sample.schedule import Airing

# Marks of a language; s season, n episode, of episodes in all.
MARKS = {
    "en": ("{t} S{s} Ep. {n}", "{t} ({n}/{of})", "{t} #{n}", "{t} S{s:02}E{n:02}", "{t} ({n})",
           "{t} S{s} Ep. {n}"),
    "de": ("{t} Folge {n}", "{t} ({n}/{of})", "{t} - Staffel {s} Folge {n}", "{t} ({n})", "{t} Folge {n}"),
    "fr": ("{t} S{s} Ep. {n}", "{t} ({n}/{of})", "{t} - Saison {s} Épisode {n}", "{t} (T{s}/{n})",
           "{t} Stag. {s} Ep. {n}"),
}  # fmt: skip
REPEATS = {"en": ["[R]", "(E)", "(R)"], "de": ["(Wdh.)"], "fr": ["[R]", "(Rediffusion)"]}
PREMIERES = {"en": ("New: {t}", "{t} ᴺᵉʷ"), "de": ("Neu: {t}", "{t} ᴺᵉʷ"), "fr": ("{t} ᴺᵉʷ", "{t} (Inédit)")}
PLAIN = ("{t} (E)", "{t} [K8]", "{t} [R]", "{t} ᴴᴰ")
CHANNEL_MARKS = {
    "acorn-kids.example": "{t} S{s} Ep. {n}",
    "bayview.example": "{t} S{s:02}E{n:02}",
    "hearth-larder.example": "{t} ({n}/{of})",
    "weitblick.example": "{t} ({n}/{of})",
    "kichererbse.example": "{t} Folge {n}",
    "horizons-libres.example": "{t} Stag. {s} Ep. {n}",
    "carrousel.example": "{t} (T{s}/{n})",
}
EMOJI = (" 🎬", " ★", " ⚽", " 📺", " 🔥")
LITTER = ("\\n", "\\t", "\n", " <img src='new.png'>", "\u00ad")
ACCESS = ("[S]", "[AD,S]", "[HD]")
EPISODE_WORD = {"en": "Episode {n}", "de": "Folge {n}", "fr": "Épisode {n}"}
FULL_WIDTH = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}
GENERIC = {
    "en": ("Series", "Entertainment", "TV Show", "All Shows"),
    "de": ("Serie", "Unterhaltung", "Magazin"),
    "fr": ("Série", "Magazine", "Divers"),
}
UNDEFINED = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # bytes that are no character in Windows-1252
SEPARATORS = ("/", ", ", "; ", " | ")
ANCHOR = '<a href="https://guide.example/genre/{word}">{name}</a>'
JSON = (
    '[{{"id": {number}, "name": "{name}", "slug": "{word}", "parent": null, '
    '"images": [{{"url": "https://guide.example/i/{number}.png", "width": 640, "height": 360}}]}}]'
)
MIXED_OFFSETS = (0, 60, -300)
UNSORTED = {"northgate.example", "elbkanal-zwei.example", "grand-rideau.example"}


@dataclass
class Record:
    """``<programme>`` of strings, which may be invalid values; None and empty values are omitted."""

    airing: Airing  # from which the record is made
    channel: str | None
    start: str | None
    stop: str | None
    titles: list[tuple[str | None, str]]  # language attribute and text, usually one
    language: str
    sub_title: str = ""
    description: str = ""
    date: str = ""
    categories: list[str] = field(default_factory=list)
    episode_numbers: list[tuple[str, str]] = field(default_factory=list)  # system and text

    def xml(self) -> str:
        """Returns the element on one line."""
        children = [_element("title", text, lang=language) for language, text in self.titles]
        children += [_element("sub-title", self.sub_title, lang=self.language)] * bool(self.sub_title)
        children += [_element("desc", self.description, lang=self.language)] * bool(self.description)
        children += [_element("date", self.date)] * bool(self.date)
        children += [_element("category", category, lang=self.language) for category in self.categories]
        children += [_element("episode-num", text, system=system) for system, text in self.episode_numbers]
        attributes = _attributes(start=self.start, stop=self.stop, channel=self.channel)
        return f"<programme{attributes}>{''.join(children)}</programme>\n"


def _attributes(**attributes: str | None) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items() if value is not None)


def _element(tag: str, text: str, **attributes: str | None) -> str:
    return f"<{tag}{_attributes(**attributes)}>{escape(text)}</{tag}>"


def write_time(instant: datetime, offset_minutes: int | None) -> str:
    """Formats an instant (UTC) for XMLTV with an offset; with None, without an offset."""
    local = instant + timedelta(minutes=offset_minutes or 0)
    hours, minutes = divmod(abs(offset_minutes or 0), 60)
    offset = "" if offset_minutes is None else f" {'-' if offset_minutes < 0 else '+'}{hours:02}{minutes:02}"
    return local.strftime("%Y%m%d%H%M%S") + offset


def clean_record(airing: Airing) -> Record:
    """Returns the record of an airing without errors."""
    channel, listing, offset = airing.channel, airing.listing, airing.channel.offset_minutes
    start, stop = write_time(airing.start, offset), write_time(airing.stop, offset)
    record = Record(airing, channel.id, start, stop, [(channel.says, listing.title)], channel.language)
    record = replace(record, date=listing.year, categories=list(listing.categories))
    if told := listing.descriptions:  # the next one for the next episode or day
        record.description = told[(airing.episode or airing.start.day) % len(told)]
    return record


def mark_title(record: Record, rng: random.Random) -> None:
    """Adds an episode, repeat or premiere mark to the title, or writes it to the element for it."""
    airing, language, draw, pattern = record.airing, record.language, rng.random(), "{t}"
    if airing.episode:
        if draw < 0.3 and airing.channel.id in CHANNEL_MARKS:
            pattern = CHANNEL_MARKS[airing.channel.id]
        elif airing.repeat and draw < 0.5:
            pattern = "{t} " + rng.choice(REPEATS[language])
        elif draw < 0.075:
            pattern = rng.choice((MARKS if draw < 0.06 else PREMIERES)[language])
        _number(record, rng)
    elif draw < 0.02:
        pattern = rng.choice(PLAIN)
    elif record.date and draw < 0.3:
        pattern = "{t} ({year})"
    said, title = record.titles[0]
    numbers = {"s": airing.season, "n": airing.episode, "of": airing.episode + 4, "year": record.date}
    record.titles = [(said, pattern.format(t=title, **numbers))]


def _number(record: Record, rng: random.Random) -> None:
    season, episode, draw = record.airing.season, record.airing.episode, rng.random()
    if draw < 0.35:
        record.episode_numbers.append(("xmltv_ns", f"{season - 1}.{episode - 1}."))
    if 0.25 < draw < 0.5:
        record.episode_numbers.append(("onscreen", f"S{season} E{episode}"))
    if rng.random() < 0.2:
        record.sub_title = EPISODE_WORD[record.language].format(n=episode)


def damage_title(record: Record, rng: random.Random) -> None:
    """Damages titles: double encoding, capitals, truncation, invisible characters."""
    language, title = record.titles[0]
    draw, second, foreign = rng.random(), rng.random(), not title.isascii()
    if foreign and draw < 0.03:
        latin = second < 0.7 or not UNDEFINED.isdisjoint(title.encode())
        title = title.encode().decode("latin-1" if latin else "cp1252")
    elif foreign and draw < 0.045:
        title = unicodedata.normalize("NFD", title)
    elif draw > 0.988:
        title = title.upper()
    elif draw > 0.982:
        at = max(title.find(" "), 0) if second < 0.5 else 0
        title = title[:at] + rng.choice("\u200b\u200e\ufeff") + title[at:]
    elif draw > 0.976:
        title += rng.choice(EMOJI if draw > 0.979 else LITTER)
    elif draw > 0.9752 and len(title) > 20:
        title = title[:16].rstrip() + "..."
    elif 0.9748 < draw < 0.9752 and record.categories:
        title = f"{record.categories[0]} - {title}"
    if "&" in title and second < 0.06:
        title = title.replace("&", "&amp;amp;" if second < 0.02 else "&amp;")
    if re.search(r"\d", title) and second > 0.99:
        title = title.translate(FULL_WIDTH)
    record.titles = [(language, title)]


def mistake_language(record: Record, rng: random.Random) -> None:
    """Removes or changes language attributes, and adds a second title to some programmes."""
    (language, title), draw = record.titles[0], rng.random()
    if draw < 0.036:
        language = None if draw < 0.03 else "xx"
    elif draw < 0.046:
        language = rng.choice([other for other in ("en", "de", "fr", "es") if other != record.language])
    record.titles = [(language, title)]
    if draw > 0.998:
        record.titles.append(("en" if record.language != "en" else "fr", title))


def dirty_categories(record: Record, rng: random.Random) -> None:
    """Adds generic names, lists in one field, case variants, URLs, digits, HTML and JSON; or removes all."""
    clean, draw = record.categories, rng.random()
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
    odd, name, word = rng.random(), clean[0], clean[0].lower().replace(" ", "-")
    if odd < 0.004:
        record.categories.append(str(rng.randint(1, 9)))
    elif odd < 0.007:
        record.categories.append(f"https://guide.example/genre/{word}")
    elif odd < 0.01:
        record.categories.append(ANCHOR.format(word=word, name=name))
    elif odd < 0.011:
        record.categories.append(JSON.format(number=rng.randint(100, 999), name=name, word=word))


def damage_description(record: Record, rng: random.Random) -> None:
    """Removes or truncates descriptions, or adds markup or codes of access services."""
    text, draw = record.description, rng.random()
    if draw < 0.08:
        record.description = ""
    elif text and draw < 0.1:
        record.description = f"<p>{text}</p>" if draw < 0.09 else f"{escape(text)}<br/>"
    elif len(text) > 60 and draw < 0.12:
        record.description = text[:60].rsplit(" ", 1)[0] + " ..."
    elif text and draw < 0.15:
        record.description = f"{text} {rng.choice(ACCESS)}"


def bend_times(record: Record, rng: random.Random) -> None:
    """Changes or removes offsets; makes stops missing, early, equal to the start, or a year late."""
    airing, draw = record.airing, rng.random()
    usual = airing.channel.offset_minutes
    if draw < 0.01 or (draw < 0.013 and usual == 0):
        offset = rng.choice([other for other in MIXED_OFFSETS if other != usual]) if draw < 0.01 else None
        record.start, record.stop = write_time(airing.start, offset), write_time(airing.stop, offset)
    elif draw > 0.98:
        record.stop = None
    elif draw > 0.975:
        record.stop = write_time(airing.start - timedelta(minutes=rng.randrange(5, 90, 5)), usual)
    elif draw > 0.971:
        record.stop = record.start if draw > 0.972 else "null"
    elif draw > 0.9705:
        record.stop = write_time(airing.stop + timedelta(days=365), usual)


ALL = (mark_title, damage_title, mistake_language, dirty_categories, bend_times)  # in this order


def repeat_and_shuffle(records: Sequence[Record], rng: random.Random) -> list[Record]:
    """Adds exact duplicates after their originals, and shuffles a few channels."""
    out = [copy for record in records for copy in [record] * (2 if rng.random() < 0.01 else 1)]
    moved = [record for record in out if record.channel in UNSORTED]
    rng.shuffle(moved)
    return [moved.pop(0) if record.channel in UNSORTED else record for record in out]


def broken_records(records: Sequence[Record]) -> list[Record]:
    """Returns four unreadable programmes: no channel, an impossible start, no title, a blank title."""
    first, second, third, fourth = (records[len(records) * share // 5] for share in (1, 2, 3, 4))
    without_channel, impossible = replace(first, channel=None), replace(second, start="20261345996100 +0000")
    blank = replace(fourth, titles=[(fourth.language, " \u200b ")])
    return [without_channel, impossible, replace(third, titles=[]), blank]


def longest_title(record: Record) -> Record:
    """Makes one title longer than 400 characters."""
    language, title = record.titles[0]
    return replace(record, titles=[(language, " ".join([title] * (1 + 420 // (len(title) + 1))))])
