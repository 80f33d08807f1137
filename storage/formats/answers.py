"""Reads and writes answers.parquet: the result of each held-out title in one trial of an ablation study.

The file has one row for each combination of form, protocol and held-out title. The form is the input of the
model (title alone, or title with airing context), and the protocol is the held-out set (SPLITS in
vocabulary.py). ``correct`` is 1 if the predicted category is correct, else 0. ``precision_at_10`` is the
share of the 10 nearest titles that have a category in common with the title. ``family`` is the hash of the
first content word. ``oov`` is true if the title contains a word that is in no training title. With the form
CLUSTERS, a row is about the cluster of the title: ``correct`` is the B-cubed F score of the title, and
``precision_at_10`` is null.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLUSTERS = "clusters"
FILE = "answers.parquet"
_TEXT_COLUMNS = [(name, pa.string()) for name in ("form", "protocol")]
_NUMBER_COLUMNS = [(name, pa.float64()) for name in ("correct", "precision_at_10", "family")]
SCHEMA = pa.schema([*_TEXT_COLUMNS, *_NUMBER_COLUMNS, ("oov", pa.bool_())])
# The columns correct, precision_at_10 (None if all are null), family and oov of SCHEMA, (titles,) each.
AnswerColumns = tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]


def write_answers(folder: Path, answers: Mapping[tuple[str, str], AnswerColumns]) -> None:
    """Writes answers.parquet; ``answers`` maps (form, protocol) to the columns of its rows."""
    tables = [_to_table(form, protocol, columns) for (form, protocol), columns in answers.items()]
    pq.write_table(pa.concat_tables([SCHEMA.empty_table(), *tables]), folder / FILE, compression="zstd")


def _to_table(form: str, protocol: str, columns: AnswerColumns) -> pa.Table:
    correct, precision, family, oov = columns
    length = len(correct)
    if precision is None:
        precision = pa.nulls(length, pa.float64())
    return pa.table([[form] * length, [protocol] * length, correct, precision, family, oov], schema=SCHEMA)


def read_answers(folder: Path) -> dict[tuple[str, str], AnswerColumns]:
    """Reads answers.parquet. Returns a dictionary from (form, protocol) to the columns of its rows."""
    table = pq.read_table(folder / FILE)
    forms, protocols = (np.array(table[name].to_pylist(), dtype=str) for name in ("form", "protocol"))
    correct, precision, family, oov = (table[name].to_numpy() for name in SCHEMA.names[2:])
    answers: dict[tuple[str, str], AnswerColumns] = {}
    for form, protocol in dict.fromkeys(zip(forms.tolist(), protocols.tolist(), strict=True)):
        rows = (forms == form) & (protocols == protocol)
        precision_values = None if np.isnan(precision[rows]).all() else precision[rows]
        answers[form, protocol] = correct[rows], precision_values, family[rows], oov[rows]
    return answers
