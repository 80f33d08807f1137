"""Raw titles to titles of the space: one a show key, with the split it belongs to. Piece by piece; no list holds them all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.shows import write_shows
from tasks.pool import Submit
from tasks.tokenize.pieces import batches_of, pieces_of, read_piece, texts_of
from tasks.tokenize.placeholders import is_placeholder
from tasks.tokenize.splits import SPLITS, Split, SplitSettings, split_titles
from tasks.tokenize.titles import parse_titles

SCHEMA = pa.schema(
    [
        ("title", pa.string()),
        ("raw_title", pa.string()),
        ("show_key", pa.string()),
        ("family", pa.string()),
        ("language", pa.string()),
        ("split", pa.string()),
        ("airings", pa.int64()),
        ("first_airing", pa.timestamp("us")),
    ]
)


def gather_shows(raw: Path, settings: SplitSettings, folder: Path, piece_titles: int, submit: Submit) -> Split:
    """Groups raw titles by show key, splits the shows, and writes titles.parquet and variants.parquet.

    Args:
        raw: As storage.catalogue.shows.write_raw_titles writes it; files in between are put beside it.
        settings: Salt and shares of the held-out sets.
        folder: Where to write; titles.parquet has a row group for every piece.
        piece_titles: Titles a piece.
        submit: Where titles are taken apart (tasks/pool.py).
    """
    work = raw.parent
    parsed = [work / f"parsed-{piece:05}.parquet" for piece in pieces_of(raw)]
    for future in [submit(parse_piece, raw, piece, file) for piece, file in enumerate(parsed)]:
        future.result()
    shows = work / "shows.parquet"
    write_shows(parsed, shows, folder / "variants.parquet")
    return _split(shows, settings, folder / "titles.parquet", piece_titles)


def parse_piece(raw: Path, piece: int, out: Path) -> None:
    """Takes the titles of a row group apart; adds display, show_key, family and placeholder to its columns."""
    group = read_piece(raw, piece)
    titles = parse_titles(group["raw_title"].to_pylist())
    columns = {
        "display": pa.array([title.display for title in titles], pa.string()),
        "show_key": pa.array([title.show_key for title in titles], pa.string()),
        "family": pa.array([title.family for title in titles], pa.string()),
        "placeholder": pa.array([is_placeholder(title.show_key) for title in titles], pa.bool_()),
    }
    for name, column in columns.items():
        group = group.append_column(name, column)
    pq.write_table(group, out)


def _split(shows: Path, settings: SplitSettings, path: Path, piece_titles: int) -> Split:
    """Splits the shows and writes them with their split."""
    numbers = pq.read_table(shows, columns=["first_airing", "last_airing", "placeholder"])
    first, last = numbers["first_airing"].to_numpy(), numbers["last_airing"].to_numpy()
    placeholder = numbers["placeholder"].to_numpy().astype(bool)
    split = split_titles(texts_of(shows, "show_key"), texts_of(shows, "family"), first, int(last.max()) if len(last) else 0, placeholder, settings)
    names = pa.array(SPLITS)
    begin = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for batch in batches_of(shows, rows=piece_titles):
            codes = split.codes[begin : begin + len(batch)]
            begin += len(batch)
            table = pa.Table.from_batches([batch]).append_column("split", names.take(pa.array(codes)))
            table = table.set_column(table.schema.get_field_index("first_airing"), "first_airing", table["first_airing"].cast(pa.timestamp("us")))
            writer.write_table(table.select(SCHEMA.names).cast(SCHEMA))
    return split
