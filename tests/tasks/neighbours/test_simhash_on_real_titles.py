"""Near duplicates among the titles of real guides of two neighbouring countries, across channels and
languages."""

import gzip
import re
import zlib
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from tasks.neighbours.simhash import find_near_duplicates

PROGRAMME = re.compile(r'<programme [^>]*channel="([^"]+)"[^>]*>\s*<title lang="(\w\w)"[^>]*>([^<]+)<')
MOST = 2_500  # titles of a guide
DIM = 256


def titles_of(file: Path) -> list[tuple[str, str, str]]:
    """Returns title, language and channel of the first programme of each title."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        found = PROGRAMME.findall(lines.read())
    first = {unescape(title): (language, channel) for channel, language, title in reversed(found)}
    return [(title, *about) for title, about in first.items()][:MOST]


def spelt(titles: list[str]) -> np.ndarray:
    """Encodes spellings: hashed trigrams of letters with a sign; float32, unit norm."""
    vectors = np.zeros((len(titles), DIM))
    for row, title in enumerate(titles):
        text = f" {title.casefold()} "
        for place in range(len(text) - 2):
            code = zlib.crc32(text[place : place + 3].encode())
            vectors[row, code % DIM] += 1 if code & (1 << 31) else -1
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0).astype(np.float32)


@pytest.mark.slow
def test_near_duplicates_across_channels_and_languages(guidespace_data: Path):
    about = [
        title
        for country in ("DK1", "NO1")
        for title in titles_of(guidespace_data / "guides" / f"epgshare01_{country}_2025-03.xml.gz")
    ]
    vectors = spelt([title for title, _, _ in about])
    pairs, cosines = find_near_duplicates(vectors, 0.9, np.random.default_rng(0))
    expected = {
        (int(one), int(other))
        for one, other in zip(
            *np.nonzero(np.triu(vectors.astype(np.float64) @ vectors.T.astype(np.float64) >= 0.9, 1)),
            strict=True,
        )
    }
    found = {(int(one), int(other)) for one, other in pairs}
    assert found <= expected and len(found) >= 0.995 * len(expected) > 100
    assert (np.diff(cosines) <= 1e-9).all()
    languages = {frozenset((about[one][1], about[other][1])) for one, other in found}
    assert {frozenset(("da", "nb"))} <= languages
    assert sum(about[one][2] != about[other][2] for one, other in found) > 30  # on different channels
