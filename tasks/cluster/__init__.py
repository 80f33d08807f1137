"""Clusters titles by their vectors.

The strategies Chinese Whispers and DBSCAN determine the number of clusters. The strategy SimHash clusters
needs a preset number. All strategies have the method ``cluster(vectors, neighbours, *, seed)``. It takes
float32 vectors of unit norm (or zero) and the nearest titles of each title, and returns a Partition, in which
cluster 0 is the largest. ``uses_seed`` states whether the result depends on the seed.
tests/contracts/test_clusterers.py checks that equal inputs and an equal seed give an equal result, that
titles with a zero vector are in no cluster (they are *noise*), and that distant groups of titles are in
different clusters.
"""

from tasks.cluster.chinese_whispers import ChineseWhispers
from tasks.cluster.dbscan import DBSCAN
from tasks.cluster.simhash_clusters import SimHashClusters

__all__ = ["DBSCAN", "ChineseWhispers", "Clusterer", "SimHashClusters"]

Clusterer = ChineseWhispers | DBSCAN | SimHashClusters
