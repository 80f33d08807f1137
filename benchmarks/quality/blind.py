"""Blind ratings of lists of similar titles: our lists beside those of an editor and of other vectors.

The ratings are committed (ratings/NAME; blind_ratings.py describes how they are made), so this benchmark only
computes means and intervals over titles. reader.json of a set states the kind of reader: so far,
language models. MiniLM was trained on English texts and is a rival only in English sets, which were rated for
an earlier version of ``similar``, without sub-titles.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.claims import Claim, mean_interval, run
from benchmarks.quality.blind_ratings import EDITOR
from benchmarks.quality.rating_scores import read_set, score

RATINGS = Path(__file__).with_name("ratings")
OURS, TITLE_ONLY, MINILM = "similar", "title_only", "minilm"
SETS = ("english-7", "german-5", "described-foxtel_au-2", "described-pluto_de-2")
WITH_MINILM = ("english-4", "english-5", "english-6")


def measure(_: bool) -> Sequence[Claim]:
    """Compares our lists with those of each rival, on titles that were rated for both."""
    edited = sorted(
        folder.name for folder in RATINGS.iterdir() if folder.is_dir() and EDITOR in read_set(folder)[0]
    )
    claims = [*compare("sets with an editor", edited, EDITOR)] if edited else []
    for name in SETS:
        claims += compare(name, [name], TITLE_ONLY)
    return [*claims, *compare("english-4 to -6", WITH_MINILM, MINILM)]


def compare(name: str, sets: Sequence[str], rival: str) -> Iterator[Claim]:
    """Makes the claims on the mean ratings and on the paired difference."""
    ratings = (rating for folder in sets for rating in read_set(RATINGS / folder))
    rated = [rating for rating in ratings if OURS in rating and rival in rating]
    lines = {line.system: line for line in score(rated, rival)}
    ours, theirs = lines[OURS], lines[rival]
    about = f"{name}, {ours.titles} titles"
    bounds = {name: mean_interval([rating[name] for rating in rated]) for name in (OURS, rival)}
    yield Claim(
        f"{about}: mean rating, 0 to 10", ours.mean, rival, theirs.mean, better=None,
        interval=bounds[OURS], rival_interval=bounds[rival],
    )  # fmt: skip
    aim = None if rival == EDITOR else 0
    low, high = ours.interval
    better = None if aim is None else "more"
    yield Claim(f"{about}: above {rival}", ours.difference, aim=aim, better=better, interval=(low, high))


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
