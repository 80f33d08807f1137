"""Opens the sentence encoder that computed the sentence vectors of a corpus."""

import logging
import typing
from collections.abc import Mapping
from typing import Any

from tasks.sentences import SentenceEncoder, SentenceEncoderMissing, SentenceStrategy


def reopen(encoder_info: Mapping[str, Any]) -> SentenceEncoder | None:
    """Opens the sentence encoder that computed the sentence vectors of a corpus.

    If the package is missing or has another version, logs a warning and returns None, because vectors of
    different versions are not comparable. ``encoder_info`` describes the encoder of the corpus by the keys
    "encoder" (fields of the strategy) and "identity".
    """
    strategies = {kind.name: kind for kind in typing.get_args(SentenceStrategy)}
    try:
        encoder = strategies[encoder_info["encoder"]["name"]](**encoder_info["encoder"]).open()
        identity = encoder.identity if encoder else "none"
        if identity == encoder_info["identity"]:
            return encoder
        problem = f"the model was trained with {encoder_info['identity']}, but this machine has {identity}"
    except SentenceEncoderMissing as error:
        problem = str(error)
    logging.getLogger(__name__).warning("title vectors are computed without sentence vectors: %s", problem)
    return None
