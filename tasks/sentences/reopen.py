"""Opens the sentence encoder that a corpus was made with, wherever what was learnt from it is used."""

import logging
import typing
from collections.abc import Mapping
from typing import Any

from tasks.sentences import SentenceEncoder, SentenceEncoderMissing, SentenceStrategy


def reopen(about: Mapping[str, Any]) -> SentenceEncoder | None:
    """The encoder of a Corpus' details: "encoder", its strategy, and "identity". None, and a warning, where
    its package is missing or another version than the corpus was made with: vectors of two do not compare.
    """
    strategies = {kind.name: kind for kind in typing.get_args(SentenceStrategy)}
    try:
        opened = strategies[about["encoder"]["name"]](**about["encoder"]).open()
        found = opened.identity if opened else "none"
        if found == about["identity"]:
            return opened
        why = f"the model was trained with {about['identity']}, here is {found}"
    except SentenceEncoderMissing as error:
        why = str(error)
    logging.getLogger(__name__).warning("texts have no sentence vectors here: %s", why)
    return None
