"""Token ids in words, for errors: "the ngram '<har' (token 17)"; the id alone where the Corpus does not say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq


def token_names(corpus_folder: Path, ids: Sequence[int]) -> list[str]:
    """Kind and text of tokens.

    Args:
        corpus_folder: Of a Corpus; its ``token_names.parquet`` (kind, token) is read, if there.
        ids: Token ids.
    """
    file = corpus_folder / "token_names.parquet"
    if not file.exists():
        return [f"token {number}" for number in ids]
    table = pq.read_table(file)
    return [f"the {table['kind'][number].as_py()} {table['token'][number].as_py()!r} (token {number})" for number in ids]
