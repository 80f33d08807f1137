"""Copies the facts of a public XMLTV guide, without descriptions and credits, to a benchmark set.

``python -m benchmarks.quality.facts guide.xml.gz facts.xml.gz`` keeps channels with their names and, of each
programme, channel, start, stop, title, sub-title, category, episode-num and date. It omits descriptions,
credits, pictures, ratings, and programmes that repeat a channel, start and title.
"""

import argparse
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

KEPT = {"channel": {"display-name"}, "programme": {"title", "sub-title", "category", "episode-num", "date"}}
Binary = IO[bytes] | gzip.GzipFile
ATTRIBUTES = {"id", "channel", "start", "stop", "lang", "system"}


def write_facts(source: Binary, target: Binary) -> tuple[int, int]:
    """Copies the facts of an XMLTV file; returns the numbers of kept programmes and of omitted repeats.

    Raises:
        xml.etree.ElementTree.ParseError: The file is not well-formed.
    """
    seen: set[tuple[str, str, str]] = set()
    repeated = 0
    out = XMLGenerator(target, "utf-8", short_empty_elements=True)
    out.startDocument()
    out.startElement("tv", AttributesImpl({"generator-info-name": "facts"}))
    for element in _elements(source):
        if element.tag == "programme":
            key = element.get("channel", ""), element.get("start", ""), element.findtext("title", "")
            if key in seen:
                repeated += 1
                continue
            seen.add(key)
        out.characters("\n")
        _copy(out, element, KEPT[element.tag])
    out.characters("\n")
    out.endElement("tv")
    out.endDocument()
    return len(seen), repeated


def _elements(source: Binary) -> Iterator[ElementTree.Element]:
    """Yields channels and programmes, with one element in memory at a time."""
    events = ElementTree.iterparse(source, events=("start", "end"))
    _, root = next(events)
    for event, element in events:
        if event == "end" and element.tag in KEPT:
            yield element
            root.clear()


def _copy(out: XMLGenerator, element: ElementTree.Element, kept: set[str]) -> None:
    attributes = {name: value for name, value in element.items() if name in ATTRIBUTES}
    out.startElement(element.tag, AttributesImpl(attributes))
    out.characters((element.text or "").strip())
    for child in element:
        if child.tag in kept:
            _copy(out, child, set())
    out.endElement(element.tag)


def main() -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="XMLTV, plain or .gz")
    parser.add_argument("target", type=Path, help="written as .gz")
    options = parser.parse_args()
    packed = options.source.suffix == ".gz"
    source = gzip.GzipFile(options.source) if packed else options.source.open("rb")
    with source, gzip.GzipFile(options.target, "wb") as target:
        kept, repeated = write_facts(source, target)
    print(f"{kept:,} programmes kept, {repeated:,} repeat an earlier one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
