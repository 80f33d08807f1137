"""Defines the settings of the stage cluster, which groups similar titles."""

from tasks.cluster import ChineseWhispers, Clusterer
from tasks.form import configurable, setting
from tasks.neighbours.index import SearchSettings


@configurable
class ClusterSettings:
    """Settings of the stage cluster: the strategy, its seeds, and the search for nearest titles."""

    strategy: Clusterer = setting(ChineseWhispers(), "Clustering strategy")
    seeds: int = setting(
        3, "Runs with different seeds; the run that agrees best with the others is kept", ge=1, le=100
    )
    seed: int = setting(0, "Seed of the first run", ge=0)
    # The exact search takes five minutes for 200,000 titles, and its time is quadratic in their number.
    search: SearchSettings = setting(
        SearchSettings(exact_below=200_000), "How the nearest titles of each title are found"
    )
