"""Guides too large for memory, each read in a process of its own whose peak is looked at."""

import subprocess
import sys
from pathlib import Path

import pytest

READ = """
import datetime, sys
from pathlib import Path
from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.settings import IngestSettings
home = Path(sys.argv[1])
with Catalogue.open(home) as catalogue:
    clocks = {"clock": lambda: 0.0, "now": lambda: datetime.datetime.now(datetime.UTC)}
    for event in ingest_feeds(catalogue, [str(home / "g.xml")], IngestSettings(), **clocks):
        pass
    print(catalogue.connection.execute("SELECT count(*) FROM programmes").fetchall()[0][0])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def rows_and_megabytes(home: Path) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(home)], capture_output=True, encoding="utf-8", check=True
    )
    rows, kibibytes = done.stdout.split()
    return int(rows), int(kibibytes) // 1024


@pytest.mark.slow
def test_an_attribute_of_a_gigabyte(tmp_path: Path) -> None:
    with open(tmp_path / "g.xml", "wb") as file:
        file.write(b'<tv><programme channel="')
        for _ in range(1000):
            file.write(b"x" * 1_000_000)
        file.write(b'" start="20250301"><title>a</title></programme>')
        file.write(
            b'<programme channel="one" start="20250301"><title>after</title></programme>' * 20 + b"</tv>"
        )
    rows, megabytes = rows_and_megabytes(tmp_path)
    assert rows == 1 and megabytes < 400


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_million_programmes_on_one_channel(tmp_path: Path) -> None:
    with open(tmp_path / "g.xml", "w", encoding="utf-8") as file:
        file.write("<tv>")
        for number in range(10_000_000):
            minutes, day = number % 1440, number // 1440
            date = f"{2000 + day // 336:04d}{day % 336 // 28 + 1:02d}{day % 28 + 1:02d}"
            start = f"{date}{minutes // 60:02d}{minutes % 60:02d}"
            file.write(
                f'<programme channel="one" start="{start}"><title>t {number % 1000}</title></programme>\n'
            )
        file.write("</tv>")
    rows, megabytes = rows_and_megabytes(tmp_path)
    assert rows == 10_000_000 and megabytes < 1500
