"""Vectors to Clustering: groups without k, with noise; beside them, to compare, two that are told how many.

The law of the family (tests/contracts/test_clusterers.py): ``cluster(vectors, neighbours, *, seed)`` gives a Partition
with the largest cluster first; one seed gives one result; titles without a vector are noise; two far groups come apart.
"""

from tasks.cluster.chinese_whispers import ChineseWhispers
from tasks.cluster.dbscan import DBSCAN
from tasks.cluster.hdbscan import HDBSCAN
from tasks.cluster.kmeans import KMeans
from tasks.cluster.simhash_clusters import SimHashClusters

__all__ = ["DBSCAN", "HDBSCAN", "ChineseWhispers", "Clusterer", "KMeans", "SimHashClusters"]

Clusterer = ChineseWhispers | DBSCAN | HDBSCAN | KMeans | SimHashClusters
