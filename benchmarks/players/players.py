"""What players show of four national guides before and after ``enrich --for``.

Kodi: share of programmes with a colour, by the rule of its add-on (the first category, split at commas, that
the table of genres contains), and as a real Kodi stores them if it is installed. Without our table no
programme has a colour, because the table of the add-on is empty. Tvheadend: share of programmes with a
category that it recognises, and share of the added names that it recognises. Jellyfin: share of the films in
its row "Movies", among the programmes whose categories in the guide state a film.
"""

import csv
import datetime
import gzip
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import lxml.etree as etree

from benchmarks.claims import ROOT, SAMPLE, Claim, guides, run
from benchmarks.ingest.enrich import learn, planned
from benchmarks.quality.folds import make_folds
from storage.episodes.numbers import read_numbers
from tasks.enrich.enrich import GuideEnricher
from tasks.enrich.output import genres_file, write_guide
from tasks.enrich.settings import EnrichOptions, make_players
from tasks.kinds.kinds import combine
from tasks.kinds.names import kinds_of_categories
from tasks.scoring.folds import SALTS
from tests.kodi import COLOURED, missing_packages, playlist_of, read_with_kodi, shift_days

GUIDES = ("UK1", "US1", "AU1", "ZA1")
NAMES_OF_TVHEADEND = ROOT / "tests/tasks/enrich/tvheadend_genres.csv"


def measure_guide(file: Path, name: str, with_kodi: bool) -> list[Claim]:
    """Trains a model on a guide, enriches the guide for each player, and measures what players show."""
    print(f"players: {name}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        content = gzip.decompress(file.read_bytes())
        (work / "in.xml").write_bytes(shift_days(content, datetime.datetime.now(datetime.UTC).date()))
        (fold,) = make_folds(work / "home", [work / "in.xml"], SALTS[:1])
        model, claims = learn(fold), []
        for player in ("kodi", "tvheadend", "jellyfin"):
            options = EnrichOptions(players=make_players([player]))
            enricher = planned(work / "in.xml", model, work, options)
            write_guide(str(work / f"{player}.xml"), enricher)
            claims += {"kodi": kodi, "tvheadend": tvheadend, "jellyfin": jellyfin}[player](work, enricher)
        if with_kodi:
            claims += real_kodi(work)
    return [
        Claim(f"{name}: {claim.name}", claim.value, aim=claim.aim, better=claim.better) for claim in claims
    ]


def programmes(file: Path) -> list[tuple[list[str], bool]]:
    """Returns the categories of each programme, and whether it has an episode number."""
    rows = []
    for _, element in etree.iterparse(file, tag="programme", recover=True):
        tags = element.findall("episode-num")
        numbers = tuple((number.get("system"), number.text or "") for number in tags)
        categories = [category.text for category in element.findall("category") if category.text]
        rows.append((categories, bool(read_numbers(numbers).key)))
        element.clear()
    return rows


def kodi(work: Path, enricher: GuideEnricher) -> list[Claim]:
    """Returns the shares of programmes with a colour in Kodi, by the rule of its add-on."""
    table = {genre.text.lower() for genre in etree.parse(genres_file(str(work / "kodi.xml"))).iter("genre")}

    def share(file: str) -> float:
        rows = programmes(work / file)
        return sum(
            any(piece.lower() in table for piece in ",".join(row).split(",")) for row, _ in rows
        ) / len(rows)

    return [
        Claim("programmes that Kodi colours with our table, before additions", share("in.xml"), better=None),
        Claim("programmes that Kodi colours", share("kodi.xml"), aim=0.95),
    ]


def real_kodi(work: Path) -> list[Claim]:
    """Returns the shares of programmes with a colour that Kodi stores, with its own table and with ours."""
    elements = etree.iterparse(work / "in.xml", tag="channel", recover=True)
    channels = [element.get("id") for _, element in elements]
    claims, ours = [], genres_file(str(work / "kodi.xml"))
    for label, guide, genres in (("before", "in.xml", None), ("after", "kodi.xml", ours)):
        (home := work / f"kodi-{label}").mkdir()
        rows = read_with_kodi(home, work / guide, playlist_of(zip(channels, channels)), genres)
        share = sum(row.genre in COLOURED for row in rows) / len(rows)
        aim = {"after": 0.95}.get(label)
        condition = f"{len(rows)} programmes in a real Kodi, coloured {label}"
        claims.append(Claim(condition, share, aim=aim, better="more" if aim else None))
    return claims


def tvheadend(work: Path, enricher: GuideEnricher) -> list[Claim]:
    """Returns the shares of programmes with a genre, and of added names that Tvheadend recognises."""
    with NAMES_OF_TVHEADEND.open(encoding="utf-8", newline="") as file:
        names = {row["name"] or row["group"] for row in csv.DictReader(file, delimiter=";")}
    folded_names = {"".join(name.split()).casefold() for name in names}

    def share(file: str) -> float:
        rows = programmes(work / file)
        return sum(
            any("".join(name.split()).casefold() in folded_names for name in row) for row, _ in rows
        ) / len(rows)

    name_counts = enricher.report.written["tvheadend"]
    return [
        Claim("programmes with a genre in Tvheadend, before", share("in.xml"), better=None),
        Claim("programmes with a genre in Tvheadend, after", share("tvheadend.xml"), better=None),
        Claim(
            "names written for Tvheadend that it recognises",
            len(names & {*name_counts}) / len(name_counts),
            aim=1,
        ),
    ]


def jellyfin(work: Path, enricher: GuideEnricher) -> list[Claim]:
    """Returns the share of films in the row "Movies", and of films to which we added an episode number."""
    before, after = programmes(work / "in.xml"), programmes(work / "jellyfin.xml")
    is_film = ["film" in combine(kinds_of_categories(row), numbered) for row, numbered in before]
    in_row = [
        [any(name.casefold() == "movie" for name in row) for row, _ in rows] for rows in (before, after)
    ]
    films = max(1, sum(is_film))
    shares = [sum(map(all, zip(is_film, row, strict=True))) / films for row in in_row]
    changed = (
        new > old or row[1] > was[1] for old, new, row, was in zip(*in_row, after, before, strict=True)
    )
    wrong = sum(new and row[1] and is_new for new, row, is_new in zip(in_row[1], after, changed, strict=True))
    return [
        Claim(f"{sum(is_film)} films in Jellyfin's Movies, before", shares[0], better=None),
        Claim(f"{sum(is_film)} films in Jellyfin's Movies, after", shares[1], better=None),
        Claim("programmes that became a movie with an episode number", wrong, aim=0, better="less"),
    ]


def measure(quick: bool) -> Sequence[Claim]:
    """Measures the sample guide, or four real guides."""
    with_kodi = not (quick or missing_packages())
    if missing_names := missing_packages():
        print(f"the rows of a real Kodi are left out: install {' '.join(missing_names)}", file=sys.stderr)
    files = {"sample": SAMPLE} if quick else dict(zip(GUIDES, guides(*GUIDES), strict=True))
    return [claim for name, file in files.items() for claim in measure_guide(file, name, with_kodi)]


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
