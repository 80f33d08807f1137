"""The synthetic guide of the benchmark million has the requested number of distinct titles."""

import gzip
import itertools
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.claims import SAMPLE
from benchmarks.nights.large_guide import write_large_guide


def test_titles_are_distinct_and_channels_have_no_overlaps(tmp_path: Path):
    programmes = write_large_guide(tmp_path / "guide.xml.gz", 2_000, [SAMPLE])
    with gzip.open(tmp_path / "guide.xml.gz") as file:
        found = ElementTree.parse(file).getroot().findall("programme")
    titles = {str(one.findtext("title")).casefold() for one in found}
    assert len(titles) == 2_000 and 3_000 < len(found) == programmes < 5_000
    assert sum(one.find("category") is not None for one in found) > 0.9 * len(found)
    times = sorted((one.get("channel"), one.get("start"), one.get("stop")) for one in found)
    pairs = [(one, other) for one, other in itertools.pairwise(times) if one[0] == other[0]]
    assert all(one[2] <= other[1] for one, other in pairs) and len(pairs) > 1_000
