"""Time of tonight's lists for 10,000 viewers, and of ``guidespace tonight`` in a new process."""

import datetime
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.claims import SAMPLE, Claim
from benchmarks.processes import run_guidespace
from storage.arrays import unit_rows
from tasks.recommend import Titles
from tasks.tonight.choose import Evening, titles_to_rank
from tasks.tonight.programmes import Programme, Show
from tasks.tonight.settings import TONIGHT
from tasks.tonight.table import to_table

SHOWS, KNOWN, TASTES, LIKES, SEEN, DIM = 5000, 20_000, 200, 50, 10, 160
EVENING = datetime.datetime(2026, 1, 14, 18, tzinfo=datetime.UTC)


def claims(quick: bool) -> list[Claim]:
    """Measures the lists of benchmarks/recommend/recommend.py."""
    viewers = 500 if quick else 10_000
    seconds, listed = _all_viewers(viewers)
    with tempfile.TemporaryDirectory() as folder:
        cold = _cold(Path(folder) / "home", 3 if quick else 9)
    name = f"lists for {viewers:,} viewers × {SHOWS:,} shows, with reasons and as a table, seconds"
    return [
        Claim(name, seconds, aim=30, better="less"),
        Claim("programmes on a list, mean", listed, aim=TONIGHT.count),
        Claim("one viewer from a cold command line, seconds", cold, aim=1, better="less"),
    ]


def _all_viewers(count: int) -> tuple[float, float]:
    """Returns wall seconds from likes to the table of lists, and programmes per viewer."""
    rng = np.random.default_rng(0)
    centres = unit_rows(rng.normal(size=(TASTES, DIM)).astype(np.float32))
    taste = rng.integers(0, TASTES, KNOWN)
    vectors = unit_rows(centres[taste] + 0.6 * unit_rows(rng.normal(size=(KNOWN, DIM)).astype(np.float32)))
    shows = [Show(f"s{row}", (_programme(row),)) for row in range(SHOWS)]
    of_taste = [np.flatnonzero(taste == one) for one in range(TASTES)]
    tastes_of_viewer = rng.integers(0, TASTES, (count, 3))
    liked = np.array(
        [rng.choice(of_taste[one]) for three in tastes_of_viewer for one in rng.choice(three, LIKES)]
    )
    viewers = np.repeat([f"{viewer:032x}" for viewer in range(count)], LIKES)
    opinions = pa.table(
        {
            "viewer": viewers,
            "show_key": [f"s{row}" for row in liked.tolist()],
            "title": [f"Show {row}" for row in liked.tolist()],
            "time": np.full(len(liked), "2026-01-01", dtype="datetime64[us]"),
            "value": rng.choice([1, 1, 1, -1], len(liked)).astype(np.float32),
        }
    )
    watched = {
        "viewer": np.repeat(np.unique(viewers), SEEN),
        "show_key": opinions["show_key"][: count * SEEN],
    }
    seen = pa.table(watched | dict.fromkeys(("episode", "sub_title"), pa.array([""] * (count * SEEN))))
    rows = np.array([int(key[1:]) for key in titles_to_rank(shows, opinions)])
    titles = Titles(vectors[rows], np.ones(len(rows), np.int64))
    started = time.perf_counter()
    evening = Evening(shows, opinions, seen, titles, TONIGHT)
    table = to_table(evening.recommend(evening.viewers))
    return time.perf_counter() - started, len(table) / count


def _programme(row: int) -> Programme:
    start = EVENING + datetime.timedelta(minutes=row % 360)
    texts = dict.fromkeys(("sub_title", "episode", "description"), "")
    about = {"channel": f"Channel {row % 300}", "title": f"Show {row}"}
    return Programme(start=start, stop=None, categories=("Crime",), regular=False, **about, **texts)


def _cold(home: Path, repeats: int) -> float:
    """Returns median wall seconds of ``guidespace tonight`` on the sample guide, in new processes."""
    run_guidespace("nightly", "--feed", str(SAMPLE), "--preset", "smoke", "--home", home)
    for title in ("Midsomer Murders", "MasterChef"):
        run_guidespace("like", title, "--home", home)
    seconds = []
    for _ in range(repeats + 1):  # the first run fills the page cache
        started = time.perf_counter()
        run_guidespace("tonight", "--at", EVENING.isoformat(), "--home", home)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])
