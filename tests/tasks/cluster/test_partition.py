"""Notes about partitions without groups."""

import numpy as np

from tasks.cluster.partition import build_partition, titles_by_cluster


def partition_of(labels, known=None):
    labels = np.array(labels, dtype=int)
    return build_partition(
        labels,
        np.ones(len(labels), bool) if known is None else np.array(known),
        minimum_size=2,
        note="A note.",
        remedy="lower eps.",
    )


def test_a_collapsed_partition_is_reported_with_a_remedy():
    assert (
        partition_of([5, 5, 5, 1, 1]).note == "A note. One cluster holds 3 of 5 titles: lower eps."
        and partition_of([5, 5, 5, 1, 1]).collapsed
    )


def test_only_noise_is_reported_if_titles_have_vectors():
    assert partition_of([1, 2, 3, -1]).note.startswith("A note. None of 4 titles is in a cluster")
    assert partition_of([1, 2, 3, -1]).count == 0 and not partition_of([1, 2, 3, -1]).collapsed
    assert partition_of([-1, -1], known=[False, False]).note == "A note." == partition_of([]).note


def test_normal_groups_add_no_note():
    assert partition_of([7, 7, 3, 3, 1]).note == "A note."


def test_members_are_the_titles_of_each_cluster():
    found = titles_by_cluster(np.array([1, 0, -1, 0, 2]))
    assert [own.tolist() for own in found] == [[1, 3], [0], [4]]
    assert titles_by_cluster(np.full(3, -1)) == titles_by_cluster(np.zeros(0, dtype=int)) == []
