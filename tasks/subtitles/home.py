"""Writes the sub-title classifier to the home and reads it, so that nightly runs need not train it."""

from pathlib import Path

from storage.atomic import replaced_folder
from tasks.subtitles.classifier import METADATA, PatternClassifier, PatternError

FOLDER = "patterns"  # folder in the home


def write_classifier(home: Path, model: PatternClassifier) -> None:
    """Writes a classifier to the home, in place of the previous one."""
    with replaced_folder(home / FOLDER) as new_folder:
        model.save(new_folder)


def read_classifier(home: Path) -> PatternClassifier:
    """Reads the classifier of a home; raises PatternError if there is none."""
    if not (home / FOLDER / METADATA).exists():
        raise PatternError(
            f"{home} has no classifier of sub-titles; run `guidespace patterns` without --kept"
        )
    return PatternClassifier.open(home / FOLDER)
