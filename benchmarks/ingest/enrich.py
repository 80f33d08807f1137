"""Precision of filled episode numbers; speed and memory on a guide of 100 MB, or of 1 GB with --full.

The episode numbers of a random tenth of the programmes with a number and a sub-title are removed, and
compared with the numbers that are filled from other airings of the same episode. The benchmark ``hidden``
measures the precision of categories.
"""

import gzip
import html
import itertools
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claims import Claim, guides, run
from benchmarks.processes import call_apart, peak, peak_of_workers
from benchmarks.quality.folds import Fold, make_folds
from benchmarks.quality.hidden import hide
from benchmarks.stages import train_and_augment
from storage.artifacts import Model
from storage.episodes.numbers import fold_sub_title
from storage.home.workspace import Workspace
from tasks.enrich.enrich import GuideEnricher, open_enricher, read_guide
from tasks.enrich.episodes import ONSCREEN, find_numbers
from tasks.enrich.model import CategoryModel
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import open_source
from tasks.ingest.settings import IngestSettings
from tasks.scoring.folds import SALTS

GUIDES = (
    *("UK1", "US1", "AU1", "ZA1", "FR1", "IT1", "PT1", "NL1", "DK1", "NO1", "SK1", "GR1"),
    *("magenta_de_2022-05", "magenta_de_2022-06"),
)
SHARE = 0.1  # share of the shows and of the programmes whose categories and episode numbers are hidden
_PROGRAMME = re.compile(rb"<programme .*?</programme>", re.DOTALL)
_NUMBER = re.compile(rb'<episode-num(?: system="([^"]*)")?>([^<]*)</episode-num>')


def learn(fold: Fold) -> Path:
    """Runs a nightly run with default settings on a fold; returns the folder of its model."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    home, encoder = str(fold.home), train_and_augment(fold.home, fold.vocabulary, fold.corpus)
    with disable_run_logger():
        vectors, linear = embed.fn(home, fold.corpus, encoder), fit_linear.fn(home, fold.corpus)
        model: Model = pack.fn(home, fold.corpus, encoder, vectors, linear)
    return Workspace(fold.home).folder(model)


def planned(file: Path, model: Path, work: Path, options: EnrichOptions) -> GuideEnricher:
    """Returns the additions that ``guidespace enrich`` would make to a guide."""
    with open_source(str(file), work, IngestSettings()) as source:
        return open_enricher(source, *read_guide(source, work, options), CategoryModel(model), options)


def hide_numbers(guide: bytes) -> tuple[bytes, dict[int, dict[str, str]]]:
    """Removes episode numbers of a tenth of the programmes; returns the guide and numbers by index."""
    chance, hidden, places = random.Random(0), {}, itertools.count()

    def strip(programme: re.Match[bytes]) -> bytes:
        place, numbers = next(places), _NUMBER.findall(programme[0])
        if not numbers or b"<sub-title" not in programme[0] or chance.random() >= SHARE:
            return programme[0]
        hidden[place] = {
            system.decode() or ONSCREEN: html.unescape(text.decode()) for system, text in numbers
        }
        return _NUMBER.sub(b"", programme[0])

    return _PROGRAMME.sub(strip, guide), hidden


def measure_numbers(name: str) -> tuple[int, int, int]:
    """Counts programmes of a guide whose episode number was hidden, was filled, and was filled correctly."""
    with tempfile.TemporaryDirectory() as folder:
        work, options = Path(folder), EnrichOptions(episodes=True)
        content, hidden = hide_numbers(gzip.decompress(guides(name)[0].read_bytes()))
        (work / "guide.xml").write_bytes(content)
        with open_source(str(work / "guide.xml"), work, IngestSettings()) as source:
            _, guide = read_guide(source, work, options)
        numbers_by_episode, filled_count, correct_count = find_numbers(guide, None), 0, 0
        rows = pq.read_table(work / "programmes.parquet", columns=["title", "sub_title"]).to_pylist()
        for place, truth in hidden.items():
            row = rows[place]
            if found := dict(
                numbers_by_episode.get(
                    (guide.title_of_raw[row["title"]], fold_sub_title(row["sub_title"])), ()
                )
            ):
                filled_count += 1
                correct_count += all(found.get(system, text) == text for system, text in truth.items())
        return len(hidden), filled_count, correct_count


def numbers(names: tuple[str, ...]) -> list[Claim]:
    """Measures coverage and precision of episode numbers by guide, and means over guides with enough of them.

    A guide has enough if 50 or more numbers were filled.
    """
    claims, reached = [], []
    for name in names:
        hidden, filled_count, correct_count = measure_numbers(name)
        if not filled_count:
            continue
        share, precision = filled_count / hidden, correct_count / filled_count
        if filled_count >= 50:  # with fewer, the precision depends on chance
            reached.append((share, precision))
        condition = f"{name}, {hidden} hidden episode numbers"
        claims.append(Claim(f"{condition}: filled", share, better=None))
        claims.append(Claim(f"{condition}: precision", precision, better=None))
    filled_count, precision = np.mean(reached, axis=0).tolist()
    condition = f"episode numbers, mean of {len(reached)} guides"
    claims.append(Claim(f"{condition}: filled", filled_count, better=None))
    return [*claims, Claim(f"{condition}: precision", precision, aim=0.98)]


def fill(file: str, model: str) -> tuple[float, ...]:
    """Enriches a file and discards the enriched guide.

    Returns:
        The number of programmes; seconds of reading, of writing, of writing on the CPU, and in total; peak
        MiB of this process, and of the child process that reads.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options, work = EnrichOptions(), Path(folder)
        with open_source(file, work, IngestSettings()) as source:
            read = read_guide(source, work, options)
            reading = time.perf_counter() - started
            enricher = open_enricher(source, *read, CategoryModel(Path(model)), options)
            write_started, cpu_started = time.perf_counter(), time.process_time()
            for _ in enricher.pieces():
                pass
            writing = time.perf_counter() - write_started, time.process_time() - cpu_started
    return (
        float(enricher.report.programmes),
        reading,
        *writing,
        time.perf_counter() - started,
        peak(),
        peak_of_workers(),
    )


def speed(name: str, size: float) -> list[Claim]:
    """Measures speed and memory of enriching a guide that is repeated until it has ``size`` bytes.

    The model is from a nightly run on the guide.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        small, file = work / "small.xml.gz", work / "large.xml"
        hide(guides(name)[0], small, "shows", SHARE, seed=0)
        content = gzip.decompress(small.read_bytes())
        (fold,) = make_folds(work / "home", [small], SALTS[:1])
        begin, end = content.index(b"<programme "), content.rindex(b"</programme>") + len(b"</programme>")
        with open(file, "wb") as handle:
            handle.write(content[:begin])
            for _ in range(max(1, round(size / (end - begin)))):
                handle.write(content[begin:end])
            handle.write(content[end:])
        model = str(learn(fold))
        programmes, reading, wall, cpu, total, parent, child = call_apart(fill, str(file), model)
        condition = f"{file.stat().st_size / 1e9:.2g} GB, {programmes:,.0f} programmes"
        peak_megabytes = max(parent, child) * 2**20 / 1e6
        return [
            Claim(f"{condition}: written, programmes/s", programmes / wall, aim=100_000),
            Claim(f"{condition}: written, programmes a CPU s", programmes / cpu, better=None),
            Claim(f"{condition}: read, programmes/s", programmes / reading, better=None),
            Claim(f"{condition}: whole, minutes", total / 60, aim=5, better="less"),
            Claim(f"{condition}: largest process, peak MB", peak_megabytes, aim=500, better="less"),
        ]


def measure(quick: bool) -> list[Claim]:
    """Measures all claims of this file, with a guide of 100 MB."""
    sized = ("DK1", 5e7) if quick else ("US1", 1e8)
    return [*numbers(("UK1",) if quick else GUIDES), *speed(*sized)]


def measure_gigabyte() -> list[Claim]:
    """Measures speed and memory on a guide of 1 GB."""
    return speed("US1", 1e9)


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or "", measure_gigabyte))
