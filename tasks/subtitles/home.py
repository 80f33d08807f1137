"""Stores the sub-title classifier in the home, so that nightly runs need no training."""

from pathlib import Path

from storage.atomic import replaced_folder
from tasks.subtitles.classifier import METADATA, PatternClassifier, PatternError

FOLDER = "patterns"  # folder in the home


def write_classifier(home: Path, model: PatternClassifier) -> None:
    """Replaces the home's classifier."""
    with replaced_folder(home / FOLDER) as new:
        model.save(new)


def read_classifier(home: Path) -> PatternClassifier:
    """Opens the home's classifier; raises PatternError if there is none."""
    if not (home / FOLDER / METADATA).exists():
        raise PatternError(
            f"{home} has no classifier of sub-titles; run `guidespace patterns` without --kept"
        )
    return PatternClassifier.open(home / FOLDER)
