"""Stage preprocess: Guide, Vocabulary to Corpus."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping

import numpy as np
from prefect import get_run_logger, task

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.catalogue.titles import open_airings
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.preprocess.categories import label_titles, read_mapping
from tasks.preprocess.columns import codes, groups, write_tokens
from tasks.preprocess.reports import write_dropped, write_frequencies
from tasks.preprocess.settings import PreprocessSettings
from tasks.preprocess.title_pieces import write_titles
from tasks.tokenize.pieces import texts_of
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.splits import SPLITS, TRAIN, hashes

STAGE = Stage(Corpus, __file__)


class TooFewTitles(ValueError):
    """The guide holds too few labelled titles to learn from."""


@task(**STAGE.options)
def preprocess(home: str, guide: Guide, vocabulary: Vocabulary, tokenizing: TokenizeSettings, settings: PreprocessSettings, mapping: Mapping[str, str] | None = None) -> Corpus:
    """Token ids, labels and splits as memory-mapped arrays; titles.parquet, variants.parquet, frequencies.parquet and dropped_categories.parquet for people.

    Args:
        home: Where everything is.
        guide: What is aired.
        vocabulary: Its titles and tokens.
        tokenizing: How the vocabulary was made.
        settings: What a label is.
        mapping: Raw categories to canonical ones (``read_mapping``): values, not a file's name, so that an edited table is seen; None is
            the table beside categories.py.

    Raises:
        TooFewTitles: Fewer labelled training titles than ``minimum_training_titles``.
    """
    workspace = Workspace(home)
    guide_folder, folder = workspace.folder(guide), workspace.folder(vocabulary)
    titles = folder / "titles.parquet"
    split = codes(titles, "split", SPLITS)
    with STAGE.publish(home, guide, vocabulary, tokenizing, settings, mapping) as draft:
        with open_airings(guide_folder, folder / "variants.parquet", draft.folder) as airings:
            table = read_mapping() if mapping is None else mapping
            labels = label_titles(airings.categories(), airings.titles_by_source(), split == TRAIN, settings.minimum_titles, settings.largest_share, table)
            labelled = int(((labels.of_title.lengths > 0) & (split == TRAIN)).sum())
            if labelled < settings.minimum_training_titles:
                raise TooFewTitles(
                    f"{labelled} training titles have a usable category, {settings.minimum_training_titles} or more are needed "
                    f"({len(split)} titles in all; a category counts from {settings.minimum_titles} training titles on). "
                    "Add feeds or days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
                )
            entries = write_titles(folder, draft.folder, labels, airings)
        labels.of_title.save(draft.folder, "labels")
        tokens = write_tokens(folder, draft.folder)
        np.save(draft.folder / "split.npy", split)
        np.save(draft.folder / "show.npy", np.arange(len(split), dtype=np.int32))
        np.save(draft.folder / "family.npy", groups(titles, "family"))
        # For training to set some of its own titles aside by: another salt, or the first of them would be those held out.
        np.save(draft.folder / "family_hash.npy", hashes(texts_of(titles, "family"), tokenizing.splits.salt + "/tuning"))
        (draft.folder / "label_names.json").write_text(json.dumps(labels.names, ensure_ascii=False), encoding="utf-8")
        shutil.copyfile(folder / "variants.parquet", draft.folder / "variants.parquet")  # a corpus is asked in SQL without its vocabulary
        write_dropped(draft.folder, labels.dropped)
        write_frequencies(draft.folder, guide_folder, folder)
        (draft.folder / "dropped_categories.json").write_text(json.dumps(labels.dropped, ensure_ascii=False, indent=0), encoding="utf-8")
        draft.counts |= {"titles": len(split), "tokens": tokens, "entries": entries, "labels": len(labels.names), "labelled_training_titles": labelled}
        draft.details |= workspace.details(vocabulary)
    get_run_logger().info("%(entries)d token ids in %(titles)d titles; %(labels)d labels on %(labelled_training_titles)d training titles", draft.counts)
    return draft.artifact
