"""Reader of fastText models beside the fasttext package and gensim: opening, unseen words, memory.

The benchmark writes the file with random values: 1 GB (250,000 words, 350,000 buckets, 300 dimensions, with
output matrix), 40 MB with --quick, and in addition 7 GB with --full (2 million words, 2 million buckets).
Every reader runs in a separate process that reports its time and its anonymous memory. The n-grams of 100,000
words are compared with get_subwords of the fasttext package, in CPU seconds. Rivals that are not installed
are omitted.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.claims import Claim, is_installed, run
from benchmarks.processes import call_apart, memory
from benchmarks.timing import in_turn
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
    opened = time.perf_counter()
    vectors(["tatort"])
    first, seconds = time.perf_counter(), []
    for part in range(3):  # different words each time, so that no row is in a cache
        begun = time.perf_counter()
        vectors(words[part * UNSEEN : (part + 1) * UNSEEN])
        seconds.append(time.perf_counter() - begun)
    return Reading(opened - started, first - opened, statistics.median(seconds), memory("RssAnon"))


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
        trained = random_words(words, rng)
        make_model(model, trained, buckets, dim, rng)
        names = set(trained)
        unseen = [word for word in random_words(6 * UNSEEN, rng) if word not in names]
        size = f"{model.stat().st_size / 1e9:.2g} GB"
        ours = call_apart(read_model, our_reader, model, unseen)
        extra, milliseconds = ours.memory - call_apart(imports_memory), 1000 * ours.unseen
        first, words_name = 1000 * ours.first, f"{UNSEEN} unseen words, {size}, ms"
        claims = [
            Claim(f"first vector beyond the dictionary scan, {size}, ms", first, aim=50, better="less"),
            Claim(f"own memory beyond the imports, {size}, MiB", extra, aim=300, better="less"),
            Claim(words_name, milliseconds, aim=20, better="less"),
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
            words_to_cut = trained[:10_000] if quick else [*trained, *random_words(100_000, rng)][:100_000]
            claims += _lookup(model, words_to_cut)
    return claims


RIVALS = (
    ("fasttext.load_model", "fasttext", fasttext_package),
    ("gensim load_facebook_model", "gensim", gensim_reader),
)


def _lookup(model: Path, words: list[str]) -> list[Claim]:
    """Compares n-gram lookups of many words with the package, in CPU seconds of one thread.

    Measures row numbers, and vectors for a tenth of the words; medians of three alternating runs.
    """
    import fasttext

    from tasks.fasttext import FastText

    fasttext.FastText.eprint = lambda text: None
    ours, theirs = FastText.open(model), fasttext.load_model(str(model))
    ours.dictionary.ids(["x"])
    expected = np.concatenate([theirs.get_subwords(word)[1] for word in words])
    if not np.array_equal(ours.rows(words).values, expected):
        raise SystemExit("the ids of subwords differ from those of fastText")
    calls = {
        "ours": lambda: ours.rows(words),
        "theirs": lambda: [theirs.get_subwords(word) for word in words],
    }
    rows = in_turn(calls, 3)
    some = words[:: max(len(words) // 10_000, 1)]

    def our_vectors() -> None:
        for place in range(0, len(some), 500):
            ours.matrix.take(ours.rows(some[place : place + 500]).values)

    def their_vectors() -> None:
        for word in some:
            for row in theirs.get_subwords(word)[1]:
                theirs.get_input_vector(row)

    vectors = in_turn({"ours": our_vectors, "theirs": their_vectors}, 3)
    rival = "fasttext get_subwords"
    return [
        _words_a_second("n-grams", len(words), rows, rival),
        _words_a_second("n-grams and their vectors", len(some), vectors, f"{rival}, get_input_vector"),
    ]


def _words_a_second(name: str, words: int, seconds: dict[str, float], rival: str) -> Claim:
    ours, theirs = (words / value for value in seconds.values())
    return Claim(f"{name} of {words} words, words/s", ours, rival, theirs, aim=10)


if __name__ == "__main__":
    sys.exit(run(measure_reader, __doc__ or "", lambda: measure_reader(quick=False, full=True)))
