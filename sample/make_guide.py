"""Makes the sample guide from the lists of this folder: one week, forty channels, three languages, real guides' faults.

Run ``python -m sample.make_guide [OUT]``; without OUT it writes ``sample/guide.xml.gz``. The same lists and seed give
the same bytes (with the same zlib; the XML inside is the same with any).
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from sample.field_quirks import bend_times, broken_records, dirty_categories, longest_title, repeat_and_shuffle
from sample.lists import FOLDER, read_channels
from sample.records import Record, clean_record
from sample.schedule import plan_week
from sample.title_quirks import damage_title, mark_title, mistake_language

SEED = 2026
GUIDE = FOLDER / "guide.xml.gz"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tv SYSTEM "xmltv.dtd">\n<tv generator-info-name="GuideSpace sample guide">\n'


def make_records(seed: int) -> list[Record]:
    """The week's programmes as the guide has them, in the order of the file."""
    records = []
    rng = random.Random(f"{seed} quirks")
    for airing in plan_week(seed):
        record = clean_record(airing)
        mark_title(record, rng)
        damage_title(record, rng)
        mistake_language(record, rng)
        dirty_categories(record, rng)
        bend_times(record, rng)
        records.append(record)
    longest = max(range(len(records)), key=lambda index: len(records[index].titles[0][1]))
    records[longest] = longest_title(records[longest])
    return [*repeat_and_shuffle(records, rng), *broken_records(records)]


def guide_xml(seed: int) -> bytes:
    """The guide as UTF-8 XML."""
    channels = [
        f"<channel id={quoteattr(channel.id)}><display-name lang={quoteattr(channel.language)}>{escape(channel.name)}</display-name></channel>\n"
        for channel in read_channels()
        if channel.name
    ]
    return "".join([HEAD, *channels, *(record.xml() for record in make_records(seed)), "</tv>\n"]).encode()


def compress(xml: bytes) -> bytes:
    """Gzip without a name or a time, so that equal text gives equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(xml)
    return buffer.getvalue()


def main() -> None:
    """Writes the guide and says what is in it."""
    parser = argparse.ArgumentParser(prog="python -m sample.make_guide", description="Write the sample guide from the lists in sample/.")
    parser.add_argument("out", nargs="?", type=Path, default=GUIDE, metavar="OUT", help="file to write (default: sample/guide.xml.gz)")
    out: Path = parser.parse_args().out
    xml = guide_xml(SEED)
    out.write_bytes(compress(xml))
    print(f"{out}: {xml.count(b'<programme')} programmes, {xml.count(b'<channel id')} channels, {out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
