"""fastText's model files: read from disk as they are asked, and written."""

from tasks.fasttext.layout import FastTextError
from tasks.fasttext.model import FastText, Ngram, sentence_vectors

__all__ = ["FastText", "FastTextError", "Ngram", "sentence_vectors"]
