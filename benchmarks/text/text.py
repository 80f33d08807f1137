"""Tokenizer beside other tokenizers on the same titles: titles a second of one core.

The rivals split words, as we do in the first rows. The other rows are additional work of GuideSpace: show
keys and marks, and all tokens with their n-grams. CPU seconds, best of several alternating runs. A rival that
is not installed is reported and omitted.
"""

import functools
import gzip
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.claims import Claim, guides, is_installed, run
from benchmarks.timing import in_turn
from tasks.text.clean import clean
from tasks.text.splitting import split_words
from tasks.text.titles import parse_title
from tasks.text.words import WordsAndNgrams

AIM = 300_000  # titles per second on one core


def titles(*names: str) -> list[str]:
    """Returns the distinct titles of guides, cleaned as by ingest."""
    texts: set[str] = set()
    for file in guides(*names):
        with gzip.open(file) as opened:
            texts |= {
                clean(title.text)
                for _, title in etree.iterparse(opened, tag="title", recover=True)
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


RIVALS = {
    "tokenizers": ("HuggingFace pre-tokenizer", huggingface),
    "spacy": ("spaCy blank", spacy),
    "gensim": ("gensim.simple_preprocess", gensim),
}


def measure(quick: bool) -> list[Claim]:
    """Returns a row per rival for words, then rows for show keys and all tokens."""
    texts = (
        titles("ZA1", "FR1")
        if quick
        else titles("UK1", "US1", "ZA1", "FR1", "GR1", "IT1", "SK1", "magenta_de_2022-05")
    )
    rivals = {name: prepare() for module, (name, prepare) in RIVALS.items() if is_installed(module, name)}
    tokenizer = WordsAndNgrams()
    ours = {
        "words": lambda some: [split_words(text) for text in some],
        "show keys and marks": lambda some: [parse_title.__wrapped__(text) for text in some],
        "all tokens": lambda some: [parse_title.cache_clear(), tokenizer.all_tokens(some)],
    }
    calls = {name: functools.partial(call, texts) for name, call in {**ours, **rivals}.items()}
    seconds = in_turn(calls, 3 if quick else 7, summary=min)
    speeds = {name: len(texts) / seconds[name] for name in calls}
    claims = [Claim(f"titles/s to words ({len(texts):,} titles)", speeds["words"], aim=AIM)]
    claims += [Claim("titles/s to words", speeds["words"], name, speeds[name], aim=1) for name in rivals]
    for name, about in (("show keys and marks", ""), ("all tokens", ", n-grams too")):
        claims.append(Claim(f"titles/s to {name}{about}", speeds[name], better=None))
    return claims


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
