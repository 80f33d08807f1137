"""Decides whether to use the tokens of an earlier night again, so that its model fits tonight's token ids.

Token ids are numbered by frequency: one new title changes the ids of many tokens, and the rows of a model fit
only the ids with which it was trained. If few titles differ, the table of tokens of the earlier night is
copied; tokens that occur only in new titles then have no id. Every run compares its titles with the titles
of the night that trained the model. Therefore, small changes of many nights add up, until a new model is
trained.

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

TOKENS_OF = "tokens_of"  # detail of a Vocabulary: digest of the Vocabulary whose tokens were copied


@dataclass(frozen=True)
class EarlierVocabulary:
    """Folder of a Vocabulary of an earlier night, and the share of its titles that may differ."""

    folder: Path
    max_share: float

    def matches(self, connection: Connection, titles: Path, contexts: Path | None = None) -> bool:
        """Returns whether at most ``max_share`` of the titles are new, removed or changed.

        Args:
            connection: Temporary database.
            titles: Parquet file with show_key and raw_title; row i is title i.
            contexts: Parquet file with the context tokens of the titles; None: only texts are compared.
        """
        query, files = _TITLES, {"now": [titles], "earlier": [self.folder / "titles.parquet"]}
        if contexts is not None:
            query = _TITLES_WITH_CONTEXT
            files["now"].append(contexts)
            files["earlier"].append(self.folder / "contexts.parquet")
        for name, parameters in files.items():
            connection.execute(query.format(name=name), [*map(escape_glob, parameters)])
        (changed_share,) = connection.sql(_SHARE).fetchall()[0]
        return changed_share <= self.max_share

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
