"""Clusters the vectors of titles. Chinese Whispers, DBSCAN and HDBSCAN determine the number of clusters.

For comparison, k-means and SimHash take a preset number. All strategies fulfil one contract, which
tests/contracts/test_clusterers.py checks: ``cluster(vectors, neighbours, *, seed)`` takes float32 vectors of
unit norm (or zero) and the nearest titles of each title, and returns a Partition with the largest cluster
first. The same inputs and seed give the same result, titles without a vector are in no cluster (*noise*), and
distant groups are in different clusters.
"""

from tasks.cluster.chinese_whispers import ChineseWhispers
from tasks.cluster.dbscan import DBSCAN
from tasks.cluster.scikit_learn import HDBSCAN, KMeans
from tasks.cluster.simhash_clusters import SimHashClusters

__all__ = ["DBSCAN", "HDBSCAN", "ChineseWhispers", "Clusterer", "KMeans", "SimHashClusters"]

Clusterer = ChineseWhispers | DBSCAN | HDBSCAN | KMeans | SimHashClusters
