"""Stage preprocess: Guide, Vocabulary to Corpus."""

import json
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.catalogue.titles import open_airings
from storage.digests import hashes
from storage.formats.model import write_spellings
from storage.formats.vocabulary import PLACEHOLDER, SPLITS, TRAIN, texts_of
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.preprocess import tables
from tasks.preprocess.categories import label_titles, read_mapping
from tasks.preprocess.sentences import write_sentences
from tasks.preprocess.settings import PreprocessSettings

STAGE = Stage(Corpus, __file__)
DROPPED = pa.schema([("category", pa.string()), ("reason", pa.string()), ("titles", pa.int64())])


class TooFewTitles(ValueError):
    """The guide holds too few labelled titles to learn from."""


@task(**STAGE.options)
def preprocess(
    home: str,
    guide: Guide,
    vocabulary: Vocabulary,
    salt: str,
    settings: PreprocessSettings,
    mapping: Mapping[str, str] | None = None,
    corrections: Mapping[str, Sequence[str]] | None = None,
) -> Corpus:
    """Token ids, labels, splits and sentence vectors as memory-mapped arrays, and tables.

    See storage/formats/corpus.py. Raises SentenceEncoderMissing where the encoder's package is absent.

    ``mapping`` is what ``read_mapping`` gives, not a file's name, so that an edited table changes the cache
    key; None is the table beside categories.py. family_hash.npy is drawn from the splits' ``salt``.

    ``corrections`` (show key to labels) replace what feeds say of training titles. Held-out titles keep that:
    who corrects what a model got wrong chooses titles by it, and scores would not be comparable over nights.
    """
    workspace = Workspace(home)
    guide_folder, folder = workspace.folder(guide), workspace.folder(vocabulary)
    titles, variants = folder / "titles.parquet", folder / "variants.parquet"
    split = tables.codes(pq.read_table(titles, columns=["split"])["split"], SPLITS)
    sentences, encoder = settings.sentences, settings.sentences.encoder.open()
    with STAGE.publish(home, guide, vocabulary, salt, settings, mapping, corrections) as draft:
        with open_airings(guide_folder, variants, draft.folder) as airings:
            bounds = settings.minimum_titles, settings.largest_share
            table = read_mapping() if mapping is None else mapping
            per_feed = airings.titles_by_source()
            own = corrections or {}
            shows = enumerate(texts_of(titles, "show_key") if own else ())
            corrected = {row: own[show] for row, show in shows if show in own and split[row] == TRAIN}
            labels = label_titles(airings.categories(), per_feed, split == TRAIN, *bounds, table, corrected)
            labelled = int(((labels.of_title.lengths > 0) & (split == TRAIN)).sum())
            if labelled < settings.minimum_training_titles:
                raise TooFewTitles(
                    f"{labelled} training titles have a usable category, "
                    f"{settings.minimum_training_titles} or more are needed ({len(split)} titles in all; "
                    f"a category counts from {settings.minimum_titles} training titles on). Add feeds or "
                    "days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
                )
            entries = tables.write_titles(folder, draft.folder, labels, airings)
        labels.of_title.save(draft.folder, "labels")
        tokens = tables.write_tokens(folder, draft.folder)
        families = pq.read_table(titles, columns=["family"], read_dictionary=["family"])["family"]
        arrays = {
            "split": split,
            "show": np.arange(len(split), dtype=np.int32),
            "family": families.combine_chunks().indices.to_numpy(),
            # Training sets titles of its own aside by it: another salt, or those held out would come first.
            "family_hash": hashes(texts_of(titles, "family"), salt + "/tuning"),
        }
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        names = json.dumps(labels.names, ensure_ascii=False)
        (draft.folder / "label_names.json").write_text(names, encoding="utf-8")
        write_spellings(draft.folder, labels.spellings)
        shutil.copyfile(variants, draft.folder / variants.name)  # SQL over a corpus needs no vocabulary
        dropped = [dict(zip(DROPPED.names, row, strict=True)) for row in labels.dropped]
        table = pa.Table.from_pylist(dropped, DROPPED)
        pq.write_table(table, draft.folder / "dropped_categories.parquet", compression="zstd")
        tables.write_frequencies(draft.folder, guide_folder, folder)
        if encoder is not None:
            with tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as work:
                places = guide_folder, folder, split == PLACEHOLDER, draft.folder, Path(work)
                for event in write_sentences(workspace.home, sentences, *places):
                    told = ("%3.0f %%  %s", event.percent, event.note) if event.total else (event.note,)
                    get_run_logger().log(logging.INFO if event.total else logging.WARNING, *told)
        counts = {"titles": len(split), "tokens": tokens, "entries": entries, "labels": len(labels.names)}
        draft.counts |= {**counts, "labelled_training_titles": labelled}
        about = {**asdict(sentences), "identity": encoder.identity if encoder else ""}
        draft.details |= {**workspace.details(vocabulary), "sentences": about}
    summary = "%(entries)d token ids in %(titles)d titles; %(labels)d labels on %(labelled_training_titles)d "
    get_run_logger().info(summary + "training titles", draft.counts)
    return draft.artifact
