"""The classifier that a home keeps, so that a night labels sub-titles without training."""

from pathlib import Path

from storage.atomic import replaced_folder
from tasks.subtitles.classifier import ABOUT, PatternClassifier, PatternError

FOLDER = "patterns"  # in the home


def write_classifier(home: Path, model: PatternClassifier) -> None:
    """Replaces the home's classifier."""
    with replaced_folder(home / FOLDER) as new:
        model.save(new)


def read_classifier(home: Path) -> PatternClassifier:
    """The home's classifier; a PatternError where `guidespace patterns` never ran."""
    if not (home / FOLDER / ABOUT).exists():
        raise PatternError(
            f"{home} keeps no classifier of sub-titles; run `guidespace patterns` without --kept"
        )
    return PatternClassifier.open(home / FOLDER)
