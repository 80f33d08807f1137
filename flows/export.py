"""The corpus and the vectors in the forms of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.latest import read_latest
from storage.arrays import open_array
from tasks.tokenize.words import split_words

MOST_BUCKETS = 2**31 - 1  # fastText keeps their number in 32 bits, signed
FORMATS = ("labels", "word2vec", "parquet", "fasttext", "vec", "glove", "word2vec-binary")


class ExportError(ValueError):
    """Nothing can be written like that; the message says why."""


def export(home: str | Path, form: str, out: Path, buckets: int | None = None) -> Iterator[str]:
    """Writes what the last run made.

    Args:
        home: Of a finished run.
        form: ``labels``: a folder with train.txt, test.txt (all held-out titles) and one file a held-out set, a line a
            title, ``__label__drama __label__crime words of the title``, as fastText and StarSpace read it;
            ``word2vec``: one text file, titles with underscores for spaces; ``parquet``: title, labels, vector.
            Of words instead of titles: ``fasttext``: a .bin that fastText loads, with n-grams for words never seen;
            ``vec``, ``glove``, ``word2vec-binary``: the words that training saw.
        buckets: Of ``fasttext``; None takes the model's own.
        out: File to write, or folder for ``labels``; what is there under that name is replaced.

    Yields:
        A line about each file written.

    Raises:
        ExportError: ``out`` is no place for it, or ``buckets`` is no number of buckets.
    """
    _check(form, out, buckets)
    latest = read_latest(home, "corpus" if form == "labels" else "model")
    if form == "labels":
        yield from _labels(Path(latest["corpus"]), out)
    elif form == "word2vec":
        yield _word2vec(Path(latest["model"]), out)
    elif form == "parquet":
        yield _parquet(Path(latest["model"]), out)
    elif form in FORMATS:
        yield _words(Path(latest["model"]), form, out, buckets)
    else:
        raise ValueError(f"format is {form!r}, known are {', '.join(FORMATS)}")


def _check(form: str, out: Path, buckets: int | None) -> None:
    if form == "labels" and out.exists() and not out.is_dir():
        raise ExportError(f"{out} is a file, and labels are several: name a folder")
    if form != "labels" and out.is_dir():
        raise ExportError(f"{out} is a folder: name a file in it")
    if form != "labels" and not out.absolute().parent.is_dir():
        raise ExportError(f"the folder {out.absolute().parent} is not there: make it, or name another file")
    if buckets is not None and not (form == "fasttext" and 1 <= buckets <= MOST_BUCKETS):
        raise ExportError(f"--buckets {buckets}: it is a number from 1 to {MOST_BUCKETS:,}, for the format fasttext only")


def _labels(corpus: Path, out: Path) -> Iterator[str]:
    titles = pq.read_table(corpus / "titles.parquet", columns=["title", "labels", "split"]).to_pylist()
    lines: dict[str, list[str]] = {name: [] for name in ("train", "test", "unseen_title", "unseen_show", "next_period")}
    for title in titles:
        if not title["labels"] or title["split"] == "placeholder":
            continue
        labels = " ".join("__label__" + "_".join(label.split()) for label in title["labels"])
        line = f"{labels} {' '.join(split_words(title['title']))}\n"
        lines[title["split"]].append(line)
        if title["split"] != "train":
            lines["test"].append(line)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in lines.items():
        (out / f"{name}.txt").write_text("".join(content), encoding="utf-8")
        yield f"{out / name}.txt: {len(content)} titles"


def _word2vec(model: Path, out: Path) -> str:
    names, vectors = _vectors(model)
    taken: set[str] = set()
    with open(out, "w", encoding="utf-8") as handle:
        handle.write(f"{len(names)} {vectors.shape[1]}\n")
        for name, vector in zip(names, vectors, strict=True):
            word = "_".join(name.split())
            while word in taken:  # "A B" and "A_B" are two titles
                word += "_"
            taken.add(word)
            handle.write(f"{word} {' '.join(f'{value:.6g}' for value in vector)}\n")
    return f"{out}: {len(names)} titles, {vectors.shape[1]} dimensions"


def _parquet(model: Path, out: Path) -> str:
    table = pq.read_table(model / "titles.parquet", columns=["title", "show_key", "labels", "channels"])
    vectors = np.asarray(open_array(model, "vectors"))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(table.append_column("vector", flat), out, compression="zstd")
    return f"{out}: {len(table)} titles, {vectors.shape[1]} dimensions"


def _words(model: Path, form: str, out: Path, buckets: int | None) -> str:
    from tasks.augment.fasttext.exporting import export_bin, word_vectors
    from tasks.augment.fasttext.text_forms import write_vectors
    from tasks.augment.lexicon import Lexicon

    lexicon = Lexicon.open(model)
    if form == "fasttext":
        frequency = pq.read_table(model / "tokens.parquet", columns=["document_frequency"])["document_frequency"].to_numpy()
        return (
            f"{out}: {export_bin(lexicon, frequency, out, buckets)} words, {buckets or lexicon.ngrams.buckets} buckets, {lexicon.dim} dimensions, {out.stat().st_size / 1e6:.0f} MB"
        )
    words, vectors = word_vectors(lexicon)
    write_vectors(out, "vec" if form == "vec" else "glove" if form == "glove" else "word2vec", words, vectors)
    return f"{out}: {len(words)} words, {lexicon.dim} dimensions"


def _vectors(model: Path) -> tuple[list[str], np.ndarray]:
    """Titles of which something is known, and their vectors."""
    names = pq.read_table(model / "titles.parquet", columns=["title"])["title"].to_pylist()
    vectors = np.asarray(open_array(model, "vectors"))
    known = np.flatnonzero(vectors.any(axis=1))
    return [names[row] for row in known], vectors[known]
