"""What real guides do to titles: episode marks glued on, and damaged text.

Each habit has a small share of the airings; a channel with a habit of its own (`CHANNEL_MARKS`) has it on many.
"""

from __future__ import annotations

import random
import re
import unicodedata

from sample.records import Record

# Marks of a language; s season, n episode, of episodes in all.
MARKS = {
    "en": ("{t} S{s} Ep. {n}", "{t} ({n}/{of})", "{t} #{n}", "{t} S{s:02}E{n:02}", "{t} ({n})", "{t} S{s} Ep. {n}"),
    "de": ("{t} Folge {n}", "{t} ({n}/{of})", "{t} - Staffel {s} Folge {n}", "{t} ({n})", "{t} Folge {n}"),
    "fr": ("{t} S{s} Ep. {n}", "{t} ({n}/{of})", "{t} - Saison {s} Épisode {n}", "{t} (T{s}/{n})", "{t} Stag. {s} Ep. {n}"),
}
REPEATS = {"en": ("{t} [R]", "{t} (E)", "{t} (R)"), "de": ("{t} (Wdh.)",), "fr": ("{t} [R]", "{t} (Rediffusion)")}
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
EPISODE_WORD = {"en": "Episode {n}", "de": "Folge {n}", "fr": "Épisode {n}"}


def mark_title(record: Record, rng: random.Random) -> None:
    """Glues an episode, repeat or premiere mark to the title, or writes it where it belongs."""
    airing, language = record.airing, record.language
    title = record.titles[0][1]
    draw = rng.random()
    pattern = "{t}"
    if airing.episode:
        if draw < 0.3 and airing.channel.id in CHANNEL_MARKS:
            pattern = CHANNEL_MARKS[airing.channel.id]
        elif airing.repeat and draw < 0.5:
            pattern = rng.choice(REPEATS[language])
        elif draw < 0.06:
            pattern = rng.choice(MARKS[language])
        elif draw < 0.075:
            pattern = rng.choice(PREMIERES[language])
        _number(record, rng)
    elif draw < 0.02:
        pattern = rng.choice(PLAIN)
    elif record.date and draw < 0.3:
        pattern = "{t} ({year})"
    text = pattern.format(t=title, s=airing.season, n=airing.episode, of=airing.episode + 4, year=record.date)
    record.titles = [(record.titles[0][0], text)]


def _number(record: Record, rng: random.Random) -> None:
    """Episode numbers in their own elements, in one of XMLTV's systems or both; sometimes a sub-title."""
    season, episode = record.airing.season, record.airing.episode
    draw = rng.random()
    if draw < 0.35:
        record.episode_numbers.append(("xmltv_ns", f"{season - 1}.{episode - 1}."))
    if 0.25 < draw < 0.5:
        record.episode_numbers.append(("onscreen", f"S{season} E{episode}"))
    if rng.random() < 0.2:
        record.sub_title = EPISODE_WORD[record.language].format(n=episode)


def damage_title(record: Record, rng: random.Random) -> None:
    """Text as it comes out of old systems: double-encoded, shouted, cut, full of invisible marks."""
    language, title = record.titles[0]
    foreign = any(ord(letter) > 127 for letter in title)
    draw, second = rng.random(), rng.random()
    if foreign and draw < 0.03:
        title = title.encode().decode("latin-1" if second < 0.7 or not _fits_windows(title) else "cp1252")
    elif foreign and draw < 0.045:
        title = unicodedata.normalize("NFD", title)
    elif draw > 0.988:
        title = title.upper()
    elif draw > 0.982:
        at = title.find(" ") if second < 0.5 else 0
        title = title[: max(at, 0)] + rng.choice("\u200b\u200e\ufeff") + title[max(at, 0) :]
    elif draw > 0.979:
        title += rng.choice(EMOJI)
    elif draw > 0.976:
        title += rng.choice(("\\n", "\\t", "\n", " <img src='new.png'>", "\u00ad"))
    elif draw > 0.9752 and len(title) > 20:
        title = title[:16].rstrip() + "..."
    elif 0.9748 < draw < 0.9752:
        title = f"{record.categories[0]} - {title}" if record.categories else title
    if "&" in title and second < 0.06:
        title = title.replace("&", "&amp;amp;" if second < 0.02 else "&amp;")
    if re.search(r"\d", title) and second > 0.99:
        title = title.translate({ord("0") + digit: 0xFF10 + digit for digit in range(10)})
    record.titles = [(language, title)]


def mistake_language(record: Record, rng: random.Random) -> None:
    """Language attributes that are absent, no language, or another one's; a second title now and then."""
    (language, title), draw = record.titles[0], rng.random()
    if draw < 0.03:
        language = None
    elif draw < 0.036:
        language = "xx"
    elif draw < 0.046:
        language = rng.choice([other for other in ("en", "de", "fr", "es") if other != record.language])
    record.titles = [(language, title)]
    if draw > 0.998:
        record.titles.append(("en" if record.language != "en" else "fr", title))


def _fits_windows(title: str) -> bool:
    """Whether the title's UTF-8 bytes all stand for something in Windows-1252."""
    try:
        title.encode().decode("cp1252")
    except UnicodeError:
        return False
    return True
