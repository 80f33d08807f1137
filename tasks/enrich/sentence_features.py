"""Computes the sentence features of titles that a model lacks from their text and descriptions."""

from typing import TYPE_CHECKING

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float32

if TYPE_CHECKING:
    from tasks.encoder.title_encoder import TitleEncoder

_CHUNK = 4096  # texts encoded at once


def sentence_features(
    encoder: "TitleEncoder", display: list[str], owners: np.ndarray, texts: list[str]
) -> Float32[np.ndarray, "titles features"]:
    """Computes the sentence features of titles; they are zero without a sentence encoder.

    Args:
        encoder: Encoder of titles.
        display: Display titles.
        owners: Index in ``display`` of the title of each description.
        texts: Descriptions.
    """
    meaning = encoder.meaning
    if meaning is None or meaning.encoder is None:
        return np.zeros((len(display), 0 if meaning is None else len(meaning.projection)), np.float32)
    description_sums = np.zeros((len(display), meaning.encoder.dim), dtype=np.float32)
    for start in range(0, len(texts), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        np.add.at(description_sums, owners[chunk], meaning.encoder.encode(texts[chunk]))
    display_texts = [text if any(map(str.isalnum, text)) else "" for text in display]
    parts = [
        meaning.encoder.encode(display_texts[start : start + _CHUNK])
        for start in range(0, len(display_texts), _CHUNK)
    ]
    return encoder.bag.dense(np.concatenate(parts), unit_rows(description_sums))
