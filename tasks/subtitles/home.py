"""The classifier that a home keeps, so that a night labels sub-titles without training."""

import os
import shutil
from pathlib import Path

from tasks.subtitles.classifier import ABOUT, PatternClassifier, PatternError

FOLDER = "patterns"  # in the home


def write_classifier(home: Path, model: PatternClassifier) -> None:
    """Replaces the home's classifier."""
    place, new = home / FOLDER, home / f"{FOLDER}.{os.getpid()}.tmp"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    try:
        model.save(new)
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def read_classifier(home: Path) -> PatternClassifier:
    """The home's classifier; a PatternError where `guidespace patterns` never ran."""
    if not (home / FOLDER / ABOUT).exists():
        raise PatternError(
            f"{home} keeps no classifier of sub-titles; run `guidespace patterns` without --kept"
        )
    return PatternClassifier.open(home / FOLDER)
