"""Kinds of the programmes of any guide: what the guide states, the structure of airings, and predictions.

Usage::

    kinds = KindModel.open(model_folder).predict(programmes_file, variants_file, work_folder)
    for title_id, categories, numbered in programmes:
        predictions = kinds.of(title_id, categories, numbered)   # of one programme

torch is not imported.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from storage.catalogue.connection import temporary_database
from storage.catalogue.structure import title_categories, title_structure, with_episode_columns
from tasks.kinds.evidence import gather_evidence
from tasks.kinds.kinds import KINDS, Kind, KindPrediction, combine
from tasks.kinds.names import stated_kinds

MEMORY_BYTES = 100_000_000  # memory limit of DuckDB


@dataclass(frozen=True)
class TitleKinds:
    """Kinds of the titles of a guide."""

    titles: Sequence[tuple[KindPrediction, ...]]  # of each title, from all its airings

    def of(self, title: int, categories: Iterable[str], numbered: bool) -> tuple[KindPrediction, ...]:
        """Returns the kinds of one programme.

        What its categories state is certain. The kinds of its title are added unless they contradict that.
        Its episode number rules out that it is a film, unless its categories state it.

        Args:
            title: Index of its title.
            categories: Its categories.
            numbered: Whether it has a readable episode number (storage/episodes).
        """
        stated = combine(stated_kinds(categories), numbered)
        by_kind = {kind: KindPrediction(kind, 1.0, "guide") for kind in stated}
        for prediction in self.titles[title]:
            if prediction.kind not in by_kind and _fits(prediction.kind, stated, numbered):
                by_kind[prediction.kind] = prediction
        if numbered and "series" not in by_kind and not {"film", "news", "sport"} & {*by_kind}:
            by_kind["series"] = KindPrediction("series", 1.0, "structure")
        return tuple(by_kind[kind] for kind in combine(by_kind, numbered))


def _fits(kind: Kind, stated: Collection[Kind], numbered: bool) -> bool:
    """Returns whether a kind of the title may be added to what the categories of a programme state."""
    if kind == "film":
        return not numbered and {*stated} <= {"children"}
    return not stated if kind == "other" else kind == "children" or "film" not in stated


@dataclass(frozen=True)
class KindModel:
    """Predicts the kinds of the titles of a guide."""

    folder: Path

    @staticmethod
    def open(folder: Path) -> "KindModel":
        """Opens the kinds of a Model folder; an older model answers only from the guide itself."""
        return KindModel(folder)

    def predict(self, programmes: Path, variants: Path, work: Path) -> TitleKinds:
        """Returns the kinds of the titles of a guide.

        Args:
            programmes: programmes.parquet of a Guide, or of a surveyed guide (tasks/enrich/survey.py).
            variants: Parquet file with raw_title and title_id.
            work: Folder for temporary files.
        """
        file = with_episode_columns(programmes, work / "numbered.parquet")
        with temporary_database(work, MEMORY_BYTES) as connection:
            structure = title_structure(connection, file, variants)
            evidence = gather_evidence(structure, title_categories(connection, file, variants))
        titles: list[tuple[KindPrediction, ...]] = []
        for stated, is_numbered in zip(evidence.stated, evidence.is_numbered, strict=True):
            kinds = [kind for kind, is_stated in zip(KINDS, stated, strict=True) if is_stated]
            by_kind = {kind: KindPrediction(kind, 1.0, "guide") for kind in kinds}
            if is_numbered and not {"film", "news", "sport"} & {*kinds}:
                by_kind.setdefault("series", KindPrediction("series", 1.0, "structure"))
            titles.append(tuple(by_kind[kind] for kind in combine(by_kind, bool(is_numbered))))
        return TitleKinds(titles)
