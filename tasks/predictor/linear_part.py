"""Computes the margins of the linear part of the predictor: one linear SVM per label.

There are two sets of SVMs (forms): one for titles without context tokens, and one for titles with context
tokens. Only the largest weights are stored, in 8 bits, because the SVMs of a model of four guides have 20
million weights. On three guides, the 500,000 largest of 2.9 million weights have the accuracy of all weights.
This module needs only NumPy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from storage.arrays import Ragged, unit_rows
from storage.bag_sums import sum_rows
from storage.formats.linear_part import read_linear_part, write_linear_part
from storage.shapes import Float32, Int8
from tasks.predictor.features import weigh_tokens
from tasks.text.words import CONTEXT

FORMS = ("title_only", "title_context")  # input of a predictor: titles without or with context tokens
_CHUNK_TITLES = 2048  # titles whose margins are computed at once


@dataclass(frozen=True, eq=False)
class FormModel:
    """Linear SVMs of all labels, for titles in one of FORMS.

    Attributes:
        idf: Inverse document frequency of each token, float16; 0 for a token that is not a feature.
        offsets: Start of the weights of each token in ``weights``, and the end of the last: uint32.
        labels: Label id of each weight, uint16.
        weights: Stored weights, int8, to be multiplied by the scale of their label.
        scales: Scale of the weights of each label, float32.
        directions: Directions of sentence features, float32 (features, directions).
        dense_weights: Weights of the directions, float32 (directions, labels).
        intercepts: Intercept of each label, float32; -inf for labels without training titles.
    """

    idf: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    scales: np.ndarray
    directions: np.ndarray
    dense_weights: np.ndarray
    intercepts: np.ndarray

    def margins(
        self, tokens: Ragged, kinds: Int8[np.ndarray, " rows"], sentence_features: np.ndarray
    ) -> Float32[np.ndarray, "titles labels"]:
        """Computes the margins w·x + b of titles for all labels.

        Args:
            tokens: Token ids of each title.
            kinds: Kind of each token id.
            sentence_features: Sentence features of each title, float32 (titles, features).
        """
        ids, values = weigh_tokens(tokens, kinds, self.idf)
        distinct_ids, positions = np.unique(ids.values, return_inverse=True)
        labels = Ragged(self.offsets, self.labels).take(distinct_ids)
        weights = Ragged(self.offsets, self.weights).take(distinct_ids)
        token_weights = np.zeros((len(distinct_ids), len(self.scales)), dtype=np.float32)
        token_weights[labels.row_ids, labels.values] = weights.values * self.scales[labels.values]
        margins = sum_rows(token_weights, positions, ids.offsets, values) + self.intercepts
        return margins + (unit_rows(sentence_features) @ self.directions) @ self.dense_weights


@dataclass(frozen=True, eq=False)
class LinearPart:
    """The linear part of the predictor: linear SVMs of all labels in both forms."""

    label_names: Sequence[str]
    by_form: Mapping[str, FormModel]  # SVMs by form; title_context is missing if no title has context tokens

    def margins(
        self, tokens: Ragged, kinds: Int8[np.ndarray, " rows"], sentence_features: np.ndarray
    ) -> Float32[np.ndarray, "titles labels"]:
        """Computes the margins of titles for all labels; a positive margin means that the label is likely.

        Args:
            tokens: Token ids of each title. If it has context tokens, the SVMs of title_context are used.
            kinds: Kind of each token id.
            sentence_features: Sentence features of each title, float32 (titles, features).
        """
        margins = np.zeros((len(tokens), len(self.label_names)), dtype=np.float32)
        has_context = np.bincount(tokens.row_ids, kinds[tokens.values] >= CONTEXT, len(tokens)) > 0
        for form, is_in_form in zip(FORMS, (~has_context, has_context), strict=True):
            rows, model = np.flatnonzero(is_in_form), self.by_form.get(form, self.by_form[FORMS[0]])
            for start in range(0, len(rows), _CHUNK_TITLES):
                chunk = rows[start : start + _CHUNK_TITLES]
                margins[chunk] = model.margins(tokens.take(chunk), kinds, sentence_features[chunk])
        return margins

    def save(self, folder: Path) -> None:
        """Writes linear.safetensors into a folder."""
        arrays = {
            f"{form}.{name}": array
            for form, model in self.by_form.items()
            for name, array in vars(model).items()
        }
        write_linear_part(folder, self.label_names, arrays)

    @staticmethod
    def open(folder: Path) -> "LinearPart | None":
        """Opens the linear part in a folder; returns None if an older version wrote the folder."""
        if (files := read_linear_part(folder)) is None:
            return None
        names, arrays = files
        models = {
            form: FormModel(**{field.name: arrays[f"{form}.{field.name}"] for field in fields(FormModel)})
            for form in FORMS
            if f"{form}.idf" in arrays
        }
        return LinearPart(names, models)
