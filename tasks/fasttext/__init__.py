"""Reads and writes fastText model files, which are memory-mapped, so that only required rows are read."""

from tasks.fasttext.layout import FastTextError
from tasks.fasttext.model import FastText, Ngram, sentence_vectors

__all__ = ["FastText", "FastTextError", "Ngram", "sentence_vectors"]
