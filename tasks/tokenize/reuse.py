"""Decides whether the tokens of an earlier night are used again, so that its model can be used again, too.

Token ids are numbered by frequency: one new title changes the ids of many tokens, and the rows of a model fit
only the ids with which it was trained. If few titles differ, the table of tokens of the earlier night is
copied. Tokens that only new titles contain have no id then. Every run compares its titles with those of the
night that trained the model, so small changes of many nights add up and the model is trained again.

Two titles are equal if the title as in the feed and all context tokens are equal.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.artifacts import read_details
from storage.catalogue.connection import Connection, escape_glob
from storage.formats.vocabulary import SPLITS, TRAIN
from tasks.tokenize.splits import EarlierSplit

FILES = "titles.parquet", "contexts.parquet"
TOKENS_OF = "tokens_of"  # key of details of a Vocabulary: digest of the Vocabulary whose tokens it has


@dataclass(frozen=True)
class EarlierVocabulary:
    """Folder of a Vocabulary of an earlier night, and the share of its titles that may differ."""

    folder: Path
    max_share: float

    def matches(self, connection: Connection, titles: Path, contexts: Path | None = None) -> bool:
        """Returns whether at most ``max_share`` of the titles differ: are new, removed or changed.

        Args:
            connection: Temporary database.
            titles: Parquet file with show_key and raw_title; row i is title i.
            contexts: Parquet file with the context tokens of the titles; None: compares texts only.
        """
        compared = {"now": [titles, contexts], "earlier": [self.folder / name for name in FILES]}
        for name, files in compared.items():
            query = _TITLES if contexts is None else _TITLES_WITH_CONTEXT
            used = files[: 1 if contexts is None else 2]
            connection.execute(query.format(name=name), [escape_glob(file) for file in used if file])
        (share,) = connection.sql(_SHARE).fetchall()[0]
        return share <= self.max_share

    def split(self) -> EarlierSplit:
        """Returns the training and held-out sets of the earlier night."""
        table = pq.read_table(
            self.folder / "titles.parquet",
            columns=["show_key"],
            filters=pc.field("split") == SPLITS[TRAIN],
        )
        details = read_details(self.folder)
        begin, reason = details["next_period_from"], details["next_period_reason"]
        return EarlierSplit(begin, reason, frozenset(table["show_key"].to_pylist()))


_TITLES = """
    CREATE OR REPLACE TABLE {name} AS
    SELECT show_key, raw_title, 0 AS context
    FROM read_parquet(?)
"""
_TITLES_WITH_CONTEXT = """
    CREATE OR REPLACE TABLE {name} AS
    SELECT show_key, raw_title, context
    FROM read_parquet(?, file_row_number = true)
    LEFT JOIN (
        SELECT title_id AS file_row_number, bit_xor(hash(token)) AS context
        FROM read_parquet(?)
        GROUP BY title_id
    ) USING (file_row_number)
"""
_SHARE = """
    SELECT count(*) FILTER (
               WHERE now.raw_title IS DISTINCT FROM earlier.raw_title
                  OR now.context IS DISTINCT FROM earlier.context
           ) / greatest(1, count(now.show_key))
    FROM now
    FULL JOIN earlier USING (show_key)
"""
