"""Models of every kind, trained by the fasttext package on a small text in several scripts, or the ones kept
in ``vectors/``."""

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

VECTORS = Path(__file__).with_name("vectors")
STEMS = [
    "tatort",
    "küche",
    "café",
    "новости",
    "日本語",
    "murder",
    "goal",
    "öl",
    "a",
    "maus",
    "naïve",
    "😀",
    "straße",
    "sport",
    "wetter",
    "ελλάδα",
    "krimi",
]
ENDS = ["", "s", "en", "ий", "🙂", "chen", "語", "-live", "'s"]
WORDS = [stem + end for stem in STEMS for end in ENDS]
UNKNOWN = [
    "tatortchen",
    "kücheneis",
    "zzz",
    "x",
    "",
    "日",
    "новостийка",
    "</s>",
    "a\u00a0b",
    "goalgoalgoal" * 5,
    "é",
    "<",
    ">",
]
SENTENCES = [
    "tatort küche murder",
    "",
    "   ",
    "zzz unknownword café",
    "tatort\t日本語  goals </s> sport",
    "новости 😀 x",
    "__label__film tatort",
    "a\u00a0b\x0bmaus",
]


@pytest.fixture(scope="session")
def fasttext() -> Any:
    return pytest.importorskip("fasttext", reason="fasttext-wheel is not installed (extra dev)")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name to model file; where the package is not installed, the smaller models of ``vectors.py``."""
    folder = tmp_path_factory.mktemp("fasttext")
    if importlib.util.find_spec("fasttext") is None:
        return unpacked(folder)
    import fasttext

    rng = np.random.default_rng(3)
    lines = [" ".join(rng.choice(WORDS, size=rng.integers(2, 8))) for _ in range(1500)]
    (folder / "plain.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    labelled = [
        f"__label__film{number % 300 or ''} {line}" for number, line in enumerate(lines)
    ]  # a quantised output needs 256
    (folder / "labelled.txt").write_text("\n".join(labelled) + "\n", encoding="utf-8")
    common = {"epoch": 1, "thread": 12, "minCount": 1, "verbose": 0}
    words = {
        "skipgram": {"model": "skipgram", "dim": 10, "bucket": 2000},
        "cbow": {"model": "cbow", "dim": 16, "minn": 2, "maxn": 4, "bucket": 50},
        "hierarchical": {"model": "skipgram", "loss": "hs", "dim": 5, "minn": 1, "maxn": 3, "bucket": 300},
        "without_ngrams": {"model": "skipgram", "dim": 32, "minn": 0, "maxn": 0},
    }
    labels = {
        "supervised": {"dim": 10},
        "supervised_ngrams": {
            "dim": 64,
            "wordNgrams": 3,
            "minn": 2,
            "maxn": 5,
            "bucket": 1000,
            "loss": "ova",
        },
        "bigrams": {"dim": 7, "wordNgrams": 2, "bucket": 500, "loss": "hs"},
    }
    quantised = {
        "plain": {},
        "norms": {"qnorm": True},
        "output": {"qout": True, "qnorm": True},
        "pruned": {"cutoff": 300, "qnorm": True, "retrain": False},
        "wide": {"dsub": 3},
    }
    files = {}
    for name, own in words.items():
        made = fasttext.train_unsupervised(str(folder / "plain.txt"), **common, **own)
        files[name] = _save(made, folder / f"{name}.bin")
    for name, own in labels.items():
        made = fasttext.train_supervised(str(folder / "labelled.txt"), **common, **own)
        files[name] = _save(made, folder / f"{name}.bin")
        for kind, how in quantised.items():
            again = fasttext.load_model(str(files[name]))
            try:
                again.quantize(input=str(folder / "labelled.txt"), **how)
            except ValueError:
                continue  # too few rows for 256 centroids
            files[f"{name}-{kind}"] = _save(again, folder / f"{name}-{kind}.ftz")
    return files


def unpacked(folder: Path) -> dict[str, Path]:
    """Name to file of the models in ``vectors/``, written into a folder."""
    packed = [file for file in VECTORS.glob("*.gz") if not file.name.endswith(".json.gz")]
    for file in packed:
        (folder / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    return {Path(file.stem).stem: folder / file.stem for file in packed}


def _save(model: Any, file: Path) -> Path:
    model.save_model(str(file))
    return file


@pytest.fixture
def real(guidespace_data: Path) -> Path:
    return guidespace_data / "fasttext"
