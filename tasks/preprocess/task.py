"""Defines the Prefect task that computes a Corpus (input of training) from a Guide and its Vocabulary."""

import json
import logging
import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
from storage.digests import hashes
from storage.errors import ExpectedError
from storage.formats.model import write_spellings
from storage.formats.vocabulary import PLACEHOLDER, SPLITS, TRAIN, texts_of
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.kinds.files import write_kinds
from tasks.preprocess import tables
from tasks.preprocess.categories import LabelSources, label_titles, read_mapping
from tasks.preprocess.encoder_choice import choose_encoder
from tasks.preprocess.sentences import write_sentences
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences.auto import AutomaticEncoder

STAGE = Stage(Corpus, __file__)
DROPPED = pa.schema([("category", pa.string()), ("reason", pa.string()), ("titles", pa.int64())])


class TooFewTitles(ExpectedError, ValueError):
    """Error: the guide has too few titles with a label (usable category) for training."""


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

    The files are described in storage/formats/corpus.py.

    Args:
        home: The home folder.
        guide: Snapshot of the catalogue.
        vocabulary: Titles with their sets (training or held-out) and tokens.
        salt: Salt of the hashes for held-out sets; the hashes for validation sets depend on it, too.
        settings: Settings of the stage.
        label_sources: Mapping table and corrections; None for the bundled table and no corrections.

    Raises:
        SentenceEncoderMissing: The package of the sentence encoder is not installed.
        TooFewTitles: Too few training titles have a usable category.
    """
    sources = label_sources or LabelSources(mapping=read_mapping())
    workspace = Workspace(home)
    guide_folder, folder = workspace.folder(guide), workspace.folder(vocabulary)
    titles, variants = folder / "titles.parquet", folder / "variants.parquet"
    splits = tables.index_in(pq.read_table(titles, columns=["split"])["split"], SPLITS)
    with STAGE.publish(home, guide, vocabulary, salt, settings, label_sources) as draft:
        with temporary_database(draft.folder) as connection:
            airings = Airings(connection, guide_folder, variants)
            bounds = settings.minimum_titles, settings.largest_share
            per_feed = airings.titles_by_source()
            by_show = sources.corrections
            shows = enumerate(texts_of(titles, "show_key") if by_show else ())
            by_row = {row: by_show[show] for row, show in shows if show in by_show and splits[row] == TRAIN}
            labels = label_titles(
                airings.categories(), per_feed, splits == TRAIN, *bounds, sources.mapping, by_row
            )
            labelled_count = int(((labels.title_labels.lengths > 0) & (splits == TRAIN)).sum())
            if labelled_count < settings.minimum_training_titles:
                raise TooFewTitles(
                    f"{labelled_count} training titles have a usable category, "
                    f"{settings.minimum_training_titles} or more are needed ({len(splits)} titles in all; "
                    f"a category counts from {settings.minimum_titles} training titles on). Add feeds or "
                    "days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
                )
            entries = tables.write_titles(folder, draft.folder, labels, airings)
        labels.title_labels.save(draft.folder, "labels")
        tokens = tables.write_tokens(folder, draft.folder)
        families = pq.read_table(titles, columns=["family"], read_dictionary=["family"])["family"]
        arrays = {
            "split": splits,
            "show": np.arange(len(splits), dtype=np.int32),
            "rare": (labels.title_labels.lengths == 0) & (labels.title_rare.lengths > 0),
            "family": families.combine_chunks().indices.to_numpy(),
            # Selects validation titles; the titles with the lowest hashes of the salt itself are held out.
            "family_hash": hashes(texts_of(titles, "family"), salt + "/tuning"),
        }
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        names = json.dumps(labels.names, ensure_ascii=False)
        (draft.folder / "label_names.json").write_text(names, encoding="utf-8")
        write_spellings(draft.folder, labels.spellings)
        shutil.copyfile(variants, draft.folder / variants.name)  # SQL over a corpus needs no vocabulary
        dropped_rows = [dict(zip(DROPPED.names, row, strict=True)) for row in labels.dropped]
        table = pa.Table.from_pylist(dropped_rows, DROPPED)
        pq.write_table(table, draft.folder / "dropped_categories.parquet", compression="zstd")
        tables.write_frequencies(draft.folder, guide_folder, folder)
        sentences, choice = settings.sentences, ""
        if isinstance(sentences.encoder, AutomaticEncoder):
            rows = np.flatnonzero((labels.title_labels.lengths > 0) & (splits == TRAIN))
            table = pq.read_table(titles, columns=["title", "language"]).take(rows)
            names = table["title"].to_pylist(), table["language"].to_pylist()
            sample = *names, labels.title_labels.take(rows), arrays["family_hash"][rows]
            chosen, choice = choose_encoder(workspace.home, *sample)
            sentences = replace(sentences, encoder=chosen)
            get_run_logger().info("%s", choice)
        encoder = sentences.encoder.open()
        if encoder is not None:
            with tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as work:
                inputs = guide_folder, folder, splits == PLACEHOLDER, draft.folder, Path(work)
                for event in write_sentences(workspace.home, sentences, settings, *inputs):
                    message = f"{event.percent:3.0f} %  {event.note}" if event.total else event.note
                    get_run_logger().log(logging.INFO if event.total else logging.WARNING, "%s", message)
        sentence_details = {**asdict(sentences), "identity": encoder.identity if encoder else ""}
        with tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as work:
            kinds = write_kinds(guide_folder, draft.folder, Path(work), sentence_details)
        counts = {"titles": len(splits), "tokens": tokens, "entries": entries, "labels": len(labels.names)}
        draft.counts |= {**counts, "labelled_training_titles": labelled_count}
        draft.details |= {
            **workspace.details(vocabulary),
            "sentences": sentence_details,
            "encoder_choice": choice,
        }
    summary = "%(entries)d token ids in %(titles)d titles; %(labels)d labels on %(labelled_training_titles)d "
    get_run_logger().info(summary + "training titles", draft.counts)
    get_run_logger().info("kinds of programmes: %s", ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    return draft.artifact
