"""Several tables with one cache, with the interface of TorchRec's ``EmbeddingBagCollection``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.embedding_bag import bounds_of_equal_bags, pool_rows

BatchT = TypeVar("BatchT")
Bags = Tensor | tuple[Tensor, Tensor]  # ids of bags of equal size, (bags, size); or ids and start of each bag


@dataclass(frozen=True, kw_only=True)
class EmbeddingBagConfig:
    """Table of a collection, and the features whose ids are rows of this table."""

    name: str
    num_embeddings: int
    embedding_dim: int
    feature_names: Sequence[str]
    pooling: Literal["sum", "mean"] = "sum"


class OffloadedEmbeddingBagCollection(OffloadedEmbedding):
    """Several tables of bags that share one cache. Tables with frequently used rows get more of the cache.

    The rows of all tables are stored in one table, ordered by id and then by table. Its first rows are always
    cached; they are the rows with small ids, which should be the frequent rows of each table.

    Args:
        tables: Tables of the collection, all with the same ``embedding_dim``.
        options: Other arguments of ``OffloadedEmbedding``, for all tables together.

    Raises:
        ValueError: Dimensions differ, or a table or a feature occurs twice.
    """

    def __init__(self, tables: Sequence[EmbeddingBagConfig], **options: Any) -> None:
        features = [feature for table in tables for feature in table.feature_names]
        for kind, names in ("table", [table.name for table in tables]), ("feature", features):
            if len(set(names)) < len(names):
                raise ValueError(f"a {kind} occurs twice in {names}; each needs a name of its own")
        if "padding_idx" in options:
            raise ValueError("a collection has no padding_idx; use bags of different sizes")
        if len(dims := {table.embedding_dim for table in tables}) != 1:
            remedy = "build a collection for each dimension and divide cache_bytes among them"
            raise ValueError(f"all tables need the same embedding_dim, got {sorted(dims)}; {remedy}")
        super().__init__(sum(table.num_embeddings for table in tables), dims.pop(), **options)
        self.tables = tuple(tables)
        self._table_of = {feature: table for table in tables for feature in table.feature_names}
        self.layout = [[table.name, table.num_embeddings] for table in tables]
        sizes = torch.tensor([table.num_embeddings for table in tables])
        self._ends = sizes.sort().values
        # if k tables have ended: the number of their rows, and for each table the number of tables before it
        # that have not ended
        self._ended_rows = F.pad(self._ends.cumsum(0), (1, 0))
        larger = (sizes > F.pad(self._ends, (1, 0)).unsqueeze(1)).long()
        self._before = larger.cumsum(1) - larger

    def row_numbers(self, table: int, ids: Tensor) -> Tensor:
        """Returns the row numbers in the common table, int64 of the shape of ``ids``.

        Row i of a table comes after the first i rows of all tables and after row i of the previous tables.

        Args:
            table: Position in ``tables``.
            ids: Rows of that table.

        Raises:
            IndexError: An id is negative or too large (on a GPU: a device-side assertion).
        """
        ids, rows = ids.long(), self.tables[table].num_embeddings
        valid = (ids >= 0) & (ids < rows)
        if ids.device.type == "cuda":  # synchronizing would stall the step
            torch._assert_async(valid.all())  # pyright: ignore[reportPrivateImportUsage]
        elif not valid.all():
            raise IndexError(f"id {int(ids[~valid][0])} of table {self.tables[table].name!r} of {rows} rows")
        ends, ended_rows, rows_before = (
            tensor.to(ids.device) for tensor in (self._ends, self._ended_rows, self._before[:, table])
        )
        ended = torch.searchsorted(ends, ids, right=True)
        return ended_rows[ended] + (len(ends) - ended) * ids + rows_before[ended]

    def prefetch(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, batches: Iterable[BatchT], ids: Callable[[BatchT], Mapping[str, Bags]]
    ) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next batches while a step runs.

        ``ids`` returns the features of a batch that ``forward`` will receive.
        """
        return super().prefetch(batches, lambda batch: [rows for rows, _ in self._parts(ids(batch)).values()])

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, features: Mapping[str, Bags], per_sample_weights: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Returns a vector per bag for each feature, (bags, embedding_dim), on the device.

        Args:
            features: By name, ids of bags of equal size, (bags, size), or ids of all bags, (any,), and the
                start of each bag, (bags,).
            per_sample_weights: Factors of ids by feature, of the shape of the ids; only with pooling "sum".

        Raises:
            ValueError: A feature is unknown, or has weights but not pooling "sum".
        """
        device, weights = self.table.device, per_sample_weights or {}
        on_device = {
            name: bags.to(device) if isinstance(bags, Tensor) else tuple(part.to(device) for part in bags)
            for name, bags in features.items()
        }
        parts = self._parts(on_device)
        for name in weights:
            if name not in parts or self._table_of[name].pooling != "sum":
                raise ValueError(
                    f"per_sample_weights of {name!r}: no feature of this batch with pooling 'sum'"
                )
        row_ids = [rows for rows, _ in parts.values()]
        rows, positions = self._rows_of(torch.cat(row_ids))
        positions = dict(zip(parts, positions.split([len(table) for table in row_ids]), strict=True))
        vectors: dict[str, Tensor] = {}
        for pooling in ("sum", "mean"):
            names = [name for name in parts if self._table_of[name].pooling == pooling]
            if not names:
                continue
            factors = [
                weights[name].to(device).flatten() if name in weights else rows.new_ones(len(positions[name]))
                for name in names
            ]
            # one call for all features, because each call has a gradient for all rows of the batch
            sizes = torch.cat([parts[name][1].diff() for name in names])
            pooled = pool_rows(
                rows,
                torch.cat([positions[name] for name in names]),
                F.pad(sizes.cumsum(0), (1, 0)),
                pooling,
                torch.cat(factors) if weights and pooling == "sum" else None,
            )
            counts = [len(parts[name][1]) - 1 for name in names]
            vectors |= zip(names, pooled.split(counts), strict=True)
        return {name: vectors[name] for name in features}

    def _parts(self, features: Mapping[str, Any]) -> dict[str, tuple[Tensor, Tensor]]:
        """Returns, for each feature, rows of the common table, (ids,), and offsets of bags, (bags + 1,)."""
        if unknown := features.keys() - self._table_of.keys():
            expected = ", ".join(self._table_of)
            raise ValueError(f"no table has the features {sorted(unknown)}; features are {expected}")
        parts = {}
        for name, bags in features.items():
            if isinstance(bags, Tensor):
                ids, bounds = bags.flatten(), bounds_of_equal_bags(bags)
            else:
                ids, bounds = bags[0], F.pad(bags[1], (0, 1), value=len(bags[0]))
            parts[name] = self.row_numbers(self.tables.index(self._table_of[name]), ids), bounds
        return parts

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        rows = destination.pop(prefix + "weight")
        for name, row_ids in self._weights(prefix):
            destination[name] = rows[row_ids]

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict, prefix, *arguments
    ) -> None:
        """Loads ``embedding_bags.TABLE.weight`` of each table, and resets the optimizer state."""
        rows, missing, errors = torch.zeros(len(self.table), self.embedding_dim), arguments[2], arguments[4]
        counts_before = len(missing), len(errors)
        for name, row_ids in self._weights(prefix):
            shape = len(row_ids), self.embedding_dim
            if name not in state_dict:
                missing.append(name)
            elif state_dict[name].shape != shape:
                errors.append(f"{name} has shape {tuple(state_dict[name].shape)}, expected {shape}")
            else:
                rows[row_ids] = state_dict[name].float()
        if counts_before == (len(missing), len(errors)):
            super()._load_from_state_dict({prefix + "weight": rows}, prefix, *arguments)

    def _weights(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        """Yields the name of each table in a state_dict and its rows in the common table."""
        for number, table in enumerate(self.tables):
            rows = self.row_numbers(number, torch.arange(table.num_embeddings))
            yield f"{prefix}embedding_bags.{table.name}.weight", rows
