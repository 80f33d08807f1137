"""Makes ``vectors/``: small models of every kind and what the fasttext package says of them, for Pythons that
it has no wheel for.

    python tests/tasks/fasttext/vectors.py

The models are those of conftest.py, smaller: their files are committed, since training with several threads
is no function of its input. Each has beside it what the package answers, as compressed JSON with every
float32 in hexadecimal digits.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("vectors")
STEMS = ["tatort", "küche", "новости", "日本語", "öl", "😀"]
ENDS = ["", "s", "en", "語", "'s"]
WORDS = [stem + end for stem in STEMS for end in ENDS]
UNKNOWN = ["tatortchen", "zzz", "x", "", "日", "</s>", "a\u00a0b", "goalgoalgoal" * 5, "é", "<", ">"]
SENTENCES = [
    "tatort küche murder",
    "",
    "   ",
    "zzz unknownword",
    "tatort\t日本語  goals </s> öl",
    "новости 😀 x",
    "__label__film tatort",
]
# With fewer threads than 11 the package leaves rows of the matrix at zero. A quantised output needs 256
# labels.
COMMON = {"epoch": 1, "thread": 12, "minCount": 1, "verbose": 0}
UNSUPERVISED = {
    "skipgram": {"model": "skipgram", "dim": 4, "bucket": 700},
    "cbow": {"model": "cbow", "dim": 3, "minn": 2, "maxn": 4, "bucket": 20},
    "hierarchical": {"model": "skipgram", "loss": "hs", "dim": 3, "minn": 1, "maxn": 3, "bucket": 30},
    "without_ngrams": {"model": "skipgram", "dim": 5, "minn": 0, "maxn": 0},
}
SUPERVISED = {
    "supervised": {"dim": 4},
    "supervised_ngrams": {"dim": 4, "wordNgrams": 3, "minn": 2, "maxn": 5, "bucket": 270, "loss": "ova"},
    "bigrams": {"dim": 3, "wordNgrams": 2, "bucket": 300, "loss": "hs"},
}
QUANTISED = {
    "plain": {},
    "norms": {"qnorm": True},
    "output": {"qout": True, "qnorm": True},
    "pruned": {"cutoff": 270, "qnorm": True, "retrain": False},
    "wide": {"dsub": 3},
}


def digits(vectors: list[np.ndarray]) -> list[str]:
    """Each vector as the hexadecimal digits of its little-endian float32s."""
    return [np.asarray(vector, "<f4").tobytes().hex() for vector in vectors]


def answers(model: Any) -> dict[str, Any]:
    """Returns what the fastText package computes."""
    words, counts = model.get_words(include_freq=True)
    asked = [*words, *UNKNOWN]
    return {
        "words": words,
        "counts": [int(count) for count in counts],
        "asked": asked,
        "vectors": digits([model.get_word_vector(word) for word in asked]),
        "sentences": SENTENCES,
        "sentence_vectors": digits([model.get_sentence_vector(sentence) for sentence in SENTENCES]),
        "ngrams": {word: [int(row) for row in model.get_subwords(word)[1]] for word in asked if word},
    }


def main() -> int:
    """Trains models, writes the files, and prints their sizes."""
    import fasttext

    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    rng = np.random.default_rng(3)
    lines = [" ".join(rng.choice(WORDS, size=rng.integers(2, 6))) for _ in range(300)]

    def keep(model: Any, name: str) -> None:
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "model"
            model.save_model(str(file))
            (FOLDER / f"{name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
            told = answers(fasttext.load_model(str(file)))
        (FOLDER / f"{name}.json.gz").write_bytes(
            gzip.compress(json.dumps(told, ensure_ascii=False).encode(), mtime=0)
        )

    with tempfile.TemporaryDirectory() as place:
        plain, labelled = Path(place) / "plain.txt", Path(place) / "labelled.txt"
        plain.write_text("\n".join(lines) + "\n", encoding="utf-8")
        labelled.write_text(
            "\n".join(f"__label__film{number % 260 or ''} {line}" for number, line in enumerate(lines))
            + "\n",
            encoding="utf-8",
        )
        for name, own in UNSUPERVISED.items():
            keep(fasttext.train_unsupervised(str(plain), **COMMON, **own), f"{name}.bin")
        for name, own in SUPERVISED.items():
            model = fasttext.train_supervised(str(labelled), **COMMON, **own)
            whole = Path(place) / name
            model.save_model(str(whole))
            keep(model, f"{name}.bin")
            for kind, how in QUANTISED.items():
                again = fasttext.load_model(str(whole))
                try:
                    again.quantize(input=str(labelled), **how)
                except ValueError:
                    continue  # too few rows for 256 centroids
                keep(again, f"{name}-{kind}.ftz")
    total = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"{len(list(FOLDER.iterdir()))} files, {total:,} bytes in {FOLDER}")
    return 0 if total < 200_000 else 1


if __name__ == "__main__":
    sys.exit(main())
