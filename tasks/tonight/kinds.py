"""Selects the programmes of an evening by kind: film, series, news, sport, children, music, other."""

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from storage.formats.programme_kinds import KIND_COLUMNS
from tasks.kinds.kinds import Kind, KindPrediction
from tasks.tonight.programmes import Programme, Show, filter_programmes


def select_kinds(shows: Sequence[Show], kinds: Collection[Kind], model: Path) -> list[Show]:
    """Returns the programmes that have at least one of the selected kinds, grouped by show.

    The kinds of a programme are determined from its categories, and from the predictions for its title in
    the model (tasks/kinds) unless an older version made the model.

    Args:
        shows: Shows of the evening.
        kinds: Selected kinds.
        model: Model folder.
    """
    from tasks.kinds.decisions import kinds_of_programme  # takes 0.05 s, and is needed only with --kind

    predicted_kinds = _read_kinds(model, {show.show_key for show in shows})

    def is_selected(show: Show, programme: Programme) -> bool:
        title_kinds, is_numbered = predicted_kinds.get(show.show_key, ()), bool(programme.episode)
        predictions = kinds_of_programme(title_kinds, programme.categories, is_numbered)
        return any(prediction.kind in kinds for prediction in predictions)

    return filter_programmes(shows, is_selected)


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
