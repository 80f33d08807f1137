"""Finds, for held-out titles, the nearest training titles that air on other channels.

In real guides, categories are often missing for all programmes of a channel. This vote simulates the case: a
query (held-out title) has no channel tokens, and titles that share a channel with the query do not vote.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged, offsets_of
from storage.formats.corpus import OpenCorpus
from storage.formats.model import Votes
from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours.similarity import top_neighbours
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import NEIGHBOURS, support_of
from tasks.scoring.metrics import share_value
from tasks.scoring.protocols import CorpusTitles, sample_rows
from tasks.text.words import KINDS

CHANNEL = KINDS.index("channel")
CANDIDATES = 100  # nearest training titles, among which those on other channels vote
MAX_HELD_OUT = 2_000  # maximum number of held-out titles; a larger number is sampled


def channel_votes(corpus: OpenCorpus, encoder: TitleEncoder, part: LinearPart, vectors: np.ndarray) -> Votes:
    """Finds the nearest training titles on other channels, for a sample of held-out titles with channels.

    Args:
        corpus: All titles.
        encoder: Encoder that embeds the held-out titles without channel tokens.
        part: Linear part of the predictor.
        vectors: Vectors of all titles with airing context, float32 (titles, dim).
    """
    titles = CorpusTitles.from_corpus(corpus)
    table = pq.read_table(corpus.folder / "titles.parquet", columns=["raw_title", "context", "channels"])
    channels = table["channels"].combine_chunks()
    has_channel = np.asarray(channels.value_lengths().fill_null(0)) > 0
    queries = titles.held_out
    queries = sample_rows(queries[has_channel[queries]], MAX_HELD_OUT)
    rows = table.select(["raw_title", "context"]).take(queries)
    raw_titles, contexts = (column.to_pylist() for column in rows.columns)
    contexts = [[token for token in tokens if not token.startswith("channel:")] for tokens in contexts]
    features = encoder.bag.sentence_features(corpus.sentences[queries], corpus.descriptions[queries])
    tokens, kinds = corpus.tokens.take(queries), np.asarray(corpus.kinds)
    tokens = tokens.where(kinds[tokens.values] != CHANNEL)
    text_features = features if features.size else None
    query_vectors = encoder.embed_with_context(raw_titles, contexts, text_features, tokens)[1]
    ids, cosines = top_neighbours(query_vectors, vectors[titles.training], CANDIDATES)
    ids = np.append(titles.training, -1)[ids]
    ids, cosines = _select_voters(queries, ids, cosines, _channel_ids(channels))
    return Votes(queries, ids, cosines, support_of(part.margins(tokens, kinds, features)))


def _channel_ids(channels: pa.ListArray) -> Ragged:
    """Returns the ids of the channels of each title, numbered from 0."""
    names = channels.flatten().dictionary_encode()
    lengths = np.asarray(channels.value_lengths().fill_null(0))
    return Ragged(offsets_of(lengths), np.asarray(names.indices, dtype=np.int64))


def _select_voters(
    queries: np.ndarray, ids: np.ndarray, cosines: np.ndarray, channels: Ragged
) -> tuple[np.ndarray, np.ndarray]:
    """Selects the nearest neighbours that share no channel with the query.

    Args:
        queries: Row numbers of the queries.
        ids: Row numbers of the neighbours of each query, nearest first; -1: no neighbour.
        cosines: Cosine similarities of the neighbours.
        channels: Channel ids of all titles.

    Returns:
        ``ids`` and ``cosines`` of at most NEIGHBOURS neighbours per query, padded with -1 and 0.
    """
    channel_count = int(channels.values.max(initial=-1)) + 1
    is_on_channel = channels.take(queries).multi_hot(channel_count)  # (queries, channels)
    is_voter = (ids >= 0) & ~share_value(ids, is_on_channel, channels)
    order = np.argsort(~is_voter, axis=1, kind="stable")[:, :NEIGHBOURS]  # voters first, nearest first
    is_voter, ids, cosines = (np.take_along_axis(array, order, axis=1) for array in (is_voter, ids, cosines))
    return np.where(is_voter, ids, -1), np.where(is_voter, cosines, np.float32(0))
