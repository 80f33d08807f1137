"""Speed and memory of ingest beside lxml, pandas, py-xmltv and SQLite, on real guides and on one of 1 GB.

A measurement includes everything from the file to the committed rows and the published status: decompression,
parsing, cleaning, checks, writing. MB are uncompressed. The bare loop is lxml's ``iterparse``, which reads
attributes and child text and discards them. Each reader runs in a separate process on one core, once without
measurement and then several times; the best of these counts, because other work on the machine only slows
them down.
"""

import datetime
import gzip
import sqlite3
import sys
import tempfile
import time
import xml.etree.ElementTree as plain_etree
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import lxml.etree as etree

from benchmarks.claims import Claim, guides, is_installed, run
from benchmarks.processes import call_apart, peak, repeat_apart
from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.settings import IngestSettings

CLOCK = time.perf_counter


def measure_ingest(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file except those of --full."""
    packed_guide = guides("magenta_de_2022-05")[0]
    repeats = 1 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "guide.xml"
        file.write_bytes(gzip.decompress(packed_guide.read_bytes()))
        programmes = bare_loop(file)
        ours = min(repeat_apart(prepare_ingest, file, repeats=repeats, clock=CLOCK, one_core=True))
        speed, claims = programmes / ours, []
        for rival, measure in rivals().items():
            seconds = repeat_apart(
                prepare_rival, measure, file, repeats=repeats, clock=CLOCK, one_core=True, rival=True
            )
            name = "programmes/s, file to committed rows, one core"
            aim = 0.6 if measure is bare_loop else 1
            claims.append(Claim(name, speed, rival, programmes / min(seconds), aim=aim))
        claims += all_guides(folder, quick)
        claims += growth(folder, file, (10, 30) if quick else (100, 300))
    return claims


def measure_gigabyte() -> Sequence[Claim]:
    """Measures time and memory for guides of up to a gigabyte."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "guide.xml"
        file.write_bytes(gzip.decompress(guides("magenta_de_2022-05")[0].read_bytes()))
        return growth(Path(name), file, (100, 1000))


def bare_loop(file: Path) -> int:
    """Reads attributes and child text of every programme by lxml; returns the number of programmes."""
    count = 0
    for _, element in etree.iterparse(str(file), events=("end",), tag="programme"):
        dict(element.attrib)
        for child in element:
            _ = child.tag, child.text
        count += 1
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]  # type: ignore[union-attr]
    return count


def ingest(folder: Path, feeds: Sequence[Path], home: Path | None = None) -> float:
    """Ingests feeds into a home (None: a new one); returns seconds from files to commit."""
    home = home or Path(tempfile.mkdtemp(dir=folder))
    with Catalogue.open(home):
        pass
    started = time.perf_counter()
    with Catalogue.open(home) as catalogue:
        for _ in ingest_feeds(
            catalogue,
            [str(feed) for feed in feeds],
            IngestSettings(),
            clock=time.monotonic,
            now=lambda: datetime.datetime.now(datetime.UTC),
        ):
            pass
    return time.perf_counter() - started


def prepare_ingest(file: Path) -> Callable[[], object]:
    """Prepares ingesting a guide into a new home."""

    def call() -> None:
        with tempfile.TemporaryDirectory() as folder:
            ingest(Path(folder), [file])

    return call


def prepare_rival(read: Callable[[Path], object], file: Path) -> Callable[[], object]:
    """Prepares reading a guide by a rival."""
    return partial(read, file)


def rivals() -> dict[str, Callable[[Path], object]]:
    """Returns the functions that read a guide by another library, by name, if the library is installed."""
    readers: dict[str, Callable[[Path], object]] = {
        "bare lxml iterparse, kept nowhere": bare_loop,
        "xml.etree loop, executemany into SQLite": into_sqlite,
    }
    if is_installed("pandas"):
        readers["pandas.read_xml (attributes and one text per name)"] = by_pandas
    if is_installed("xmltv", "py-xmltv"):
        readers["py-xmltv, into memory only"] = by_py_xmltv
    return readers


def into_sqlite(file: Path) -> None:
    """Reads a guide by ElementTree into an SQLite database, as a typical script does."""
    with tempfile.TemporaryDirectory() as name, sqlite3.connect(Path(name) / "guide.db") as connection:
        connection.execute("CREATE TABLE programmes (channel, start, stop, title, sub_title, categories)")
        rows = []
        for _, element in plain_etree.iterparse(file):
            if element.tag == "programme":
                categories = ",".join(category.text or "" for category in element.findall("category"))
                rows.append(
                    (
                        element.get("channel"),
                        element.get("start"),
                        element.get("stop"),
                        element.findtext("title"),
                        element.findtext("sub-title"),
                        categories,
                    )
                )
                element.clear()
        connection.executemany("INSERT INTO programmes VALUES (?, ?, ?, ?, ?, ?)", rows)


def by_pandas(file: Path) -> None:
    """Reads a guide into a pandas data frame with a row per programme."""
    import pandas

    pandas.read_xml(
        file, iterparse={"programme": ["channel", "start", "stop", "title", "sub-title", "category", "date"]}
    )


def by_py_xmltv(file: Path) -> None:
    """Reads a guide into the dataclasses of py-xmltv by xsdata, as the documentation of py-xmltv shows."""
    from xmltv.models import Tv  # pyright: ignore[reportMissingImports]  (a rival, installed by who wants to compare)
    from xsdata.formats.dataclass.parsers import XmlParser  # pyright: ignore[reportMissingImports]

    XmlParser().from_path(file, Tv)


def all_guides(folder: Path, quick: bool) -> list[Claim]:
    """Measures reading every real guide into one catalogue, and reading all of them again."""
    feeds = guides("ZA1", "DK1") if quick else sorted(guides("ZA1")[0].parent.glob("*.xml.gz"))
    home = folder / "all"
    home.mkdir()
    first = ingest(folder, feeds, home=home)
    with Catalogue.open(home) as catalogue:
        rows = catalogue.connection.execute("SELECT count(*) FROM programmes").fetchall()[0][0]
    size = (home / "catalogue.duckdb").stat().st_size
    again = ingest(folder, feeds, home=home)
    return [
        Claim(f"{len(feeds)} guides, {rows:,} programmes into one catalogue, seconds", first, better=None),
        Claim("size of that catalogue, MB", size / 1e6, better=None),
        Claim("bytes a programme", size / rows, better=None),
        Claim("the same again, share of the first time", again / first, aim=0.05, better="less"),
    ]


def growth(folder: Path, file: Path, megabytes: Sequence[int]) -> list[Claim]:
    """Measures time and peak memory of single large guides, each in a separate process."""
    claims = []
    for size in megabytes:
        large = folder / f"{size}.xml"
        repeat_guide(file, large, size * 1_000_000)
        home = folder / f"home{size}"
        home.mkdir()
        seconds, mebibytes = call_apart(ingest_and_peak, large, home, threads=1)
        claims += [
            Claim(f"a guide of {size} MB, seconds", seconds, better=None),
            Claim(f"a guide of {size} MB, milliseconds a MB", 1000 * seconds / size, better=None),
            Claim(f"a guide of {size} MB, peak memory, MB", mebibytes * 2**20 / 1e6, aim=400, better="less"),
        ]
        large.unlink()
    return claims


def ingest_and_peak(file: Path, home: Path) -> tuple[float, float]:
    """Ingests one guide; returns seconds and the peak memory of the process in MiB."""
    return ingest(Path(), [file], home=home), peak()


def repeat_guide(file: Path, place: Path, size: int) -> None:
    """Writes a guide of about ``size`` bytes: copies of a real guide, each shifted by some years."""
    content = file.read_bytes()
    begin, end = content.index(b"<programme"), content.rindex(b"</tv>")
    year = content[content.index(b'start="') + 7 :][:4]
    with open(place, "wb") as handle:
        handle.write(content[:begin])
        for shift in range(max(1, round(size / (end - begin)))):
            handle.write(content[begin:end].replace(b'"' + year, b'"%04d' % (1990 + shift)))
        handle.write(content[end:])


if __name__ == "__main__":
    sys.exit(run(measure_ingest, __doc__ or "", measure_gigabyte))
