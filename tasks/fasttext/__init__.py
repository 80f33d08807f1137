"""Reads and writes fastText model files. The reader maps a file into memory and reads rows on demand."""

from tasks.fasttext.layout import FastTextError
from tasks.fasttext.model import FastText, Ngram, sentence_vectors

__all__ = ["FastText", "FastTextError", "Ngram", "sentence_vectors"]
