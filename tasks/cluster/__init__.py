"""Vectors to Clustering: clusters without a preset k, with noise; for comparison, two with a preset k.

The contract of the family (tests/contracts/test_clusterers.py): ``cluster(vectors, neighbours, *, seed)``
takes float32 vectors of unit norm (or zero) and the nearest titles of each title, and gives a Partition with
the largest cluster first; one seed gives one result; titles without a vector are noise; far groups come
apart.
"""

from tasks.cluster.chinese_whispers import ChineseWhispers
from tasks.cluster.dbscan import DBSCAN
from tasks.cluster.scikit_learn import HDBSCAN, KMeans
from tasks.cluster.simhash_clusters import SimHashClusters

__all__ = ["DBSCAN", "HDBSCAN", "ChineseWhispers", "Clusterer", "KMeans", "SimHashClusters"]

Clusterer = ChineseWhispers | DBSCAN | HDBSCAN | KMeans | SimHashClusters
