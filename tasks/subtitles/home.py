"""Writes the classifier of sub-titles to a home and reads it, so that later runs need not train it."""

from pathlib import Path

from storage.atomic import replaced_folder
from tasks.subtitles.classifier import METADATA_FILE, PatternClassifier, PatternError

FOLDER = "patterns"  # folder of the classifier in the home


def write_classifier(home: Path, model: PatternClassifier) -> None:
    """Writes a classifier of sub-titles to a home, and replaces the previous classifier."""
    with replaced_folder(home / FOLDER) as new_folder:
        model.save(new_folder)


def read_classifier(home: Path) -> PatternClassifier:
    """Reads the classifier of sub-titles from a home. Raises PatternError if the home has none."""
    if not (home / FOLDER / METADATA_FILE).exists():
        raise PatternError(
            f"{home} has no classifier of sub-titles; run `guidespace patterns` without --kept"
        )
    return PatternClassifier.open(home / FOLDER)
