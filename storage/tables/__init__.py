"""Stores embedding tables and their optimizer state in device memory, host memory or a mapped file.

The library does not import other packages of the project. With float32, training with any kind of table gives
the same rows as with a ``Resident`` table, bit for bit. Values of narrower types are rounded stochastically.
"""

from storage.tables.bag_collection import EmbeddingBagConfig, OffloadedEmbeddingBagCollection
from storage.tables.embedding import OffloadedEmbedding
from storage.tables.embedding_bag import OffloadedEmbeddingBag
from storage.tables.eviction import Eviction, FrequencyPrefix, LeastFrequentlyUsed
from storage.tables.host import Host
from storage.tables.model_files import load_model, save_model
from storage.tables.offloaded import Offloaded
from storage.tables.planner import Planner
from storage.tables.resident import Resident
from storage.tables.row_optimizer import RowOptimizer
from storage.tables.row_storage import StateInitializer, affordable_rows
from storage.tables.sharding import ShardedEmbedding, ShardedEmbeddingBag
from storage.tables.shared import Shared
from storage.tables.statistics import Statistics
from storage.tables.streaming import Section, as_section, random_rows, write_safetensors
from storage.tables.torch_optimizer import RowsOptimizer
from storage.tables.transfer import Staged, Transfer, TransferKind, check_kernels, choose_transfer
from storage.tables.updates import update_rows

Table = Resident | Offloaded

__all__ = ["Host", "Offloaded", "OffloadedEmbedding", "OffloadedEmbeddingBag", "Planner"]
__all__ += ["Eviction", "FrequencyPrefix", "LeastFrequentlyUsed"]
__all__ += ["EmbeddingBagConfig", "OffloadedEmbeddingBagCollection"]
__all__ += ["Resident", "RowOptimizer", "RowsOptimizer", "Section"]
__all__ += ["ShardedEmbedding", "ShardedEmbeddingBag"]
__all__ += ["Shared", "Staged", "StateInitializer", "Statistics", "Table", "Transfer", "TransferKind"]
__all__ += ["affordable_rows", "as_section", "check_kernels", "choose_transfer", "random_rows", "update_rows"]
__all__ += ["load_model", "save_model", "write_safetensors"]
