"""Reader and writer of fastText model files. The reader memory-maps the file and reads rows on demand."""

from tasks.fasttext.layout import FastTextError
from tasks.fasttext.model import FastText, Ngram, sentence_vectors

__all__ = ["FastText", "FastTextError", "Ngram", "sentence_vectors"]
