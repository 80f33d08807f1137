"""Stage preprocess: Guide, Vocabulary to Corpus."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import Ragged
from storage.artifacts import Corpus, Guide, Vocabulary
from storage.catalogue.titles import title_categories, title_channels, titles_by_source
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.preprocess.categories import label_titles
from tasks.preprocess.corpus import token_ids
from tasks.preprocess.settings import PreprocessSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.splits import SPLITS, TRAIN
from tasks.tokenize.words import KINDS

STAGE = Stage(Corpus, __file__)
WORKERS_FROM = 50_000  # titles; below, starting two processes (6 s) costs more than they save


class TooFewTitles(ValueError):
    """The guide holds too few labelled titles to learn from."""


@task(**STAGE.options)
def preprocess(home: str, guide: Guide, vocabulary: Vocabulary, tokenizing: TokenizeSettings, settings: PreprocessSettings) -> Corpus:
    """Token ids, labels and splits as memory-mapped arrays; titles.parquet for people.

    Raises:
        TooFewTitles: Fewer labelled training titles than ``minimum_training_titles``.
    """
    workspace = Workspace(home)
    guide_folder, folder = workspace.folder(guide), workspace.folder(vocabulary)
    titles, variants = pq.read_table(folder / "titles.parquet"), pq.read_table(folder / "variants.parquet")
    vocabulary_table = pq.read_table(folder / "tokens.parquet")
    kinds = np.array([KINDS.index(kind) for kind in vocabulary_table["kind"].to_pylist()], dtype=np.int8)
    ids = {(int(kind), token): number for number, (kind, token) in enumerate(zip(kinds, vocabulary_table["token"].to_pylist(), strict=True))}

    split = np.array([SPLITS.index(name) for name in titles["split"].to_pylist()], dtype=np.int8)
    categories = title_categories(guide_folder, variants)
    labels = label_titles(
        zip(categories["source"].to_pylist(), categories["category"].to_pylist(), categories["title_id"].to_pylist(), strict=True),
        titles_by_source(guide_folder, variants),
        list(split == TRAIN),
        settings.minimum_titles,
        settings.largest_share,
    )
    labelled = sum(1 for code, own in zip(split, labels.of_title, strict=True) if own and code == TRAIN)
    if labelled < settings.minimum_training_titles:
        raise TooFewTitles(
            f"{labelled} training titles have a usable category, {settings.minimum_training_titles} or more are needed "
            f"({len(titles)} titles in all; a category counts from {settings.minimum_titles} training titles on). "
            "Add feeds or days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
        )

    workers = settings.workers or (2 if len(titles) >= WORKERS_FROM else 0)
    chunks = list(token_ids(titles["raw_title"].to_pylist(), tokenizing.tokenizer, ids, chunk=settings.chunk, workers=workers))
    lengths, values, oov = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    tokens = Ragged(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values)
    contexts = pq.read_table(folder / "contexts.parquet")
    tokens = tokens.append(_context_ids(contexts, ids, len(titles)))

    with STAGE.publish(home, guide, vocabulary, tokenizing, settings) as draft:
        tokens.save(draft.folder, "tokens")
        Ragged.from_rows(labels.of_title).save(draft.folder, "labels")
        arrays = {"split": split, "show": np.arange(len(titles), dtype=np.int32), "family": _groups(titles["family"]), "oov": oov}
        arrays |= {"kinds": kinds, "weights": vocabulary_table["weight"].to_numpy().astype(np.float32)}
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        (draft.folder / "label_names.json").write_text(json.dumps(labels.names, ensure_ascii=False), encoding="utf-8")
        (draft.folder / "dropped_categories.json").write_text(json.dumps(labels.dropped, ensure_ascii=False, indent=0), encoding="utf-8")
        names = pa.array([[labels.names[label] for label in own] for own in labels.of_title], pa.list_(pa.string()))
        channels = title_channels(guide_folder, variants)["channels"]
        offsets = np.searchsorted(contexts["title_id"].to_numpy(), np.arange(len(titles) + 1)).astype(np.int32)  # the table is sorted by title
        titles = titles.append_column("context", pa.ListArray.from_arrays(offsets, contexts["token"].combine_chunks()))
        about = titles.append_column("labels", names).append_column("channels", channels).append_column("oov", pa.array(oov))
        pq.write_table(about, draft.folder / "titles.parquet", compression="zstd")
        draft.counts |= {"titles": len(titles), "tokens": len(kinds), "entries": len(values), "labels": len(labels.names), "labelled_training_titles": labelled}
        draft.details |= workspace.details(vocabulary)
    get_run_logger().info("%(entries)d token ids in %(titles)d titles; %(labels)d labels on %(labelled_training_titles)d training titles", draft.counts)
    return draft.artifact


def _context_ids(contexts: pa.Table, ids: dict[tuple[int, str], int], n_titles: int) -> Ragged:
    """Token ids of each title's context, int32; tokens without a row are left out."""
    found = [(title, ids.get((KINDS.index(kind), token), -1)) for title, kind, token in zip(*(contexts[name].to_pylist() for name in ("title_id", "kind", "token")), strict=True)]
    pairs = np.array([pair for pair in found if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n_titles))]).astype(np.int64)
    return Ragged(offsets, pairs[:, 1].astype(np.int32))


def _groups(names: pa.ChunkedArray) -> np.ndarray:
    """int32 group numbers, equal for equal names."""
    return names.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int32)
