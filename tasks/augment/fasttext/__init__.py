"""fastText's model files: read from the disk as they are asked, and written. Settings of trained models see layout.Header."""

from tasks.augment.fasttext.layout import FastTextError
from tasks.augment.fasttext.model import FastText, Ngram
from tasks.augment.fasttext.sentences import sentence_vectors

__all__ = ["FastText", "FastTextError", "Ngram", "sentence_vectors"]
