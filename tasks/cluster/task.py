"""Defines the Prefect task of the stage cluster, which groups similar titles and names the groups."""

import dataclasses
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Clustering, Corpus, NearestTitles, Vectors
from storage.formats.clustering import read_clusters, write_clustering
from storage.home.workspace import Workspace
from storage.name_lists import NameLists
from storage.stages import Stage, StageInputs
from tasks.cluster.candidates import CandidateFinder, NamingInputs, find_films, most_common_language
from tasks.cluster.graph import Neighbours
from tasks.cluster.history import Identity, keep_identities
from tasks.cluster.names import name_clusters
from tasks.cluster.parts import split_clusters
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import cluster_with_seeds
from tasks.neighbours.points import find_placeholders, read_points
from tasks.sentences.reopen import reopen

STAGE = Stage(Clustering, __file__)
COLUMNS = ["title", "show_key", "split", "labels", "channels", "context", "language"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteringInputs(StageInputs):
    """Inputs of the stage cluster; they determine its cache key."""

    corpus: Corpus
    vectors: Vectors
    nearest: NearestTitles
    settings: ClusterSettings


@task(**STAGE.options)
def cluster(home: str, inputs: ClusteringInputs, previous: Clustering | None = None) -> Clustering:
    """Clusters all titles that name a programme, and publishes clusters and subclusters with their names.

    Args:
        home: Folder in which all results are stored.
        inputs: Titles, vectors, nearest titles and settings.
        previous: Clustering of the previous run, whose identities and colours are continued; None if there is
            no previous run.
    """
    workspace = Workspace(home)
    corpus, vectors, nearest, settings = inputs.corpus, inputs.vectors, inputs.nearest, inputs.settings
    table = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=COLUMNS)
    is_placeholder = find_placeholders(table["split"])
    points = read_points(workspace.folder(vectors), "full", is_placeholder)
    seeds = range(settings.seed, settings.seed + (settings.seeds if settings.strategy.uses_seed else 1))
    recalls = workspace.details(nearest)  # without graph_recall in artifacts of earlier versions
    ids, cosines = (open_array(workspace.folder(nearest), name) for name in ("graph", "graph_cosines"))
    neighbours = Neighbours(np.asarray(ids), np.asarray(cosines))
    stability = cluster_with_seeds(settings.strategy, points, neighbours, seeds)
    partition = stability.typical
    if partition.note:
        get_run_logger().log(logging.WARNING if partition.collapsed else logging.INFO, partition.note)
    naming, table = _naming_inputs(workspace, corpus, table), table.select(["title", "show_key"])
    subclusters, parents = split_clusters(
        settings.strategy, points, partition.clusters, naming.sentence_vectors, seed=settings.seed
    )
    finder = CandidateFinder(naming)
    names = name_clusters(finder, points, partition.clusters)
    subcluster_names = name_clusters(finder, points, subclusters, [names[parent].name for parent in parents])
    previous_clusters, previous_identities, next_identity = _read_previous(workspace, previous)
    identities, next_identity, stayed_share = keep_identities(
        naming.shows, partition.clusters, previous_clusters, previous_identities, next_identity
    )

    with STAGE.publish(home, inputs) as draft:
        clusters = [vars(name) | vars(identity) for name, identity in zip(names, identities, strict=True)]
        subcluster_entries = [
            vars(name) | {"parent": parent} for name, parent in zip(subcluster_names, parents, strict=True)
        ]
        write_clustering(draft.folder, table, partition.clusters, clusters, subclusters, subcluster_entries)
        with_vector = int(points.any(axis=1).sum())
        noise = int((partition.clusters < 0).sum()) - (len(points) - with_vector)
        draft.counts |= {"titles": len(points), "clusters": partition.count, "noise": noise}
        draft.details |= {
            "strategy": settings.strategy.name,
            "seeds": len(seeds),
            "run_to_run_ari": stability.run_to_run_ari if len(seeds) > 1 else None,
            "noise_share": noise / with_vector if with_vector else 0.0,
            "largest_share": int((partition.clusters == 0).sum()) / with_vector if with_vector else 0.0,
            "iterations": partition.iterations,
            "collapsed": partition.collapsed,
            "stayed_share": stayed_share,
            "next_identity": next_identity,
            "corpus": corpus.digest,
            "nearest": nearest.path,
            "neighbour_recall": recalls.get("graph_recall", recalls["recall"]),
            "note": partition.note,
            "density": dataclasses.asdict(partition.density) if partition.density else None,
        }
    return draft.artifact


def _naming_inputs(workspace: Workspace, corpus: Corpus, table: pa.Table) -> NamingInputs:
    """Returns the data from which clusters are named; ``table`` has COLUMNS of the titles of the corpus."""
    folder = workspace.folder(corpus)
    sentence_vectors = open_array(folder, "sentences") if (folder / "sentences.npy").exists() else None
    encoder = None if sentence_vectors is None else reopen(workspace.details(corpus)["sentences"])
    return NamingInputs(
        titles=table["title"].to_pylist(),
        shows=table["show_key"].to_pylist(),
        labels=NameLists.from_column(table["labels"]),
        channels=NameLists.from_column(table["channels"]),
        is_film=find_films(NameLists.from_column(table["context"])),
        language=most_common_language(table["language"].to_pylist()),
        sentence_vectors=sentence_vectors,
        encode=encoder.encode if encoder else None,
    )


def _read_previous(
    workspace: Workspace, previous: Clustering | None
) -> tuple[dict[str, int] | None, list[Identity], int]:
    """Returns the arguments of ``keep_identities`` that describe the clusters of the previous run."""
    if previous is None or not (file := workspace.folder(previous) / "clusters.parquet").exists():
        return None, [], 0
    table = pq.read_table(file, columns=["show_key", "cluster"], filters=[("cluster", ">=", 0)]).to_pydict()
    clusters = read_clusters(workspace.folder(previous))
    identities = [Identity(cluster["identity"], cluster["colour"]) for cluster in clusters]
    cluster_by_show = dict(zip(table["show_key"], table["cluster"], strict=True))
    return cluster_by_show, identities, int(workspace.details(previous)["next_identity"])
