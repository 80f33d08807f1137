"""Tokenizer beside other tokenizers on the same titles: titles a second of one core.

The rivals split words, as we do in the first rows. The other rows are additional work of GuideSpace: show
keys and marks, and all tokens with their n-grams. Each tokenizer runs in a separate process, once without
measurement and then several times; CPU seconds, the best counts. A rival that is not installed is reported
and omitted.
"""

import functools
import gzip
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.claims import Claim, guides, is_installed, run
from benchmarks.processes import repeat_apart
from tasks.text.clean import clean
from tasks.text.splitting import split_words
from tasks.text.titles import parse_title
from tasks.text.words import WordsAndNgrams

AIM = 300_000  # titles per second on one core


def titles(*names: str) -> list[str]:
    """Returns the distinct titles of guides, cleaned as by ingest."""
    texts: set[str] = set()
    for file in guides(*names):
        with gzip.open(file) as handle:
            texts |= {
                clean(title.text)
                for _, title in etree.iterparse(handle, tag="title", recover=True)
                if title.text
            }
    return sorted(texts)


def huggingface() -> Callable[[Sequence[str]], Any]:
    from tokenizers.pre_tokenizers import BertPreTokenizer  # pyright: ignore[reportMissingImports]

    split = BertPreTokenizer()
    return lambda texts: [split.pre_tokenize_str(text) for text in texts]


def spacy() -> Callable[[Sequence[str]], Any]:
    import spacy  # pyright: ignore[reportMissingImports]

    split = spacy.blank("xx").tokenizer
    return lambda texts: list(split.pipe(texts))


def gensim() -> Callable[[Sequence[str]], Any]:
    from gensim.utils import simple_preprocess  # pyright: ignore[reportMissingImports]

    return lambda texts: [simple_preprocess(text, min_len=1, max_len=1000) for text in texts]


def words() -> Callable[[Sequence[str]], Any]:
    return lambda texts: [split_words(text) for text in texts]


def show_keys() -> Callable[[Sequence[str]], Any]:
    return lambda texts: [parse_title.__wrapped__(text) for text in texts]


def all_tokens() -> Callable[[Sequence[str]], Any]:
    tokenizer = WordsAndNgrams()
    return lambda texts: [parse_title.cache_clear(), tokenizer.all_tokens(texts)]


RIVALS = {
    "tokenizers": ("HuggingFace pre-tokenizer", huggingface),
    "spacy": ("spaCy blank", spacy),
    "gensim": ("gensim.simple_preprocess", gensim),
}


def prepare(split: Callable[[], Callable[[Sequence[str]], Any]], texts: Sequence[str]) -> Callable[[], Any]:
    """Prepares a call that splits all texts."""
    return functools.partial(split(), texts)


def measure(quick: bool) -> list[Claim]:
    """Returns a row per rival for words, then rows for show keys and all tokens."""
    texts = (
        titles("ZA1", "FR1")
        if quick
        else titles("UK1", "US1", "ZA1", "FR1", "GR1", "IT1", "SK1", "magenta_de_2022-05")
    )

    def speed(split: Callable[[], Callable[[Sequence[str]], Any]], rival: bool = False) -> float:
        return len(texts) / min(repeat_apart(prepare, split, texts, repeats=3 if quick else 7, rival=rival))

    ours = speed(words)
    claims = [Claim(f"titles/s to words ({len(texts):,} titles)", ours, aim=AIM)]
    for module, (name, split) in RIVALS.items():
        if is_installed(module, name):
            claims.append(Claim("titles/s to words", ours, name, speed(split, rival=True), aim=1))
    claims.append(Claim("titles/s to show keys and marks", speed(show_keys), better=None))
    return [*claims, Claim("titles/s to all tokens, n-grams too", speed(all_tokens), better=None)]


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
