"""Held-out titles whose categories are too rare to be predicted count as wrong predictions."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.formats.model import RARE_CATEGORIES
from tasks.enrich.model import CategoryModel
from tasks.enrich.vocabulary import GuideVocabulary, Table


def test_predictions_for_titles_with_rare_categories_are_wrong(model: Path, tmp_path: Path) -> None:
    before = CategoryModel(model).name_predictor(GuideVocabulary({}), 0).held_out_shows
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    table = pq.read_table(folder / "titles.parquet")
    columns = {name: table[name].to_pylist() for name in ("labels", RARE_CATEGORIES)}
    assert not any(columns[RARE_CATEGORIES])
    rows = CategoryModel(model).votes.titles
    changed = rows[::5].tolist()
    names = [columns["labels"][row][0] for row in changed]
    for row, name in zip(changed, names, strict=True):
        columns["labels"][row], columns[RARE_CATEGORIES][row] = [], [f"rare {name}"]
    for name, values in columns.items():
        column = pa.array(values, pa.list_(pa.string()))
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, folder / "titles.parquet")

    is_changed = np.isin(rows, changed)
    opened = CategoryModel(folder)
    rare = opened.name_predictor(GuideVocabulary({}), 0).held_out_shows.held_out
    assert not rare.correct[is_changed].any()
    assert (rare.correct == before.held_out.correct)[~is_changed].all()
    assert before.held_out.correct.mean() > 0.8

    named = {name: (name,) for name in {*names}} | {f"rare {name}": (name,) for name in {*names}}
    # With names for rare categories.
    in_table = opened.name_predictor(Table(named), 0).held_out_shows.held_out
    assert (in_table.correct == before.held_out.correct).all()
    unnamed = opened.name_predictor(Table({name: (name,) for name in {*names}}), 0).held_out_shows.held_out
    assert len(unnamed.correct) == len(rows) - len(changed)  # neither right nor wrong
