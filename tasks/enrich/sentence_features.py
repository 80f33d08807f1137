"""Computes the sentence features of titles that a model lacks, from their text and descriptions."""

from typing import TYPE_CHECKING

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float32

if TYPE_CHECKING:
    from tasks.encoder.title_encoder import TitleEncoder

_CHUNK_TEXTS = 4096  # texts encoded at once


def sentence_features(
    encoder: "TitleEncoder", titles: list[str], title_ids: np.ndarray, descriptions: list[str]
) -> Float32[np.ndarray, "titles features"]:
    """Computes the sentence features of titles; they are zero if the model has no sentence encoder.

    Args:
        encoder: Encoder of titles.
        titles: Display titles.
        title_ids: Title of each description, as an index into ``titles``.
        descriptions: Descriptions of the titles.
    """
    meaning = encoder.meaning
    if meaning is None or meaning.encoder is None:
        return np.zeros((len(titles), 0 if meaning is None else len(meaning.projection)), np.float32)
    description_sums = np.zeros((len(titles), meaning.encoder.dim), dtype=np.float32)
    for start in range(0, len(descriptions), _CHUNK_TEXTS):
        chunk = slice(start, start + _CHUNK_TEXTS)
        np.add.at(description_sums, title_ids[chunk], meaning.encoder.encode(descriptions[chunk]))
    title_texts = [title if any(map(str.isalnum, title)) else "" for title in titles]
    title_vectors = [
        meaning.encoder.encode(title_texts[start : start + _CHUNK_TEXTS])
        for start in range(0, len(title_texts), _CHUNK_TEXTS)
    ]
    return encoder.bag.sentence_features(np.concatenate(title_vectors), unit_rows(description_sums))
