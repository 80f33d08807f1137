"""The corpus and the vectors in the formats of other programs."""

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

MOST_BUCKETS = 2**31 - 1  # fastText keeps their number in 32 bits, signed
HELD_OUT = ("unseen_title", "unseen_show", "next_period")
TextForm = Literal["vec", "glove", "word2vec"]
WORD_FORMS: dict[str, TextForm] = {"vec": "vec", "glove": "glove", "word2vec-binary": "word2vec"}


class ExportError(ExpectedError, ValueError):
    """Nothing can be written like that; the message says why."""


def export(home: str | Path, form: str, out: Path, buckets: int | None = None) -> Iterator[str]:
    """Writes what the last run made; yields a line about each file written.

    Args:
        form: ``labels``: a folder with train.txt, test.txt (all held-out titles) and one file a held-out set,
            a line a title, ``__label__drama __label__crime words of the title``, as fastText and StarSpace
            read it; ``word2vec``: one text file, titles with underscores for spaces; ``parquet``: title,
            labels, vector. Of words instead of titles: ``fasttext``: a .bin that fastText loads, with n-grams
            for unseen words; ``vec``, ``glove``, ``word2vec-binary``: the words of the training titles.
        out: File to write, or folder for ``labels``; what is there is replaced.
        buckets: Of ``fasttext``; None takes the model's own.

    Raises:
        ExportError: ``out`` cannot be written, or ``buckets`` is out of bounds.
    """
    if form == "labels" and out.exists() and not out.is_dir():
        raise ExportError(f"{out} is a file, and labels are several: name a folder")
    if form != "labels" and out.is_dir():
        raise ExportError(f"{out} is a folder: name a file in it")
    if form != "labels" and not out.absolute().parent.is_dir():
        raise ExportError(f"the folder {out.absolute().parent} is not there: make it, or name another file")
    if buckets is not None and not (form == "fasttext" and 1 <= buckets <= MOST_BUCKETS):
        bounds = f"a number from 1 to {MOST_BUCKETS:,}, for the format fasttext only"
        raise ExportError(f"--buckets {buckets}: expected {bounds}")
    latest = read_latest(home, "corpus" if form == "labels" else "model")
    model = Path(latest["model"])
    if form == "labels":
        yield from _labels(Path(latest["corpus"]), out)
    elif form in ("word2vec", "parquet"):
        yield (_word2vec if form == "word2vec" else _parquet)(model, out)
    else:
        yield _words(model, form, out, buckets)


def _labels(corpus: Path, out: Path) -> Iterator[str]:
    lines: dict[str, list[str]] = {name: [] for name in ("train", "test", *HELD_OUT)}
    for title in pq.read_table(corpus / "titles.parquet", columns=["title", "labels", "split"]).to_pylist():
        if title["labels"] and title["split"] != "placeholder":
            labels = ["__label__" + "_".join(label.split()) for label in title["labels"]]
            line = " ".join([*labels, *split_words(title["title"])]) + "\n"
            for name in {title["split"], "train" if title["split"] == "train" else "test"}:
                lines[name].append(line)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in lines.items():
        (out / f"{name}.txt").write_text("".join(content), encoding="utf-8")
        yield f"{out / name}.txt: {len(content)} titles"


def _word2vec(model: Path, out: Path) -> str:
    titles = pq.read_table(model / "titles.parquet", columns=["title"])["title"].to_pylist()
    vectors = np.asarray(open_similarity(model))
    known = np.flatnonzero(vectors.any(axis=1))
    taken: set[str] = set()
    with open(out, "w", encoding="utf-8") as handle:
        handle.write(f"{len(known)} {vectors.shape[1]}\n")
        for row in known:
            word = "_".join(titles[row].split())
            while word in taken:  # "A B" and "A_B" are two titles
                word += "_"
            taken.add(word)
            handle.write(f"{word} {' '.join(f'{value:.6g}' for value in vectors[row])}\n")
    return f"{out}: {len(known)} titles, {vectors.shape[1]} dimensions"


def _parquet(model: Path, out: Path) -> str:
    table = pq.read_table(model / "titles.parquet", columns=["title", "show_key", "labels", "channels"])
    vectors = np.asarray(open_similarity(model))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(table.append_column("vector", flat), out, compression="zstd")
    return f"{out}: {len(table)} titles, {vectors.shape[1]} dimensions"


def _words(model: Path, form: str, out: Path, buckets: int | None) -> str:
    from tasks.augment.distilled import Distilled
    from tasks.encoder.fasttext_export import export_bin, require_ngrams, word_vectors
    from tasks.encoder.title_encoder import TitleEncoder
    from tasks.fasttext.text_forms import write_vectors

    encoder = TitleEncoder.open(model)
    words, vectors = word_vectors(encoder)
    if form == "fasttext":
        tokens = pq.read_table(model / "tokens.parquet", columns=["document_frequency"])
        frequency, own = tokens["document_frequency"].to_numpy(), require_ngrams(encoder)
        if words and (not own.size or buckets not in (None, own.buckets)):
            buckets = buckets or Distilled().buckets
            distilled = Distilled(shortest=own.shortest, longest=own.longest, buckets=buckets)
            counts = frequency[[encoder.ids[WORD, word] for word in words]]
            encoder = replace(encoder, unseen_words=distilled.fit(words, vectors, counts))
        count = export_bin(encoder, frequency, out)
        size = f"{require_ngrams(encoder).buckets} buckets, {encoder.dim} dimensions"
        return f"{out}: {count} words, {size}, {out.stat().st_size / 1e6:.0f} MB"
    write_vectors(out, WORD_FORMS[form], words, vectors)
    return f"{out}: {len(words)} words, {encoder.dim} dimensions"
