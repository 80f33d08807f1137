"""Module of several embedding tables that share one cache, like TorchRec's ``EmbeddingBagCollection``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.embedding_bag import compute_equal_bag_offsets, pool_rows

BatchT = TypeVar("BatchT")
# Ids of bags of equal size, (bags, size), or the concatenated ids of all bags, (any,), and each bag's start.
Bags = Tensor | tuple[Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class EmbeddingBagConfig:
    """Table of a collection. The ids of the features ``feature_names`` are rows of this table."""

    name: str
    num_embeddings: int
    embedding_dim: int
    feature_names: Sequence[str]
    pooling: Literal["sum", "mean"] = "sum"


class OffloadedEmbeddingBagCollection(OffloadedEmbedding):
    """Several tables of bags that share one cache. Tables with frequently used rows get more of the cache.

    The rows of all tables are stored in one common table, sorted by id and then by table. The first rows of
    the common table are always cached. They have small ids, which should be the ids of frequent rows.

    Args:
        tables: Tables of the collection, all with the same ``embedding_dim``.
        options: Other arguments of ``OffloadedEmbedding``, for the common table.

    Raises:
        ValueError: The dimensions of the tables differ, or a table or a feature occurs twice.
    """

    def __init__(self, tables: Sequence[EmbeddingBagConfig], **options: Any) -> None:
        features = [feature for table in tables for feature in table.feature_names]
        for kind, names in ("table", [table.name for table in tables]), ("feature", features):
            if len(set(names)) < len(names):
                raise ValueError(f"a {kind} occurs twice in {names}; names must be different")
        if "padding_idx" in options:
            raise ValueError("a collection has no padding_idx; use bags of different sizes")
        if len(dims := {table.embedding_dim for table in tables}) != 1:
            remedy = "build a collection for each dimension and divide cache_bytes among them"
            raise ValueError(f"all tables need the same embedding_dim, got {sorted(dims)}; {remedy}")
        super().__init__(sum(table.num_embeddings for table in tables), dims.pop(), **options)
        self.tables = tuple(tables)
        self._feature_tables = {feature: table for table in tables for feature in table.feature_names}
        self.layout = [[table.name, table.num_embeddings] for table in tables]
        sizes = torch.tensor([table.num_embeddings for table in tables])
        self._sorted_sizes = sizes.sort().values
        # For each number k of tables: the number of rows of the k smallest tables, and, for each table, the
        # number of previous tables that are larger than the k smallest tables. ``row_numbers`` needs both.
        self._rows_of_smallest = F.pad(self._sorted_sizes.cumsum(0), (1, 0))
        is_larger = (sizes > F.pad(self._sorted_sizes, (1, 0)).unsqueeze(1)).long()
        self._larger_tables_before = is_larger.cumsum(1) - is_larger

    def row_numbers(self, table: int, ids: Tensor) -> Tensor:
        """Converts row numbers of a table to row numbers of the common table: int64, of the shape of ``ids``.

        Row i of a table follows the first i rows of all tables and row i of the previous tables.

        Args:
            table: Index of the table in ``tables``.
            ids: Row numbers in this table.

        Raises:
            IndexError: An id is negative or too large (on a GPU: a device-side assertion).
        """
        ids, rows = ids.long(), self.tables[table].num_embeddings
        is_valid = (ids >= 0) & (ids < rows)
        if ids.device.type == "cuda":  # synchronizing would stall the step
            torch._assert_async(is_valid.all())  # pyright: ignore[reportPrivateImportUsage]
        elif not is_valid.all():
            problem = f"id {int(ids[~is_valid][0])} is not in table {self.tables[table].name!r}"
            raise IndexError(f"{problem}, which has {rows} rows")
        tensors = self._sorted_sizes, self._rows_of_smallest, self._larger_tables_before[:, table]
        sorted_sizes, rows_of_smallest, larger_before = (tensor.to(ids.device) for tensor in tensors)
        smaller_count = torch.searchsorted(sorted_sizes, ids, right=True)  # number of tables without the row
        larger_count = len(sorted_sizes) - smaller_count
        return rows_of_smallest[smaller_count] + larger_count * ids + larger_before[smaller_count]

    def prefetch(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, batches: Iterable[BatchT], ids: Callable[[BatchT], Mapping[str, Bags]]
    ) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next batches while a step runs.

        ``ids`` is a function that returns the features of a batch, as ``forward`` will receive them.
        """
        return super().prefetch(
            batches, lambda batch: [rows for rows, _ in self._resolve_features(ids(batch)).values()]
        )

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, features: Mapping[str, Bags], per_sample_weights: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Returns, for each feature, a vector per bag: (bags, embedding_dim), on the device.

        Args:
            features: Bags by name of the feature: either ids of bags of equal size, (bags, size), or the
                concatenated ids of all bags, (any,), and the start of each bag, (bags,).
            per_sample_weights: Factors of the ids by name of the feature, of the shape of the ids; only with
                pooling "sum".

        Raises:
            ValueError: A feature is unknown, or has weights although its pooling is not "sum".
        """
        device, weights = self.table.device, per_sample_weights or {}
        device_features = {
            name: bags.to(device) if isinstance(bags, Tensor) else tuple(tensor.to(device) for tensor in bags)
            for name, bags in features.items()
        }
        feature_bags = self._resolve_features(device_features)
        for name in weights:
            if name not in feature_bags or self._feature_tables[name].pooling != "sum":
                problem = f"per_sample_weights has the feature {name!r}"
                raise ValueError(f"{problem}; only features of the batch with pooling 'sum' have weights")
        row_ids = [rows for rows, _ in feature_bags.values()]
        rows, all_positions = self._gather_distinct_rows(torch.cat(row_ids))
        split_positions = all_positions.split([len(rows_of_feature) for rows_of_feature in row_ids])
        positions = dict(zip(feature_bags, split_positions, strict=True))
        vectors: dict[str, Tensor] = {}
        for pooling in ("sum", "mean"):
            names = [name for name in feature_bags if self._feature_tables[name].pooling == pooling]
            if not names:
                continue
            factors = [
                weights[name].to(device).flatten() if name in weights else rows.new_ones(len(positions[name]))
                for name in names
            ]
            # One call pools all features, because each call computes a gradient for all rows of the batch.
            sizes = torch.cat([feature_bags[name][1].diff() for name in names])
            pooled_vectors = pool_rows(
                rows,
                torch.cat([positions[name] for name in names]),
                F.pad(sizes.cumsum(0), (1, 0)),
                pooling,
                torch.cat(factors) if weights and pooling == "sum" else None,
            )
            bag_counts = [len(feature_bags[name][1]) - 1 for name in names]
            vectors |= zip(names, pooled_vectors.split(bag_counts), strict=True)
        return {name: vectors[name] for name in features}

    def _resolve_features(self, features: Mapping[str, Any]) -> dict[str, tuple[Tensor, Tensor]]:
        """Returns, for each feature, the ids as rows of the common table, and the offsets, (bags + 1,)."""
        if unknown_features := features.keys() - self._feature_tables.keys():
            valid_features = ", ".join(self._feature_tables)
            problem = f"no table has the features {sorted(unknown_features)}"
            raise ValueError(f"{problem}; valid features: {valid_features}")
        feature_bags = {}
        for name, bags in features.items():
            if isinstance(bags, Tensor):
                ids, offsets = bags.flatten(), compute_equal_bag_offsets(bags)
            else:
                ids, offsets = bags[0], F.pad(bags[1], (0, 1), value=len(bags[0]))
            feature_bags[name] = self.row_numbers(self.tables.index(self._feature_tables[name]), ids), offsets
        return feature_bags

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        rows = destination.pop(prefix + "weight")
        for name, row_ids in self._state_dict_tables(prefix):
            destination[name] = rows[row_ids]

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict, prefix, *arguments
    ) -> None:
        """Loads the rows of all tables (``embedding_bags.TABLE.weight``), and resets the optimizer state."""
        strict, missing_keys, unexpected_keys, error_messages = arguments[1:]
        problems_before, names = len(missing_keys) + len(error_messages), set()
        rows = torch.zeros(len(self.table), self.embedding_dim)
        for name, row_ids in self._state_dict_tables(prefix):
            names.add(name)
            shape = len(row_ids), self.embedding_dim
            if name not in state_dict:
                missing_keys.append(name)
            elif state_dict[name].shape != shape:
                error_messages.append(f"{name} has shape {tuple(state_dict[name].shape)}, expected {shape}")
            else:
                rows[row_ids] = state_dict[name].float()
        if strict:
            unexpected_keys += [key for key in state_dict if key.startswith(prefix) and key not in names]
        if len(missing_keys) + len(error_messages) == problems_before:
            super()._load_from_state_dict({prefix + "weight": rows}, prefix, *arguments)

    def _state_dict_tables(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        """Yields, for each table, its name in a state_dict and its row numbers in the common table."""
        for index, table in enumerate(self.tables):
            rows = self.row_numbers(index, torch.arange(table.num_embeddings))
            yield f"{prefix}embedding_bags.{table.name}.weight", rows
