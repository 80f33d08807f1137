"""Selects the programmes of an evening by kind: film, series, news, sport, children, music, other."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from storage.formats.programme_kinds import KIND_COLUMNS
from tasks.kinds.kinds import Kind, KindPrediction
from tasks.tonight.programmes import Show


def select_kinds(shows: Sequence[Show], kinds: Collection[Kind], model: Path) -> list[Show]:
    """Returns the programmes that have at least one of the selected kinds, grouped by show.

    The kinds of a programme are determined from its categories, and from the predictions for its title in
    the model (tasks/kinds) unless an older version made the model.

    Args:
        shows: Shows of the evening.
        kinds: Selected kinds.
        model: Model folder.
    """
    from tasks.kinds.decisions import TitleKinds  # takes 0.05 s, and is needed only with --kind

    title_kinds = _read_kinds(model, {show.show_key for show in shows})
    kinds_of_titles = TitleKinds([title_kinds.get(show.show_key, ()) for show in shows])
    selected_shows = []
    for index, show in enumerate(shows):
        programmes = tuple(
            programme
            for programme in show.programmes
            if any(
                prediction.kind in kinds
                for prediction in kinds_of_titles.kinds_of_programme(
                    index, programme.categories, bool(programme.episode)
                )
            )
        )
        if programmes:
            selected_shows.append(replace(show, programmes=programmes))
    return selected_shows


def _read_kinds(model: Path, show_keys: Collection[str]) -> dict[str, tuple[KindPrediction, ...]]:
    """Reads the predicted kinds of titles from a Model folder, by show key."""
    file = pq.ParquetFile(model / "titles.parquet")  # read_table imports pyarrow.dataset
    if not set(KIND_COLUMNS.names) <= set(file.schema_arrow.names):
        return {}
    table = file.read(["show_key", *KIND_COLUMNS.names])
    rows = zip(*(table[name].to_pylist() for name in ["show_key", *KIND_COLUMNS.names]), strict=True)
    return {
        show_key: tuple(KindPrediction(*values) for values in zip(*predictions, strict=True))
        for show_key, *predictions in rows
        if show_key in show_keys
    }
