"""A night after 2 % of one guide changed, compared with a night of the same guides in a new home.

The feeds are four development guides. In one of them, every fiftieth title gets another name, so it is a new
title with the same airings and categories. Both nights encode the texts of new titles; the new home encodes
all. ``full night`` computes everything from the changed guides; the accuracies are those of its model, too.
"""

import gzip
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.night import run_night
from benchmarks.nights.nightly import read_scores

STEP = 50  # one of so many titles changes


def measure_changed(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [SAMPLE] if quick else guides("US1", "ZA1", "FR1", "NL1")
        feeds = [Path(shutil.copy(feed, folder)) for feed in sources]
        run_night(folder / "home", feeds)
        change(feeds[0])
        changed = run_night(folder / "home", feeds)
        full = run_night(folder / "new", feeds)
        scores = [read_scores(folder / home) for home in ("home", "new")]
    claims = [
        Claim(f"changed night, {unit}", value, "full night", rival, aim=0.33, better="less")
        for unit, value, rival in (
            ("seconds", changed.seconds, full.seconds),
            ("CPU seconds", changed.cpu, full.cpu),
        )
    ]
    for protocol, forms in scores[0].items():
        for form, score in forms.items():
            if score["n"]:
                ours, theirs = (each[protocol][form]["predictor"] for each in scores)
                claims.append(
                    Claim(
                        f"accuracy of the predictor on {protocol}, {form} ({score['n']} titles)",
                        ours["accuracy"],
                        "full night",
                        theirs["accuracy"],
                        interval=tuple(ours["ci95"]["accuracy"]),
                        rival_interval=tuple(theirs["ci95"]["accuracy"]),
                        aim=1.0,
                    )
                )
    return claims


def change(feed: Path) -> None:
    """Renames one of STEP titles in a guide, in place."""
    tree = etree.parse(str(feed))
    elements = tree.findall(".//programme/title")
    renamed = set(sorted({element.text or "" for element in elements})[::STEP])
    for element in elements:
        if (element.text or "") in renamed:
            element.text = f"{element.text} Returns"
    with gzip.open(feed, "wb") as file:
        tree.write(file, encoding="utf-8", xml_declaration=True)


if __name__ == "__main__":
    sys.exit(run(measure_changed, __doc__ or ""))
