"""Nightly run of 100,000 titles, or of a million with --full: time and memory by stage, and opening the
map.

The guide is spliced from four real guides (large_guide.py). CPU time and peak memory of a stage are those of
all processes since the end of the previous stage: baselines run in parallel to train to embed, pack to
neighbours, layout to cluster. Resident sets count a page of a mapped file once per mapping.
"""

import importlib.util
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.large_guide import write_large_guide
from benchmarks.nights.night import run_night

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
READY = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def measure_million(titles: int, feeds: Sequence[Path]) -> list[Claim]:
    """Measures the claims of one nightly run."""
    with tempfile.TemporaryDirectory() as folder:
        home, feed = Path(folder) / "home", Path(folder) / "guide.xml.gz"
        programmes = write_large_guide(feed, titles, feeds)
        night = run_night(home, [feed])
        (page,), (nearest,) = (
            (home / "artifacts" / kind).glob("*/artifact.json") for kind in ("page", "nearesttitles")
        )
        recall = json.loads(nearest.read_text(encoding="utf-8"))["details"]["recall"]
        size, map_figures = (page.parent / "map.html").stat().st_size, open_map(page.parent / "map.html")
    about_night = f"night of {titles:,} titles, {programmes:,} programmes"
    is_full = titles >= 1_000_000
    claims = [
        Claim(f"{about_night}, seconds", night.seconds, aim=1800 if is_full else None, better="less"),
        Claim(f"{about_night}, CPU seconds", night.cpu, better=None),
        Claim(f"{about_night}, peak memory, GB", night.peak / 1e9, aim=6, better="less"),
        Claim(f"{about_night}, recall of neighbours", recall, aim=0.98),
        Claim(f"{about_night}, map, MB", size / 1e6, better=None),
    ]
    if map_figures is not None:
        claims.append(Claim(f"{about_night}, map opens, seconds", map_figures, aim=5, better="less"))
    for stage in night.stages:
        about = {"ended, s": stage.ended, "CPU s": stage.cpu, "peak GB": stage.peak / 1e9}
        claims += [
            Claim(f"{titles:,} titles, {stage.name}, {quantity}", value, better=None)
            for quantity, value in about.items()
        ]
    return claims


def open_map(page: Path) -> float | None:
    """Returns the seconds from opening a page to its first frame; None without a browser or Playwright."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or importlib.util.find_spec("playwright") is None:
        print("the map is not opened: no Chromium, or no Playwright", file=sys.stderr)
        return None
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        window = launched.new_page(viewport={"width": 1200, "height": 800})
        window.set_default_timeout(120_000)
        started = time.perf_counter()
        window.goto(page.as_uri())
        window.evaluate(READY)
        seconds = time.perf_counter() - started
        launched.close()
    return seconds


def main(quick: bool) -> list[Claim]:
    """Measures a nightly run of 100,000 titles, or with ``quick`` of a small guide."""
    return measure_million(5_000, [SAMPLE]) if quick else measure_million(100_000, real_guides())


def real_guides() -> list[Path]:
    """Returns the four English guides."""
    return guides("UK1", "US1", "AU1", "ZA1")


if __name__ == "__main__":
    sys.exit(run(main, __doc__ or "", lambda: measure_million(1_000_000, real_guides())))
