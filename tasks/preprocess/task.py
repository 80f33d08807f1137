"""Defines the Prefect task that computes a Corpus (input of training) from a Guide and its Vocabulary."""

import json
import logging
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import Ragged
from storage.artifacts import Corpus, Guide, Progress, Vocabulary
from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
from storage.digests import hashes
from storage.errors import ExpectedError
from storage.formats.model import write_spellings
from storage.formats.vocabulary import SPLITS, TRAIN, texts_of
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.kinds.files import write_kinds
from tasks.preprocess import tables
from tasks.preprocess.categories import Labels, LabelSources, label_titles, read_mapping
from tasks.preprocess.encoder_choice import choose_encoder
from tasks.preprocess.sentences import write_sentences
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences.auto import AutomaticEncoder
from tasks.sentences.settings import SentenceSettings

STAGE = Stage(Corpus, __file__)
DROPPED = pa.schema([("category", pa.string()), ("reason", pa.string()), ("titles", pa.int64())])


class TooFewTitles(ExpectedError, ValueError):
    """Raised if the guide has too few training titles with a label (usable category)."""


@task(**STAGE.options)
def preprocess(
    home: str,
    guide: Guide,
    vocabulary: Vocabulary,
    salt: str,
    settings: PreprocessSettings,
    label_sources: LabelSources | None = None,
) -> Corpus:
    """Computes token ids, labels and sentence vectors of titles, and publishes them as arrays and tables.

    storage/formats/corpus.py describes the files of the Corpus.

    Args:
        home: The home folder.
        guide: Snapshot of the catalogue.
        vocabulary: Titles with their sets (training or held-out) and tokens.
        salt: Salt of the hashes for held-out sets; the hashes for validation sets depend on it, too.
        settings: Settings of the stage.
        label_sources: Mapping table and corrections; None: the bundled table and no corrections.

    Raises:
        SentenceEncoderMissing: The package of the sentence encoder is not installed.
        TooFewTitles: Too few training titles have a usable category.
    """
    workspace, sources = Workspace(home), label_sources or LabelSources(mapping=read_mapping())
    guide_folder, folder = workspace.folder(guide), workspace.folder(vocabulary)
    titles, variants = folder / "titles.parquet", folder / "variants.parquet"
    splits = tables.index_in(pq.read_table(titles, columns=["split"])["split"], SPLITS)
    with STAGE.publish(home, guide, vocabulary, salt, settings, label_sources) as draft:
        with temporary_database(draft.folder) as connection:
            airings = Airings(connection, guide_folder, variants)
            labels = _label_titles(airings, titles, splits, sources, settings)
            entries = tables.write_titles(folder, draft.folder, labels, airings)
        tokens = tables.write_tokens(folder, draft.folder)
        family_hash = _write_arrays(draft.folder, titles, splits, labels, salt)
        _write_label_files(draft.folder, labels)
        tables.write_frequencies(draft.folder, guide_folder, folder)
        labelled_rows = np.flatnonzero((labels.title_labels.lengths > 0) & (splits == TRAIN))
        sentences, choice = _choose_encoder(
            workspace.home, settings.sentences, titles, labelled_rows, labels.title_labels, family_hash
        )
        progress = write_sentences(
            workspace.home, sentences, settings, guide=guide_folder, vocabulary=folder, corpus=draft.folder
        )
        _log_progress(progress)
        identity = encoder.identity if (encoder := sentences.encoder.open()) else ""
        sentence_details = asdict(sentences) | {"identity": identity}
        with tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as work:
            kinds = write_kinds(guide_folder, draft.folder, Path(work), sentence_details)
        draft.counts |= {
            "titles": len(splits),
            "tokens": tokens,
            "entries": entries,
            "labels": len(labels.names),
            "labelled_training_titles": len(labelled_rows),
        }
        draft.details |= workspace.details(vocabulary)
        draft.details |= {"sentences": sentence_details, "encoder_choice": choice}
    _log_counts(draft.counts, kinds)
    return draft.artifact


def _label_titles(
    airings: Airings, titles: Path, splits: np.ndarray, sources: LabelSources, settings: PreprocessSettings
) -> Labels:
    """Selects the labels of all titles, and checks that enough training titles have a label.

    Raises:
        TooFewTitles: Too few training titles have a usable category.
    """
    corrections, is_training = sources.corrections, splits == TRAIN
    shows = enumerate(texts_of(titles, "show_key") if corrections else ())
    corrected = {row: corrections[show] for row, show in shows if show in corrections and is_training[row]}
    labels = label_titles(
        airings.categories(),
        airings.titles_by_source(),
        is_training,
        minimum_titles=settings.minimum_titles,
        largest_share=settings.largest_share,
        mapping=sources.mapping,
        corrected=corrected,
    )
    labelled_count = int(((labels.title_labels.lengths > 0) & is_training).sum())
    if labelled_count < settings.minimum_training_titles:
        raise TooFewTitles(
            f"{labelled_count} training titles have a usable category, "
            f"{settings.minimum_training_titles} or more are needed ({len(splits)} titles in all; "
            f"a category is usable from {settings.minimum_titles} training titles on). Add feeds or "
            "days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
        )
    return labels


def _write_arrays(folder: Path, titles: Path, splits: np.ndarray, labels: Labels, salt: str) -> np.ndarray:
    """Writes an array for each property of titles to a Corpus folder. Returns the hashes of franchises."""
    families = pq.read_table(titles, columns=["family"], read_dictionary=["family"])["family"]
    arrays = {
        "split": splits,
        "show": np.arange(len(splits), dtype=np.int32),
        "rare": (labels.title_labels.lengths == 0) & (labels.title_rare.lengths > 0),
        "family": families.combine_chunks().indices.to_numpy(),
        # Validation titles are selected by this hash, and held-out titles by the hash of the salt alone.
        "family_hash": hashes(texts_of(titles, "family"), salt + "/tuning"),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return arrays["family_hash"]


def _write_label_files(folder: Path, labels: Labels) -> None:
    """Writes the labels of titles, the names and spellings of labels, and dropped categories to a folder."""
    labels.title_labels.save(folder, "labels")
    names = json.dumps(labels.names, ensure_ascii=False)
    (folder / "label_names.json").write_text(names, encoding="utf-8")
    write_spellings(folder, labels.spellings)
    dropped_rows = [dict(zip(DROPPED.names, row, strict=True)) for row in labels.dropped]
    table = pa.Table.from_pylist(dropped_rows, DROPPED)
    pq.write_table(table, folder / "dropped_categories.parquet", compression="zstd")


def _choose_encoder(
    home: Path,
    settings: SentenceSettings,
    titles: Path,
    rows: np.ndarray,
    labels: Ragged,
    family_hash: np.ndarray,
) -> tuple[SentenceSettings, str]:
    """Replaces the encoder ``auto`` in the settings by the encoder that suits the guide.

    Args:
        home: The home folder.
        settings: Settings of sentence vectors.
        titles: Parquet file of titles.
        rows: Numbers of the labelled training titles.
        labels: Label ids of each title.
        family_hash: Hash of the franchise of each title.

    Returns:
        The settings, and the reason of the choice ("" if the settings name an encoder).
    """
    if not isinstance(settings.encoder, AutomaticEncoder):
        return settings, ""
    table = pq.read_table(titles, columns=["title", "language"]).take(rows)
    texts, languages = table["title"].to_pylist(), table["language"].to_pylist()
    encoder, reason = choose_encoder(home, texts, languages, labels.take(rows), family_hash[rows])
    get_run_logger().info("%s", reason)
    return replace(settings, encoder=encoder), reason


def _log_counts(counts: Mapping[str, int], kinds: Mapping[str, int]) -> None:
    """Logs the counts of the Corpus, and the number of programmes of each kind."""
    summary = "%(entries)d token ids in %(titles)d titles; %(labels)d labels on %(labelled_training_titles)d "
    get_run_logger().info(summary + "training titles", counts)
    get_run_logger().info("kinds of programmes: %s", ", ".join(f"{n} {kind}" for kind, n in kinds.items()))


def _log_progress(events: Iterable[Progress]) -> None:
    for event in events:
        message = f"{event.percent:3.0f} %  {event.note}" if event.total else event.note
        get_run_logger().log(logging.INFO if event.total else logging.WARNING, "%s", message)
