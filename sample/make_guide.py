"""Generates the sample guide from the lists of this folder: one week, forty channels, three languages, and
errors as in real guides.

``python -m sample.make_guide [OUT]`` writes OUT, by default ``sample/guide.xml.gz``. Equal lists and seeds
give the same XML and, with the same version of zlib, the same bytes.
"""

import gzip
import io
import random
import sys
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from sample.lists import FOLDER, read_channels
from sample.quirks import (
    ALL,
    broken_records,
    clean_record,
    damage_description,
    longest_title,
    repeat_and_shuffle,
)
from sample.schedule import plan_week

SEED = 2026
GUIDE = FOLDER / "guide.xml.gz"
HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv generator-info-name="GuideSpace sample guide">
"""
CHANNEL = "<channel id={}><display-name lang={}>{}</display-name></channel>\n"


def guide_xml(seed: int) -> bytes:
    """Returns the guide as XML in UTF-8: the channels, then the programmes of the week."""
    rng, texts = random.Random(f"{seed} quirks"), random.Random(f"{seed} descriptions")
    records = [clean_record(airing) for airing in plan_week(seed)]
    for record in records:
        for quirk in ALL:
            quirk(record, rng)
        damage_description(record, texts)
    longest = max(range(len(records)), key=lambda index: len(records[index].titles[0][1]))
    records[longest] = longest_title(records[longest])
    records = [*repeat_and_shuffle(records, rng), *broken_records(records)]
    listed = [channel for channel in read_channels() if channel.name]
    channels = [
        CHANNEL.format(quoteattr(one.id), quoteattr(one.language), escape(one.name)) for one in listed
    ]
    return "".join([HEAD, *channels, *(record.xml() for record in records), "</tv>\n"]).encode()


def compress(xml: bytes) -> bytes:
    """Compresses by gzip without file name and time, so that equal texts give equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(xml)
    return buffer.getvalue()


def main() -> None:
    """Writes the guide and prints its size."""
    out, xml = Path(*sys.argv[1:2] or [GUIDE]), guide_xml(SEED)
    out.write_bytes(compress(xml))
    counts = f"{xml.count(b'<programme')} programmes, {xml.count(b'<channel id')} channels"
    print(f"{out}: {counts}, {out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
