"""Answers from a fastText model file: opening, first vector, many unseen words, memory; beside the fasttext
package and gensim.

The file is written by this script with random values: 1 GB (250,000 words, 350,000 buckets, 300 dimensions,
with output matrix), 40 MB with --quick, and with --full 7 GB (2 million words, 2 million buckets). Every
reader runs in a process of its own that reports its time and its own (anonymous) memory. n-grams of 100,000
words are looked up beside the package's get_subwords, in CPU seconds. Rivals that are not installed are left
out.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, run
from tasks.fasttext.layout import Header
from tasks.fasttext.writer import write_bin

UNSEEN, LETTERS = 1000, "etaoinshrdlcumwfgypbvkjxqz"

OURS = """
import json, sys, time
import numpy as np
from tasks.fasttext import FastText
begin = time.perf_counter()
model = FastText.open(sys.argv[1])
model.dictionary.ids(["x"])
opened = time.perf_counter()
model.vectors(["tatort"])
first = time.perf_counter()
words = open(sys.argv[2]).read().split()
seconds = []
for part in range(3):  # other words each time, so that no row is warm for the process
    some = words[part * 1000 : part * 1000 + 1000]
    start = time.perf_counter()
    model.vectors(some)
    seconds.append(time.perf_counter() - start)
"""
PACKAGE = """
import json, sys, time, fasttext
fasttext.FastText.eprint = lambda text: None
begin = time.perf_counter()
model = fasttext.load_model(sys.argv[1])
opened = time.perf_counter()
model.get_word_vector("tatort")
first = time.perf_counter()
words = open(sys.argv[2]).read().split()
seconds = []
for part in range(3):
    some = words[part * 1000 : part * 1000 + 1000]
    start = time.perf_counter()
    [model.get_word_vector(word) for word in some]
    seconds.append(time.perf_counter() - start)
"""
GENSIM = """
import json, sys, time
from gensim.models.fasttext import load_facebook_model
begin = time.perf_counter()
model = load_facebook_model(sys.argv[1]).wv
opened = time.perf_counter()
model["tatort"]
first = time.perf_counter()
words = open(sys.argv[2]).read().split()
seconds = []
for part in range(3):
    some = words[part * 1000 : part * 1000 + 1000]
    start = time.perf_counter()
    [model[word] for word in some]
    seconds.append(time.perf_counter() - start)
"""
REPORT = """
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
unseen = sorted(seconds)[1]
print(json.dumps({"open": opened - begin, "first": first - opened, "unseen": unseen, "own": own / 1024}))
"""


def random_words(number: int, rng: np.random.Generator, shortest: int = 4, longest: int = 12) -> list[str]:
    """Distinct words whose letters are as frequent as in English, roughly."""
    weights = 1 / np.arange(3, 3 + len(LETTERS))
    found: dict[str, None] = {}
    while len(found) < number:
        letters = rng.choice(list(LETTERS), p=weights / weights.sum(), size=(number, longest))
        lengths = rng.integers(shortest, longest + 1, size=number)
        found.update((("".join(row[:length])), None) for row, length in zip(letters, lengths, strict=True))
    return list(found)[:number]


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
    """All claims of this file, of one size."""
    rng = np.random.default_rng(0)
    words, buckets, dim = (
        (2_000_000, 2_000_000, 300) if full else (20_000, 20_000, 150) if quick else (250_000, 350_000, 300)
    )
    claims = []
    with tempfile.TemporaryDirectory() as folder:
        model, unseen = Path(folder) / "model.bin", Path(folder) / "unseen.txt"
        known = random_words(words, rng)
        make_model(model, known, buckets, dim, rng)
        names = set(known)
        unseen.write_text(
            " ".join(word for word in random_words(6 * UNSEEN, rng) if word not in names), encoding="utf-8"
        )
        size = f"{model.stat().st_size / 1e9:.2g} GB"
        ours = _in_process(OURS, model, unseen)
        baseline = _own_memory_of_imports()
        claims += [
            Claim(
                name=f"first vector beyond the dictionary scan, {size}, ms",
                value=ours["first"] * 1000,
                aim=50,
                better="less",
            ),
            Claim(
                name=f"own memory beyond the imports, {size}, MiB",
                value=ours["own"] - baseline,
                aim=300,
                better="less",
            ),
            Claim(
                name=f"{UNSEEN} unseen words, {size}, ms", value=ours["unseen"] * 1000, aim=20, better="less"
            ),
        ]
        for name, module, code in (
            ("fasttext.load_model", "fasttext", PACKAGE),
            ("gensim load_facebook_model", "gensim", GENSIM),
        ):
            if importlib.util.find_spec(module) is None:
                print(f"{module} is not installed: left out", file=sys.stderr)
                continue
            theirs = _in_process(code, model, unseen)
            claims += [
                Claim(
                    name=f"open and first vector, {size}, s",
                    value=ours["open"] + ours["first"],
                    rival=name,
                    rival_value=theirs["open"] + theirs["first"],
                    better="less",
                    aim=1,
                ),
                Claim(
                    name=f"own memory with imports, {size}, MiB",
                    value=ours["own"],
                    rival=name,
                    rival_value=theirs["own"],
                    better="less",
                    aim=1,
                ),
                Claim(
                    name=f"{UNSEEN} unseen words, {size}, ms",
                    value=ours["unseen"] * 1000,
                    rival=name,
                    rival_value=theirs["unseen"] * 1000,
                    better="less",
                    aim=1,
                ),
            ]
        if importlib.util.find_spec("fasttext") is not None:
            claims += _lookup(
                model, known[:10_000] if quick else [*known, *random_words(100_000, rng)][:100_000]
            )
    return claims


def _lookup(model: Path, words: list[str]) -> list[Claim]:
    """N-grams of many words against the package's calls, in CPU seconds of one thread each: their rows'
    numbers, and the vectors too (of a tenth of the words).

    Medians of three in turn.
    """
    import fasttext

    from tasks.fasttext import FastText

    fasttext.FastText.eprint = lambda text: None
    ours, theirs = FastText.open(model), fasttext.load_model(str(model))
    ours.dictionary.ids(["x"])
    fast, slow, found, expected = [], [], ours.rows([]), []
    for _ in range(3):
        start = time.process_time()
        found = ours.rows(words)
        fast.append(time.process_time() - start)
        start = time.process_time()
        expected = [theirs.get_subwords(word)[1] for word in words]
        slow.append(time.process_time() - start)
    assert np.array_equal(found.values, np.concatenate(expected))
    speeds = [len(words) / sorted(seconds)[1] for seconds in (fast, slow)]
    claims = [
        Claim(
            name=f"n-grams of {len(words)} words, words/s",
            value=speeds[0],
            rival="fasttext get_subwords",
            rival_value=speeds[1],
            aim=10,
        )
    ]
    step, fast, slow = max(len(words) // 10_000, 1), [], []
    some = words[::step]
    for part in range(3):  # other words each time; the first also maps the file's pages
        some = words[part % step :: step]
        start = time.process_time()
        for place in range(0, len(some), 500):
            ours.matrix.take(ours.rows(some[place : place + 500]).values)
        fast.append(time.process_time() - start)
        start = time.process_time()
        for word in some:
            for row in theirs.get_subwords(word)[1]:
                theirs.get_input_vector(row)
        slow.append(time.process_time() - start)
    speeds = [len(some) / sorted(seconds)[1] for seconds in (fast, slow)]
    name = f"n-grams and their vectors of {len(some)} words, words/s"
    return [
        *claims,
        Claim(
            name=name,
            value=speeds[0],
            rival="fasttext get_subwords, get_input_vector",
            rival_value=speeds[1],
            aim=10,
        ),
    ]


def _in_process(code: str, model: Path, unseen: Path) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-c", code + REPORT, str(model), str(unseen)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, encoding="utf-8", check=True, cwd=Path(__file__).parent.parent
    )
    return json.loads(done.stdout.splitlines()[-1])


def _own_memory_of_imports() -> float:
    code = (
        "import json\nfrom tasks.fasttext import FastText\nopened = begin = first = 0\nseconds = [0, 0, 0]"
        + REPORT
    )
    return _in_process(code, Path(), Path())["own"]


if __name__ == "__main__":
    sys.exit(run(measure_reader, __doc__ or "", lambda: measure_reader(quick=False, full=True)))
