"""Exports titles, words and vectors to files that other programs read, such as fastText and gensim."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import ExpectedError
from storage.formats.model import open_similarity
from storage.home.latest import read_latest
from tasks.text.words import WORD, split_words

MAX_BUCKETS = 2**31 - 1  # fastText stores the number of buckets as a signed 32-bit number
HELD_OUT = ("unseen_title", "unseen_show", "next_period")
TextForm = Literal["vec", "glove", "word2vec"]
WORD_FORMS: dict[str, TextForm] = {"vec": "vec", "glove": "glove", "word2vec-binary": "word2vec"}


class ExportError(ExpectedError, ValueError):
    """Error: titles or vectors cannot be exported. The message states the reason and the remedy."""


def export(home: str | Path, target_format: str, out: Path, buckets: int | None = None) -> Iterator[str]:
    """Exports the labelled titles or the vectors of the last run, and yields a message per written file.

    The formats are

    - ``labels``: a folder for fastText and StarSpace with train.txt, test.txt (all held-out titles) and a
      file per held-out set, in which a title is a line ``__label__drama __label__crime words``
    - ``word2vec``: a text file with the vectors of titles, in which underscores replace spaces
    - ``parquet``: titles, show keys, labels, channels and vectors
    - ``fasttext``: a .bin file that fastText loads, with vectors of words, and of n-grams for unseen words
    - ``vec``, ``glove``, ``word2vec-binary``: the vectors of the words of the training titles

    Args:
        home: The home folder.
        target_format: Name of the format.
        out: File to write, or folder for ``labels``. An existing file is replaced.
        buckets: Number of hash buckets of n-grams for ``fasttext``; None: the number in the model.

    Raises:
        ExportError: ``out`` cannot be written, or ``buckets`` is out of bounds.
    """
    if target_format == "labels" and out.exists() and not out.is_dir():
        raise ExportError(f"{out} is a file, but labels are several files; name a folder")
    if target_format != "labels" and out.is_dir():
        raise ExportError(f"{out} is a folder; name a file in it")
    if target_format != "labels" and not out.absolute().parent.is_dir():
        raise ExportError(f"the folder {out.absolute().parent} is missing; create it, or name another file")
    if buckets is not None and not (target_format == "fasttext" and 1 <= buckets <= MAX_BUCKETS):
        raise ExportError(
            f"--buckets {buckets}: expected a number from 1 to {MAX_BUCKETS:,}, for the format fasttext only"
        )
    last_run = read_latest(home, "corpus" if target_format == "labels" else "model")
    model = Path(last_run["model"])
    if target_format == "labels":
        yield from _export_labels(Path(last_run["corpus"]), out)
    elif target_format in ("word2vec", "parquet"):
        yield (_export_word2vec if target_format == "word2vec" else _export_parquet)(model, out)
    else:
        yield _export_words(model, target_format, out, buckets)


def _export_labels(corpus: Path, out: Path) -> Iterator[str]:
    """Writes the labelled titles of each split of a Corpus folder; yields a message per file."""
    lines: dict[str, list[str]] = {name: [] for name in ("train", "test", *HELD_OUT)}
    for title in pq.read_table(corpus / "titles.parquet", columns=["title", "labels", "split"]).to_pylist():
        if title["labels"] and title["split"] != "placeholder":
            labels = ["__label__" + "_".join(label.split()) for label in title["labels"]]
            line = " ".join([*labels, *split_words(title["title"])]) + "\n"
            for name in {title["split"], "train" if title["split"] == "train" else "test"}:
                lines[name].append(line)
    out.mkdir(parents=True, exist_ok=True)
    for name, split_lines in lines.items():
        (out / f"{name}.txt").write_text("".join(split_lines), encoding="utf-8")
        yield f"{out / name}.txt: {len(split_lines)} titles"


def _export_word2vec(model: Path, out: Path) -> str:
    """Writes the similarity vectors of titles in the text format of word2vec; returns a message."""
    titles = pq.read_table(model / "titles.parquet", columns=["title"])["title"].to_pylist()
    vectors = np.asarray(open_similarity(model))
    rows = np.flatnonzero(vectors.any(axis=1))
    words: set[str] = set()
    with open(out, "w", encoding="utf-8") as handle:
        handle.write(f"{len(rows)} {vectors.shape[1]}\n")
        for row in rows:
            word = "_".join(titles[row].split())
            while word in words:  # "A B" and "A_B" are two titles
                word += "_"
            words.add(word)
            handle.write(f"{word} {' '.join(f'{value:.6g}' for value in vectors[row])}\n")
    return f"{out}: {len(rows)} titles, {vectors.shape[1]} dimensions"


def _export_parquet(model: Path, out: Path) -> str:
    """Writes a Parquet file with the titles of a model and their similarity vectors; returns a message."""
    table = pq.read_table(model / "titles.parquet", columns=["title", "show_key", "labels", "channels"])
    vectors = np.asarray(open_similarity(model))
    vector_column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(table.append_column("vector", vector_column), out, compression="zstd")
    return f"{out}: {len(table)} titles, {vectors.shape[1]} dimensions"


def _export_words(model: Path, target_format: str, out: Path, buckets: int | None) -> str:
    """Writes the vectors of words, and of n-grams for the format fasttext; returns a message."""
    from tasks.encoder.fasttext_export import export_bin, require_ngrams, word_vectors
    from tasks.encoder.title_encoder import TitleEncoder
    from tasks.fasttext.text_forms import write_vectors

    encoder = TitleEncoder.open(model)
    words, vectors = word_vectors(encoder)
    if target_format == "fasttext":
        tokens = pq.read_table(model / "tokens.parquet", columns=["document_frequency"])
        frequency, ngrams = tokens["document_frequency"].to_numpy(), require_ngrams(encoder)
        if words and (not ngrams.size or buckets not in (None, ngrams.buckets)):
            from tasks.augment.distilled import Distilled

            buckets = buckets or Distilled().buckets
            distilled = Distilled(shortest=ngrams.shortest, longest=ngrams.longest, buckets=buckets)
            counts = frequency[[encoder.ids[WORD, word] for word in words]]
            encoder = replace(encoder, unseen_words=distilled.fit(words, vectors, counts))
        count = export_bin(encoder, frequency, out)
        size = f"{require_ngrams(encoder).buckets} buckets, {encoder.dim} dimensions"
        return f"{out}: {count} words, {size}, {out.stat().st_size / 1e6:.0f} MB"
    write_vectors(out, WORD_FORMS[target_format], words, vectors)
    return f"{out}: {len(words)} words, {encoder.dim} dimensions"
