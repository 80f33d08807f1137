"""Benchmarks of tokenizers, titles and word vectors."""
