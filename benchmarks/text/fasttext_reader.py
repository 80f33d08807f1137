"""Reader of fastText models beside the fasttext package and gensim: opening, unseen words, memory.

The benchmark writes the file with random values: 1 GB (250,000 words, 350,000 buckets, 300 dimensions, with
output matrix), 40 MB with --quick, and in addition 7 GB with --full (2 million words, 2 million buckets).
Every reader runs in a separate process that reports its time and its anonymous memory. The n-grams of 100,000
words are compared with get_subwords of the fasttext package, in CPU seconds of separate processes. Rivals
that are not installed are omitted.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.claims import Claim, is_installed, run
from benchmarks.processes import call_apart, measure_apart, memory, repeat_apart
from tasks.fasttext.layout import Header
from tasks.fasttext.writer import write_bin

UNSEEN, LETTERS = 1000, "etaoinshrdlcumwfgypbvkjxqz"

Vectors = Callable[[Sequence[str]], object]
Opener = Callable[[Path], Vectors]


class Reading(NamedTuple):
    """Seconds to open a model, to its first vector, and for 1,000 unseen words; memory in MiB."""

    opened: float
    first: float
    unseen: float
    memory: float


def our_reader() -> Opener:
    from tasks.fasttext import FastText

    def read(file: Path) -> Vectors:
        model = FastText.open(file)
        model.dictionary.ids(["x"])
        return model.vectors

    return read


def fasttext_package() -> Opener:
    import fasttext

    fasttext.FastText.eprint = lambda text: None

    def read(file: Path) -> Vectors:
        model = fasttext.load_model(str(file))
        return lambda words: [model.get_word_vector(word) for word in words]

    return read


def gensim_reader() -> Opener:
    from gensim.models.fasttext import load_facebook_model  # pyright: ignore[reportMissingImports]

    def read(file: Path) -> Vectors:
        model = load_facebook_model(str(file)).wv
        return lambda words: [model[word] for word in words]

    return read


def read_model(prepare: Callable[[], Opener], file: Path, words: Sequence[str]) -> Reading:
    """Opens a model and looks up unseen words; called in a separate process."""
    read, started = prepare(), time.perf_counter()
    vectors = read(file)
    opened_at = time.perf_counter()
    vectors(["tatort"])
    first_at, seconds = time.perf_counter(), []
    for part in range(3):  # different words each time, so that no row is in a cache
        part_started = time.perf_counter()
        vectors(words[part * UNSEEN : (part + 1) * UNSEEN])
        seconds.append(time.perf_counter() - part_started)
    return Reading(opened_at - started, first_at - opened_at, statistics.median(seconds), memory("RssAnon"))


def imports_memory() -> float:
    """Returns the memory in MiB of a process that has only imported our reader."""
    our_reader()
    return memory("RssAnon")


def random_words(number: int, rng: np.random.Generator, shortest: int = 4, longest: int = 12) -> list[str]:
    """Draws distinct words with roughly the letter frequencies of English."""
    weights = 1 / np.arange(3, 3 + len(LETTERS))
    words: dict[str, None] = {}
    while len(words) < number:
        letters = rng.choice(list(LETTERS), p=weights / weights.sum(), size=(number, longest))
        lengths = rng.integers(shortest, longest + 1, size=number)
        words.update((("".join(row[:length])), None) for row, length in zip(letters, lengths, strict=True))
    return list(words)[:number]


def make_model(path: Path, words: Sequence[str], buckets: int, dim: int, rng: np.random.Generator) -> None:
    """Writes a model with random rows, in blocks."""

    def rows(number: int):  # type: ignore[no-untyped-def]
        block = rng.standard_normal((4096, dim), dtype=np.float32)
        for start in range(0, number, 4096):
            yield np.roll(block, start // 4096, axis=1)[: number - start]

    header = Header(dim=dim, bucket=buckets, minn=3, maxn=6)
    entries = [(word.encode(), len(words) - place) for place, word in enumerate(words)]
    write_bin(path, header, entries, rows(len(words) + buckets), rows(len(words)))


def measure_reader(quick: bool, full: bool = False) -> Sequence[Claim]:
    """Measures all claims of this file for one size."""
    rng = np.random.default_rng(0)
    words, buckets, dim = (
        (2_000_000, 2_000_000, 300) if full else (20_000, 20_000, 150) if quick else (250_000, 350_000, 300)
    )
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.bin"
        training_words = random_words(words, rng)
        make_model(model, training_words, buckets, dim, rng)
        names = set(training_words)
        unseen = [word for word in random_words(6 * UNSEEN, rng) if word not in names]
        size = f"{model.stat().st_size / 1e9:.2g} GB"
        ours = call_apart(read_model, our_reader, model, unseen)
        extra_memory, milliseconds = ours.memory - call_apart(imports_memory), 1000 * ours.unseen
        first, words_name = 1000 * ours.first, f"{UNSEEN} unseen words, {size}, ms"
        claims = [
            Claim(f"first vector beyond the dictionary scan, {size}, ms", first, aim=2, better="less"),
            Claim(f"own memory beyond the imports, {size}, MiB", extra_memory, aim=30, better="less"),
            Claim(words_name, milliseconds, aim=10, better="less"),
        ]
        for name, module, prepare in RIVALS:
            if is_installed(module):
                theirs = call_apart(read_model, prepare, model, unseen, rival=True)
                pairs = {
                    f"open and first vector, {size}, s": [own.opened + own.first for own in (ours, theirs)],
                    f"own memory with imports, {size}, MiB": [ours.memory, theirs.memory],
                    words_name: [milliseconds, 1000 * theirs.unseen],
                }
                for about, (own, other) in pairs.items():
                    claims.append(Claim(about, own, name, other, aim=1, better="less"))
        if is_installed("fasttext"):
            words_to_cut = (
                training_words[:10_000] if quick else [*training_words, *random_words(100_000, rng)][:100_000]
            )
            claims += _lookup(model, words_to_cut)
    return claims


RIVALS = (
    ("fasttext.load_model", "fasttext", fasttext_package),
    ("gensim load_facebook_model", "gensim", gensim_reader),
)


def our_rows(model: Path, words: Sequence[str]) -> Callable[[], np.ndarray]:
    from tasks.fasttext import FastText

    opened = FastText.open(model)
    opened.dictionary.ids(["x"])
    return lambda: opened.rows(words).values


def package_rows(model: Path, words: Sequence[str]) -> Callable[[], np.ndarray]:
    package = _package(model)
    return lambda: np.concatenate([package.get_subwords(word)[1] for word in words])


def our_vectors(model: Path, words: Sequence[str]) -> Callable[[], None]:
    from tasks.fasttext import FastText

    opened = FastText.open(model)

    def take() -> None:
        for place in range(0, len(words), 500):
            opened.matrix.take(opened.rows(words[place : place + 500]).values)

    return take


def package_vectors(model: Path, words: Sequence[str]) -> Callable[[], None]:
    package = _package(model)

    def take() -> None:
        for word in words:
            for row in package.get_subwords(word)[1]:
                package.get_input_vector(row)

    return take


def _package(model: Path) -> Any:
    import fasttext

    fasttext.FastText.eprint = lambda text: None
    return fasttext.load_model(str(model))


def _lookup(model: Path, words: list[str]) -> list[Claim]:
    """Compares n-gram lookups of many words with the package: row numbers, and vectors for a tenth of them.

    CPU seconds of one thread, each side in a separate process, medians of three calls after a warm-up.
    """
    first = [
        measure_apart(prepare, model, words, rival=prepare is package_rows).result
        for prepare in (our_rows, package_rows)
    ]
    if not np.array_equal(*first):
        raise SystemExit("the ids of subwords differ from those of fastText")
    some, rival = words[:: max(len(words) // 10_000, 1)], "fasttext get_subwords"
    claims = []
    for name, sides, chosen, against in (
        ("n-grams", (our_rows, package_rows), words, rival),
        ("n-grams and their vectors", (our_vectors, package_vectors), some, f"{rival}, get_input_vector"),
    ):
        ours, theirs = (
            len(chosen) / statistics.median(repeat_apart(side, model, chosen, repeats=3, rival=place > 0))
            for place, side in enumerate(sides)
        )
        claims.append(Claim(f"{name} of {len(chosen)} words, words/s", ours, against, theirs, aim=10))
    return claims


if __name__ == "__main__":
    sys.exit(run(measure_reader, __doc__ or "", lambda: measure_reader(quick=False, full=True)))
