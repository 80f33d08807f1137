"""Selects the programmes of an evening by kind: film, series, news, sport, children, music, other."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from storage.formats.programme_kinds import COLUMNS
from tasks.kinds.kinds import Kind, KindPrediction
from tasks.tonight.programmes import Show


def select_kinds(shows: Sequence[Show], kinds: Collection[Kind], model: Path) -> list[Show]:
    """Returns the shows with the programmes that are of one of the kinds.

    The kinds of a programme are what its categories state, and those of its title in the model
    (tasks/kinds). Models of older versions have none.

    Args:
        shows: Shows of the evening.
        kinds: The kinds to select.
        model: Model folder.
    """
    from tasks.kinds.decisions import TitleKinds  # takes 0.05 s, only with --kind

    title_kinds = _read_kinds(model, {show.show_key for show in shows})
    of_titles = TitleKinds([title_kinds.get(show.show_key, ()) for show in shows])
    selected = []
    for index, show in enumerate(shows):
        programmes = tuple(
            programme
            for programme in show.programmes
            if any(
                each.kind in kinds
                for each in of_titles.of(index, programme.categories, bool(programme.episode))
            )
        )
        if programmes:
            selected.append(replace(show, programmes=programmes))
    return selected


def _read_kinds(model: Path, show_keys: Collection[str]) -> dict[str, tuple[KindPrediction, ...]]:
    file = pq.ParquetFile(model / "titles.parquet")  # read_table imports pyarrow.dataset
    if not set(COLUMNS.names) <= set(file.schema_arrow.names):
        return {}
    table = file.read(["show_key", *COLUMNS.names])
    rows = zip(*(table[name].to_pylist() for name in ["show_key", *COLUMNS.names]), strict=True)
    return {
        show_key: tuple(KindPrediction(*values) for values in zip(*predictions, strict=True))
        for show_key, *predictions in rows
        if show_key in show_keys
    }
