"""Clusters keep their numbers and colours from run to run."""

import numpy as np

from tasks.cluster.history import Identity, keep_identities


def shows(count: int) -> list[str]:
    return [f"show {number}" for number in range(count)]


def test_the_first_run_numbers_by_size():
    found, following, stayed = keep_identities(shows(4), np.array([0, 0, 1, -1]))
    assert found == [Identity(identity=0, colour=0), Identity(identity=1, colour=1)]
    assert following == 2 and stayed is None


def test_clusters_keep_identity_and_colour_when_numbers_change():
    previous = {f"show {number}": (0 if number < 6 else 1) for number in range(10)}
    known = [Identity(identity=7, colour=3), Identity(identity=2, colour=0)]
    names = [*shows(10), "new 1", "new 2", "new 3", "new 4"]
    labels = np.array([1] * 6 + [0] * 4 + [0] * 4)  # the smaller one has grown past the other
    found, following, stayed = keep_identities(names, labels, previous, known, 8)
    assert found == [known[1], known[0]]
    assert following == 8 and stayed == 1.0


def test_the_larger_part_of_a_split_cluster_keeps_its_identity():
    previous = dict.fromkeys(shows(10), 0)
    found, following, stayed = keep_identities(
        shows(10), np.array([0] * 7 + [1] * 3), previous, [Identity(identity=4, colour=2)], 5
    )
    assert found == [Identity(identity=4, colour=2), Identity(identity=5, colour=0)]
    assert following == 6 and stayed == 0.7


def test_a_cluster_of_other_titles_gets_a_new_identity():
    found, _, stayed = keep_identities(
        ["x", "y", "z"], np.array([0, 0, 0]), {"a": 0, "b": 0}, [Identity(identity=0, colour=0)], 1
    )
    assert found == [Identity(identity=1, colour=0)] and stayed is None


def test_merged_clusters_keep_the_identity_of_the_larger_one():
    previous = {f"show {number}": int(number >= 6) for number in range(10)}
    known = [Identity(identity=0, colour=0), Identity(identity=1, colour=1)]
    found, following, stayed = keep_identities(shows(10), np.zeros(10, int), previous, known, 2)
    assert found == [known[0]] and following == 2 and stayed == 0.6


def test_nothing_and_noise_alone():
    assert keep_identities([], np.zeros(0, int)) == ([], 0, None)
    assert keep_identities(["a"], np.array([-1]), {"a": 0}, [Identity(identity=0, colour=0)], 1) == (
        [],
        1,
        0.0,
    )
