"""One merged guide of four national guides: seconds and memory after one feed changed, latency of a 304
response, and memory for a gigabyte of feeds.

A smoke run on one of the guides trains the model; its quality has no influence. The command is run as a
process, as every hour.
"""

import datetime
import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks.claims import ROOT, Claim, guides, run
from benchmarks.processes import call_apart, peak
from storage.home.merged_guide import merged_file
from tasks.enrich.output import write_output
from tasks.enrich.source import open_source
from tasks.ingest.settings import IngestSettings
from tasks.merge.merge import open_merger
from tasks.merge.settings import MergeSettings
from tests.flows.serve_process import serving

NAMES = ("UK1", "US1", "AU1", "ZA1")
NOW = datetime.datetime(2025, 3, 28, tzinfo=datetime.UTC)
SINCE = (datetime.datetime.now(datetime.UTC) - NOW).days + 30
REQUESTS = 2000


def command(*arguments: object) -> tuple[float, float]:
    """Runs a command in a process; returns its seconds and the peak memory of its largest process in MB."""
    script = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    started = time.perf_counter()
    line = [sys.executable, "-c", script, sys.executable, "-m", "flows", *map(str, arguments)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return time.perf_counter() - started, int(done.stdout.split()[-1]) * 1024 / 1e6


def refreshed(names: tuple[str, ...]) -> list[Claim]:
    """Measures merging guides of which one has changed since the last merge, and requests of the result."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        feeds = [Path(shutil.copy(file, work)) for file in guides(*names)]
        of_home = ["--home", work / "home"]
        command("nightly", "--preset", "smoke", "--feed", feeds[-1], *of_home)
        build = ["guide", *of_home, *(part for feed in feeds for part in ("--feed", feed))]
        build += ["--set", f"guide.days_back={SINCE}"]
        first, first_peak = command(*build)
        changed_bytes = gzip.decompress(feeds[0].read_bytes()).replace(b"</tv>", b"<!-- changed --></tv>")
        feeds[0].write_bytes(gzip.compress(changed_bytes))
        seconds, memory = command(*build)
        unchanged, _ = command(*build)
        condition = f"guide of {', '.join(names)}"
        return [
            Claim(f"{condition}: all feeds new, s", first, better=None),
            Claim(f"{condition}: one feed changed, s", seconds, aim=20, better="less"),
            Claim(f"{condition}: no feed changed, s", unchanged, better=None),
            Claim(f"{condition}: peak MB", max(memory, first_peak), aim=500, better="less"),
            *requested(work / "home", work / "serve.log"),
        ]


def requested(home: Path, log: Path) -> list[Claim]:
    """Measures conditional requests to the server and downloads from it, one after another."""
    with serving(home, log) as (url, _, _), httpx.Client(base_url=url, timeout=60) as client:
        etag = client.head("/guide.xml").headers["ETag"]
        times = []
        for _ in range(REQUESTS):
            started = time.perf_counter()
            assert client.get("/guide.xml", headers={"If-None-Match": etag}).status_code == 304
            times.append(1000 * (time.perf_counter() - started))
        started = time.perf_counter()
        plain = client.get("/guide.xml", headers={"Accept-Encoding": "identity"}).content
        download = time.perf_counter() - started
    assert gzip.decompress(merged_file(home).read_bytes()) == plain
    return [
        Claim("304 response, p99 in ms", float(np.percentile(times, 99)), aim=50, better="less"),
        Claim(f"{len(plain) / 1e6:,.0f} MB of /guide.xml without gzip, s", download, better=None),
    ]


def merge_large(files: list[str], out: str) -> tuple[float, float, int]:
    """Merges files; returns seconds, the peak memory of this process in MB, and the programmes."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        work, sources = Path(folder), []
        for file in files:
            with open_source(file, work, IngestSettings()) as source:
                sources.append(source)
        merger = open_merger(sources, MergeSettings(), work, NOW, work / "channels.csv")
        write_output(out, merger.pieces())
    return time.perf_counter() - started, peak() * 2**20 / 1e6, sum(merger.report.programmes.values())


def large(name: str, size: float) -> list[Claim]:
    """Measures merging a guide whose channels are repeated under other ids until it has ``size`` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        content = gzip.decompress(guides(name)[0].read_bytes())
        begin, end = content.index(b"<channel "), content.rindex(b"</programme>") + len(b"</programme>")
        file = Path(folder) / "large.xml"
        with open(file, "wb") as handle:
            handle.write(content[:begin])
            for number in range(max(1, round(size / (end - begin)))):
                ids = content[begin:end].replace(b' channel="', b' channel="%d.' % number)
                handle.write(ids.replace(b'<channel id="', b'<channel id="%d.' % number))
            handle.write(content[end:])
        seconds, memory, programmes = call_apart(merge_large, [str(file)], f"{folder}/out.xml.gz")
        condition = f"{file.stat().st_size / 1e9:.2g} GB, {programmes:,} programmes"
        return [
            Claim(f"{condition}: merged, s", seconds, better=None),
            Claim(f"{condition}: merged, peak MB", memory, aim=500, better="less"),
        ]


def measure(quick: bool) -> list[Claim]:
    """Measures all claims of this file."""
    return [*refreshed(NAMES), *large("US1", 5e7 if quick else 1e9)]


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
