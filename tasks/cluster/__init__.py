"""Vectors to Clustering: groups without k, with noise.

The law of the family (tests/contracts/test_clusterers.py): ``cluster(vectors, neighbours, *, seed)`` gives a Partition
with the largest cluster first; one seed gives one result; titles without a vector are noise; two far groups come apart.
"""

from tasks.cluster.chinese_whispers import ChineseWhispers
from tasks.cluster.dbscan import DBSCAN

__all__ = ["DBSCAN", "ChineseWhispers", "Clusterer"]

Clusterer = ChineseWhispers | DBSCAN
